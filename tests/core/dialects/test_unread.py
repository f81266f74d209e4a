"""A whole answer leaves unread where no reader could find a call in it, and is parsed wherever one might."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.dialects.call_signs import may_hide_call
from agentsh_net.core.dialects.unread import is_harmless, is_harmless_json

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
