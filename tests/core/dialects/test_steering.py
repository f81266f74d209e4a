"""A steered call is a whole call of no tool in the place of the refused one, however the answer is cut, and the turn goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts import anthropic, openai_responses

from agentsh_net.core.dialects import steering
from agentsh_net.core.dialects.anthropic import dialect as messages
from agentsh_net.core.dialects.openai_responses import dialect as responses
from agentsh_net.core.model import Action, ToolCall, Verdict

DENIED, ALLOWED = "mcp__fs__delete", "mcp__weather__get"
NOTICE = f"[agentsh] Tool '{DENIED}' blocked by policy: because"


def judge(call: ToolCall) -> Verdict:
    if call.name == DENIED:
        return Verdict(Action.BLOCK, "because", steered=not call.server_name)
    return Verdict(Action.ALLOW, "")


def cuttings(data: bytes) -> list[list[bytes]]:
    """Return `data` whole, byte by byte, and in pieces of some sizes: what cutting does is the machines' own tests' claim."""
    return [[data[at : at + size] for at in range(0, len(data), size)] for size in (len(data), 1, 13, 97)]


def events(out: bytes) -> list[dict[str, Any]]:
    lines = [line[6:] for line in out.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]


ANTHROPIC = (
    anthropic.begin()
    + anthropic.text(0, "Hello.")
    + anthropic.call(1, DENIED, {"path": "/x"}, call_id="toolu_9")
    + anthropic.call(2, ALLOWED, {"city": "Bern"})
    + anthropic.end()
)


def test_an_anthropic_stream_goes_on_with_a_call_of_no_tool() -> None:
    for chunks in cuttings(ANTHROPIC):
        out = anthropic.run(chunks, judge).out
        made = [e for e in events(out) if e.get("index") == 1]
        assert [e["type"] for e in made] == [
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
        ]
        block = {"type": "tool_use", "id": "toolu_9", "name": steering.NAME, "input": {}}
        assert made[0]["content_block"] == block
        assert json.loads(made[1]["delta"]["partial_json"]) == {"blocked": NOTICE}
        assert out.startswith(anthropic.begin() + anthropic.text(0, "Hello."))
        assert out.endswith(anthropic.call(2, ALLOWED, {"city": "Bern"}) + anthropic.end())
        assert b"/x" not in out


@pytest.mark.parametrize("names", [[DENIED], [DENIED, ALLOWED]])
def test_a_whole_anthropic_answer_ends_for_its_tools(names: list[str]) -> None:
    blocks = [
        {"type": "tool_use", "id": f"t{at}", "name": name, "input": {"a": 1}} for at, name in enumerate(names)
    ]
    body = {"type": "message", "content": blocks, "stop_reason": "tool_use"}
    got = json.loads(messages.DIALECT.body(json.dumps(body).encode(), judge, fail_closed=False).out)
    assert got["stop_reason"] == "tool_use"
    assert got["content"][0] == {
        "type": "tool_use",
        "id": "t0",
        "name": steering.NAME,
        "input": {"blocked": NOTICE},
    }
    assert got["content"][1:] == blocks[1:]


def test_what_the_provider_ran_is_text_all_the_same() -> None:
    block = {"type": "mcp_tool_use", "id": "m", "name": DENIED, "server_name": "fs", "input": {}}
    body = json.dumps({"type": "message", "content": [block]}).encode()
    got = json.loads(messages.DIALECT.body(body, judge, fail_closed=False).out)
    assert got["content"] == [{"type": "text", "text": NOTICE}]


def call(name: str, kind: str = "function_call") -> dict[str, Any]:
    return {"type": kind, "id": "fc_1", "call_id": "call_1", "name": name, "arguments": '{"path": "/x"}'}


def test_a_responses_stream_goes_on_with_a_call_of_no_tool() -> None:
    item = call(DENIED)
    sent = openai_responses.numbered(
        [
            {"type": "response.created", "response": {"id": "r", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
            *(
                {
                    "type": "response.function_call_arguments.delta",
                    "output_index": 0,
                    "item_id": "fc_1",
                    "delta": part,
                }
                for part in item["arguments"]
            ),
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "r", "output": [item]}},
        ]
    )
    for chunks in cuttings(sent):
        made = events(openai_responses.run(chunks, judge).out)
        assert [e["sequence_number"] for e in made] == list(range(len(made)))
        assert [e["type"].removeprefix("response.") for e in made] == [
            "created", "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done", "completed",
        ]  # fmt: skip
        done = made[4]["item"]
        assert (done["id"], done["call_id"], done["name"]) == ("fc_1", "call_1", steering.NAME)
        assert json.loads(done["arguments"]) == {"blocked": NOTICE}
        assert made[2]["delta"] == made[3]["arguments"] == done["arguments"]
        assert made[5]["response"]["output"] == [done]


def test_calls_of_other_kinds_are_a_message() -> None:
    body = json.dumps({"id": "r", "output": [call(DENIED, "custom_tool_call")]}).encode()
    got = json.loads(responses.DIALECT.body(body, judge, fail_closed=False).out)
    assert [item["type"] for item in got["output"]] == ["message"]
