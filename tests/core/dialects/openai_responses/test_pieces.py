"""Calls of Mistral's streamed conversations: allowed ones pass to the byte, and no way to add pieces up makes a denied one of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.openai_responses.dialect import DIALECT
from agentsh_net.core.model import Action, ToolCall, Verdict

STARTED = {"type": "conversation.response.started", "conversation_id": "c"}
ENDED = {"type": "conversation.response.done", "usage": {"prompt_tokens": 1}}


def event(**fields: Any) -> bytes:
    return f"event: {fields['type']}\ndata: {json.dumps(fields)}\n\n".encode()


def piece(name: str, arguments: Any, index: int | None = 0, call_id: str = "t1", **more: Any) -> bytes:
    where = {} if index is None else {"output_index": index}
    ids = {"id": f"fc_{call_id}", "tool_call_id": call_id}
    return event(type="function.call.delta", **where, **ids, name=name, arguments=arguments, **more)


def judge(call: ToolCall) -> Verdict:
    """Deny `rm`, and `read` of /etc/x or of what is not known, as a rule over arguments does."""
    known = isinstance(call.input, dict) and not call.doubt
    bad = call.flaw or call.name == "rm" or (call.name == "read" and (not known or "/etc" in str(call.input)))
    return Verdict(Action.BLOCK if bad else Action.ALLOW, "denied" if bad else "", "")


def run(*events: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    stream = DIALECT.stream(judge, limits=Limits(), fail_closed=False)
    sent = b"".join((event(**STARTED), *events, event(**ENDED)))
    steps = [*(stream.feed(sent[at : at + 1]) for at in range(len(sent))), stream.finish()]
    told = [(found.call.name, found.verdict.action.value) for step in steps for found in step.judged]
    assert not [fault for step in steps for fault in step.faults]
    return b"".join(step.out for step in steps), told


def pieces_in(out: bytes) -> list[dict[str, Any]]:
    events = [json.loads(line[6:]) for line in out.split(b"\n") if line.startswith(b"data: ")]
    return [each for each in events if each["type"] == "function.call.delta"]


@pytest.mark.parametrize(
    "calls",
    [
        [piece("read", '{"path":"/tmp"}')],
        [piece("read", {"path": "/tmp"})],
        [piece("get", '{"a":'), piece("get", "1}")],
        [piece("get", "{}", None), piece("list", "{}", 1, "t2"), piece("get", "{}", 2, "t3")],
    ],
)
def test_allowed_calls_pass_to_the_byte(calls: list[bytes]) -> None:
    out, told = run(*calls)
    assert out == b"".join((event(**STARTED), *calls, event(**ENDED)))
    assert {action for _, action in told} == {"allow"}


def test_a_denied_call_becomes_text_once_and_others_stay() -> None:
    out, told = run(piece("rm", '{"a":'), piece("rm", "1}"), piece("get", "{}", 1, "t2"))
    assert [each["name"] for each in pieces_in(out)] == ["get"]
    assert out.count(b"event: message.output.delta\n") == 1
    assert b"[agentsh] Tool 'rm' blocked by policy: denied" in out
    assert told == [("rm", "block"), ("get", "allow")]


@pytest.mark.parametrize(
    "calls",
    [
        [piece("read", '{"path":"/e'), piece("read", 'tc/x"}')],
        [piece("read", "{"), piece("read", '"path":"/tmp"}')],
        [piece("get", '{"a":1'), piece("rm", "}")],
        [piece("get", '{"a":1'), piece("rm", "}", 0, "t2")],
        [piece("get", '{"a":1'), piece("rm", "}", 1)],
        [piece("get", '{"a":1'), piece("rm", "}", None)],
        [piece("read", '{"path":"/tmp"}'), piece("read", '{"path":"/etc/x"}')],
        [piece("read", '{"path":"/tmp"}'), piece("read", ',"path":"/etc/x"}')],
        [piece("", "{"), piece("rm", "}")],
        [piece("rm", "{}", call_id="")],
        [event(type="function.call.delta", name="rm", arguments="{}")],
        [piece("get", "{}", "0"), piece("rm", "{}", 0)],
        [piece("get", "{}", name2="x").replace(b'"name2"', b'"name"').replace(b'"x"', b'"rm"')],
        [event(type="function.call.delta", NAME="rm", Arguments="{}")],
    ],
)  # fmt: skip
def test_nothing_that_clients_add_up_to_a_denied_call_is_left(calls: list[bytes]) -> None:
    out, told = run(*calls)
    assert "block" in {action for _, action in told}, told
    by_index: dict[int, list[dict[str, Any]]] = {}
    for each in pieces_in(out):
        by_index.setdefault(each.get("output_index") or 0, []).append(each)
    for pieces in by_index.values():
        assert "rm" not in {each.get("name") for each in pieces}
        if pieces[0]["name"] == "read":
            assert json.loads("".join(each["arguments"] for each in pieces))["path"] == "/tmp"
