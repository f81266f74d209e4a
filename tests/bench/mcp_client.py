"""A client of MCP servers for measuring: raw HTTP on kept connections, one call at a time on each; it costs next to nothing itself."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass, field

LENGTH = re.compile(rb"\r\ncontent-length:\s*([0-9]+)", re.IGNORECASE)
SESSION = re.compile(rb"\r\nmcp-session-id:\s*([^\r]+)", re.IGNORECASE)
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


@dataclass
class Session:
    """One session: its connection, and its id."""

    host: str
    port: int
    path: str
    id: str = ""
    number: int = 0
    latencies: list[float] = field(default_factory=list)

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        head, _ = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
        found = SESSION.search(head)
        self.id = found[1].decode() if found else ""
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def post(self, message: object, method: str = "POST") -> tuple[bytes, bytes]:
        body = json.dumps(message).encode() if message is not None else b""
        session = f"Mcp-Session-Id: {self.id}\r\nMCP-Protocol-Version: 2025-11-25\r\n" if self.id else ""
        self.writer.write(
            f"{method} {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\n{session}Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        return await self.answer()

    async def answer(self) -> tuple[bytes, bytes]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head[9:10] == b"2", head
        length = LENGTH.search(head)
        if length is not None:
            return head, await self.reader.readexactly(int(length[1]))
        if b"chunked" not in head.lower():
            return head, b""
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()
        return head, body

    async def listen(self) -> None:
        """Open the stream of a GET on a connection of its own."""
        _, self.stream = await asyncio.open_connection(self.host, self.port)
        self.stream.write(
            f"GET {self.path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAccept: text/event-stream\r\n"
            f"Mcp-Session-Id: {self.id}\r\n\r\n".encode()
        )

    async def call(self) -> None:
        self.number += 1
        # Calls differ in length, as real ones do.
        params = {"name": "add", "arguments": {"a": 1, "b": 10 ** (self.number % 9)}}
        began = time.perf_counter()
        _, body = await self.post(
            {"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": params}
        )
        self.latencies.append(time.perf_counter() - began)
        assert b'"result"' in body, body

    async def delete(self) -> None:
        await self.post(None, "DELETE")

    def close(self) -> None:
        self.writer.close()


def address(url: str) -> tuple[str, int, str]:
    host, _, rest = url.removeprefix("http://").partition(":")
    port, _, path = rest.partition("/")
    return host, int(port), "/" + path


async def calls(url: str, count: int, in_flight: int) -> list[float]:
    """Return the seconds that each of so many calls took."""
    sessions = [Session(*address(url)) for _ in range(in_flight)]
    for session in sessions:
        await session.open()

    async def run(session: Session) -> None:
        for _ in range(count // in_flight):
            await session.call()

    await asyncio.gather(*map(run, sessions))
    for session in sessions:
        session.close()
    return [latency for session in sessions for latency in session.latencies]
