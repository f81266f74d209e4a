"""An event that brings a chat completion's calls tells of each by its name, and none of them is one to run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.openai_responses.chat_calls import chat_calls
from agentsh_net.core.values import strict_json


def entry(**function: str) -> dict[str, Any]:
    return {"index": 0, "id": "call_0", "type": "function", "function": function}


@pytest.mark.parametrize(
    ("delta", "names"),
    [
        ({"content": "Hello."}, []),
        ({"tool_calls": []}, []),
        ({"tool_calls": [entry(name="rm", arguments="{}"), entry(name="ls")]}, ["rm", "ls"]),
        ({"tool_calls": [entry(arguments="{}")]}, [""]),
        ({"function_call": {"name": "rm"}}, ["rm"]),
    ],
)
def test_each_piece_of_a_call_is_told_of(delta: dict[str, Any], names: list[str]) -> None:
    text = json.dumps({"type": "x", "choices": [{"index": 0, "delta": delta}]}).encode()
    found = chat_calls(strict_json.read(text))
    assert [call.name for call in found] == names
    assert all(call.flaw == "a chat completion's call within a response" for call in found)


def test_what_one_parser_may_take_for_a_call_is_told_of_too() -> None:
    text = b'{"choices": [{"delta": {"tool_calls": []}}], "choices": []}'
    found = chat_calls(strict_json.read(text))
    assert [call.flaw for call in found] == ["the key 'choices' stands twice"]
