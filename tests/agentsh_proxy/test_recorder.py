"""A record is handed over without its credentials and without waiting; what does not fit is left out from there on, and said."""

from __future__ import annotations

import asyncio
import socket
from typing import Self

from agentsh_proxy import recorder as module
from agentsh_proxy.recorder import Recorder
from loopback import on_loop

from agentsh_net.core.links.record_link import Kind, Piece, Reader, read_about


class Archive:
    """The other end, read only when asked."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._reader = Reader()

    async def __aenter__(self) -> Self:
        await asyncio.get_running_loop().create_unix_connection(lambda: self.recorder, sock=self._theirs)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ours.close()
        await self.recorder.close()

    async def pieces(self, until: Kind) -> list[Piece]:
        found: list[Piece] = []
        while not any(piece.kind is until for piece in found):
            found += self._reader.feed(await asyncio.get_running_loop().sock_recv(self._ours, 1 << 16))
        return found


@on_loop
async def test_a_record_is_its_request_its_answer_and_its_end(opened):
    archive = await opened(Archive())
    recording = archive.recorder.begin({"model": "m"})
    recording.request(b"POST /x?key=s3cret HTTP/1.1\r\nAuthorization: s3cret", b'{"a":1}')
    recording.answer_head(b"HTTP/1.1 200 OK\r\nSet-Cookie: s3cret")
    recording.answer(b"one ")
    recording.answer(b"two")
    recording.end({"status": 200})
    begin, request, answer, end = await archive.pieces(Kind.END)
    assert (begin.kind, read_about(begin.payload)) == (Kind.BEGIN, {"model": "m"})
    assert request.payload == b'POST /x?key=[redacted] HTTP/1.1\r\nAuthorization: [redacted]\r\n\r\n{"a":1}'
    assert answer.payload == b"HTTP/1.1 200 OK\r\nSet-Cookie: [redacted]\r\n\r\none two"
    assert read_about(end.payload) == {"status": 200, "truncated": False}


@on_loop
async def test_a_long_stream_is_handed_over_as_it_comes(opened):
    archive = await opened(Archive())
    recording = archive.recorder.begin({})
    recording.answer(b"x" * module.BATCH)
    assert [len(p.payload) for p in await archive.pieces(Kind.ANSWER) if p.kind is Kind.ANSWER] == [
        module.BATCH
    ]


@on_loop
async def test_where_the_archive_does_not_keep_up_the_rest_is_left_out_and_the_end_is_told(
    opened, monkeypatch
):
    monkeypatch.setattr(module, "MAX_WAITING", 1 << 20)
    archive = await opened(Archive())
    recording = archive.recorder.begin({})
    for _ in range(100):
        recording.answer(b"x" * (64 << 10))
    assert archive.recorder.begin({}) is not None
    recording.end({"status": 200})
    pieces = await archive.pieces(Kind.END)
    assert read_about(pieces[-1].payload)["truncated"] is True
    assert sum(len(p.payload) for p in pieces if p.kind is Kind.ANSWER) < 3 << 20


@on_loop
async def test_without_an_archive_nothing_is_recorded(opened):
    archive = await opened(Archive())
    await archive.recorder.close()
    assert archive.recorder.begin({}) is None
