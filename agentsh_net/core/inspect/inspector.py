"""Everything that is inspected about the servers at once: their tools alone and beside each other's, and what they say of themselves.

It remembers what it worked out, so that a report of one server does not read the definitions of all. What a severity does to
calls is core.verdicts.policy's business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from agentsh_net.core.configuration.settings import Inspection
from agentsh_net.core.inspect import custom, names
from agentsh_net.core.inspect.definitions import (
    concluded,
    inspect_definition,
    inspect_handshake,
    strings_of,
)
from agentsh_net.core.inspect.findings import Category, Finding, Severity, at_least, bounded, worse, worst
from agentsh_net.core.inspect.shadowing import Owners, mentioned, owners_of, shadowing
from agentsh_net.core.model import Tool
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.registry import Registry, ToolKey

Definition = Mapping[str, Any]
_Mark = tuple[str, bool]  # of a tool: the worst severity, and whether it shadows another server's

# Patterns of definitions that are made for another server's tool.
SHADOWING = frozenset({"steers-other-tool", "look-alike-tool"})

# Definitions whose findings are remembered: twice the tools that anybody has; past it the memory starts anew.
MAX_REMEMBERED = 20_000
# Characters of definitions that are read for one server: hundreds of long ones. A hostile server does not get more of our time.
MAX_READ = 2 << 20
MAX_MENTIONS = 256  # names in one definition; more of them is a list, not a reference

NOT_SAID: Mapping[str, Any] = MappingProxyType({})

UNREAD = Finding(
    "too-large",
    Category.OVERSIZE,
    Severity.CRITICAL,
    "$",
    f"the server's definitions are longer than {MAX_READ} characters: not read",
)


@dataclass(frozen=True, slots=True)
class Inspected:
    """A registry whose tools carry their severities, and what was found: by tool, and in instructions by folded server id."""

    registry: Registry
    tools: Mapping[ToolKey, tuple[Finding, ...]] = field(default_factory=dict)
    servers: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one definition holds by itself, and the names in it that may be tools of others."""

    findings: tuple[Finding, ...]
    mentions: frozenset[str]


