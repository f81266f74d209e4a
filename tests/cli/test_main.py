"""Every command explains itself, errors become a line, a remedy and an exit code, and start-up loads only what it needs."""

import subprocess
import sys

import click
import pytest

from agentsh_net.cli.main import COMMANDS, cli


def every_command(command=cli, path=()):
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            yield from every_command(command.get_command(click.Context(command), name), (*path, name))


ALL = list(every_command())


def test_exactly_these_commands_exist():
    assert {" ".join(path) for path, command in ALL if not isinstance(command, click.Group)} == {
        "run", "status", "reload", "down", "doctor", "tail", "watch", "version", "completion", "session new", "session list", "session end", "shim", "init", "exec", "demo",
        "mcp calls", "mcp events", "mcp detections", "mcp tools", "mcp servers",
        "mcp pins list", "mcp pins diff", "mcp pins trust", "mcp pins reset",
        "llm requests",
        "policy check", "policy explain", "policy suggest",
    }  # fmt: skip


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) or "agentsh-net" for path, _ in ALL])
def test_every_command_and_option_says_what_it_is_for(run, path, command):
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
    shown = run(*path, "--help")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("Usage:")


def test_the_socket_may_come_from_the_environment(monkeypatch, socket):
    from click.testing import CliRunner

    result = CliRunner(env={"AGENTSH_NET_SOCKET": str(socket)}).invoke(cli, ["status"])
    assert str(socket) in result.stderr


def test_an_unknown_command_is_a_usage_error(run):
    assert run("dance").exit_code == 2


@pytest.mark.parametrize("command", [("status",), ("mcp", "calls")])
def test_where_the_socket_is_named_is_told(run, command):
    result = run(*command, "--socket", "/run/x")
    assert result.exit_code == 2
    assert f"stands before the command: agentsh-net --socket FILE {command[0]} ..." in result.stderr


def test_without_a_daemon_the_exit_code_is_four_and_the_remedy_is_told(run):
    result = run("status")
    assert result.exit_code == 4
    assert result.stdout == ""
    assert result.stderr.startswith("error: no daemon answers at ")
    assert "fix: start it" in result.stderr


def test_a_directory_that_is_gone_is_told_without_a_traceback(run, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = run("init", "--out", tmp_path / "policy.yaml")
    assert (result.exit_code, result.stderr) == (3, "error: the directory that this shell is in is gone\n  fix: cd somewhere else\n")  # fmt: skip


def test_version_loads_neither_tables_nor_databases_nor_json():
    code = (
        "import sys; sys.argv = ['agentsh-net', 'version']\n"
        "from agentsh_net.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'rich', 'sqlite3', 'orjson', 'yaml', 'asyncio', 'agentsh_net.daemon', 'agentsh_net.core.configuration.settings'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert seen.stdout.splitlines()[1:] == ["[]"], seen.stderr


def test_the_module_runs_as_the_script_does():
    seen = subprocess.run([sys.executable, "-m", "agentsh_net", "version"], capture_output=True, text=True)
    assert (seen.returncode, seen.stdout.split()[0]) == (0, "agentsh-net")


def test_every_command_of_the_table_is_there():
    assert set(COMMANDS) == {path[0] for path, _ in ALL if path}


def test_ctrl_c_while_it_starts_is_no_traceback():
    code = (
        "import builtins, sys; whole = builtins.__import__\n"
        "def interrupted(name, *more):\n"
        "    if name == 'click': raise KeyboardInterrupt\n"
        "    return whole(name, *more)\n"
        "builtins.__import__ = interrupted\n"
        "from agentsh_net.__main__ import main; main()"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (seen.returncode, seen.stdout, seen.stderr) == (130, "", "")
