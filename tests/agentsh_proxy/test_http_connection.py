"""A connection reads the same answer however its bytes are cut, never past its bounds, and never one it did not ask for."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import Any

import brotli
import pytest
from agentsh_proxy.http_connection import HIGH_WATER, Connection, CutError
from agentsh_proxy.inflating import MAX_GROWTH
from mcp_peers.scripted import run

from agentsh_net.core.errors import ProtocolError


class FakeTransport(asyncio.Transport):
    """A transport that remembers what was done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reading = True
        self.aborted = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.aborted = True


def asked() -> tuple[Connection, FakeTransport]:
    """Return a connection on which a request was just sent."""
    connection, transport = Connection(), FakeTransport()
    connection.connection_made(transport)
    connection.send(b"GET / HTTP/1.1\r\n\r\n", b"body")
    assert transport.written == b"GET / HTTP/1.1\r\n\r\nbody"
    return connection, transport


async def read(connection: Connection) -> tuple[int, list[tuple[str, str]], bytes]:
    await connection.head()
    body = b""
    while data := await connection.chunk():
        body += data
    return connection.status, connection.headers, body


ANSWER = (
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-One: 1 \r\nTransfer-Encoding: chunked\r\n\r\n"
    b"4;ext=1\r\nwiki\r\n5\r\npedia\r\n0\r\nX-Trailer: no\r\n\r\n"
)


def test_an_answer_cut_at_any_two_offsets_reads_the_same() -> None:
    async def scene() -> None:
        for first in range(len(ANSWER)):
            for second in {first + 1, (first + len(ANSWER)) // 2, len(ANSWER)}:
                connection, _ = asked()
                for piece in (ANSWER[:first], ANSWER[first:second], ANSWER[second:]):
                    if piece:
                        connection.data_received(piece)
                status, headers, body = await read(connection)
                assert (status, body) == (200, b"wikipedia")
                assert headers == [("x-one", "1"), ("transfer-encoding", "chunked")]
                assert connection.usable

    run(scene())


def test_a_cut_at_any_offset_is_a_cut() -> None:
    async def scene() -> None:
        for end in range(len(ANSWER)):
            connection, _ = asked()
            if end:
                connection.data_received(ANSWER[:end])
            connection.connection_lost(None)
            with pytest.raises(CutError, match="without an answer" if end == 0 else "in the middle"):
                await read(connection)

    run(scene())


def test_reading_stops_when_the_consumer_is_behind_and_starts_again() -> None:
    async def scene() -> None:
        connection, transport = asked()
        connection.data_received(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(2):
            connection.data_received(b"%x\r\n%s\r\n" % (HIGH_WATER, b"x" * HIGH_WATER))
        assert not transport.reading
        await connection.chunk()
        while connection._queued:
            await connection.chunk()
        assert transport.reading

    run(scene())


def compressed(coding: str, body: bytes, cut: int = 0) -> bytes:
    packed = body[: len(body) - cut]
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        coding.encode(),
        len(packed),
        packed,
    )


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("GZIP", gzip.compress(b"plain")),
        ("deflate", zlib.compress(b"plain")),
        ("identity, br", brotli.compress(b"plain")),
        ("deflate, gzip", gzip.compress(zlib.compress(b"plain"))),
        ("identity", b"plain"),
    ],
)
def test_what_is_compressed_though_it_was_asked_for_plain_is_read_plain(coding: str, packed: bytes) -> None:
    async def scene() -> None:
        answer = compressed(coding, packed)
        for at in range(1, len(answer)):
            connection, _ = asked()
            connection.data_received(answer[:at])
            connection.data_received(answer[at:])
            assert (await read(connection))[2] == b"plain"
            assert connection.usable

    run(scene())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (compressed("gzip", gzip.compress(b"plain"), cut=9), "ends early"),
        (compressed("gzip", b"no gzip"), "is corrupt"),
        (compressed("x-lzw", b"plain"), "'x-lzw' cannot be inspected"),
        (compressed("gzip", gzip.compress(bytes(MAX_GROWTH + 1))), f"grows past {MAX_GROWTH} bytes"),
        (compressed("gzip, gzip, gzip, gzip", b""), "cannot be inspected"),
    ],
)
def test_what_is_compressed_and_cannot_be_read_is_refused_with_its_cause(answer: bytes, why: str) -> None:
    async def scene() -> None:
        connection, transport = asked()
        connection.data_received(answer)
        assert transport.aborted
        with pytest.raises(ProtocolError, match=why) as refused:
            await read(connection)
        assert refused.value.status == 502

    run(scene())


def test_a_compressed_body_that_the_connection_ends_is_whole_or_cut() -> None:
    async def scene() -> None:
        for cut in (0, 1):
            packed = gzip.compress(b"plain")
            connection, _ = asked()
            connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
            connection.data_received(packed[: len(packed) - cut])
            connection.connection_lost(None)
            if not cut:
                assert (await read(connection))[2] == b"plain"
                continue
            with pytest.raises(ProtocolError, match="ends early"):
                await read(connection)

    run(scene())


def test_bytes_that_nobody_asked_for_close_the_connection() -> None:
    async def scene() -> None:
        connection, transport = Connection(), FakeTransport()
        connection.connection_made(transport)
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        assert transport.aborted
        connection, transport = asked()
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        assert connection.usable
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        assert transport.aborted
        assert not connection.usable

    run(scene())


def test_an_answer_and_one_more_in_one_packet_is_not_taken() -> None:
    async def scene() -> None:
        connection, transport = asked()
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * 2)
        with pytest.raises(ProtocolError, match="more than it was asked"):
            await connection.head()
        assert transport.aborted

    run(scene())


def test_an_answer_that_ends_with_its_connection_is_whole_only_after_an_orderly_end() -> None:
    async def scene() -> None:
        connection, _ = asked()
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nwhole")
        connection.connection_lost(None)
        assert (await read(connection))[2] == b"whole"
        assert not connection.usable
        connection, _ = asked()
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        connection.connection_lost(ConnectionResetError())
        with pytest.raises(CutError):
            await read(connection)

    run(scene())


def test_who_waits_sleeps_on_where_a_watcher_took_what_came() -> None:
    async def scene() -> None:
        connection, _ = asked()
        taken: list[bytes] = []
        takes = [False, True, False]

        def watch() -> bool:
            if takes.pop(0):
                taken.append(connection.take())
                return True
            return False

        connection.watch(watch)
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n")
        await connection.head()
        waiting = asyncio.create_task(connection.news())
        await asyncio.sleep(0)
        connection.data_received(b"abc")
        await asyncio.sleep(0)
        assert taken == [b"abc"] and not waiting.done()
        connection.data_received(b"def")
        await waiting
        assert (connection.take(), connection.take(), connection.complete) == (b"def", b"", True)

    run(scene())


def test_a_cut_is_told_to_the_watcher_and_to_who_waits() -> None:
    async def scene() -> None:
        connection, _ = asked()
        seen: list[bool] = []
        connection.watch(lambda: bool(seen.append(connection.error is not None)))
        waiting = asyncio.create_task(connection.news())
        await asyncio.sleep(0)
        connection.connection_lost(None)
        with pytest.raises(CutError):
            await waiting
        assert seen == [True]

    run(scene())
