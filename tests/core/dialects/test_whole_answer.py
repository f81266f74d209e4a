"""A whole answer leaves to the byte unless a call in it is refused; what cannot be read or rewritten never leaves half-judged."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.whole_answer import Rewrite, whole
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Action, ToolCall, Verdict
from agentsh_net.core.values.strict_json import Reading

BLOCK = Verdict(Action.BLOCK, "no")
PLAIN = b'{"plain":1}'


def as_it_is(_: bytes, __: Reading, ___: Judge, ____: Output) -> bytes | None:
    return None


def emptied(_: bytes, __: Reading, ___: Judge, out: Output) -> bytes | None:
    out.judged(ToolCall("x"), BLOCK)
    return b"{}"


def cannot(_: bytes, __: Reading, ___: Judge, out: Output) -> bytes | None:
    out.judged(ToolCall("x"), BLOCK)
    raise ProtocolError("no way to write it")


def told(_: int, message: str) -> bytes:
    return b"error: " + message.encode()


def inspect(data: bytes, rewrite: Rewrite = as_it_is, *, fail_closed: bool = False, enforce: bool = True):
    body = whole(rewrite, told, harmless=lambda text: text == PLAIN)
    return body(data, lambda _: BLOCK, fail_closed=fail_closed, enforce=enforce)


def test_what_no_parser_takes_for_a_call_is_not_read() -> None:
    assert inspect(PLAIN, cannot) == (PLAIN, (), (), False)


def test_an_answer_without_a_refusal_leaves_to_the_byte() -> None:
    assert inspect(b'{"a" : 1.0}') == (b'{"a" : 1.0}', (), (), False)


def test_an_answer_is_what_its_rewriting_made_of_it() -> None:
    step = inspect(b'{"a":1}', emptied)
    assert step.out == b"{}"
    assert [j.verdict for j in step.judged] == [BLOCK]
    assert not step.end


@pytest.mark.parametrize("fail_closed", [False, True])
@pytest.mark.parametrize("enforce", [False, True])
@pytest.mark.parametrize(
    ("data", "cause"), [(b'{"a":', "malformed_json"), (b'{"a":"\xff"}', "invalid_utf8")], ids=["broken", "utf8"]
)  # fmt: skip
def test_what_is_broken_goes_by_fail_closed(
    data: bytes, cause: str, enforce: bool, fail_closed: bool
) -> None:
    step = inspect(data, enforce=enforce, fail_closed=fail_closed)
    cut = fail_closed and enforce
    assert [(f.cause, f.cut, f.would) for f in step.faults] == [(cause, cut, fail_closed and not enforce)]
    assert step.end is cut
    assert step.out.startswith(b"error: ") if cut else step.out == data


@pytest.mark.parametrize(
    "data",
    ['{"tool":1}'.encode("utf-16"), b"[" * 300 + b"]" * 300, b'{"tool":1} more', b'\xc2\xa0{"tool":1}'],
    ids=["utf-16", "deep", "more behind", "odd space"],
)
@pytest.mark.parametrize("fail_closed", [False, True])
def test_what_other_parsers_may_read_leaves_only_where_nothing_is_enforced(
    data: bytes, fail_closed: bool
) -> None:
    step = inspect(data, fail_closed=fail_closed)
    assert (step.end, [(f.cause, f.cut) for f in step.faults]) == (True, [("unreadable_json", True)])
    watched = inspect(data, enforce=False, fail_closed=fail_closed)
    assert watched.out == data
    assert [(f.cut, f.would) for f in watched.faults] == [(False, True)]


def test_what_was_judged_and_cannot_be_rewritten_does_not_leave() -> None:
    step = inspect(b'{"a":1}', cannot)
    assert step.end
    assert step.out.startswith(b"error: ")
    assert [f.cause for f in step.faults] == ["malformed_json"]


@pytest.mark.parametrize("rewrite", [emptied, cannot])
def test_where_nothing_is_enforced_the_text_stays_whatever_was_made_of_it(rewrite: Rewrite) -> None:
    step = inspect(b'{"a":1}', rewrite, enforce=False, fail_closed=True)
    assert (step.out, step.end) == (b'{"a":1}', False)
    assert [(j.verdict.blocked, j.verdict.denied) for j in step.judged] == [(False, True)]
    assert all((fault.cut, fault.would) == (False, True) for fault in step.faults)


def test_what_is_merely_broken_and_no_call_to_anybody_passes_where_fail_closed_is_false() -> None:
    step = inspect(PLAIN + b" more")
    assert (step.out, [(f.cause, f.cut) for f in step.faults]) == (
        PLAIN + b" more",
        [("malformed_json", False)],
    )
