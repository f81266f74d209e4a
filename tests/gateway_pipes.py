"""A server behind a pipe that tests speak for: what it was sent is a list, what it says is put."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from gateway_front import INITIALIZE, GatewayFront, gateway_over, snapshot
from mcp_peers.scripted import run

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.exchange import LEGACY


class FakePipe:
    """One server. `refuses`: why it cannot be opened; `waits`: nothing is sent or heard of it without waiting."""

    def __init__(self, refuses: str = "", *, waits: bool = False) -> None:
        self.waits = waits
        # Tells that the last message was not taken.
        self.failed: Callable[[ProtocolError], None] = lambda _: None
        self._hear: Callable[[bytes], bool] = lambda _: False
        self.sent: list[Any] = []
        self.closed = False
        self.broken = False  # it takes no more
        self._refuses = refuses
        self._news = asyncio.Event()
        self._said: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def open(self) -> None:
        if self._refuses:
            raise ProtocolError(self._refuses, status=502)

    def attach(self, hear: Callable[[bytes], bool]) -> None:
        self._hear = hear

    def start(self, message: bytes, failed: Callable[[ProtocolError], None]) -> bool:
        if self.waits or self.broken:
            return False
        self._sent(message)
        self.failed = failed
        return True

    async def send(self, message: bytes) -> None:
        if self.broken:
            raise ProtocolError("the server ended", status=502)
        self._sent(message)

    def _sent(self, message: bytes) -> None:
        assert b"\n" not in message
        self.sent.append(json.loads(message))
        self._news.set()

    async def receive(self) -> bytes:
        said = await self._said.get()
        if said is None:
            raise ProtocolError("the server ended", status=502)
        return said

    def close(self) -> None:
        self.closed = True

    def say(self, message: Any) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        if self.waits or not self._said.empty() or not self._hear(data):
            self._said.put_nowait(data)

    def end(self) -> None:
        self._said.put_nowait(None)

    async def heard(self, method: str) -> Any:
        """Wait for a message of this method and return it."""
        while True:
            for message in self.sent:
                if message.get("method") == method:
                    return message
            self._news.clear()
            await self._news.wait()

    async def answer(self, method: str, result: Any) -> None:
        asked = await self.heard(method)
        self.sent.remove(asked)
        self.say({"jsonrpc": "2.0", "id": asked["id"], "result": result})


PEER = {"id": "peer", "type": "stdio", "command": "x"}
RESULT = {"content": []}
READY = {"protocolVersion": LEGACY[0], "capabilities": {}, "serverInfo": {"name": "p", "version": "1"}}


def play(scene: Callable[[GatewayFront, list[FakePipe]], Awaitable[None]], gateway: dict[str, Any] | None = None, **mcp: Any) -> None:  # fmt: skip
    """Let a scene happen in front of servers that take and give messages at once, and of such that have to be waited for."""

    async def main(*, waits: bool) -> None:
        pipes: list[FakePipe] = []

        def pipe(*_: Any) -> FakePipe:
            pipes.append(FakePipe(waits=waits))
            return pipes[-1]

        async with gateway_over(snapshot([PEER], gateway=gateway, **mcp)) as front:
            front.gateway._pipe = lambda server: pipe  # type: ignore[method-assign,assignment] # the server is a list here
            await scene(front, pipes)

    run(main(waits=True))
    run(main(waits=False))


async def begun(front: GatewayFront, pipes: list[FakePipe]) -> tuple[dict[str, str], FakePipe]:
    """Begin a session; return the headers of its requests and its server."""
    asking = asyncio.create_task(front.post(INITIALIZE))
    while not pipes:
        await asyncio.sleep(0)
    await pipes[-1].answer("initialize", READY)
    answer = await asking
    assert answer.json["result"] == READY
    return {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": LEGACY[0]}, pipes[-1]


VERSION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}


def modern(message: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return message | {"params": message["params"] | {"_meta": META | meta}}


def headers(message: dict[str, Any]) -> dict[str, str]:
    named = message["params"].get("name")
    fields = {"MCP-Protocol-Version": VERSION, "Mcp-Method": message["method"]}
    return fields | ({"Mcp-Name": named} if named else {})
