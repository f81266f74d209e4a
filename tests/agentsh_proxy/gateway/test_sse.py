"""An HTTP+SSE server is reached by one stream of one origin, and whatever ends it is an error and no hang."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from agentsh_proxy.gateway.sse import SsePipe
from mcp_peers.roles import SseServer, declared
from mcp_peers.scripted import STREAM, Seen, Wire, run, serving

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Transport
from agentsh_net.core.settings import SecurityScheme

BEARER = SecurityScheme("b", "http", "u", scheme="bearer")


def no_tls() -> ssl.SSLContext:
    raise AssertionError("no TLS is asked for")


def pipe_to(
    server: Any, scheme: SecurityScheme | None = None, seconds: float = 5, size: int = 10_000
) -> SsePipe:
    peer = declared(server, "/sse", Transport.SSE, headers={"X-Own": "1"})
    return SsePipe(
        peer, no_tls, (("User-Agent", "me"),), lambda _: scheme, lambda: (size, seconds), lambda _: None
    )


def test_messages_go_by_post_and_come_on_the_one_stream() -> None:
    async def main() -> None:
        async with serving(SseServer()) as server:
            pipe = pipe_to(server, BEARER)
            await pipe.open()
            for id_ in (1, 2):
                await pipe.send(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}' % id_)
                assert b'"id": %d' % id_ in await pipe.receive()
            assert [s.method for s in server.seen] == ["GET", "POST", "POST"]
            assert all(
                s.headers["authorization"] == "Bearer u" and s.headers["x-own"] == "1" for s in server.seen
            )
            assert server.seen[0].headers["user-agent"] == "me"
            pipe.close()

    run(main())


def test_an_endpoint_of_another_origin_is_refused() -> None:
    async def main() -> None:
        async with serving(SseServer("http://127.0.0.2:1/messages")) as server:
            with pytest.raises(ProtocolError, match="another origin"):
                await pipe_to(server).open()
            assert [s.method for s in server.seen] == ["GET"]

    run(main())


def test_a_stream_that_names_no_endpoint_is_given_up() -> None:
    async def mute(_: Seen, wire: Wire) -> None:
        await wire.raw(STREAM)
        await asyncio.sleep(30)

    async def refuse(_: Seen, wire: Wire) -> None:
        await wire.answer(404)

    async def main() -> None:
        async with serving(mute) as server:
            with pytest.raises(ProtocolError, match="no endpoint within"):
                await pipe_to(server, seconds=0.1).open()
        async with serving(refuse) as server:
            with pytest.raises(ProtocolError, match="HTTP 404"):
                await pipe_to(server).open()

    run(main())


def test_a_stream_that_ends_and_an_event_that_does_not_are_errors() -> None:
    async def main() -> None:
        sse = SseServer()
        async with serving(sse) as server:
            pipe = pipe_to(server)
            await pipe.open()
            assert sse.stream is not None
            await sse.stream.end()
            with pytest.raises(ProtocolError, match="ended its event stream"):
                await pipe.receive()
            pipe.close()
            long = pipe_to(server, size=1000)
            await long.open()
            await sse.stream.chunk(b"data: " + b"x" * 2000)
            with pytest.raises(ProtocolError, match="too long"):
                await long.receive()
            long.close()

    run(main())


def test_a_message_that_is_not_taken_is_an_error() -> None:
    async def handler(asked: Seen, wire: Wire) -> None:
        if asked.method == "GET":
            await wire.raw(STREAM)
            await wire.event("/messages", event="endpoint")
        else:
            await wire.answer(503)

    async def main() -> None:
        async with serving(handler) as server:
            pipe = pipe_to(server)
            await pipe.open()
            with pytest.raises(ProtocolError, match="HTTP 503"):
                await pipe.send(b"{}")
            pipe.close()

    run(main())
