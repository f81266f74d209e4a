"""The words that APIs have for a call are heard in any pieces and spellings, and honest answers without one are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.foreign_calls import Ear, speaks_of_calls

CALLS: dict[str, Any] = {
    "Cohere v2": {"id": "x", "message": {"role": "assistant", "tool_plan": "p", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "rm"}}]}},
    "Cohere v1": {"tool_calls": [{"name": "rm", "parameters": {}}]},
    "Cohere stream": {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": {"id": "c"}}}},
    "Mistral conversations": {"object": "conversation.response", "outputs": [{"object": "entry", "type": "function.call", "name": "rm", "arguments": "{}"}]},
    "Assistants": {"status": "requires_action", "required_action": {"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": [{"id": "c"}]}}},
    "Cloudflare": {"result": {"tool_calls": [{"name": "rm", "arguments": {}}]}, "success": True},
    "ChatKit": {"data": [{"object": "chatkit.thread_item", "type": "chatkit.client_tool_call", "name": "rm"}]},
    "managed agents": {"type": "agent.custom_tool_use", "name": "rm", "input": {}},
    "Gemini": {"steps": [{"functionCall": {"name": "rm"}}]},
    "Interactions": {"outputs": [{"type": "function_call", "name": "rm"}]},
    "Bedrock agents": {"returnControl": {"invocationInputs": []}},
    "realtime": {"type": "response.function_call_arguments.done", "name": "rm"},
}  # fmt: skip
QUIET: dict[str, Any] = {
    "models": {"data": [{"id": "m", "supported_parameters": ["tools", "tool_choice", "function_call"], "supports_function_calling": True}]},
    "no calls": {"choices": [{"message": {"content": 'see "tool_calls": [{', "tool_calls": None, "function_call": None}}], "tool_calls": []},
    "an assistant": {"object": "assistant", "tools": [{"type": "function", "function": {"name": "rm"}}, {"type": "code_interpreter"}]},
    "results": {"data": [{"type": "function_call_output", "output": "x"}, {"type": "tool_result"}, {"type": "agent.mcp_tool_result"}]},
    "usage": {"object": "page", "data": [{"object": "organization.usage.web_search_calls.result"}]},
    "text": {"text": "event: tool"},
}  # fmt: skip


def hears(data: bytes, size: int) -> bool:
    ear = Ear()
    return any(ear.hears(data[at : at + size]) for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 9, 1 << 20])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_heard(name: str, size: int) -> None:
    text = json.dumps(CALLS[name])
    escaped = (
        text.replace("tool", "\\u0074ool")
        .replace("function", "\\u0066unction")
        .replace("ontrol", "\\u006Fntrol")
    )
    for each in (text, json.dumps(CALLS[name], indent=4), escaped, text.upper().replace("\\U", "\\u")):
        assert hears(each.encode(), size)
    assert hears(text.encode("utf-16"), size)


@pytest.mark.parametrize("name", QUIET)
def test_what_is_no_call_is_not(name: str) -> None:
    for text in (json.dumps(QUIET[name]), json.dumps(QUIET[name], indent=2)):
        assert not hears(text.encode(), 1 << 20)
        assert not hears(text.encode(), 5)


def test_the_name_of_an_event_is_enough() -> None:
    assert hears(b"event: tool-call-start\ndata: {}\n\n", 4)
    assert not hears(b"event: content-start\ndata: {}\n\n", 4)


def test_a_key_without_a_value_speaks_of_no_call() -> None:
    assert not speaks_of_calls(
        {"choices": [{"tool_calls": [], "function_call": None, "content": "tool_use"}]}
    )
    assert speaks_of_calls([{"a": {"Function_Call": {"name": "x"}}}])
