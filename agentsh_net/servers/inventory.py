"""What the declared servers were seen to offer: from a discovery report to registry, pins, rows for the store, and events.

It decides by core.registry and core.trust.pins and keeps nothing itself: `reports` puts in force what is returned and hands the rest on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agentsh_net.core.audit import events
from agentsh_net.core.audit.events import Event
from agentsh_net.core.configuration.settings import Inspection, VersionPinning
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.inspect.findings import Finding, worst
from agentsh_net.core.inspect.inspector import Inspected, Inspector
from agentsh_net.core.mcp import params as mcp_params
from agentsh_net.core.model import Server, Tool
from agentsh_net.core.registry import Change, ChangeKind, Registry, ToolKey
from agentsh_net.core.trust import outline, pins
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pin, Pins
from agentsh_net.core.verdicts.rules import ROOT
from agentsh_net.store import queries, records
from agentsh_net.store.records import PinRecord, ToolRecord

# Of one server; official servers offer dozens, and each tool costs memory in every worker.
MAX_TOOLS = 5_000
# Pins of one server. One that names its tools anew with every list would fill every process's memory with them.
MAX_PINS = 2 * MAX_TOOLS


@dataclass(frozen=True, slots=True)
class Taken:
    """What a report led to."""

    registry: Registry
    pins: Pins
    changes: tuple[Change, ...] = ()
    saved_tools: tuple[ToolRecord, ...] = ()
    removed: tuple[tuple[str, str], ...] = ()
    saved_pins: tuple[PinRecord, ...] = ()
    events: tuple[Event, ...] = field(default=())
    judged_anew: bool = False  # the detectors say something else of a tool that did not change itself


def remembered(servers: Iterable[Server], store: Path) -> tuple[Registry, Pins]:
    """Return registry and pins as a database remembers them. Raises StoreError."""
    tools, pinned = queries.load_tools(store), queries.load_pins(store)
    return load(servers, tools, pinned, queries.load_identities(store))


def load(
    servers: Iterable[Server],
    tools: Iterable[ToolRecord],
    found: Iterable[PinRecord],
    identities: Iterable[Identity] = (),
) -> tuple[Registry, Pins]:
    """Return registry and pins as the store remembers them: a server that is down keeps its last known tools judged."""
    known = {
        (t.server_id, t.name): Tool(
            t.server_id,
            t.name,
            t.hash,
            t.definition,
            outline=outline.of_definition(t.definition),
            mirrored=mcp_params.annotated(t.definition.get("inputSchema")),
        )
        for t in tools
        if t.removed is None
    }
    board = Pins.of(
        (Pin(p.server_id, p.tool, p.hash, p.definition, p.state, p.trusted_at or "") for p in found),
        identities,
    )
    return Registry(tools=known).with_servers(servers), board


def take(
    report: Mapping[str, Any],
    registry: Registry,
    board: Pins,
    pinning: VersionPinning,
    now: str,
    inspector: Inspector | None = None,
) -> Taken:
    """Take a server's list of tools. Raises ProtocolError for a report that is not one.

    `inspector` learns what the server reported; without one the built-in detectors are run once.
    """
    server_id, listed = _listed(report, registry)
    own_id = registry.canonical_id(server_id)
    if pinning.enabled and pinning.auto_trust_first:
        _check_names(own_id, listed, board)
    after, changes = registry.register(server_id, [pins.tool_of(own_id, d) for d in listed])
    inspector = inspector or Inspector(Inspection())
    _teach(inspector, own_id, listed, report)
    inspected = inspector.inspect(after)
    after = inspected.registry
    anew = _judged_anew(registry, inspected, changes)
    offered = after.tools_of(server_id)
    added: tuple[Pin, ...] = ()
    if pinning.enabled and pinning.auto_trust_first:
        board, added = pins.trust_first(board, offered, now)
    trusted = {(p.server_id, p.tool) for p in added}
    told = (_event(c, board, pinning, inspected, trusted=(c.server_id, c.tool) in trusted) for c in changes)
    return Taken(
        registry=after,
        pins=board,
        changes=changes,
        saved_tools=tuple(map(_tool_record, (*offered, *(t for t in anew if t.server_id != own_id)))),
        removed=tuple((c.server_id, c.tool) for c in changes if c.kind is ChangeKind.REMOVED),
        saved_pins=tuple(pin_record(p, by="auto_trust_first") for p in added),
        events=(*told, *_anew_events(anew, inspected, inspector)),
        judged_anew=bool(anew),
    )


def _listed(report: Mapping[str, Any], registry: Registry) -> tuple[str, list[dict[str, Any]]]:
    """Return whom a report is about, and the definitions in it. Raises ProtocolError for one that is no list of tools."""
    server_id, definitions = report.get("server_id"), report.get("tools")
    if not isinstance(server_id, str) or registry.server(server_id) is None:
        raise ProtocolError(f"a report about {server_id!r}, which is not declared")
    if not isinstance(definitions, list) or len(definitions) > MAX_TOOLS:
        raise ProtocolError(f"its list has more than {MAX_TOOLS} tools, or is none")
    return server_id, [definition for definition in definitions if isinstance(definition, dict)]


def _teach(
    inspector: Inspector, server_id: str, listed: list[dict[str, Any]], report: Mapping[str, Any]
) -> None:
    """Let the detectors know what a server lists, and what it says of itself."""
    seen = report.get("era") != ""  # empty: who reports saw no handshake, and what was heard before stays
    info = report.get("server_info")
    inspector.learn(
        server_id,
        listed,
        str(report.get("instructions") or "") if seen else None,
        info if isinstance(info, Mapping) else {},
    )


def _check_names(server_id: str, listed: Iterable[Mapping[str, Any]], board: Pins) -> None:
    """Raise ProtocolError where a server's new tools, pinned too, would be more than it can have in a life without a reset."""
    new = {name for d in listed if board.get(server_id, name := str(d.get("name"))) is None}
    if new and len(new) + len(board.of_server(server_id)) > MAX_PINS:
        raise ProtocolError(
            f"it has offered more than {MAX_PINS} different tools by now: "
            f"`agentsh-net mcp pins reset --server {server_id}` forgets those of before"
        )


