"""A client that sends the very bytes it is given and reads answers strictly."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Self


@dataclass
class Answer:
    """One answer, its body with the framing taken off. `whole` is false where the connection ended before the body did."""

    status: int
    head: bytes
    body: bytes
    whole: bool = True

    def values(self, name: str) -> list[bytes]:
        lines = [line.partition(b":") for line in self.head.split(b"\r\n")[1:] if line]
        return [value.strip() for key, _, value in lines if key.lower() == name.lower().encode()]


class Client:
    """One connection to the proxy."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.body = b""  # of the answer that is being read, so far

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def answer(self, method: str = "POST") -> Answer:
        head = (await self.reader.readuntil(b"\r\n\r\n"))[:-4]
        answer = Answer(int(head[9:12]), head, b"")
        self.body = b""
        if method == "HEAD" or answer.status in (100, 103, 204, 304):
            return answer
        try:
            if answer.values("transfer-encoding"):
                await self._chunks(answer)
            elif answer.values("content-length"):
                answer.body = await self.reader.readexactly(int(answer.values("content-length")[0]))
            else:
                answer.body = await self.reader.read()
        except asyncio.IncompleteReadError as cut:
            answer.body += cut.partial
            answer.whole = False
        except ConnectionError:
            answer.whole = False
        return answer

    async def _chunks(self, answer: Answer) -> None:
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            answer.body = self.body = answer.body + await self.reader.readexactly(size)
            assert await self.reader.readexactly(2) == b"\r\n"
        assert await self.reader.readexactly(2) == b"\r\n"

    async def closed(self) -> bool:
        """Wait for the end of the connection; anything that still comes is not an end."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def ask(self, *pieces: bytes, method: str = "POST") -> Answer:
        await self.send(*pieces)
        return await self.answer(method)


def request(
    path: str, body: bytes = b"", *fields: bytes, method: str = "POST", version: str = "HTTP/1.1"
) -> bytes:
    lines = [f"{method} {path} {version}".encode(), b"Host: localhost", *fields]
    if body or method == "POST":
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def raw(target: str, *fields: bytes, body: bytes = b"", method: str = "POST") -> bytes:
    """A request whose fields are exactly these."""
    return b"\r\n".join([f"{method} {target} HTTP/1.1".encode(), *fields]) + b"\r\n\r\n" + body
