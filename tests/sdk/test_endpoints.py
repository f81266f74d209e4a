"""What the official SDKs fetch besides answers hands out no denied call: it is inspected, or goes by fail_closed and is told of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from loopback.pool import RunningPool
from loopback.proxy import snapshot
from loopback.upstream import Received, response

ALLOWED, DENIED = "get_weather", "delete_files"


def chat(name: str) -> dict[str, Any]:
    call = {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def item(name: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"call_{name}",
        "name": name,
        "arguments": "{}",
        "status": "completed",
    }


def message(name: str) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}}
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block], "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip


def lines(*values: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


ITEMS = {
    "object": "list",
    "data": [item(ALLOWED), item(DENIED)],
    "first_id": "a",
    "last_id": "b",
    "has_more": False,
}
STORED = {
    "object": "list", "has_more": False, "first_id": "a", "last_id": "b",
    "data": [{"id": n, "role": "assistant", "content": None, "tool_calls": chat(n)["choices"][0]["message"]["tool_calls"]} for n in (ALLOWED, DENIED)],
}  # fmt: skip
REQUIRED = {
    "id": "run_1", "object": "thread.run", "status": "requires_action", "thread_id": "t", "assistant_id": "a", "created_at": 1, "model": "m",
    "instructions": "", "tools": [], "metadata": {}, "parallel_tool_calls": True,
    "required_action": {"type": "submit_tool_outputs", "submit_tool_outputs": {"tool_calls": chat(DENIED)["choices"][0]["message"]["tool_calls"]}},
}  # fmt: skip
PARALLEL = chat("multi_tool_use.parallel")
PARALLEL["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = json.dumps(
    {"tool_uses": [{"recipient_name": f"functions.{name}", "parameters": {}} for name in (ALLOWED, DENIED)]}
)
ANSWERS: dict[str, bytes] = {
    "POST /v1/chat/completions": json.dumps(PARALLEL).encode(),
    "GET /v1/files/f/content": lines(*({"id": n, "custom_id": n, "response": {"status_code": 200, "body": chat(n)}} for n in (ALLOWED, DENIED))),
    "GET /v1/files/r/content": lines(*({"id": n, "response": {"status_code": 200, "body": {"object": "response", "output": [item(n)]}}} for n in (ALLOWED, DENIED))),
    "GET /v1/messages/batches/b": lines({"id": "b", "type": "message_batch", "processing_status": "ended", "results_url": "/v1/messages/batches/b/results", "request_counts": {"processing": 0, "succeeded": 2, "errored": 0, "canceled": 0, "expired": 0}, "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T00:00:00Z"}),
    "GET /v1/messages/batches/b/results": lines(*({"custom_id": n, "result": {"type": "succeeded", "message": message(n)}} for n in (ALLOWED, DENIED))),
    "GET /v1/responses/r/input_items": json.dumps(ITEMS).encode(),
    "GET /v1/conversations/c/items": json.dumps(ITEMS).encode(),
    "POST /v1/conversations/c/items": json.dumps(ITEMS).encode(),
    "GET /v1/conversations/c/items/x": json.dumps(item(DENIED)).encode(),
    "POST /v1/responses/compact": json.dumps({"id": "r", "object": "response.compaction", "created_at": 1, "output": [item(ALLOWED), item(DENIED)], "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}}).encode(),
    "GET /v1/chat/completions/c/messages": json.dumps(STORED).encode(),
    "GET /v1/chat/completions/c": json.dumps(chat(DENIED)).encode(),
    "POST /v1/threads/t/runs": json.dumps(REQUIRED).encode(),
    "GET /v1/threads/t/runs/r": json.dumps(REQUIRED).encode(),
    "POST /v1/unheard/of": json.dumps({"message": {"tool_calls": [{"id": "c", "function": {"name": DENIED}}]}}).encode(),
}  # fmt: skip


async def provider(conversation: Any, received: Received) -> None:
    method, target, _ = received.line.decode().split(" ")
    key = f"{method} {target.partition('?')[0]}"
    await conversation.send(response(ANSWERS.get(key, b"{}")))


@pytest.fixture(scope="module", params=[False, True], ids=["open", "closed"])
def pool(request: pytest.FixtureRequest) -> Iterator[RunningPool]:
    with RunningPool(provider, lambda port: snapshot(port, fail_closed=request.param)) as it:
        it.closed = request.param  # type: ignore[attr-defined] - the fixture's own note
        yield it


def client(pool: RunningPool) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{pool.base}/openai/v1", api_key="k", max_retries=0)


def fetched(ai: openai.OpenAI, file: str) -> list[str]:
    read = map(json.loads, ai.files.content(file).text.splitlines())
    bodies = [one["response"]["body"] for one in read]
    found = [
        c["function"]["name"]
        for b in bodies
        for choice in b.get("choices", [])
        for c in choice["message"].get("tool_calls") or []
    ]
    return found + [i["name"] for b in bodies for i in b.get("output", []) if i["type"] == "function_call"]


def results(base: str) -> list[str]:
    with anthropic.Anthropic(base_url=f"{base}/anthropic", api_key="k", max_retries=0) as ai:
        found = list(ai.messages.batches.results("b"))
    return [
        b.name
        for f in found
        if f.result.type == "succeeded"
        for b in f.result.message.content
        if b.type == "tool_use"
    ]


def called(items: Any) -> list[str]:
    return [one.name for one in items if one.type == "function_call"]


FETCHES: dict[str, Callable[[openai.OpenAI, str], list[str]]] = {
    "batch output of chats": lambda ai, _: fetched(ai, "f"),
    "batch output of responses": lambda ai, _: fetched(ai, "r"),
    "batch results of messages": lambda _, base: results(base),
    "input items": lambda ai, _: called(ai.responses.input_items.list("r")),
    "conversation items": lambda ai, _: called(ai.conversations.items.list("c")),
    "items as they are added": lambda ai, _: called(ai.conversations.items.create("c", items=[]).data),
    "one item": lambda ai, _: called([ai.conversations.items.retrieve("x", conversation_id="c")]),
    "compaction": lambda ai, _: called(ai.responses.compact(model="m", input="x").output),
    "messages of a stored completion": lambda ai, _: [c["function"]["name"] for m in ai.chat.completions.messages.list("c") for c in m.to_dict().get("tool_calls") or []],
    "a stored completion": lambda ai, _: [c.function.name for c in ai.chat.completions.retrieve("c").choices[0].message.tool_calls or [] if c.type == "function"],
}  # fmt: skip


@pytest.mark.parametrize("name", FETCHES)
def test_an_allowed_call_is_handed_out_and_a_denied_one_never(pool: RunningPool, name: str) -> None:
    pool.events.clear()
    with client(pool) as ai:
        found = FETCHES[name](ai, pool.base)
    assert found == ([] if name in {"one item", "a stored completion"} else [ALLOWED])
    told = pool.wait_for_events(1)
    assert DENIED in [
        event.to_json().get("tool_name") for event in told if event.to_json()["action"] == "block"
    ]


FOREIGN: dict[str, tuple[str, Callable[[openai.OpenAI], Any]]] = {
    "a run": ("unknown_dialect", lambda ai: ai.beta.threads.runs.create("t", assistant_id="a").required_action),
    "a run that is polled": ("unknown_dialect", lambda ai: ai.beta.threads.runs.retrieve("r", thread_id="t").required_action),
    "a client's secret": ("unknown_dialect", lambda ai: ai.realtime.client_secrets.create()),
    "a batch": ("unknown_dialect", lambda ai: ai.batches.create(completion_window="24h", endpoint="/v1/responses", input_file_id="f")),
    "an unknown endpoint": ("unread_call", lambda ai: ai.post("/unheard/of", cast_to=object, body={})),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_nobody_reads_goes_by_fail_closed_and_is_told_of(pool: RunningPool, name: str) -> None:
    pool.events.clear()
    cause, fetch = FOREIGN[name]
    closed = pool.closed  # type: ignore[attr-defined] - the fixture's own note
    with client(pool) as ai:
        if closed:
            with pytest.raises(openai.APIStatusError, match=r"fail_closed is set|could not be inspected"):
                fetch(ai)
        else:
            assert fetch(ai) is not None
    (told,) = pool.wait_for_events(1)
    assert (told.to_json()["cause"], told.to_json()["action"]) == (cause, "block" if closed else "allow")


def test_calls_that_a_call_wraps_are_judged_and_the_event_tells_of_all_that_it_means(
    pool: RunningPool,
) -> None:
    pool.events.clear()
    with client(pool) as ai:
        message = ai.chat.completions.create(model="m", messages=[]).choices[0].message
    assert not message.tool_calls
    assert f"it calls '{DENIED}'" in (message.content or "")
    (told,) = pool.wait_for_events(1)
    event = told.to_json()
    assert (event["tool_name"], event["action"]) == ("multi_tool_use.parallel", "block")
    assert [c["tool_name"] for c in event["candidates"]] == [ALLOWED, DENIED]
