"""HTTP+SSE: the endpoint comes once and from the same origin, answers come on the stream, and a stream that ends ends the wait."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agentsh_proxy.mcp_client.session import Session
from mcp_peers.roles import SseServer, declared, result_of, tools
from mcp_peers.scripted import STREAM, Handler, Scripted, Seen, Wire, run, serving

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Transport


def listing(handler: Handler, timeout: float = 20) -> tuple[Any, Scripted]:
    """List once; return the listing or the error's text, and the server."""
    result: list[tuple[Any, Scripted]] = []

    async def scene() -> None:
        async with (
            serving(handler) as server,
            Session(declared(server, "/base/sse", Transport.SSE)) as session,
        ):
            try:
                result.append((await session.list(timeout), server))
            except ProtocolError as fault:
                result.append((str(fault), server))

    run(scene())
    return result[0]


@pytest.mark.parametrize("endpoint", ["/messages?session_id=1", "../messages?session_id=1"])
def test_requests_go_to_the_endpoint_as_it_resolves(endpoint: str) -> None:
    found, server = listing(SseServer(endpoint))
    assert [t["name"] for t in found.tools] == ["a"]
    assert server.asked == ["GET", "initialize", "notifications/initialized", "tools/list"]
    assert {s.target for s in server.seen[1:]} == {"/messages?session_id=1"}


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [
        ("http://127.0.0.2:1/messages", "to another origin, http://127.0.0.2:1: refused"),
        ("//evil.example/messages", "to another origin"),
        ("https://127.0.0.1/messages", "to another origin"),
        ("\x01", "control characters"),
        ("http://[", "no URL"),
        ("javascript:alert(1)", "URL: found no scheme"),
    ],
)
def test_another_origin_or_no_url_is_refused(endpoint: str, reason: str) -> None:
    fault, server = listing(SseServer(endpoint))
    assert reason in fault
    assert server.asked == ["GET"]


def test_a_second_endpoint_is_refused() -> None:
    async def moves(request: Seen, stream: Wire) -> None:
        await stream.event("/messages?session_id=2", event="endpoint")

    fault, _ = listing(SseServer(initialize=moves))
    assert fault == "the server names a second endpoint"


def test_a_message_before_the_endpoint_and_events_of_other_kinds_do_no_harm() -> None:
    class Chatty(SseServer):
        async def __call__(self, request: Seen, wire: Wire) -> None:
            if request.method == "GET":
                self.stream = wire
                await wire.raw(STREAM)
                await wire.event({"jsonrpc": "2.0", "method": "notifications/message"})
                await wire.event("anything", event="keepalive")
                await wire.chunk(b": comment\n\n")
                await wire.event(self.endpoint, event="endpoint")
            else:
                await super().__call__(request, wire)

    found, _ = listing(Chatty())
    assert [t["name"] for t in found.tools] == ["a"]


@pytest.mark.parametrize("how", ["end", "cut"])
def test_a_stream_that_ends_before_the_answer_is_an_error_at_once(how: str) -> None:
    async def leaves(request: Seen, stream: Wire) -> None:
        if how == "end":
            await stream.end()
        else:
            stream.cut()

    fault, _ = listing(SseServer(tools_list=leaves))
    assert "the stream ended" in fault or "closed the connection" in fault


def test_a_stream_that_ends_before_the_endpoint_is_an_error() -> None:
    async def empty(request: Seen, wire: Wire) -> None:
        await wire.raw(STREAM)
        await wire.end()

    assert listing(empty)[0] == "the stream ended without an answer"


def test_an_endpoint_that_never_comes_ends_in_time() -> None:
    async def silent(request: Seen, wire: Wire) -> None:
        await wire.raw(STREAM)
        await asyncio.Event().wait()

    assert listing(silent, 0.2)[0] == "no answer within 0.2 s while connecting"


def test_an_answer_before_its_request_was_accepted_counts() -> None:
    class Eager(SseServer):
        async def __call__(self, request: Seen, wire: Wire) -> None:
            if request.rpc == "tools/list":
                await self.say(request, tools("early"))
                await wire.answer(202)
            else:
                await super().__call__(request, wire)

    assert listing(Eager())[0].tools[0]["name"] == "early"


def test_a_refused_post_is_told_with_its_status() -> None:
    class Refusing(SseServer):
        async def __call__(self, request: Seen, wire: Wire) -> None:
            if request.rpc == "tools/list":
                await wire.answer(410)
            else:
                await super().__call__(request, wire)

    assert listing(Refusing())[0] == "tools/list was refused with HTTP 410"


def test_the_servers_own_requests_are_answered() -> None:
    async def asks_first(request: Seen, stream: Wire) -> None:
        await stream.event({"jsonrpc": "2.0", "id": 9, "method": "roots/list"})
        await stream.event(result_of(request, tools("a")))

    found, server = listing(SseServer(tools_list=asks_first))
    assert [t["name"] for t in found.tools] == ["a"]
    replies = [s.json for s in server.seen if s.body and "method" not in s.json]
    assert [(r["id"], r["error"]["code"]) for r in replies] == [(9, -32601)]


def test_a_stream_split_at_every_byte_says_the_same() -> None:
    async def drip(request: Seen, stream: Wire) -> None:
        frame = f"event: message\ndata: {json.dumps(result_of(request, tools('a', 'b')))}\n\n".encode()
        for i in range(len(frame)):
            await stream.chunk(frame[i : i + 1])

    assert len(listing(SseServer(tools_list=drip))[0].tools) == 2


def test_the_end_of_the_stream_loses_the_session_and_says_so() -> None:
    async def scene() -> None:
        peer = SseServer()
        async with serving(peer) as server, Session(declared(server, "/sse", Transport.SSE)) as session:
            await session.list(10)
            session.listen()
            session.stale.clear()
            assert peer.stream is not None
            await peer.stream.end()
            await session.stale.wait()
            assert session._listener is not None
            await session._listener
            assert session.lost
            with pytest.raises(ProtocolError, match="the stream has ended"):
                await session.list(10)

    run(scene())
