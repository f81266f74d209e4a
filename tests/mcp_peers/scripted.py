"""A scripted HTTP server on loopback: each request goes to a handler, which writes whatever bytes it likes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import uvloop

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Seen:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int  # which connection of the server it came on, from 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def rpc(self) -> str:
        """The JSON-RPC method, empty for an answer or a request without a body."""
        return self.json.get("method", "") if self.body else ""


@dataclass
class Wire:
    """The server's end of a connection, in the words of the tests."""

    writer: asyncio.StreamWriter

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int, body: bytes = b"", content_type: str = "", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
        lines += [f"Content-Type: {content_type}"] if content_type else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def json(self, value: Any, status: int = 200, **headers: str) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        await self.answer(status, body, "application/json", **headers)

    async def result(self, request: Seen, result: Any, **headers: str) -> None:
        await self.json({"jsonrpc": "2.0", "id": request.json["id"], "result": result}, **headers)

    async def chunk(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, data: Any, *, event: str = "", id_: str = "", retry: int = 0) -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        lines = [f"event: {event}"] if event else []
        lines += [f"id: {id_}"] if id_ else []
        lines += [f"retry: {retry}"] if retry else []
        await self.chunk("\n".join([*lines, f"data: {text}", "", ""]).encode())

    async def end(self) -> None:
        await self.chunk(b"")

    def cut(self) -> None:
        self.writer.transport.abort()


Handler = Callable[[Seen, Wire], Awaitable[None]]


@dataclass
class Scripted:
    """The server: what it saw, and its URL."""

    scheme: str = "http"
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    connections: int = 0
    failures: list[Exception] = field(default_factory=list)

    def url(self, path: str = "/mcp") -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    @property
    def asked(self) -> list[str]:
        """The JSON-RPC methods posted so far (`GET` and the like for requests without a body)."""
        return [s.rpc if s.body else s.method for s in self.seen]

    async def until(self, claim: Callable[[], bool]) -> None:
        """Wait until a claim over what was seen holds."""
        while not claim():
            self.changed.clear()
            await self.changed.wait()


@contextlib.asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Scripted]:
    """Serve on a free port of loopback until the block ends."""
    state = Scripted("https" if tls else "http")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        state.tasks.add(task)
        number, state.connections = state.connections, state.connections + 1
        try:
            while not writer.is_closing():
                request = await read_request(reader, number)
                state.seen.append(request)
                state.changed.set()
                await handler(request, Wire(writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except Exception as fault:
            # A claim that failed inside a handler, or a broken script: the test fails with it.
            state.failures.append(fault)
        finally:
            writer.close()
            state.tasks.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        for task in tuple(state.tasks):
            task.cancel()
        if state.tasks:
            await asyncio.wait(tuple(state.tasks))
        if state.failures:
            raise state.failures[0]


async def read_request(reader: asyncio.StreamReader, connection: int) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:-2])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, target, headers, body, connection)


def run(scene: Coroutine[Any, Any, None]) -> None:
    """Run a test's scene to its end, on the loop that workers run on; half a minute of nothing is a hang."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scene

    uvloop.run(bounded())