def inspect(registry: Registry, board: Pins, inspector: Inspector) -> Taken:
    """Inspect what is known by other detectors (a reload, a start); pins stay as they are."""
    inspected = inspector.inspect(registry)
    anew = _judged_anew(registry, inspected, ())
    return Taken(
        registry=inspected.registry,
        pins=board,
        saved_tools=tuple(map(_tool_record, anew)),
        events=tuple(_anew_events(anew, inspected, inspector)),
        judged_anew=bool(anew),
    )


def recall(inspector: Inspector, registry: Registry, board: Pins) -> None:
    """Let the detectors know the instructions that servers are remembered by, until they report again."""
    for server in registry.servers:
        known = board.identity(server.id, Aspect.INSTRUCTIONS)
        if known is not None:
            inspector.learn(server.id, (), str(known.offered.get("text", "")))


def rows(taken: Taken, now: str) -> records.Change:
    """Return what the store has to write."""
    return [
        *records.save_tools(taken.saved_tools, now),
        *records.mark_removed(taken.removed, now),
        *records.save_pins(taken.saved_pins),
    ]


def everything(registry: Registry, board: Pins, now: str) -> records.Change:
    """Return what a new, empty database has to know."""
    pins = [pin_record(p, by="an earlier database") for p in board.entries.values()]
    tools = [_tool_record(t) for t in registry.tools.values()]
    return [
        *records.save_tools(tools, now),
        *records.save_pins(pins, only_missing=True),
        *records.save_identities(board.identities.values(), by="an earlier database", only_missing=True),
    ]


def pin_record(pin: Pin, *, by: str) -> PinRecord:
    """Return the row of a pin."""
    return PinRecord(pin.server_id, pin.tool, pin.hash, pin.definition, pin.state, pin.trusted_at or None, by)


def _tool_record(tool: Tool) -> ToolRecord:
    return ToolRecord(tool.server_id, tool.name, tool.hash, tool.definition, max_severity=tool.max_severity)