class Inspector:
    """The detectors under one configuration."""

    def __init__(self, inspection: Inspection) -> None:
        self._customs = custom.compiled(inspection.custom_patterns)
        self._readings: dict[str, _Reading] = {}
        # Folded server id -> instructions and `serverInfo`, as last reported.
        self._said: dict[str, tuple[str, Mapping[str, Any]]] = {}
        # Tools that their server lists more than once.
        self._versions: dict[ToolKey, Sequence[Definition]] = {}
        self._shapes: names.Shapes = {}
        self._told: dict[str, tuple[Finding, ...]] = {}  # folded server id -> findings that were told of

    @property
    def customs(self) -> tuple[custom.Custom, ...]:
        """The operator's own detectors."""
        return self._customs

    def renewed(self, inspection: Inspection) -> Inspector:
        """Return the detectors under another configuration; what servers reported stays known."""
        successor = Inspector(inspection)
        successor._said = self._said
        successor._versions = self._versions
        successor._told = self._told
        return successor

    def learn(
        self,
        server_id: str,
        listed: Sequence[Definition],
        instructions: str | None,
        info: Mapping[str, Any] = NOT_SAID,
    ) -> None:
        """Take what a server reported besides what the registry keeps: every version of a tool, and what it says of itself.

        That is its instructions (None: no handshake was seen) and its `serverInfo`.
        """
        if instructions is not None:
            self._said[fold(server_id)] = instructions, info
        versions: dict[str, list[Definition]] = {}
        for definition in listed:
            versions.setdefault(str(definition.get("name")), []).append(definition)
        self._versions = {key: v for key, v in self._versions.items() if fold(key[0]) != fold(server_id)}
        self._versions |= {(server_id, name): v for name, v in versions.items() if len(v) > 1}

    def untold(self, inspected: Inspected) -> tuple[tuple[str, tuple[Finding, ...]], ...]:
        """Return the servers with findings that were not returned before, by id, and remember that they were."""
        ids = {fold(server.id): server.id for server in inspected.registry.servers}
        new = [(ids[sid], found) for sid, found in inspected.servers.items() if self._told.get(sid) != found]
        self._told = dict(inspected.servers)
        return tuple(new)

    def inspect(self, registry: Registry) -> Inspected:
        """Inspect everything a registry holds."""
        by_server = _by_server(registry)
        owners = owners_of((t.server_id, t.name) for t in registry.tools.values())
        offered = {sid: [t.name for t in tools] for sid, tools in by_server.items()}
        alike = names.Alike(offered, names.SHORTEST_TOOL, self._shapes)
        servers = self._servers(registry)
        found: dict[ToolKey, tuple[Finding, ...]] = {}
        marks: dict[ToolKey, _Mark] = {}
        for server_id, tools in by_server.items():
            left = MAX_READ
            of_server = servers.get(fold(server_id), ())
            for tool in tools:
                findings, read = self._tool(tool, owners, alike, left)
                left -= read
                if findings:
                    found[tool.server_id, tool.name] = findings
                severity = worse(worst(findings), worst(of_server))
                marks[tool.server_id, tool.name] = severity, any(map(_shadows, findings))
        return Inspected(_with(registry, marks), MappingProxyType(found), MappingProxyType(servers))

    def _servers(self, registry: Registry) -> dict[str, tuple[Finding, ...]]:
        """Return what is found about servers: their instructions, and ids that pass for others'."""
        ids = [server.id for server in registry.servers]
        alike = names.Alike({sid: (sid,) for sid in ids}, names.SHORTEST_SERVER)
        found: dict[str, tuple[Finding, ...]] = {}
        for server_id in ids:
            instructions, info = self._said.get(fold(server_id), ("", NOT_SAID))
            findings = list(inspect_handshake(instructions, info, self._customs))
            imitated = alike.find(server_id, server_id)
            if imitated:
                findings.append(names.imitation("server", "$", server_id, imitated))
            if findings:
                found[fold(server_id)] = bounded(findings)
        return found

    def _tool(
        self, tool: Tool, owners: Owners, alike: names.Alike, left: int
    ) -> tuple[tuple[Finding, ...], int]:
        """Return what is found about a tool, and how many characters had to be read for it."""
        reading, read = self._reading(tool, left)
        found = list(reading.findings)
        if any(tool.server_id not in owners.get(name, (tool.server_id,)) for name in reading.mentions):
            for definition in self._definitions(tool):
                found += shadowing(strings_of(definition).texts, tool.server_id, owners)
        imitated = alike.find(tool.server_id, tool.name)
        if imitated:
            found.append(names.imitation("tool", "$.name", tool.name, imitated))
        return (concluded(found) if len(found) > len(reading.findings) else reading.findings), read

    def _reading(self, tool: Tool, left: int) -> tuple[_Reading, int]:
        key = f"{tool.hash} {tool.definition.get('execution')}"  # the one field that the hash leaves out
        known = self._readings.get(key)
        if known is not None:
            return known, 0
        findings: list[Finding] = []
        mentions: set[str] = set()
        spent = 0
        for definition in self._definitions(tool):
            if spent >= left:
                return _Reading(bounded([UNREAD, *findings]), frozenset()), spent
            strings = strings_of(definition)
            spent += sum(len(text.raw) for text in strings.texts)
            findings += inspect_definition(definition, self._customs, strings)
            mentions |= mentioned(strings.texts)
        reading = _Reading(bounded(findings), frozenset(sorted(mentions)[:MAX_MENTIONS]))
        if len(self._readings) >= MAX_REMEMBERED:
            self._readings.clear()
        self._readings[key] = reading
        return reading, spent

    def _definitions(self, tool: Tool) -> Sequence[Definition]:
        return self._versions.get((tool.server_id, tool.name), (tool.definition,))


def _shadows(finding: Finding) -> bool:
    return finding.pattern in SHADOWING and at_least(finding.severity, Severity.HIGH)


def _by_server(registry: Registry) -> dict[str, list[Tool]]:
    """Return the tools by their server, the servers in the order in which they are declared."""
    by_server: dict[str, list[Tool]] = {server.id: [] for server in registry.servers}
    for tool in registry.tools.values():
        by_server.setdefault(tool.server_id, []).append(tool)
    return by_server


def _with(registry: Registry, marks: Mapping[ToolKey, _Mark]) -> Registry:
    """Return the registry with these marks on its tools; the very same where nothing differs."""
    if all((tool.max_severity, tool.shadows) == marks[key] for key, tool in registry.tools.items()):
        return registry
    tools = {
        key: replace(tool, max_severity=marks[key][0], shadows=marks[key][1])
        for key, tool in registry.tools.items()
    }
    return Registry(registry.servers, MappingProxyType(tools))
