"""The declared servers and the tools they were seen to offer: looked up by id, by pair, by address. Frozen.

What the model's name for a tool means is core.naming.names' business; whether a tool is trusted is core.trust.pins'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from agentsh_net.core.model import Server, Tool
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.network.addresses import literal, unmapped
from agentsh_net.core.values import canonical

ToolKey = tuple[str, str]  # (server id as declared, tool name as the server writes it)


class ChangeKind(StrEnum):
    """What happened to a tool."""

    SEEN = "seen"
    CHANGED = "changed"
    REMOVED = "removed"
    DUPLICATE = "duplicate"  # listed twice in one answer


@dataclass(frozen=True, slots=True)
class Change:
    """One change that a registration made; `old` or `new` is None where there is none."""

    kind: ChangeKind
    server_id: str
    tool: str
    old: Tool | None = None
    new: Tool | None = None


@dataclass(frozen=True, slots=True)
class Registry:
    """Servers and tools. Ids are equal when they fold equal; tool names of one server are equal only when identical."""

    servers: tuple[Server, ...] = ()
    tools: Mapping[ToolKey, Tool] = field(default_factory=dict)
    _by_id: Mapping[str, Server] = field(init=False, repr=False, compare=False)
    _by_place: Mapping[tuple[str, int], tuple[Server, ...]] = field(init=False, repr=False, compare=False)
    _by_server: Mapping[str, tuple[Tool, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places: dict[tuple[str, int], tuple[Server, ...]] = {}
        for server in self.servers:
            if server.host:
                place = _host(server.host), server.port
                places[place] = (*places.get(place, ()), server)
        by_server: dict[str, list[Tool]] = {}
        for tool in self.tools.values():
            by_server.setdefault(fold(tool.server_id), []).append(tool)
        object.__setattr__(self, "_by_id", {fold(s.id): s for s in reversed(self.servers)})
        object.__setattr__(self, "_by_place", places)
        object.__setattr__(self, "_by_server", {k: tuple(v) for k, v in by_server.items()})

    def server(self, server_id: str) -> Server | None:
        """Return the declared server of this id, whatever its case and width, or None."""
        return self._by_id.get(fold(server_id))

    def canonical_id(self, server_id: str) -> str:
        """Return the id as it was declared; of an undeclared server, as its tools were registered, or as given."""
        server = self.server(server_id)
        if server is not None:
            return server.id
        known = self._by_server.get(fold(server_id))
        return known[0].server_id if known else server_id

    def tool(self, server_id: str, name: str) -> Tool | None:
        """Return a tool by its server and its exact name, or None."""
        return self.tools.get((self.canonical_id(server_id), name))

    def tools_of(self, server_id: str) -> tuple[Tool, ...]:
        """Return what a server was seen to offer."""
        return self._by_server.get(fold(server_id), ())

    def servers_at(self, host: str, port: int) -> tuple[Server, ...]:
        """Return the servers declared at this host (name or address) and port."""
        return self._by_place.get((_host(host), port), ())

    def with_servers(self, servers: Iterable[Server]) -> Registry:
        """Return a registry of these servers that keeps the tools of those that stay (a reload)."""
        declared = tuple(servers)
        stay = {fold(s.id): s.id for s in declared}
        kept = {
            (stay[sid], t.name): replace(t, server_id=stay[sid])
            for t in self.tools.values()
            if (sid := fold(t.server_id)) in stay
        }
        return Registry(declared, MappingProxyType(kept))

    def register(self, server_id: str, tools: Iterable[Tool]) -> tuple[Registry, tuple[Change, ...]]:
        """Take a server's whole list of tools in place of what it offered before; return the registry and what changed.

        A tool that is listed twice with different definitions counts as one tool whose hash covers all of them, so
        that no client can be shown a version that the pin does not cover.
        """
        sid = self.canonical_id(server_id)
        listed, changes = _unique(sid, tools)
        before = {t.name: t for t in self._by_server.get(fold(sid), ())}
        for name, tool in listed.items():
            old = before.get(name)
            if old is None:
                changes.append(Change(ChangeKind.SEEN, sid, name, None, tool))
            elif old.hash != tool.hash:
                changes.append(Change(ChangeKind.CHANGED, sid, name, old, tool))
        changes += [Change(ChangeKind.REMOVED, sid, n, old) for n, old in before.items() if n not in listed]
        kept = {key: t for key, t in self.tools.items() if key[0] != sid}
        kept |= {(sid, name): tool for name, tool in listed.items()}
        return Registry(self.servers, MappingProxyType(kept)), tuple(changes)


def _unique(server_id: str, tools: Iterable[Tool]) -> tuple[dict[str, Tool], list[Change]]:
    """Return one tool per name, and a change for each name that was listed more than once."""
    versions: dict[str, list[Tool]] = {}
    for tool in tools:
        versions.setdefault(tool.name, []).append(replace(tool, server_id=server_id))
    listed = {name: _merged(same) for name, same in versions.items()}
    return listed, [
        Change(ChangeKind.DUPLICATE, server_id, name, same[0], listed[name])
        for name, same in versions.items()
        if len(same) > 1
    ]


def _merged(same: list[Tool]) -> Tool:
    hashes = sorted({tool.hash for tool in same})
    if len(hashes) == 1:
        return same[0]
    other = next(tool for tool in same if tool.hash != same[0].hash)
    return replace(other, hash=canonical.hash_of(hashes))


def _host(host: str) -> str:
    """Return a host as it is compared: folded, without brackets and the root's dot; an address in its one spelling."""
    bare = fold(host).removeprefix("[").removesuffix("]").removesuffix(".")
    address = literal(bare)
    return bare if address is None else str(unmapped(address))
