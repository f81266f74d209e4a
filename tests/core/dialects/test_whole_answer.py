"""A whole answer leaves to the byte unless a call in it is refused; what cannot be read or rewritten never leaves half-judged."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.dialects.base import Fault
from agentsh_net.core.dialects.call_signs import may_hide_call
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.whole_answer import Rewrite, inspect_whole, is_harmless, is_harmless_json
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Action, ToolCall, Verdict
from agentsh_net.core.values.strict_json import Reading

BLOCK = Verdict(Action.BLOCK, "no")
PLAIN = b'{"plain":1}'


def as_it_is(_: Reading, __: Output) -> bytes | None:
    return None


def emptied(_: Reading, out: Output) -> bytes | None:
    out.judged(ToolCall("x"), BLOCK)
    return b"{}"


def cannot(_: Reading, out: Output) -> bytes | None:
    out.judged(ToolCall("x"), BLOCK)
    raise ProtocolError("no way to write it")


class Shape:
    """Of a dialect, what the reading of a whole answer asks."""

    def harmless(self, data: bytes) -> bool:
        return data == PLAIN

    def error(self, _: int, message: str) -> bytes:
        return b"error: " + message.encode()


def inspect(data: bytes, rewrite: Rewrite = as_it_is, *, fail_closed: bool = False, enforce: bool = True):
    return inspect_whole(Shape(), data, rewrite, fail_closed=fail_closed, enforce=enforce)


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
    assert all(fault == Fault(fault.cause, fault.detail, cut=False, would=True) for fault in step.faults)


UNREAD = {
    "an object": b'{"a": [1]}',
    "with space behind it": b'{"a": "Hi."}  \r\n',
    "on many lines": b'{\n  "a": [\n    true\n  ]\n}\n',
    "broken within": b'{"a": NaN, "b" "c"}',
}
PARSED = {
    "a list": b"[1]",
    "space before it": b' {"a": 1}',
    "other letters": '{"a": "\u2019\u00e9"}'.encode(),
    "escapes": b'{"a": "\\n\\u2019"}',
}
READ = {
    "a mark": b'{"tool_calls": []}',
    "a page": b"<html>",
    "cut short": b'{"a": [1',
    "cut short behind a brace, with letters that are none": b'{"a": {"b": "\xff"}',
    "no number": b"[NaN]",
    "a dropped byte": b'{"to\xffol": 1}',
    "a byte that is no letter": b'{"to\xc2ol": 1}',
    "hexadecimal escape": rb'{"to\x6fl": 1}',
    "octal escape": rb'{"to\157l": 1}',
    "escape in braces": rb'{"to\u{6f}l": 1}',
    "continued line": b'{"to\\\nol": 1}',
    "UTF-16": '{"tool": 1}'.encode("utf-16-le"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREAD)
def test_an_object_in_ascii_without_an_escape_leaves_unparsed(name: str, monkeypatch) -> None:
    monkeypatch.delattr(orjson, "loads")
    assert is_harmless(UNREAD[name])
    monkeypatch.undo()
    assert is_harmless_json(UNREAD[name], lambda data: b"mcp" in data) is (name != "broken within")


@pytest.mark.parametrize("name", PARSED)
def test_whatever_else_is_harmless_is_json_for_every_parser(name: str, monkeypatch) -> None:
    assert is_harmless(PARSED[name])
    monkeypatch.delattr(orjson, "loads")
    with pytest.raises(AttributeError):
        is_harmless(PARSED[name])


@pytest.mark.parametrize("name", READ)
def test_what_any_reader_may_take_for_more_than_what_stands_there_is_read(name: str) -> None:
    assert not is_harmless(READ[name])


def test_a_dialect_with_signs_of_its_own_lets_only_json_pass_unread() -> None:
    assert is_harmless_json(b'{"tool_calls": []}', lambda data: b"mcp" in data)
    assert not is_harmless_json(b'{"mcp": 1}', lambda data: b"mcp" in data)
    assert not is_harmless_json(b"{mcq: 1}", lambda data: b"mcp" in data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["tool", "function_call"]), inner)
        ),
    ),
    st.booleans(),
)
def test_of_json_it_is_decided_as_if_all_of_it_were_parsed(value: Any, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert is_harmless(data) is is_harmless_json(data, may_hide_call)


def test_what_is_merely_broken_and_no_call_to_anybody_passes_where_fail_closed_is_false() -> None:
    step = inspect(PLAIN + b" more")
    assert (step.out, [(f.cause, f.cut) for f in step.faults]) == (
        PLAIN + b" more",
        [("malformed_json", False)],
    )
