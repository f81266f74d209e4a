"""A client of MCP servers for measuring: raw HTTP on kept connections, one call at a time on each; it costs next to nothing itself."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import subprocess
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

    async def beside(self, number: int) -> Session:
        """Return another connection of the same session, whose calls have ids of their own."""
        other = Session(self.host, self.port, self.path, self.id, (number + 1) * 1_000_000)
        other.reader, other.writer = await asyncio.open_connection(self.host, self.port)
        return other

    async def calls(self, count: int) -> None:
        for _ in range(count):
            await self.call()

    async def call(self) -> None:
        self.number += 1
        began = time.perf_counter()
        _, body = await self.post(
            {"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": sum_of(self.number)}
        )
        self.latencies.append(time.perf_counter() - began)
        assert b'"result"' in body, body

    async def delete(self) -> None:
        await self.post(None, "DELETE")

    def close(self) -> None:
        self.writer.close()


def sum_of(number: int) -> dict[str, object]:
    """Return the parameters of a call; calls differ in length, as real ones do."""
    return {"name": "add", "arguments": {"a": 1, "b": 10 ** (number % 9)}}


def address(url: str) -> tuple[str, int, str]:
    host, _, rest = url.removeprefix("http://").partition(":")
    port, _, path = rest.partition("/")
    return host, int(port), "/" + path


async def calls(url: str, count: int, *, sessions: int = 1, each: int = 1) -> list[float]:
    """Return the seconds that each of so many calls took: so many sessions, with so many calls in flight each.

    A session's first call is not counted: a fresh server imports and compiles in it, whoever stands before it.
    """
    opened = []
    for _ in range(sessions):
        session = Session(*address(url))
        await session.open()
        await session.call()
        session.close()  # some servers would, after five seconds without a request
        opened.append(session)
    lanes = [await session.beside(lane) for session in opened for lane in range(each)]
    await asyncio.gather(*(lane.calls(count // len(lanes)) for lane in lanes))
    for lane in lanes[::each]:
        await lane.delete()
    for lane in lanes:
        lane.close()
    return [latency for lane in lanes for latency in lane.latencies]


class Pipe:
    """A stdio server of one's own, with as many calls in flight as are made."""

    async def open(self, command: list[str]) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.waiting: dict[int, asyncio.Future[bytes]] = {}
        self.latencies: list[float] = []
        self.numbers = itertools.count()
        self.reader = asyncio.create_task(self.read())
        await self.ask("initialize", INITIALIZE)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.waiting.pop(json.loads(line)["id"]).set_result(line)

    async def ask(self, method: str, params: object) -> bytes:
        number = next(self.numbers)
        answered = self.waiting[number] = asyncio.get_running_loop().create_future()
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return await answered

    async def calls(self, count: int) -> None:
        for number in range(count):
            began = time.perf_counter()
            answer = await self.ask("tools/call", sum_of(number))
            self.latencies.append(time.perf_counter() - began)
            assert b'"result"' in answer, answer

    async def close(self) -> None:
        self.process.terminate()
        await self.process.wait()
        self.reader.cancel()


async def bare_calls(command: list[str], count: int, *, sessions: int = 1, each: int = 1) -> list[float]:
    """Return what `calls` does of stdio servers without anything before them, one for each session."""
    pipes = [Pipe() for _ in range(sessions)]
    for pipe in pipes:
        await pipe.open(command)
        await pipe.calls(1)
        pipe.latencies.clear()
    await asyncio.gather(*(pipe.calls(count // sessions // each) for pipe in pipes for _ in range(each)))
    for pipe in pipes:
        await pipe.close()
    return [latency for pipe in pipes for latency in pipe.latencies]
