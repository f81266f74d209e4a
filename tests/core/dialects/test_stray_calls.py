"""A call in another API's format is told of by its name and never reaches the client; what only looks like one leaves as it came."""

from __future__ import annotations

import json
from typing import Any

import pytest
import transcripts.anthropic as messages
import transcripts.openai_chat as chat
import transcripts.openai_responses as responses

from agentsh_net.core.dialects.anthropic.dialect import DIALECT as ANTHROPIC
from agentsh_net.core.dialects.base import Dialect, Limits, Step
from agentsh_net.core.dialects.openai_chat.dialect import DIALECT as CHAT
from agentsh_net.core.dialects.openai_responses.dialect import DIALECT as RESPONSES
from agentsh_net.core.dialects.stray_calls import OF_CHAT, OF_MESSAGES, chat_calls, has_message_call
from agentsh_net.core.values import strict_json

RM = {"index": 0, "id": "call_0", "type": "function", "function": {"name": "rm", "arguments": "{}"}}
BLOCK = {"type": "tool_use", "id": "toolu_0", "name": "rm", "input": {}}
CHAT_CALL = {"choices": [{"index": 0, "delta": {"tool_calls": [RM]}, "finish_reason": None}]}


@pytest.mark.parametrize(
    ("delta", "names"),
    [
        ({"content": "Hello."}, []),
        ({"tool_calls": []}, []),
        ({"tool_calls": [RM, {"function": {"name": "ls"}}]}, ["rm", "ls"]),
        ({"tool_calls": [{"function": {"arguments": "{}"}}]}, [""]),
        ({"function_call": {"name": "rm"}}, ["rm"]),
    ],
)
def test_each_piece_of_a_chats_call_is_told_of(delta: dict[str, Any], names: list[str]) -> None:
    text = json.dumps({"type": "x", "choices": [{"index": 0, "delta": delta}]}).encode()
    assert chat_calls(strict_json.read(text)) == names


def test_what_one_parser_may_take_for_a_call_is_told_of_too() -> None:
    text = b'{"choices": [{"delta": {"tool_calls": []}}], "choices": []}'
    assert chat_calls(strict_json.read(text)) == [""]


@pytest.mark.parametrize(
    ("event", "has"),
    [
        ({"content_block": BLOCK}, True),
        ({"content_block": BLOCK | {"type": "server_tool_use"}}, True),
        ({"content_block": {"type": "text", "text": ""}}, False),
        ({"content_block": None}, False),
        ([BLOCK], False),
    ],
)
def test_a_messages_call_is_seen_where_it_begins(event: Any, *, has: bool) -> None:
    assert has_message_call(event) is has


def streamed(dialect: Dialect, data: bytes, *, enforced: bool = True) -> Step:
    stream = dialect.stream(
        messages.denying("rm"), limits=Limits(), fail_closed=False, enforce=lambda: enforced
    )
    fed, end = stream.feed(data), stream.finish()
    return Step(fed.out + end.out, fed.judged + end.judged, fed.faults + end.faults, fed.end or end.end)


def around(event: dict[str, Any]) -> list[tuple[Dialect, bytes, str]]:
    """Return whole answers with an event of another format in their midst."""
    data = b"event: x\ndata: " + json.dumps({"type": "x", **event}).encode() + b"\n\n"
    return [
        (ANTHROPIC, messages.begin() + messages.text(0, "Hi.") + data + messages.end("end_turn"), OF_CHAT),
        (CHAT, chat.text("Hi.") + data + chat.end("stop") + chat.DONE, OF_MESSAGES),
        (RESPONSES, responses.numbered([*responses.begin(), data, *responses.end()]), OF_CHAT),
    ]


@pytest.mark.parametrize("number", range(3))
def test_no_call_of_another_format_leaves(number: int) -> None:
    dialect, data, why = around({**CHAT_CALL, "content_block": BLOCK})[number]
    step = streamed(dialect, data)
    assert b'"rm"' not in step.out
    assert why in {judged.call.flaw for judged in step.judged}
    assert all(judged.verdict.blocked for judged in step.judged)
    assert (step.end, step.faults) == (False, ())
    assert step.out.count(b"\n\n") >= data.count(b"\n\n") - 1, "the answer goes on"


@pytest.mark.parametrize("number", range(3))
def test_where_nothing_is_enforced_it_leaves_and_is_told_of(number: int) -> None:
    dialect, data, why = around({**CHAT_CALL, "content_block": BLOCK})[number]
    step = streamed(dialect, data, enforced=False)
    assert step.out == data
    assert why in {judged.call.flaw for judged in step.judged}


@pytest.mark.parametrize("number", range(3))
def test_what_brings_no_call_leaves_as_it_came(number: int) -> None:
    harmless = {"choices": [{"index": 0, "delta": {"content": "a tool_call"}}], "content": "a tool_use"}
    dialect, data, _ = around(harmless)[number]
    assert streamed(dialect, data) == Step(data)
