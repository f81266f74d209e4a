"""The gateway's configuration as a snapshot has it, looked up once a reload instead of once a request.

It decides nothing and sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentsh_net.core.configuration.settings import Gateway, GatewayServer, SecurityScheme
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.inspect.custom import Custom, compiled
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp.gate import lone_call
from agentsh_net.core.model import Server
from agentsh_net.core.naming import globs
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.naming.globs import Glob
from agentsh_net.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Place:
    """One declared server as the gateway offers it. `key` is its folded id."""

    key: str
    server: Server
    settings: GatewayServer
    offered: tuple[Glob, ...]
    downstream: SecurityScheme | None
    upstream: SecurityScheme | None
    of_tools: Mapping[str, SecurityScheme]
    keys: tuple[SecurityScheme, ...]  # that clients show at this gateway, for whichever server

    def offers(self, tool: str) -> bool:
        """Say whether `allow_tools` lets a tool through (empty: every one)."""
        return not self.offered or any(pattern.matches(fold(tool)) for pattern in self.offered)

    def scheme(self, tool: str) -> SecurityScheme | None:
        """Return the credential that goes to the server with a call of this tool (empty: with anything else)."""
        return self.of_tools.get(tool, self.upstream)

    def scheme_of(self, message: bytes) -> SecurityScheme | None:
        """Return the credential that goes to the server with a message."""
        return self.scheme(called(message)) if self.of_tools else self.upstream


@dataclass(frozen=True, slots=True)
class GatewayView:
    """One snapshot, unfolded. `places` are by folded server id."""

    snapshot: Snapshot
    gateway: Gateway
    places: Mapping[str, Place]
    customs: tuple[Custom, ...]
    joins: bool  # there may be calls in models' answers that calls here carry out


def unfold(snapshot: Snapshot) -> GatewayView:
    """Return the view of a snapshot."""
    gateway = snapshot.config.gateway
    schemes = {fold(scheme.id): scheme for scheme in gateway.security_schemes}
    settings = {fold(name): server for name, server in gateway.servers.items()}

    def scheme(name: str) -> SecurityScheme | None:
        return schemes[fold(name)] if name else None

    keys = tuple(filter(None, map(scheme, {s.downstream_security for s in gateway.servers.values()})))
    places = {}
    for server in snapshot.registry.servers:
        key = fold(server.id)
        own = settings.get(key, GatewayServer())
        named = {tool: scheme(tools.upstream_security) for tool, tools in own.tools.items()}
        places[key] = Place(
            key=key,
            server=server,
            settings=own,
            offered=tuple(globs.parse(pattern) for pattern in own.allow_tools),
            downstream=scheme(own.downstream_security),
            upstream=scheme(own.upstream_security),
            of_tools={tool: found for tool, found in named.items() if found is not None},
            keys=keys if own.passthrough else (),
        )
    customs = compiled(snapshot.config.sandbox.mcp.inspection.custom_patterns)
    return GatewayView(snapshot, gateway, places, customs, snapshot.config.proxy.mode != "disabled")


def called(message: bytes) -> str:
    """Return the tool that a lone message calls, empty for anything else: its credential goes along."""
    try:
        return lone_call(mcp_gate.read(message)) if message else ""
    except ProtocolError:
        return ""


def upstream_schemes(snapshot: Snapshot) -> dict[str, SecurityScheme]:
    """Return the credentials that the gateway sends to servers, by server id: who lists their tools needs them too."""
    if not snapshot.config.gateway.enabled:
        return {}
    return {p.server.id: p.upstream for p in unfold(snapshot).places.values() if p.upstream is not None}
