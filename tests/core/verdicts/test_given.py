"""A call's arguments are what the server would read, within a client's own tool too, or it is said why nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.model import ToolCall
from agentsh_net.core.verdicts.given import Given, given_by, parsed


@pytest.mark.parametrize("value", [None, "", {}])
def test_no_arguments_are_an_empty_object(value: Any) -> None:
    assert given_by(ToolCall("x", input=value)) == Given({})


@pytest.mark.parametrize(
    ("call", "doubt"),
    [
        (ToolCall("x", input="{not json"), "they are no JSON object"),
        (ToolCall("x", input=[1]), "they are no JSON object"),
        (ToolCall("x", input={"a": 1}, doubt="why"), "why"),
        (ToolCall("x", hypothetical=True), "nobody knows what another reading's arguments would be"),
    ],
)
def test_what_cannot_be_read_is_in_doubt(call: ToolCall, doubt: str) -> None:
    assert given_by(call) == Given({}, doubt)


@pytest.mark.parametrize(
    ("inner", "given"),
    [
        ({"arguments": '{"path": "a"}'}, Given({"path": "a"})),
        ({"args": {"path": "a"}}, Given({"path": "a"})),
        ({"tool_input": {"path": "a"}}, Given({"path": "a"})),
        ({}, Given({})),
        ({"arguments": '{"path": "a", "path": "b"}'}, Given({}, "they are no JSON object")),
        ({"arguments": "nope"}, Given({}, "they are no JSON object")),
        ({"arguments": {}, "input": {}}, Given({}, "two arguments in one wrapper")),
    ],
)
def test_a_wrappers_arguments_are_the_inner_ones(inner: dict[str, Any], given: Given) -> None:
    call = ToolCall("use_mcp_tool", input={"server_name": "fs", "tool_name": "x", **inner})
    assert given_by(call, wrapped=True) == given


@pytest.mark.parametrize(
    ("value", "said"), [('{"a": 1}', {"a": 1}), ("7", 7), ("", ""), ('{"a": 1, "a": 2}',) * 2, ("nope",) * 2, ([1],) * 2]
)  # fmt: skip
def test_a_text_is_what_it_says_where_that_is_certain(value: Any, said: Any) -> None:
    assert parsed(value) == said
