"""A command is imported when it is asked for, and not before."""

import sys

import click
from click.testing import CliRunner

from agentsh_net.cli.lazy import LazyGroup


def group():
    @click.group(cls=LazyGroup, lazy={"later": "lazy_probe_module:command"})
    def root():
        pass

    @root.command()
    def now():
        """Run at once."""
        click.echo("now")

    return root


def test_a_lazy_command_is_imported_on_use(tmp_path, monkeypatch):
    (tmp_path / "lazy_probe_module.py").write_text(
        "import click\n@click.command()\ndef command():\n    'Run later.'\n    click.echo('later')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert CliRunner().invoke(group(), ["now"]).output == "now\n"
    assert "lazy_probe_module" not in sys.modules
    assert CliRunner().invoke(group(), ["later"]).output == "later\n"
    assert sys.modules.pop("lazy_probe_module")


def test_the_help_lists_both_kinds(tmp_path, monkeypatch):
    (tmp_path / "lazy_probe_module.py").write_text(
        "import click\n@click.command(help='Run later.')\ndef command(): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shown = CliRunner().invoke(group(), ["--help"]).output
    assert "later  Run later." in shown and "now    Run at once." in shown
    sys.modules.pop("lazy_probe_module")


def test_an_unknown_name_is_no_command():
    assert CliRunner().invoke(group(), ["never"]).exit_code == 2


def test_a_slip_is_told_the_nearest_name_though_it_was_never_imported():
    result = CliRunner().invoke(group(), ["latr"])
    assert result.exit_code == 2
    assert "No such command 'latr'. Did you mean 'later'?" in result.stderr
    assert "lazy_probe_module" not in sys.modules


def test_a_name_that_is_near_to_none_is_told_all_of_them():
    assert "There are: now, later." in CliRunner().invoke(group(), ["xyz"]).stderr


def test_an_unknown_option_of_a_group_is_no_command():
    assert "No such option" in CliRunner().invoke(group(), ["--never"]).stderr
