"""What scripted MCP servers have in common: the honest answers, to be strayed from in one point each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agentsh_net.core.mcp.exchange import MODERN
from agentsh_net.core.model import Server, Transport
from mcp_peers.scripted import STREAM, Scripted, Seen, Wire

INITIALIZED: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "scripted", "version": "1"},
    "instructions": "be kind",
}
DISCOVERED: dict[str, Any] = {
    "resultType": "complete",
    "supportedVersions": [MODERN],
    "capabilities": {"tools": {}},
    "instructions": "be modern",
}

Answer = Callable[[Seen, Wire], Awaitable[None]]


def tools(*names: str, **more: Any) -> dict[str, Any]:
    return {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in names]} | more


def declared(
    server: Scripted, path: str = "/mcp", transport: Transport = Transport.HTTP, **more: Any
) -> Server:
    return Server("scripted", transport, url=server.url(path), host="127.0.0.1", port=server.port, **more)


def legacy(**strays: Answer) -> Answer:
    """A Streamable HTTP server of 2025-11-25; `strays` answer a method (slashes as underscores), or GET or DELETE, otherwise."""

    async def handler(request: Seen, wire: Wire) -> None:
        asked = request.rpc if request.body else request.method
        stray = strays.get(asked.replace("/", "_"))
        if stray is not None:
            await stray(request, wire)
        elif asked == "initialize":
            await wire.result(request, INITIALIZED, Mcp_Session_Id="s-1")
        elif asked == "tools/list":
            await wire.result(request, tools("a"))
        elif asked.startswith("notifications/") or not asked:
            await wire.answer(202)
        else:
            await wire.answer(405 if asked in ("GET", "DELETE") else 400)

    return handler


def modern(**strays: Answer) -> Answer:
    """A server of 2026-07-28."""

    async def handler(request: Seen, wire: Wire) -> None:
        asked = request.rpc if request.body else request.method
        stray = strays.get(asked.replace("/", "_"))
        if stray is not None:
            await stray(request, wire)
        elif asked == "server/discover":
            await wire.result(request, DISCOVERED)
        elif asked == "tools/list":
            await wire.result(request, tools("a", resultType="complete"))
        else:
            error = {"code": -32601, "message": "Method not found"}
            await wire.json({"jsonrpc": "2.0", "id": request.json["id"], "error": error}, 404)

    return handler


class SseServer:
    """An HTTP+SSE server: its stream is opened by GET /sse, its answers to POST /messages go there."""

    def __init__(
        self, endpoint: str = "/messages?session_id=1", **strays: Callable[[Seen, Wire], Awaitable[None]]
    ) -> None:
        self.endpoint = endpoint
        self.strays = strays
        self.stream: Wire | None = None

    async def __call__(self, request: Seen, wire: Wire) -> None:
        if request.method == "GET":
            self.stream = wire
            await wire.raw(STREAM)
            await wire.event(self.endpoint, event="endpoint")
            return
        if not request.target.startswith("/messages"):
            await wire.answer(405)
            return
        await wire.answer(202, b"Accepted")
        assert self.stream is not None
        stray = self.strays.get(request.rpc.replace("/", "_"))
        if stray is not None:
            await stray(request, self.stream)
        elif request.rpc == "initialize":
            await self.say(request, INITIALIZED | {"protocolVersion": "2024-11-05"})
        elif request.rpc == "tools/list":
            await self.say(request, tools("a"))

    async def say(self, request: Seen, result: Any) -> None:
        assert self.stream is not None
        await self.stream.event(result_of(request, result))


def result_of(request: Seen, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request.json["id"], "result": result}
