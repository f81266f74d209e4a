"""An HTTP+SSE server is reached by one stream of one origin, and whatever ends it is an error and no hang."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from agentsh_proxy.gateway.sse import IDLE_CONNECTIONS, MAX_CONNECTIONS, SsePipe
from agentsh_proxy.http_client import DRAIN_SIZE
from mcp_peers.roles import SseServer, declared
from mcp_peers.scripted import STREAM, Seen, Wire, run, serving

from agentsh_net.core.configuration.settings import SecurityScheme
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Transport

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


LIST = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}'


def test_what_is_heard_at_once_waits_for_nobody_and_the_rest_keeps_its_order() -> None:
    async def three(request: Seen, stream: Wire) -> None:
        await stream.event({"n": 1})
        await stream.event({"n": 2})
        await stream.event({"n": 3})

    async def main() -> None:
        async with serving(SseServer(tools_list=three)) as server:
            pipe, heard, failed = pipe_to(server), [], []
            await pipe.open()
            ready = [True, False, *(True for _ in range(9))]

            def hear(message: bytes) -> bool:
                heard.append(message)
                return ready.pop(0)

            pipe.attach(hear)
            assert not pipe.start(LIST % 1, failed.append), "there is no connection yet"
            await pipe.send(LIST % 1)
            assert [await pipe.receive(), await pipe.receive()] == [b'{"n": 2}', b'{"n": 3}']
            assert pipe.start(LIST % 2, failed.append)
            while len(heard) < 5:
                await asyncio.sleep(0)
            assert heard == [b'{"n": %d}' % n for n in (1, 2, 1, 2, 3)], (
                "behind one that waits nothing is heard"
            )
            assert failed == [] and len({seen.connection for seen in server.seen}) == 2, (
                "its connections are kept"
            )
            pipe.close()

    run(main())


def test_a_message_that_was_sent_at_once_and_is_not_taken_is_told_so() -> None:
    async def main() -> None:
        older = SseServer()

        async def handler(request: Seen, wire: Wire) -> None:
            if b"refused" in request.body:
                await wire.answer(400)
            elif b"cut" in request.body:
                wire.cut()
            else:
                await older(request, wire)

        async with serving(handler) as server:
            pipe, failed = pipe_to(server), []
            await pipe.open()
            await pipe.send(LIST % 1)
            for body, what in ((b'{"refused":1}', "HTTP 400"), (b'{"cut":1}', "without an answer")):
                await pipe.send(LIST % 1)
                failed.clear()
                assert pipe.start(body, failed.append)
                while not failed:
                    await asyncio.sleep(0)
                assert what in str(failed[0])
            pipe.close()

    run(main())


@pytest.mark.parametrize("arrived", [False, True])
def test_a_message_on_a_connection_that_was_closed_is_sent_again_if_it_had_not_arrived(
    monkeypatch: pytest.MonkeyPatch, *, arrived: bool
) -> None:
    monkeypatch.setattr("agentsh_proxy.http_connection.acknowledged", lambda _: arrived)

    async def main() -> None:
        older, cut = SseServer(), []

        async def handler(request: Seen, wire: Wire) -> None:
            if b"once" in request.body and not cut:
                cut.append(1)
                wire.cut()
            else:
                await older(request, wire)

        async with serving(handler) as server:
            pipe, failed = pipe_to(server), []
            await pipe.open()
            await pipe.send(LIST % 1)
            assert b'"id": 1' in await pipe.receive()
            assert pipe.start(b'{"jsonrpc":"2.0","id":5,"method":"tools/list","once":1}', failed.append)
            if arrived:
                while not failed:
                    await asyncio.sleep(0)
                assert "without an answer" in str(failed[0])
            else:
                assert b'"id": 5' in await pipe.receive() and failed == []
            pipe.close()

    run(main())


def test_a_server_that_accepts_nothing_holds_so_many_connections_and_no_memory() -> None:
    async def main() -> None:
        older = SseServer()

        async def handler(request: Seen, wire: Wire) -> None:
            if b"held" in request.body:
                await wire.raw(b"HTTP/1.1 202 Accepted\r\nContent-Length: 10000000\r\n\r\n")
                if b"long" in request.body:
                    await wire.raw(b"x" * (DRAIN_SIZE + 1))
            else:
                await older(request, wire)

        async with serving(handler) as server:
            pipe, failed = pipe_to(server), []
            await pipe.open()
            await asyncio.gather(*(pipe.send(LIST % id_) for id_ in range(IDLE_CONNECTIONS)))
            sent = 0
            while pipe.start(b'{"held":1}', failed.append):
                sent += 1
            assert sent == IDLE_CONNECTIONS
            await pipe.send(LIST % 9)
            assert pipe.start(b'{"held":1,"long":1}', failed.append)
            while pipe._http.connections > IDLE_CONNECTIONS + 1:  # the stream, and those that are held
                await asyncio.sleep(0)
            for _ in range(MAX_CONNECTIONS):
                await pipe.send(LIST % 9)
                sent += pipe.start(b'{"held":1}', failed.append)
            assert pipe._http.connections == MAX_CONNECTIONS and sent == MAX_CONNECTIONS - 2
            assert failed == [], "it is accepted all the same"
            pipe.close()
            await asyncio.sleep(0.01)
            assert not pipe._repeated and failed == [], "nothing is sent after the end"

    run(main())


def test_a_cut_stream_ends_after_what_came_before_is_taken() -> None:
    async def last(request: Seen, stream: Wire) -> None:
        await stream.event({"n": 1})
        stream.cut()

    async def main() -> None:
        async with serving(SseServer(tools_list=last)) as server:
            pipe = pipe_to(server)
            await pipe.open()
            pipe.attach(lambda _: False)
            await pipe.send(LIST % 1)
            assert await pipe.receive() == b'{"n": 1}'
            with pytest.raises(ProtocolError, match=r"closed the connection|ended its event stream"):
                await pipe.receive()
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
