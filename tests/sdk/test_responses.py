"""The Responses API through real workers: the official SDK is handed what policy allows, streamed, whole and retrieved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import orjson
import pytest
from loopback.pool import RunningPool
from loopback.proxy import snapshot
from loopback.upstream import Received, chunked, response

TRANSCRIPT = Path(__file__).parent.parent / "transcripts" / "openai_responses" / "two_calls.sse"
EVENTS = TRANSCRIPT.read_bytes()
# The transcript's tools under the names that the loopback policy knows.
ALLOWED, DENIED = "get_weather", "delete_files"


def renamed(stream: bytes) -> bytes:
    names = dict.fromkeys(
        call["name"] for call in completed(stream)["output"] if call["type"] == "function_call"
    )
    for old, new in zip(names, (ALLOWED, DENIED), strict=True):
        stream = stream.replace(f'"{old}"'.encode(), f'"{new}"'.encode())
    return stream


def completed(stream: bytes) -> dict[str, Any]:
    frames = [line[6:] for line in stream.split(b"\n") if line.startswith(b"data: ")]
    return next(v["response"] for v in map(orjson.loads, frames) if v["type"] == "response.completed")


async def provider(conversation: Any, received: Received) -> None:
    stream = renamed(EVENTS)
    wants_stream = b'"stream":true' in received.body.replace(b" ", b"")
    if wants_stream:
        await conversation.send(*chunked(*[f + b"\n\n" for f in stream.split(b"\n\n") if f]))
    else:
        await conversation.send(response(orjson.dumps(completed(stream))))


@pytest.fixture(scope="module")
def pool() -> Iterator[RunningPool]:
    with RunningPool(provider, snapshot) as it:
        yield it


def ask(base: str, how: str) -> Any:
    with openai.OpenAI(base_url=f"{base}/openai/v1", api_key="k", max_retries=0) as client:
        if how == "whole":
            return client.responses.create(model="gpt", input="hi")
        if how == "retrieved":
            return client.responses.retrieve("resp_1")
        with client.responses.stream(model="gpt", input="hi") as events:
            for _ in events:
                pass
            return events.get_final_response()


@pytest.mark.parametrize("how", ["stream", "whole", "retrieved"])
def test_the_agent_gets_exactly_the_calls_that_policy_allows(pool: RunningPool, how: str) -> None:
    pool.events.clear()
    answer = ask(pool.base, how)
    assert [item.name for item in answer.output if item.type == "function_call"] == [ALLOWED]
    assert f"Tool '{DENIED}' blocked by policy" in answer.output_text
    told = pool.wait_for_events(2)
    assert sorted((e.tool_name, e.action) for e in told) == [(DENIED, "block"), (ALLOWED, "allow")]
    assert {e.dialect for e in told} == {"openai_responses"}


def test_without_a_denial_every_call_arrives() -> None:
    with RunningPool(provider, lambda port: snapshot(port, enforce_policy=False)) as it:
        answer = ask(it.base, "stream")
        assert [item.name for item in answer.output if item.type == "function_call"] == [ALLOWED, DENIED]
