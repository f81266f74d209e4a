"""What the official SDKs finally return is what policy decided, and the audit has it: through real worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
import orjson
import pytest
from loopback.pool import RunningPool
from loopback.proxy import snapshot
from loopback.upstream import Received, Upstream, chunked, response

ALLOWED, DENIED, UNKNOWN = "get_weather", "delete_files", "never_registered"
NOTICE = "[agentsh] Tool 'delete_files' blocked by policy"
INPUT = {"path": "/etc/\u00fc", "n": 1.5}

# name of the case -> the tools that the model calls, those that the agent may run, the reason for which the turn then ends
CASES = {
    "single blocked": ([DENIED], [], "end"),
    "single allowed": ([ALLOWED], [ALLOWED], "tool"),
    "partial": ([DENIED, ALLOWED], [ALLOWED], "tool"),
    "partial, allowed first": ([ALLOWED, DENIED], [ALLOWED], "tool"),
    "all blocked": ([DENIED, DENIED], [], "end"),
    "unregistered": ([UNKNOWN], [UNKNOWN], "tool"),
    "text only": ([], [], "end"),
}


# A provider that calls the tools that the request names in `metadata.user_id` (anthropic) or `user` (openai).


def anthropic_message(names: list[str]) -> dict[str, Any]:
    calls = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": INPUT} for n, name in enumerate(names)
    ]
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [{"type": "text", "text": "Hello."}, *calls],
        "stop_reason": "tool_use" if names else "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip


def anthropic_stream(names: list[str]) -> Iterator[bytes]:
    def event(kind: str, **data: Any) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **data}))

    message = anthropic_message(names)
    yield event("message_start", message=message | {"content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            yield event(
                "content_block_delta", index=index, delta={"type": "text_delta", "text": block["text"]}
            )
        else:
            yield event("content_block_start", index=index, content_block=block | {"input": {}})
            written = orjson.dumps(block["input"]).decode()
            for part in (written[:7], written[7:]):
                yield event(
                    "content_block_delta",
                    index=index,
                    delta={"type": "input_json_delta", "partial_json": part},
                )
        yield event("content_block_stop", index=index)
    yield event(
        "message_delta",
        delta={"stop_reason": message["stop_reason"], "stop_sequence": None},
        usage={"output_tokens": 9},
    )
    yield event("message_stop")


def openai_completion(names: list[str]) -> dict[str, Any]:
    calls = [
        {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": name, "arguments": orjson.dumps(INPUT).decode()},
        }
        for n, name in enumerate(names)
    ]
    message = {"role": "assistant", "content": "Hello.", "refusal": None} | (
        {"tool_calls": calls} if calls else {}
    )
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if names else "stop",
    }
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt", "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }  # fmt: skip


def openai_stream(names: list[str]) -> Iterator[bytes]:
    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return b"data: %b\n\n" % orjson.dumps(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "gpt",
                "choices": [choice],
            }
        )

    yield event({"role": "assistant", "content": "Hello."})
    for n, name in enumerate(names):
        written = orjson.dumps(INPUT).decode()
        yield event(
            {
                "tool_calls": [
                    {
                        "index": n,
                        "id": f"call_{n}",
                        "type": "function",
                        "function": {"name": name, "arguments": ""},
                    }
                ]
            }
        )
        for part in (written[:7], written[7:]):
            yield event({"tool_calls": [{"index": n, "function": {"arguments": part}}]})
    yield event({}, "tool_calls" if names else "stop")
    yield b"data: [DONE]\n\n"


async def provider(conversation: Any, received: Received) -> None:
    body = orjson.loads(received.body)
    mine = received.line.split()[1] == b"/v1/messages"
    asked = body["metadata"]["user_id"] if mine else body["user"]
    names = [name for name in asked.split(",") if name]
    if body.get("stream"):
        await conversation.send(*chunked(*(anthropic_stream if mine else openai_stream)(names)))
    else:
        await conversation.send(
            response(orjson.dumps((anthropic_message if mine else openai_completion)(names)))
        )


# What an SDK gives its caller in the end.


@dataclass
class Result:
    calls: list[tuple[str, Any]]
    text: str
    reason: str
    ids: list[str] = field(default_factory=list)


def of_message(message: anthropic.types.Message) -> Result:
    uses = [b for b in message.content if b.type == "tool_use"]
    texts = [b.text for b in message.content if b.type == "text"]
    reason = {"tool_use": "tool", "end_turn": "end"}[message.stop_reason]
    return Result([(u.name, u.input) for u in uses], "".join(texts), reason, [u.id for u in uses])


def of_completion(completion: Any) -> Result:
    (choice,) = completion.choices
    uses = choice.message.tool_calls or []
    reason = {"tool_calls": "tool", "stop": "end"}[choice.finish_reason]
    calls = [(u.function.name, orjson.loads(u.function.arguments)) for u in uses]
    return Result(calls, choice.message.content or "", reason, [u.id for u in uses])


def anthropic_request(names: list[str]) -> dict[str, Any]:
    return {
        "model": "claude", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}], "metadata": {"user_id": ",".join(names)},
    }  # fmt: skip


def openai_request(names: list[str]) -> dict[str, Any]:
    return {"model": "gpt", "messages": [{"role": "user", "content": "hi"}], "user": ",".join(names)}


def ask_anthropic(base: str, names: list[str], *, stream: bool) -> Result:
    with anthropic.Anthropic(base_url=f"{base}/anthropic", api_key="k", max_retries=0) as client:
        if not stream:
            return of_message(client.messages.create(**anthropic_request(names)))
        with client.messages.stream(**anthropic_request(names)) as events:
            return of_message(events.get_final_message())


async def ask_anthropic_async(base: str, names: list[str], *, stream: bool) -> Result:
    async with anthropic.AsyncAnthropic(base_url=f"{base}/anthropic", api_key="k", max_retries=0) as client:
        if not stream:
            return of_message(await client.messages.create(**anthropic_request(names)))
        async with client.messages.stream(**anthropic_request(names)) as events:
            return of_message(await events.get_final_message())


def ask_openai(base: str, names: list[str], *, stream: bool) -> Result:
    with openai.OpenAI(base_url=f"{base}/openai/v1", api_key="k", max_retries=0) as client:
        if not stream:
            return of_completion(client.chat.completions.create(**openai_request(names)))
        with client.chat.completions.stream(**openai_request(names)) as events:
            for _ in events:
                pass
            return of_completion(events.get_final_completion())


async def ask_openai_async(base: str, names: list[str], *, stream: bool) -> Result:
    async with openai.AsyncOpenAI(base_url=f"{base}/openai/v1", api_key="k", max_retries=0) as client:
        if not stream:
            return of_completion(await client.chat.completions.create(**openai_request(names)))
        async with client.chat.completions.stream(**openai_request(names)) as events:
            async for _ in events:
                pass
            return of_completion(await events.get_final_completion())


CLIENTS = {
    "anthropic": ask_anthropic,
    "anthropic async": lambda *a, **k: asyncio.run(ask_anthropic_async(*a, **k)),
    "openai": ask_openai,
    "openai async": lambda *a, **k: asyncio.run(ask_openai_async(*a, **k)),
}


@pytest.fixture(scope="module")
def pool() -> Iterator[RunningPool]:
    with RunningPool(provider, snapshot) as it:
        yield it


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("case", CASES)
def test_the_agent_gets_exactly_the_calls_that_policy_allows(pool, case, client, stream):
    names, allowed, reason = CASES[case]
    pool.events.clear()
    result = CLIENTS[client](pool.base, names, stream=stream)
    assert result.calls == [(name, INPUT) for name in allowed]
    assert result.ids == [
        id_
        for id_, name in zip(
            (f"{'toolu' if 'anthropic' in client else 'call'}_{n}" for n in range(9)), names, strict=False
        )
        if name in allowed
    ]
    assert result.reason == reason
    assert result.text.startswith("Hello.")
    assert result.text.count(NOTICE) == names.count(DENIED)
    if DENIED not in names:
        assert result.text == "Hello."
    told = pool.wait_for_events(len(names))
    assert [(e.tool_name, e.action, e.input) for e in told] == [
        (n, "block" if n == DENIED else "allow", INPUT) for n in names
    ]
    assert [e.server_id for e in told] == [
        {ALLOWED: "weather", DENIED: "files", UNKNOWN: ""}[n] for n in names
    ]
    assert all(e.dialect == client.split()[0] and e.session_id == "default" for e in told)


@pytest.mark.parametrize("client", CLIENTS)
def test_under_fail_closed_an_unregistered_call_is_blocked(client):
    with RunningPool(provider, lambda port: snapshot(port, fail_closed=True)) as it:
        for stream in (True, False):
            result = CLIENTS[client](it.base, [UNKNOWN, ALLOWED], stream=stream)
            assert [name for name, _ in result.calls] == [ALLOWED]
            assert f"Tool '{UNKNOWN}' blocked by policy" in result.text


@pytest.mark.parametrize("client", CLIENTS)
def test_in_audit_mode_every_call_arrives_and_the_events_say_what_would_have_been(client):
    with RunningPool(provider, lambda port: snapshot(port, enforce_policy=False)) as it:
        for stream in (True, False):
            it.events.clear()
            result = CLIENTS[client](it.base, [DENIED], stream=stream)
            assert result.calls == [(DENIED, INPUT)]
            (told,) = it.wait_for_events(1)
            assert (told.action, told.would) == ("allow", "block")


@pytest.mark.parametrize(
    ("client", "error"),
    [
        ("anthropic", anthropic.APIStatusError),
        ("anthropic async", anthropic.APIStatusError),
        ("openai", openai.APIStatusError),
        ("openai async", openai.APIStatusError),
    ],
)
def test_an_upstream_that_is_gone_raises_the_sdks_own_error(client, error):
    with RunningPool(provider, lambda _: snapshot(9)) as it:
        for stream in (True, False):
            with pytest.raises(error) as caught:
                CLIENTS[client](it.base, [], stream=stream)
            assert caught.value.status_code == 502
            assert "cannot connect to 127.0.0.1:9" in str(caught.value)


def test_a_broken_stream_raises_in_the_sdk_and_gives_no_call():
    async def breaking(conversation: Any, _: Received) -> None:
        pieces = list(anthropic_stream([ALLOWED]))
        await conversation.send(*chunked(*pieces[:6])[:-1])
        await asyncio.sleep(0.1)
        conversation.cut()

    with (
        RunningPool(breaking, snapshot) as it,
        pytest.raises(anthropic.APIError, match="closed the connection"),
    ):
        ask_anthropic(it.base, [ALLOWED], stream=True)


def test_the_scripted_provider_is_what_the_sdks_expect():
    """Without the proxy the SDKs read the same provider: what the tests above assert is the proxy's doing."""

    async def direct() -> None:
        async with Upstream(provider) as upstream:
            loop = asyncio.get_running_loop()
            base = f"http://127.0.0.1:{upstream.port}"

            def ask() -> Result:
                with (
                    anthropic.Anthropic(base_url=base, api_key="k", max_retries=0) as client,
                    client.messages.stream(**anthropic_request([DENIED])) as events,
                ):
                    return of_message(events.get_final_message())

            assert (await loop.run_in_executor(None, ask)).calls == [(DENIED, INPUT)]

    asyncio.run(direct())
