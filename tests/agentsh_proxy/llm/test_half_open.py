"""A client that sends no more gets its answer to the byte, and one that is gone is found out before there is one."""

from __future__ import annotations

import asyncio

import pytest
from agentsh_proxy.llm.half_open import HalfOpen
from loopback import on_loop, until
from loopback.client import Client, request
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Upstream, chunked, response

ANSWER = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize("asked", [0, 1, 3, 20])
def test_what_was_sent_ahead_is_not_sent_again(asked: int):
    sent: list[bytes] = []
    timers = []
    half = HalfOpen(sent.append, lambda _, ask: timers.append(ask))
    for _ in range(asked):
        timers[0]()
    ahead = b"".join(sent)
    assert ahead == b"HTTP/1.1 "[: asked + 1]
    assert ahead + half.rest(ANSWER) + half.rest(b"more") == ANSWER + b"more"
    half.ask()
    assert b"".join(sent) == ahead


@pytest.mark.parametrize("kind", ["json", "events", "other", "error"])
@on_loop
async def test_a_client_that_half_closes_gets_the_whole_answer_however_late_and_then_the_end(
    opened, kind: str
):
    late = asyncio.Event()

    async def script(conversation, _):
        await late.wait()
        if kind == "error":
            conversation.cut()
        elif kind == "events":
            await conversation.send(*chunked(b"data: {}\n\n", b"data: [DONE]\n\n"))
        else:
            await conversation.send(response(b'{"choices": []}'))

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    path = "/openai/v1/files" if kind == "other" else "/openai/v1/chat/completions"
    await client.send(request(path, b'{"stream": true}' if kind == "events" else b"{}"))
    client.writer.write_eof()
    await until(lambda: upstream.requests)
    ahead = await client.reader.readexactly(2)  # which tell whether it is still there
    late.set()
    answer = ahead + await client.reader.read()
    assert answer.startswith(b"HTTP/1.1 502 " if kind == "error" else b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n0\r\n\r\n" if kind == "events" else b"}")
    await until(lambda: not proxy.service._clients)


@on_loop
async def test_requests_that_came_before_the_end_are_all_answered(opened):
    upstream = await opened(Upstream())

    async def echo(conversation, _):
        await conversation.send(response(b'{"n": %d}' % len(upstream.requests)))

    upstream.script = echo
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    await client.send(request("/openai/v1/chat/completions", b"{}") * 3)
    client.writer.write_eof()
    assert [(await client.answer()).body for _ in range(3)] == [b'{"n": %d}' % n for n in (1, 2, 3)]
    assert await client.reader.read() == b""


@on_loop
async def test_a_client_that_is_gone_is_found_out_while_the_upstream_is_silent(opened):
    async def script(conversation, _):
        await conversation.gone()

    upstream = await opened(Upstream(script))
    proxy = await opened(Proxy(snapshot(upstream.port)))
    async with Client(proxy.port) as client:
        await client.send(request("/openai/v1/chat/completions", b"{}"))
        await until(lambda: upstream.requests)
        client.writer.close()  # as a client does that ends: without a reset
        await client.writer.wait_closed()
        async with asyncio.timeout(20):
            await upstream.closed.wait()
    await until(lambda: not proxy.service._clients)


@on_loop
async def test_a_request_that_is_cut_short_is_no_request(opened):
    upstream = await opened(Upstream())
    proxy = await opened(Proxy(snapshot(upstream.port)))
    client = await opened(Client(proxy.port))
    await client.send(request("/openai/v1/chat/completions", b"{}")[:-1])
    client.writer.write_eof()
    assert await client.reader.read() == b""
    assert upstream.requests == []
