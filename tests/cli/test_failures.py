"""Each kind of error has its exit code, and is shown as lines that nothing untrusted can break out of."""

import pytest

from agentsh_net.cli.failures import Exit, Failure, failure
from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import ConfigError, KernelError, Problem, ProtocolError, StoreError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError([Problem("a", "1", "2")]), 2),
        (ProtocolError("bad filter"), 2),
        (StoreError("newer"), 3),
        (KernelError("no cgroup2"), 3),
        (ControlError("", kind="unreachable"), 4),
        (ControlError("", kind="forbidden"), 4),
        (ControlError("", kind="timeout"), 4),
        (ControlError("", kind="busy"), 4),
        (ControlError("", kind="config"), 2),
        (ControlError("", kind="already_running"), 2),
        (ControlError("", kind="store"), 3),
        (ControlError("", kind="denied"), 1),
        (ControlError("", kind="a kind of a later version"), 1),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    assert failure(error).exit_code == code


def test_a_store_at_a_place_that_cannot_be_is_the_fault_of_who_named_it():
    error = StoreError("there is no database at /nowhere")
    error.__cause__ = FileNotFoundError()
    assert failure(error).exit_code == 2


def test_problems_are_lines_and_the_remedy_is_the_last(capsys):
    Failure("one\ntwo", code=Exit.USAGE, remedy="do this").show()
    assert capsys.readouterr().err == "error: one\nerror: two\n  fix: do this\n"


def test_escapes_of_a_terminal_are_shown_and_not_sent(capsys):
    Failure("evil \x1b[2J", code=Exit.USAGE, remedy="\x9b1m").show()
    shown = capsys.readouterr().err
    assert shown == "error: evil <U+001B>[2J\n  fix: <U+009B>1m\n"


def test_an_error_without_words_is_still_a_line(capsys):
    Failure("", code=Exit.USAGE).show()
    assert capsys.readouterr().err == "error: \n"