def _judged_anew(before: Registry, inspected: Inspected, changes: Iterable[Change]) -> tuple[Tool, ...]:
    """Return the tools whose severity is another, though nothing about them changed."""
    changed = {(c.server_id, c.tool) for c in changes}
    return tuple(
        tool
        for key, tool in inspected.registry.tools.items()
        if key not in changed
        and (old := before.tools.get(key))
        and (old.max_severity, old.shadows) != (tool.max_severity, tool.shadows)
    )


def _anew_events(anew: Iterable[Tool], inspected: Inspected, inspector: Inspector) -> Iterator[Event]:
    """Tell of servers whose findings are new, and of tools that are judged anew by findings of their own."""
    for server_id, found in inspector.untold(inspected):
        said = [w for w in ("instructions", "serverInfo") if any(f.path.startswith(f"$.{w}") for f in found)]
        has = f"{server_id} {'have' if 'instructions' in said else 'has'} findings up to {worst(found)}"
        yield events.ToolSeen(
            server_id=server_id,
            reason=f"the {' and '.join(said)} of server {has}" if said else f"server {has}",
            rule=f"{ROOT}.inspection",
            **_detections(found),
        )
    for tool in anew:
        found = inspected.tools.get((tool.server_id, tool.name), ())
        if worst(found) == tool.max_severity:  # otherwise it is its server that is judged anew
            up_to = f"findings up to {tool.max_severity}" if tool.max_severity else "no findings"
            yield events.ToolSeen(
                server_id=tool.server_id,
                tool_name=tool.name,
                tool_hash=tool.hash,
                previous_hash=tool.hash,
                reason=f"{tool.name} of {tool.server_id} was inspected again: {up_to}",
                rule=f"{ROOT}.inspection",
                **_detections(found),
            )


def _detections(found: Iterable[Finding]) -> dict[str, Any]:
    found = tuple(found)
    return {"detections": [finding.to_json() for finding in found], "max_severity": worst(found)}


def _event(
    change: Change, board: Pins, pinning: VersionPinning, inspected: Inspected, *, trusted: bool
) -> Event:
    hashes: dict[str, Any] = {
        "tool_hash": change.new.hash if change.new else "",
        "previous_hash": change.old.hash if change.old else "",
    }
    where = f"{ROOT}.version_pinning"
    named: dict[str, Any] = {"server_id": change.server_id, "tool_name": change.tool} | hashes
    key: ToolKey = (change.server_id, change.tool)
    named |= _detections(inspected.tools.get(key, ()))
    if change.kind is ChangeKind.REMOVED:
        reason = f"{change.server_id} no longer offers {change.tool}"
        return events.ToolRemoved(**named, rule=where, reason=reason)
    standing, blocked = _standing(change, board, pinning)
    named["action"] = "block" if blocked else "allow"
    if change.kind is ChangeKind.SEEN:
        note = "trusted as it is (auto_trust_first)" if trusted else standing
        reason = f"{change.server_id} offers {change.tool}: {note}"
        return events.ToolSeen(**named, rule=f"{where}.auto_trust_first", reason=reason)
    old, new = change.old, change.new
    differences = pins.diff(old.definition, new.definition) if old and new else ()
    return events.ToolChanged(
        **named,
        rule=f"{where}.on_change",
        reason=f"{change.tool} of {change.server_id} {_how(change)}: {standing}",
        changes=[asdict(d) for d in differences],
    )


def _how(change: Change) -> str:
    return "is listed twice" if change.kind is ChangeKind.DUPLICATE else "is not what it was"


def _standing(change: Change, board: Pins, pinning: VersionPinning) -> tuple[str, bool]:
    """Say how the tool as it now is stands to its pin, and whether its calls are blocked for that."""
    if change.new is None or not pinning.enabled:
        return "not pinned", False
    state = board.lookup(change.server_id, change.tool, change.new.hash)
    blocked = pins.effect(state, pinning) is pins.PinEffect.BLOCK
    return f"the pin says {state}, calls {'are blocked' if blocked else 'pass'}", blocked
