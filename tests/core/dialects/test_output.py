"""While verdicts are enforced what must be is stopped, and under fail_closed what cannot be read; the rest is told, and all of it else."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.base import Fault, Judged
from agentsh_net.core.dialects.output import Output, notice
from agentsh_net.core.model import Action, ToolCall, Verdict


def output(*, fail_closed: bool = False, enforce: bool = True) -> Output:
    return Output(fail_closed=fail_closed, error_frame=str.encode, enforce=enforce)


@pytest.mark.parametrize(
    ("enforce", "fail_closed", "must_cut", "cut"),
    [
        (True, False, False, False),
        (True, True, False, True),
        (True, False, True, True),
        (True, True, True, True),
        (False, False, False, False),
        (False, True, False, False),  # an audit blocks nothing, whatever fail_closed says
        (False, False, True, False),
        (False, True, True, False),
    ],
)
def test_a_fault_cuts_by_what_it_is(enforce: bool, fail_closed: bool, must_cut: bool, cut: bool) -> None:
    out = output(fail_closed=fail_closed, enforce=enforce)
    assert out.fault("cause", "detail", must_cut=must_cut) is (cut or must_cut)
    assert out.lost is (must_cut and not cut)
    out.relay(b"behind")
    error = b"response cut by agentsh-net: cause: detail"
    step = out.step()
    assert (step.out, step.end) == ((error, True) if cut else (b"behind", False))
    would = (must_cut or fail_closed) and not cut
    assert step.faults == (Fault("cause", "detail", cut, would=would, always=must_cut),)


def test_what_a_machine_writes_leaves_only_where_verdicts_are_enforced() -> None:
    for enforce in (True, False):
        out = output(enforce=enforce)
        out.write(b"made")
        out.relay(b"came")
        assert out.step().out == (b"madecame" if enforce else b"came")


def test_what_is_left_out_has_passed_where_nothing_is_enforced() -> None:
    out = output(enforce=False)
    out.dropped("event_out_of_place", "a stop")
    assert out.step().faults == (Fault("event_out_of_place", "a stop", cut=False, would=True, always=True),)


def test_what_is_left_out_is_told_and_ends_nothing() -> None:
    out = Output(fail_closed=True, error_frame=str.encode)
    out.dropped("event_out_of_place", "a stop")
    out.write(b"x")
    assert out.step() == (b"x", (), (Fault("event_out_of_place", "a stop", cut=True, always=True),), False)


def test_a_refusal_that_comes_too_late_is_told_as_what_it_was() -> None:
    out = Output(fail_closed=False, error_frame=str.encode, enforce=False)
    out.judged(ToolCall("x"), Verdict(Action.BLOCK, "no", "denied_tools"))
    assert out.step().judged == (
        Judged(ToolCall("x"), Verdict(Action.ALLOW, "no", "denied_tools", would=Action.BLOCK)),
    )


def test_the_notice_is_the_documented_text() -> None:
    assert notice("rm", "denied_tools") == "[agentsh] Tool 'rm' blocked by policy: denied_tools"
