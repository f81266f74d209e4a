"""An upstream that records what reached it and answers with the bytes a test gives it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self


@dataclass
class Received:
    """One request as the upstream saw it."""

    head: bytes
    body: bytes

    @property
    def line(self) -> bytes:
        return self.head.partition(b"\r\n")[0]

    def values(self, name: str) -> list[bytes]:
        lines = [line.partition(b":") for line in self.head.split(b"\r\n")[1:] if line]
        return [value.strip() for key, _, value in lines if key.lower() == name.lower().encode()]


Script = Callable[["Conversation", Received], Awaitable[None]]


@dataclass
class Conversation:
    """One connection to the upstream."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            if len(pieces) > 1:
                await asyncio.sleep(0)

    def cut(self) -> None:
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the other side is gone."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass


def response(
    body: bytes, *fields: bytes, status: bytes = b"200 OK", content_type: bytes = b"application/json"
) -> bytes:
    lines = [
        b"HTTP/1.1 " + status,
        b"Content-Type: " + content_type,
        b"Content-Length: %d" % len(body),
        *fields,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(
    *pieces: bytes, content_type: bytes = b"text/event-stream", fields: tuple[bytes, ...] = ()
) -> list[bytes]:
    lines = [b"HTTP/1.1 200 OK", b"Content-Type: " + content_type, b"Transfer-Encoding: chunked", *fields]
    return [
        b"\r\n".join(lines) + b"\r\n\r\n",
        *(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces if p),
        b"0\r\n\r\n",
    ]


def answering(*pieces: bytes) -> Script:
    """Return a script that answers every request with these bytes."""

    async def script(conversation: Conversation, _: Received) -> None:
        await conversation.send(*pieces)

    return script


@dataclass
class Upstream:
    """Listens on a port of its own. `script` says what to answer; `requests` and `connections` what came."""

    script: Script = field(default_factory=lambda: answering(response(b"{}")))
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    gone: int = 0
    port: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                request = Received(head[:-4], b"")
                request.body = await self._body(reader, request)
                self.requests.append(request)
                self.arrived.set()
                await self.script(Conversation(reader, writer), request)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.gone += 1
            self.closed.set()
            self._tasks.discard(task)
            writer.transport.abort()

    async def _body(self, reader: asyncio.StreamReader, request: Received) -> bytes:
        if request.values("transfer-encoding"):
            body = b""
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
            return body
        return await reader.readexactly(int((request.values("content-length") or [b"0"])[0]))
