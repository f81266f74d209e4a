"""A provider's limits refuse in its own words with a time to come back, and are charged by what answers say they cost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agentsh_proxy.llm.trail import MAX_ESTIMATE
from loopback import on_loop, until
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, answering, chunked, response

from agentsh_net.workers.arbiter import Arbiter

MESSAGES, CHAT = "/anthropic/v1/messages", "/openai/v1/chat/completions"
BODY = json.dumps({"model": "m", "messages": []}).encode()


async def limited(opened: Any, arbiter: Arbiter, upstream: Upstream, **limits: float) -> tuple[Proxy, Client]:
    at = f"http://127.0.0.1:{upstream.port}"
    providers = {
        "anthropic": {"base_url": at, "limits": limits},
        "openai": {"base_url": f"{at}/v1", "limits": limits},
    }
    policy = snapshot(proxy={"providers": providers})
    arbiter.limit({p.name: p.limits for p in policy.config.proxy.providers.values()})
    proxy = await opened(Proxy(policy, arbiter=arbiter))
    return proxy, await opened(Client(proxy.port))


@pytest.mark.parametrize(("path", "kind"), [(MESSAGES, "rate_limit_error"), (CHAT, "rate_limit_error")])
@on_loop
async def test_too_many_requests_are_refused_in_the_dialects_shape_and_told(opened, arbiter, path, kind):
    upstream = await opened(Upstream())
    proxy, client = await limited(opened, arbiter, upstream, requests_per_minute=2)
    answers = [await client.ask(request(path, BODY)) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[2].values("retry-after") == [b"30"]
    assert json.loads(answers[2].body)["error"]["type"] == kind
    assert len(upstream.requests) == 2
    await until(lambda: proxy.events)
    (event,) = proxy.events
    assert (event["type"], event["action"], event["retry_after"]) == ("llm_request_limited", "block", 30)
    assert proxy.counts.rate_limited == 1


@on_loop
async def test_what_no_dialect_reads_is_not_counted(opened, arbiter):
    upstream = await opened(Upstream())
    _, client = await limited(opened, arbiter, upstream, requests_per_minute=1)
    assert [(await client.ask(request("/anthropic/v1/files", b"{}"))).status for _ in range(3)] == [200] * 3


@on_loop
async def test_tokens_are_charged_by_the_usage_in_the_stream(opened, arbiter):
    usage = b'data: {"type":"message_delta","usage":{"input_tokens":400,"output_tokens":500}}\n\n'
    upstream = await opened(Upstream(answering(*chunked(usage))))
    _, client = await limited(opened, arbiter, upstream, tokens_per_minute=600)
    body = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
    assert (await client.ask(request(MESSAGES, body))).status == 200
    answer = await client.ask(request(MESSAGES, body))
    assert answer.status == 429
    estimate = len(body) // 4
    assert int(answer.values("retry-after")[0]) == 30 + -(-estimate // 10)


@on_loop
async def test_a_refused_answer_gives_the_estimate_back(opened, arbiter):
    upstream = await opened(Upstream(answering(response(b"{}", status=b"529 Overloaded"))))
    _, client = await limited(opened, arbiter, upstream, tokens_per_minute=100)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 300}]}).encode()
    assert [(await client.ask(request(MESSAGES, body))).status for _ in range(3)] == [529] * 3


@on_loop
async def test_an_answer_that_tells_nothing_costs_its_events(opened, arbiter):
    upstream = await opened(Upstream(answering(*chunked(b'data: {"choices":[]}\n\n' * 200))))
    _, client = await limited(opened, arbiter, upstream, tokens_per_minute=150)
    body = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
    assert [(await client.ask(request(CHAT, body))).status for _ in range(2)] == [200, 429]


def test_an_image_does_not_cost_its_bytes() -> None:
    assert MAX_ESTIMATE < (20 << 20) // 4


@pytest.mark.parametrize("stores", [False, True])
@on_loop
async def test_a_websocket_is_no_way_around_limits_and_storage(opened, arbiter, stores):
    upstream = await opened(Upstream())
    at = f"http://127.0.0.1:{upstream.port}/v1"
    limits = {} if stores else {"limits": {"requests_per_minute": 1}}
    providers = {"openai": {"base_url": at, **limits}}
    more = {"llm_storage": {"store_bodies": True}} if stores else {}
    policy = snapshot(proxy={"providers": providers, "websockets": "inspect"}, top=more)
    proxy = await opened(Proxy(policy, arbiter=arbiter))
    client = await opened(Client(proxy.port))
    fields = b"Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"
    answer = await client.ask(b"GET /openai/v1/responses HTTP/1.1\r\n" + fields)
    assert (answer.status, upstream.requests) == (426, [])
