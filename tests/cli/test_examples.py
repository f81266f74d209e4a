"""Every command shows examples, each on a line of its own, and each is a command line that the program takes as it stands."""

import shlex

import click
import pytest

from agentsh_net.cli.examples import TITLE, examples
from agentsh_net.cli.main import cli

WITHOUT = {"version"}  # nothing can be said to it


def commands(group=cli, path=()):
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = list(commands())


def shown(command):
    return [line.strip() for line in (command.epilog or "").splitlines()[2:]]


LINES = [(path, line) for path, command in COMMANDS for line in shown(command)]


def test_examples_stand_below_their_title_as_they_were_written():
    @click.command(epilog=examples("a  b", "c"))
    def command():
        """Do it."""

    context = click.Context(command, terminal_width=20)
    assert command.get_help(context).endswith(f"  {TITLE}\n    a  b\n    c")


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS])
def test_every_command_has_examples(path, command):
    assert bool(shown(command)) is (path[-1] not in WITHOUT)


@pytest.mark.parametrize(("path", "line"), LINES, ids=[line for _, line in LINES])
def test_an_example_is_a_command_line_of_its_command(path, line):
    words = shlex.split(line.removeprefix('eval "$(').removesuffix(')"'))
    ours = [words[start:] for start, word in enumerate(words) if word == "agentsh-net"]
    ended = [_until(words[1:], {"&&", "|", ">"}) for words in ours]
    last = next(words for words in ended if words[: len(path)] == list(path))
    command = dict(COMMANDS)[path]
    with command.make_context(" ".join(path), last[len(path) :]) as context:
        assert context.command is command


def _until(words, ends):
    return words[: next((n for n, word in enumerate(words) if word in ends), len(words))]


@pytest.mark.parametrize("group", ["", "mcp", "mcp pins", "policy", "llm", "session"])
def test_what_a_group_says_of_its_commands_fits_a_terminal(run, group):
    told = run(*group.split(), "--help").stdout.partition("Commands:")[2]
    assert told and "..." not in told
    assert max(map(len, told.splitlines())) <= 80
