"""The MCP servers that people have declared in their MCP clients, as this project declares them.

A file that cannot be used is told, never fatal; how it is read safely is `user_file`'s business, how a client spells what
is in it `catalog`'s. Values are never printed (they hold tokens), and a client's own placeholders are not expanded: they are
the user's words, and the environment may be root's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from agentsh_net.core.configuration.config import parse
from agentsh_net.core.configuration.scalars import MAX_ID
from agentsh_net.core.errors import ConfigError
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.mcp_clients import catalog, user_file
from agentsh_net.mcp_clients.catalog import Client
from agentsh_net.mcp_clients.gateway_urls import Spelling, direct
from agentsh_net.mcp_clients.placeholders import known_url
from agentsh_net.mcp_clients.switches import Switches
from agentsh_net.mcp_clients.user_file import UnusableError

# Nobody uses this many; what lies beyond is noise that would slow the start down.
MAX_SERVERS = 512

HIDDEN_HOST = (
    "url: its host is filled in by the client; declare the server in the policy under the URL that it has"
)


@dataclass(frozen=True, slots=True)
class Declared:
    """A server as an entry of `sandbox.mcp.servers`, and where it was found."""

    declaration: dict[str, Any] = field(repr=False)
    client: str
    source: Path
    fills: bool = False  # the client adds a credential that stands elsewhere
    open_url: bool = False  # the client fills in a part of its URL: what is declared is the rest


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client's file declares a server, and the id that the server has here."""

    source: Path
    keys: tuple[str, ...]
    server_id: str
    client: str
    transport: str
    off_in: Path | None = None  # the file in which the client has it switched off, its own or another
    # The file that allows it by the command or URL that it has: it cannot be another.
    bound_in: Path | None = None
    open_url: bool = False  # only the client knows the whole URL
    spelling: Spelling = field(default_factory=Spelling)

    @property
    def used(self) -> bool:
        """Say whether the client has it switched on."""
        return self.off_in is None


@dataclass(frozen=True, slots=True)
class Unread:
    """A file, or a server in it, that could not be used."""

    source: Path
    reason: str

    def __str__(self) -> str:
        return f"{visible(str(self.source))}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Found:
    """What the clients of one user declare. Every declaration is one that `core.configuration.config` takes."""

    servers: tuple[Declared, ...]
    unread: tuple[Unread, ...]
    places: tuple[Place, ...] = ()  # every declaration, equal ones too


def find(
    home: Path, *, cwd: Path, config_home: Path | None = None, uid: int | None = None, root: Path = Path("/")
) -> Found:
    """Return the servers declared by the MCP clients of a user; `uid` is who may own the files (default: home's owner).

    Equal declarations of one id are one; others get their client's name behind the id.
    """
    bases = {"~": home, "$config": config_home or home / ".config", ".": cwd, "": root}
    owner = user_file.Owner(home, uid)
    found = _Collected(Switches(bases, owner))
    left = MAX_SERVERS
    for client, source in catalog.files(bases):
        try:
            listed = list(islice(catalog.entries(owner.content(source), client), left + 1))
        except UnusableError as error:
            found.unread.append(Unread(source, str(error)))
            continue
        if len(listed) > left:
            left_out = f"servers past the first {MAX_SERVERS} of all clients are left out"
            found.unread.append(Unread(source, left_out))
        for keys, entry in listed[:left]:
            found.take(client, source, keys, entry)
        left = max(0, left - len(listed))
    told = {unread.source for unread in found.unread}
    found.unread += [Unread(*fault) for fault in found.switches.unread if fault[0] not in told]
    return Found(tuple(found.servers.values()), tuple(found.unread), tuple(found.places))


@dataclass(slots=True)
class _Collected:
    """What was found so far; servers by their folded id."""

    switches: Switches
    servers: dict[str, Declared] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def take(self, client: Client, source: Path, keys: tuple[str, ...], entry: Any) -> None:
        """Take one entry of a client's file, be it under the shim or behind the gateway already."""
        name, own = direct(keys[-1], entry)
        place = partial(Place, source, keys, client=client.name, spelling=client.spelling)
        declared = catalog.unwrapped({"id": name, **catalog.declaration(own, client)})
        ruling = self.switches.ruling(client.name, source, keys, declared)
        off_in = source if catalog.switched_off(own) else ruling.off_in
        if off_in is not None and isinstance(own, Mapping):
            self.places.append(place(name, transport=catalog.transport(own, client), off_in=off_in))
            return
        known = _as_known(declared)
        open_url = known != declared
        fault = _fault(known)
        if fault:
            self.unread.append(Unread(source, f"server {visible(name, 64)}: {fault}"))
            return
        server_id = self._add(Declared(known, client.name, source, catalog.fills(own), open_url))
        self.places.append(
            place(server_id, transport=declared["type"], bound_in=ruling.bound_in, open_url=open_url)
        )

    def _add(self, found: Declared) -> str:
        """Add a server under its id, or under one that its client's name makes distinct; return the id."""
        name = str(found.declaration["id"])
        count = 1
        while (taken := self.servers.get(fold(str(found.declaration["id"])))) is not None:
            if _same(taken.declaration, found.declaration):
                return str(taken.declaration["id"])
            suffix = f"-{found.client}" if count == 1 else f"-{found.client}-{count}"
            renamed = {**found.declaration, "id": name[: MAX_ID - len(suffix)] + suffix}
            found = replace(found, declaration=renamed)
            count += 1
        self.servers[fold(str(found.declaration["id"]))] = found
        return str(found.declaration["id"])


def _as_known(declaration: dict[str, Any]) -> dict[str, Any]:
    """Return a declaration with what the file alone tells of its URL, which is empty where that names no host."""
    url = declaration.get("url")
    return {**declaration, "url": known_url(url)} if isinstance(url, str) else declaration


def _fault(declaration: dict[str, Any]) -> str:
    """Say why a declaration is none, or return an empty text."""
    if declaration.get("url") == "":
        return HIDDEN_HOST
    try:
        parse({"sandbox": {"mcp": {"servers": [declaration]}}})
    except ConfigError as error:
        problem = error.problems[0]
        return f"{problem.path.removeprefix('sandbox.mcp.servers[0].')}: found {problem.found}; expected {problem.expected}"
    return ""


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return {**one, "id": ""} == {**other, "id": ""}
