"""A gateway on loopback over a snapshot of the test's: what it answers, tells and reports is kept; no worker, no supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from agentsh_proxy.charging import Charges
from agentsh_proxy.counting import Counts
from agentsh_proxy.gateway.connection import GatewayConnection
from agentsh_proxy.gateway.router import Gateway, Means
from agentsh_proxy.http_client import HttpClient, Response
from mcp_peers.roles import legacy
from mcp_peers.scripted import Handler, Scripted, Seen, Wire, run, serving

from agentsh_net.core.audit.events import Event
from agentsh_net.core.audit.joining import Intent
from agentsh_net.core.configuration import config
from agentsh_net.core.mcp.http_rules import address
from agentsh_net.core.model import Crossing
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins, tool_of

ACCEPT = (("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"))


def snapshot(servers: list[dict[str, Any]], *, generation: int = 1, offers: dict[str, list[str]] | None = None, gateway: dict[str, Any] | None = None, **mcp: Any) -> Snapshot:  # fmt: skip
    mapping = {
        "sandbox": {"mcp": {"servers": servers, **mcp}},
        "gateway": {"enabled": True, **(gateway or {})},
    }
    read = config.parse(mapping)
    registry = Registry(read.sandbox.mcp.servers)
    for server_id, names in (offers or {}).items():
        tools = [tool_of(server_id, {"name": n, "inputSchema": {"type": "object"}}) for n in names]
        registry, _ = registry.register(server_id, tools)
    return Snapshot(generation, "digest", read, registry, Pins(), mapping)


class FakeCharges:
    """The supervisor's answers: so many calls are within the rate, and these intents wait."""

    def __init__(self) -> None:
        self.left = 1000
        self.unanswered = False
        self.charged: list[tuple[str, str, str]] = []
        self.intents: list[Intent] = []
        self.here: str | None = ""  # the session in which clients' sockets are made; None: nobody can say
        self.contradictions: list[tuple[str, str]] = []

    def of_the_wire(self, server_id: str, tool: str, session_id: str) -> bool | Crossing:
        self.charged.append((server_id, tool, session_id))
        self.left -= 1
        return self.left >= 0

    def whose(self, client: asyncio.BaseTransport) -> str | None:
        return self.here

    def contradict(self, session_id: str, shown: str) -> None:
        self.contradictions.append((session_id, shown))

    def claim(self, server_id: str, tool: str, marked: Callable[[], str], session_id: str) -> Intent | None:
        assert marked()
        return self.intents.pop() if self.intents else None


@dataclass(frozen=True)
class Answer:
    """What a client got. `messages` are those of the body, or of its events."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def messages(self) -> list[Any]:
        if not self.headers.get("content-type", "").startswith("text/event-stream"):
            return [self.json]
        return [json.loads(d) for d in data_of(self.body) if d]  # without data: what primes a stream


def data_of(stream: bytes) -> list[bytes]:
    """Return the data of a stream's events."""
    lines = stream.replace(b"\r\n", b"\n").split(b"\n")
    return [line[6:] for line in lines if line.startswith(b"data: ")]


