"""The proxy's service in the test's own process and loop: real sockets, a real snapshot, events in a list."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Self

import orjson
from agentsh_proxy.charging import Charges
from agentsh_proxy.counting import Counts
from agentsh_proxy.llm.reporting import Reporter
from agentsh_proxy.llm.server import ClientConnection
from agentsh_proxy.llm.service import Service
from agentsh_proxy.llm.upstream_pool import Pool
from agentsh_proxy.llm.view import unfold

from agentsh_net.core.configuration import config
from agentsh_net.core.links import link
from agentsh_net.core.model import Tool
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust import outline
from agentsh_net.core.trust.pins import Pins
from agentsh_net.workers.arbiter import Arbiter

SERVERS = [
    {"id": "weather", "type": "http", "url": "http://127.0.0.1:9/mcp"},
    {"id": "files", "type": "stdio", "command": "files"},
]
DEFINITIONS = {
    "read_file": {
        "name": "read_file",
        "description": "Reads a file.",
        "inputSchema": {"properties": {"path": {"type": "string"}}},
    },
    "delete_files": {"name": "delete_files", "description": "Deletes files."},
}
TOOLS = (("weather", "get_weather"), ("files", "read_file"), ("files", "delete_files"))


def snapshot(
    upstream: int | None = None,
    *,
    generation: int = 1,
    proxy: dict[str, Any] | None = None,
    dlp: dict[str, Any] | None = None,
    top: dict[str, Any] | None = None,
    base: str = "http://127.0.0.1:{}",
    **mcp: Any,
) -> Snapshot:
    """A policy that denies files/delete_files and knows three tools; providers lead to `upstream`."""
    providers = {}
    if upstream is not None:
        at = base.format(upstream)
        providers = {
            "anthropic": {"base_url": at},
            "openai": {"base_url": f"{at}/v1"},
            "corp": {"dialect": "openai", "base_url": f"{at}/team/v1"},
        }
    mapping = {
        "version": 1,
        "sandbox": {
            "mcp": {
                "servers": SERVERS,
                "tool_policy": "denylist",
                "denied_tools": [{"server": "files", "tool": "delete_*"}],
                **mcp,
            }
        },
        "proxy": {"port": 0, "providers": providers, **(proxy or {})},
        "dlp": dlp or {"mode": "disabled"},
        **(top or {}),
    }
    parsed = config.parse(mapping)
    registry = Registry(servers=parsed.sandbox.mcp.servers)
    for server_id in {server for server, _ in TOOLS}:
        tools = [
            Tool(server, name, f"sha256:{name}", outline=outline.of_definition(DEFINITIONS.get(name, {})))
            for server, name in TOOLS
            if server == server_id
        ]
        registry, _ = registry.register(server_id, tools)
    return Snapshot(generation, config.digest(mapping), parsed, registry, Pins(), mapping)


class PlacedCharges(Charges):
    """Questions to the supervisor, which takes every client's socket to be made in the session `here`; None: nobody can say."""

    here: str | None = ""
    contradictions: list[tuple[str, str]]
    alone: bool = False  # nobody answers

    def refuse(self, place: str, told: str) -> bool:
        return self.alone or super().refuse(place, told)

    def whose(self, client: asyncio.BaseTransport) -> str | None:
        return self.here

    def contradict(self, session_id: str, shown: str) -> None:
        self.contradictions = [(session_id, shown)]


class Proxy:
    """A service on a port of its own."""

    def __init__(
        self,
        first: Snapshot,
        charge: Callable[[bytes], bytes | None] | None = None,
        arbiter: Arbiter | None = None,
    ) -> None:
        self._first = first
        self._charge = charge
        self._answering = arbiter
        self.events: list[dict[str, Any]] = []
        self.port = 0
        self.service: Service

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        framer = link.Framer(link.MAX_FROM_WORKER)

        def write(data: bytes) -> None:
            for payload in framer.feed(data):
                self.events += [link.event_from_worker(e).to_json() for e in orjson.loads(payload)["events"]]

        self._arbiter, worker_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._arbiter.setblocking(False)
        if self._answering is not None:
            worker_end.close()
            worker_end = self._answering.attach()
        self.counts = Counts()
        alone = self._answering is None
        refusing = b"\0" if alone else b"\1"
        self.charges = PlacedCharges(worker_end, lambda: self.service.view.fail_closed, refusing)
        self.charges.alone = alone
        self.service = Service(
            loop,
            unfold(self._first),
            reporter=Reporter(write, lambda: 0, loop.call_soon),
            charges=self.charges,
            counts=self.counts,
            pool=Pool(loop, self.counts),
        )
        self._server = await loop.create_server(lambda: ClientConnection(self.service), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self.service.drain(0)
        self._arbiter.close()

    def swap(self, current: Snapshot) -> None:
        """Make another policy the one in force."""
        self.service.view = unfold(current)
