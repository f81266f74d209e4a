"""Requests are read strictly and whole, one at a time, bounded in bytes and time; a client that goes is noticed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from agentsh_proxy.gateway.connection import (
    BODY_SECONDS,
    IDLE_SECONDS,
    LINGER_SECONDS,
    READ_AHEAD,
    Front,
    GatewayConnection,
    Handler,
)
from agentsh_proxy.gateway.requests import MAX_REMEMBERED, HttpRequest
from loopback import until
from mcp_peers.scripted import run

from agentsh_net.core.errors import ProtocolError


async def echo(asked: HttpRequest, client: GatewayConnection) -> None:
    client.answer(200, asked.body or b"nothing", (("X-Seen", asked.fields.get("x-a", "")),))


@contextlib.asynccontextmanager
async def front_over(
    handler: Handler, max_request: int = 1000, refused: list[int] | None = None
) -> AsyncIterator[tuple[Front, int]]:
    bugs: list[BaseException] = []
    told = [] if refused is None else refused
    front = Front(
        handler, lambda: max_request, bugs.append, lambda _: "", lambda status, *_: told.append(status), 0.0
    )
    server = await asyncio.get_running_loop().create_server(lambda: GatewayConnection(front), "127.0.0.1", 0)
    try:
        yield front, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        front.close()
    assert [repr(bug) for bug in bugs] == [], "a bug was told"


async def say(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


def asked(
    data: bytes, handler: Handler = echo, max_request: int = 1000, refused: list[int] | None = None
) -> bytes:
    found: list[bytes] = []

    async def main() -> None:
        async with front_over(handler, max_request, refused) as (_, port):
            found.append(await say(port, data))

    run(main())
    return found[0]


HEAD = b"POST / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    "data",
    [
        HEAD + b"Content-Length: 2\r\n\r\nhi",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
        HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
    ],
)
def test_a_body_is_read_whole_in_every_coding(data: bytes) -> None:
    answer = asked(data)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\nX-Seen: 1\r\n") and answer.endswith(b"\r\n\r\nhi")


def test_a_body_that_is_waited_for_is_asked_for() -> None:
    async def main() -> None:
        async with front_over(echo) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            writer.write(b"hi")
            assert (await reader.read()).endswith(b"hi")
            writer.close()

    run(main())


def test_requests_behind_each_other_are_answered_in_their_order() -> None:
    one = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n"
    answer = asked(one + b"a" + one + b"b" + HEAD + b"Content-Length: 1\r\n\r\nc")
    assert [part[-1:] for part in answer.split(b"HTTP/1.1 200 OK")[1:]] == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 1001\r\n\r\n", b"413"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n400\r\n" + b"x" * 1024 + b"\r\n", b"413"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET / HTTP/2.0\r\n\r\n", b"505"),
    ],
)
def test_what_is_no_sound_request_is_refused_with_the_reason(data: bytes, status: bytes) -> None:
    refused: list[int] = []
    answer = asked(data, refused=refused)
    assert answer.startswith(b"HTTP/1.1 " + status) and b'"message":"agentsh-net: ' in answer
    assert refused == [int(status)]


def test_a_client_that_sends_on_reads_why_it_was_refused_and_is_cut_in_the_end() -> None:
    async def main() -> None:
        async with front_over(echo) as (front, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + b"Content-Length: 100000000\r\n\r\n")
            for _ in range(64):  # more than the sockets between hold
                writer.write(bytes(1 << 20))
                await writer.drain()
            assert (await reader.read()).startswith(b"HTTP/1.1 413 ")
            front.tick(LINGER_SECONDS + 1)
            await until(lambda: not front.connections)
            writer.close()

    run(main())


def test_an_answer_may_be_streamed_and_an_older_client_reads_to_the_end() -> None:
    async def stream(_: HttpRequest, client: GatewayConnection) -> None:
        client.begin(200, (("Content-Type", "text/event-stream"),))
        for part in (b"a", b"b"):
            await client.send(part)
        client.end()

    assert asked(HEAD + b"Content-Length: 0\r\n\r\n", stream).endswith(b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n")
    assert asked(b"GET / HTTP/1.0\r\nHost: h\r\n\r\n", stream).endswith(b"\r\n\r\nab")


def test_a_client_that_goes_ends_what_it_asked_for() -> None:
    async def main() -> None:
        ended = asyncio.Event()
        begun = asyncio.Event()

        async def hang(_: HttpRequest, client: GatewayConnection) -> None:
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        async with front_over(hang) as (front, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + b"Content-Length: 0\r\n\r\n")
            await begun.wait()
            writer.transport.abort()
            await ended.wait()
            while front.connections:
                await asyncio.sleep(0)

    run(main())


def test_a_slow_client_makes_who_writes_wait() -> None:
    async def main() -> None:
        sent = 0

        async def flood(_: HttpRequest, client: GatewayConnection) -> None:
            nonlocal sent
            client.begin(200, ())
            for _unused in range(400):
                await client.send(b"x" * 65536)
                sent += 1
            client.end()

        async with front_over(flood) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(HEAD + b"Content-Length: 0\r\n\r\n")
            await reader.readexactly(100)
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.05)
            assert sent < 400
            size = len(await reader.read())
            assert size > 400 * 65536
            writer.close()

    run(main())


def test_quiet_connections_are_closed_and_half_requests_refused() -> None:
    async def main() -> None:
        async with front_over(echo) as (front, port):
            idle_reader, idle = await asyncio.open_connection("127.0.0.1", port)
            half_reader, half = await asyncio.open_connection("127.0.0.1", port)
            half.write(HEAD + b"Content-Length: 2\r\n\r\n")
            await until(lambda: sum(c._requests.head is not None for c in front.connections) == 1)
            await until(lambda: len(front.connections) == 2)
            front.tick(BODY_SECONDS + 1)
            assert (await half_reader.read()).startswith(b"HTTP/1.1 408 ")
            front.tick(IDLE_SECONDS + 1)
            assert await idle_reader.read() == b""
            idle.close()
            half.close()

    run(main())


@pytest.mark.parametrize("leaves", [True, False])
def test_half_a_body_weighs_on_nobody_once_its_client_is_gone_or_refused(leaves: bool) -> None:
    async def main() -> None:
        async with front_over(echo) as (front, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + b"Content-Length: 20\r\n\r\n" + b"x" * 10)
            await until(lambda: front.load.size == 10)
            if leaves:
                writer.transport.abort()
                await until(lambda: not front.connections)
            else:
                front.tick(BODY_SECONDS + 1)
                assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
                writer.close()
            assert front.load.size == 0

    run(main())


def test_one_that_ends_lets_answers_be_finished_and_no_connection_wait_for_another_request() -> None:
    async def main() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow(asked: HttpRequest, client: GatewayConnection) -> None:
            begun.set()
            await go.wait()
            client.answer(200, b"done")

        async with front_over(slow) as (front, port):
            idle_reader, idle = await asyncio.open_connection("127.0.0.1", port)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for ending in (False, True):
                begun.clear()
                go.clear()
                writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                await begun.wait()
                quiet = asyncio.ensure_future(front.quiet())
                if ending:
                    front.drain()
                    assert await idle_reader.read() == b""
                assert not (await asyncio.wait((quiet,), timeout=0.05))[0]
                go.set()
                await quiet
                assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200 ")
            assert await reader.read() == b""
            idle.close()
            writer.close()

    run(main())


def test_what_comes_before_its_turn_is_read_no_further_than_a_bound_and_answered_in_the_end() -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def slow(asked: HttpRequest, client: GatewayConnection) -> None:
            await go.wait()
            client.answer(200, b"%d." % len(asked.body))

        async with front_over(slow, max_request=1 << 20) as (front, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            one = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (1 << 20) + bytes(1 << 20)
            for _ in range(32):  # more than the sockets between hold
                writer.write(one)
            sending = asyncio.ensure_future(writer.drain())
            await until(lambda: any(c._paused for c in front.connections))
            assert not (await asyncio.wait((sending,), timeout=0.3))[0]
            (client,) = front.connections
            assert READ_AHEAD < client._requests.ahead < 1 << 20  # and what a read or two may bring
            go.set()
            for _ in range(32):
                await reader.readuntil(b"1048576.")
            await sending
            writer.close()

    run(main())


def test_an_error_of_the_handler_is_told_as_its_status() -> None:
    async def refuse(_: HttpRequest, client: GatewayConnection) -> None:
        raise ProtocolError("not today", status=503)

    assert asked(HEAD + b"Content-Length: 0\r\n\r\n", refuse).startswith(b"HTTP/1.1 503 ")


def test_a_head_that_comes_again_is_read_once_and_another_one_anew() -> None:
    heard: list[HttpRequest] = []

    async def note(asked: HttpRequest, client: GatewayConnection) -> None:
        heard.append(asked)
        client.answer(200)

    head = b"POST /%b HTTP/1.1\r\nHost: h\r\nX-A: %b\r\nContent-Length: 1\r\n\r\n"
    long = b"x" * MAX_REMEMBERED
    said = [(b"a", b"1"), (b"a", b"1"), (b"a", b"2"), (b"a", b"1"), (b"b", b"1"), (b"b", long), (b"b", long)]

    async def main() -> None:
        async with front_over(note) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for number, (path, value) in enumerate(said):
                writer.write(head % (path, value) + b"%d" % number)
                await reader.readuntil(b"\r\n\r\n")
            writer.close()

    asyncio.run(main())
    assert [(a.head.target[1:], a.fields["x-a"].encode(), a.body) for a in heard] == [
        (path, value, b"%d" % number) for number, (path, value) in enumerate(said)
    ]
    again = [one.head is other.head for one, other in pairwise(heard)]
    assert again == [True, False, False, False, False, False]


@pytest.mark.parametrize(
    "begun", [b"", b"POST / HT", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{"]
)
def test_a_newcomer_takes_the_place_of_who_keeps_the_gateway_waiting(
    monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr("agentsh_proxy.connection_limit.MAX_CONNECTIONS", 2)
    reached = asyncio.Event()

    async def late(asked: HttpRequest, client: GatewayConnection) -> None:
        if asked.body == b"wait":
            reached.set()
            await asyncio.Event().wait()
        client.answer(200, b"here")

    async def main() -> None:
        async with front_over(late) as (front, port):
            at_work, work = await asyncio.open_connection("127.0.0.1", port)
            work.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nwait")
            await reached.wait()
            slow, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begun)
            await until(lambda: len(front.connections) == 2)
            for _ in range(3):
                assert (await say(port, HEAD + b"\r\n")).endswith(b"here")
            assert await slow.read() == b""
            assert not at_work.at_eof()
            work.close()
            writer.close()

    run(main())


def test_more_clients_at_work_than_the_bound_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsh_proxy.connection_limit.MAX_CONNECTIONS", 1)
    refused: list[int] = []

    async def never(asked: HttpRequest, client: GatewayConnection) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with front_over(never, refused=refused) as (front, port):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + b"\r\n")
            await until(lambda: any(each.busy for each in front.connections))
            assert (await say(port, b"")).startswith(b"HTTP/1.1 503 ")
            writer.close()

    run(main())
    assert refused == [503]