class GatewayFront:
    """A running gateway."""

    def __init__(self, current: Snapshot, stdio: socket.socket | None = None) -> None:
        self.events: list[dict[str, Any]] = []
        self.reports: list[dict[str, Any]] = []
        self.charges = FakeCharges()
        self.counts = Counts()
        self.on_report: Callable[[dict[str, Any]], None] = lambda _: None
        means = Means(
            charges=cast("Charges", self.charges),
            counts=self.counts,
            emit=self._emit,
            report=self._report,
            stdio=stdio,
        )
        self.gateway = Gateway(asyncio.get_running_loop(), current, means)
        self.bugs: list[BaseException] = []
        self.gateway._bug = self.gateway.front.on_bug = self.bugs.append  # type: ignore[method-assign]
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def follow(self, current: Snapshot) -> None:
        self.gateway.follow(current)

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    async def ask(self, method: str, message: Any = None, server: str = "peer", path: str = "", **headers: str) -> Answer:  # fmt: skip
        response = await self.open(method, message, server, path, **headers)
        body = await response.read(64 << 20)
        await response.release()
        return Answer(response.status, dict(response.headers), body)

    async def open(self, method: str, message: Any = None, server: str = "peer", path: str = "", **headers: str) -> Response:  # fmt: skip
        client = HttpClient(address(self.url))
        body = (
            message
            if isinstance(message, bytes)
            else json.dumps(message).encode()
            if message is not None
            else b""
        )
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        fields = (*(h for h in ACCEPT if h[0] not in named), *((n, v) for n, v in named.items() if v))
        return await client.request(method, path or f"/mcp/{server}", fields, body)

    async def post(self, message: Any, server: str = "peer", **headers: str) -> Answer:
        return await self.ask("POST", message, server, **headers)

    async def raw(self, data: bytes) -> bytes:
        """Send bytes and return all that comes back until the gateway closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        answer = await reader.read()
        writer.close()
        return answer

    def _emit(self, event: Event) -> None:
        self.events.append(event.to_json())

    def _report(self, report: dict[str, Any]) -> None:
        self.reports.append(report)
        self.on_report(report)


@contextlib.asynccontextmanager
async def gateway_over(current: Snapshot, stdio: socket.socket | None = None) -> AsyncIterator[GatewayFront]:
    """Serve on a free port of loopback until the block ends; nothing that happens there may be a bug."""
    front = GatewayFront(current, stdio)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, what: front.bugs.extend([what["exception"]] * ("exception" in what)))
    shared = front.gateway.front
    server = await loop.create_server(lambda: GatewayConnection(shared), "127.0.0.1", 0)
    front.port = server.sockets[0].getsockname()[1]
    try:
        yield front
    finally:
        server.close()
        front.gateway.close()
    assert [repr(bug) for bug in front.bugs] == [], "the gateway failed"


def request(method: str, id_: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def call(tool: str = "add", id_: Any = 1, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", id_, name=tool, arguments=arguments)


INITIALIZE = request("initialize", 0, protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"})  # fmt: skip


Scene = Callable[[GatewayFront, Scripted], Awaitable[None]]
RESULT = {"content": [{"type": "text", "text": "3"}]}


def play(handler: Handler, scene: Scene, *, gateway: dict[str, Any] | None = None, **mcp: Any) -> None:
    """Let a scene happen in front of one server."""

    async def main() -> None:
        async with serving(handler) as server:
            peer = {"id": "peer", "type": "http", "url": server.url(), **mcp.pop("peer", {})}
            others = mcp.pop("others", [])
            async with gateway_over(snapshot([peer, *others], gateway=gateway, **mcp)) as front:
                await scene(front, server)

    run(main())


def answering(act: Callable[[Seen, Wire], Awaitable[None]]) -> Handler:
    return legacy(tools_call=act)


async def plain(asked: Seen, wire: Wire) -> None:
    await wire.result(asked, RESULT)


async def empty(asked: Seen, wire: Wire) -> None:
    await wire.result(asked, {"content": []})


def play_plainly(
    scene: Callable[[GatewayFront, Scripted, dict[str, Any]], Awaitable[None]], gateway: dict[str, Any] | None = None, **mcp: Any
) -> None:  # fmt: skip
    async def main() -> None:
        async with serving(legacy(tools_call=empty)) as server:
            peer = {"id": "peer", "type": "http", "url": server.url()}
            async with gateway_over(snapshot([peer], gateway=gateway, **mcp)) as front:
                await scene(front, server, peer)

    run(main())


async def same(
    front: GatewayFront, change: Callable[[], None], path: str = "/mcp/peer", *fields: str
) -> list[bytes]:
    """Send one request twice on a connection, with the change between; return how each was answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    body = json.dumps(call()).encode()
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{front.port}",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in ACCEPT),
        *fields,
    ]
    answers = []
    for _ in range(2):
        writer.write("\r\n".join((*head, "", "")).encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", answer)
        assert length is not None
        answers.append(answer[9:12] + b" " + await reader.readexactly(int(length[1])))
        change()
    writer.close()
    return answers
