"""`block_mode: steer` through real workers: the SDKs read the steered answer, and the denied tool's name is in none of its calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import orjson
import pytest
from loopback.pool import RunningPool
from loopback.proxy import snapshot
from loopback.upstream import Received, chunked, response

STEERED, DENIED, ALLOWED = "agentsh_blocked_call", "delete_files", "get_weather"
CLAUDE = {"User-Agent": "claude-cli/2.1.0 (external, cli)"}
CODEX = {"User-Agent": "codex_cli_rs/0.169.0"}


def message() -> dict[str, Any]:
    calls = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": n, "input": {"a": 1}} for n in (DENIED, ALLOWED)
    ]
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": calls, "stop_reason": "tool_use",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip


def message_events() -> Iterator[bytes]:
    def event(kind: str, **data: Any) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **data}))

    whole = message()
    yield event("message_start", message=whole | {"content": [], "stop_reason": None})
    for index, block in enumerate(whole["content"]):
        yield event("content_block_start", index=index, content_block=block | {"input": {}})
        yield event(
            "content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": '{"a": 1}'}
        )
        yield event("content_block_stop", index=index)
    yield event(
        "message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 9}
    )
    yield event("message_stop")


def answer(output: list[Any], status: str = "completed") -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "gpt", "output": output,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def items() -> list[dict[str, Any]]:
    return [
        {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": n, "arguments": '{"a": 1}', "status": "completed"}
        for n in (DENIED, ALLOWED)
    ]  # fmt: skip


def answer_events() -> Iterator[bytes]:
    told = [("created", {"response": answer([], "in_progress")})]
    for at, item in enumerate(items()):
        where = {"output_index": at}
        told.append(
            ("output_item.added", {**where, "item": item | {"arguments": "", "status": "in_progress"}})
        )
        told.append(("function_call_arguments.delta", {**where, "item_id": item["id"], "delta": '{"a": 1}'}))
        told.append(
            ("function_call_arguments.done", {**where, "item_id": item["id"], "arguments": '{"a": 1}'})
        )
        told.append(("output_item.done", {**where, "item": item}))
    told.append(("completed", {"response": answer(items())}))
    for number, (kind, fields) in enumerate(told):
        name = f"response.{kind}"
        data = orjson.dumps({"type": name, "sequence_number": number, **fields})
        yield b"event: %b\ndata: %b\n\n" % (name.encode(), data)


async def provider(conversation: Any, received: Received) -> None:
    mine = b"/v1/messages" in received.line
    if orjson.loads(received.body).get("stream"):
        await conversation.send(*chunked(*(message_events() if mine else answer_events())))
    else:
        await conversation.send(response(orjson.dumps(message() if mine else answer(items()))))


@pytest.fixture(scope="module")
def pool() -> Iterator[RunningPool]:
    with RunningPool(provider, lambda port: snapshot(port, block_mode="steer")) as it:
        yield it


def ask_anthropic(base: str, agent: dict[str, str], *, stream: bool) -> list[tuple[str, Any]]:
    with anthropic.Anthropic(
        base_url=f"{base}/anthropic", api_key="k", max_retries=0, default_headers=agent
    ) as client:
        asked: Any = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        if stream:
            with client.messages.stream(**asked) as events:
                got = events.get_final_message()
        else:
            got = client.messages.create(**asked)
    assert got.stop_reason == "tool_use"
    return [(block.name, block.input) for block in got.content if block.type == "tool_use"]


def ask_openai(base: str, agent: dict[str, str], *, stream: bool) -> list[tuple[str, Any]]:
    with openai.OpenAI(
        base_url=f"{base}/openai/v1", api_key="k", max_retries=0, default_headers=agent
    ) as client:
        if stream:
            with client.responses.stream(model="gpt", input="hi") as events:
                for _ in events:
                    pass
                got = events.get_final_response()
        else:
            got = client.responses.create(model="gpt", input="hi")
    return [(item.name, orjson.loads(item.arguments)) for item in got.output if item.type == "function_call"]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("ask", "agent"), [(ask_anthropic, CLAUDE), (ask_openai, CODEX)], ids=["anthropic", "openai"]
)
def test_a_client_that_goes_on_gets_a_call_of_no_tool(pool, ask, agent, stream):
    pool.events.clear()
    steered, allowed = ask(pool.base, agent, stream=stream)
    assert allowed == (ALLOWED, {"a": 1})
    assert steered[0] == STEERED
    assert steered[1]["blocked"].startswith(f"[agentsh] Tool '{DENIED}' blocked by policy")
    assert [(e.tool_name, e.action) for e in pool.wait_for_events(2)] == [
        (DENIED, "block"),
        (ALLOWED, "allow"),
    ]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("ask", [ask_anthropic, ask_openai])
def test_every_other_client_gets_text(pool, ask, stream):
    assert ask(pool.base, {}, stream=stream) == [(ALLOWED, {"a": 1})]
