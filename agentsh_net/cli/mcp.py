"""`mcp`: what agents called, what servers offer, what the kernel saw. Each command is a query and the columns of its table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.lazy import LazyGroup
from agentsh_net.cli.output import Column, Format, Row, decision, moment, session, short_hash, show, shown
from agentsh_net.cli.source import EVERY, Source, reading
from agentsh_net.core.inspect.findings import MEANING

_ALL: Final = ("session", "server", "tool", "type", "action", "since")

_TIME: Final = Column("TIME (UTC)", lambda row: moment(row.get("timestamp")))
_ACTION: Final = Column("ACTION", decision)
_SESSION: Final = Column("SESSION", session, spare=True)
_SERVER: Final = Column("SERVER", lambda row: str(row.get("server_id") or "-"))
_TOOL: Final = Column(
    "TOOL", lambda row: str(row.get("tool_name") or _read_without_tool(row) or "-"), fold=True
)


def _detected(row: Row) -> str:
    """Say what a text does by what was found in it, and where and in what words the first stands that has a place; `--json` has all."""
    found = [d for d in row.get("detections") or () if isinstance(d, Mapping)]
    patterns: dict[str, dict[str, None]] = {}
    for each in found:
        meaning = MEANING.get(str(each.get("category")), "")
        patterns.setdefault(meaning, {})[str(each.get("pattern"))] = None
    told = "; ".join(
        f"{meaning} ({', '.join(names)})" if meaning else ", ".join(names)
        for meaning, names in patterns.items()
    )
    first = next((d for d in found if d.get("path") != "$"), None)
    return f"{told}: at {first.get('path')}: {first.get('excerpt')}" if first else told or "-"


def _read_without_tool(row: Row) -> str:
    """Return what was read where no tool was called: `resources/read file:///notes`."""
    return f"{row.get('method') or ''} {row.get('subject') or ''}".strip()


@click.group(cls=LazyGroup, lazy={"pins": "agentsh_net.cli.pins:pins"})
def mcp() -> None:
    """Tool calls, servers, tools, pins and events."""


@mcp.command(
    short_help="List tool calls and what was decided about them.",
    epilog=examples(
        "agentsh-net mcp calls --action block --since 1h",
        "agentsh-net mcp calls --server weather --tool 'delete_*' --json",
        "agentsh-net mcp calls --show toolu_01A09q90qw90lq917835lq9",
        "agentsh-net mcp calls --direct-db --db /var/lib/agentsh-net/events.db",
    ),
)
@click.option(
    "--show",
    "show_id",
    metavar="ID",
    help="One call through every layer: intent, execution, connection, result. ID is an event's or the model's.",
)
@reading(*_ALL)
def calls(source: Source, filters: Mapping[str, Any], form: Format, show_id: str | None) -> None:
    """List tool calls and what was decided about them, the newest last."""
    if show_id is not None:
        from agentsh_net.cli.story import show_story

        show_story(source, show_id, form)
        return
    columns = (
        _TIME,
        Column("ID", lambda row: str(row.get("id") or "-")),
        _ACTION,
        _SESSION,
        _SERVER,
        _TOOL,
        Column("REASON", _reason, fold=True),
        Column("INPUT", _input, fold=True),
    )
    show(source.rows("calls", filters), form, columns, empty=_nothing("calls", source, filters))


@mcp.command(
    short_help="List everything that was recorded.",
    epilog=examples(
        "agentsh-net mcp events --type mcp_network_connection --action block",
        "agentsh-net mcp events --type 'policy_*' --since 7d",
        "agentsh-net mcp events --session s-3f9c01d2ab44 --jsonl",
    ),
)
@reading(*_ALL)
def events(source: Source, filters: Mapping[str, Any], form: Format) -> None:
    """List everything that was recorded, the newest last."""
    kind = Column("TYPE", lambda row: str(row.get("type", "-")))
    columns = (_TIME, _ACTION, kind, _SESSION, _SERVER, Column("DETAIL", detail, fold=True))
    show(source.rows("events", filters), form, columns, empty=_nothing("events", source, filters))


@mcp.command(
    short_help="List events in which a detector found something.",
    epilog=examples(
        "agentsh-net mcp detections --since 1d", "agentsh-net mcp detections --server weather --json"
    ),
)
@reading(*_ALL)
def detections(source: Source, filters: Mapping[str, Any], form: Format) -> None:
    """List events in which a detector found something, the newest last."""
    columns = (
        _TIME,
        Column("SEVERITY", lambda row: str(row.get("max_severity") or "-")),
        _SESSION,
        _SERVER,
        _TOOL,
        Column("DETECTIONS", _detected, fold=True),
    )
    show(source.rows("detections", filters), form, columns, empty=_nothing("detections", source, filters))


@mcp.command(
    short_help="List tools that servers were seen to offer.",
    epilog=examples(
        "agentsh-net mcp tools --server weather", "agentsh-net mcp tools --tool 'delete_*' --json"
    ),
)
@reading(
    *_ALL,
    limit=EVERY,
    session="Only tools that events of this session are about.",
    type="Only tools that events of this type are about (* stands for anything).",
    action="Only tools of which something was allowed or blocked.",
    since="Only tools seen from then on: 10m, 2h, 7d, or a time like 2025-01-31T12:00:00Z.",
)
def tools(source: Source, filters: Mapping[str, Any], form: Format) -> None:
    """List tools that servers were seen to offer, and how they stand to their pins."""
    columns = (
        _SERVER,
        _TOOL,
        Column("PIN", _pin),
        Column("HASH", lambda row: short_hash(row.get("tool_hash"))),
        Column("LAST SEEN (UTC)", lambda row: moment(row.get("last_seen"))),
        Column("DESCRIPTION", lambda row: shown(row.get("description")), fold=True),
    )
    show(source.rows("tools", filters), form, columns, empty=f"no tools found{source.place}")


@mcp.command(
    short_help="List MCP servers and what policy says of them.",
    epilog=examples("agentsh-net mcp servers", "agentsh-net mcp servers --action block --json"),
)
@reading(
    *_ALL,
    limit=EVERY,
    session="Only servers that events of this session are about.",
    tool="Only servers that offer this tool (* stands for anything).",
    type="Only servers of this type: stdio, http or sse.",
    action="Only servers that policy allows or blocks; with --direct-db those of which something was.",
    since="Only servers with an event from then on: 10m, 2h, 7d, or a time like 2025-01-31T12:00:00Z.",
)
def servers(source: Source, filters: Mapping[str, Any], form: Format) -> None:
    """List MCP servers: those declared, with their addresses and what policy says of them; with --direct-db those on record."""
    columns: tuple[Column, ...]
    if source.database is not None:
        columns = (
            _SERVER,
            Column("TOOLS", lambda row: str(row["tools"])),
            Column("CHANGED PINS", lambda row: str(row["changed_pins"])),
            Column("LAST EVENT (UTC)", lambda row: moment(row["last_event"])),
        )
        rows = source.rows("servers", filters)
    else:
        columns = (
            _SERVER,
            Column("TYPE", lambda row: str(row.get("type") or "-")),
            _ACTION,
            Column(
                "ADDRESSES", lambda row: ", ".join(map(str, row.get("addresses") or ())) or "-", fold=True
            ),
            Column("REASON", _reason, fold=True),
        )
        rows = iter(_declared(source, filters))
    show(rows, form, columns, empty=f"no servers found{source.place}")


def _declared(source: Source, filters: Mapping[str, Any]) -> list[Row]:
    """Return the declared servers that the filters match: their own words by the daemon, what was recorded of them by the store."""
    rows: Sequence[Row] = source.call("status")["servers"]
    recorded = {name: filters[name] for name in ("session", "tool", "since") if name in filters}
    if recorded:
        found = {row["server_id"] for row in source.rows("servers", {**recorded, "limit": EVERY})}
        rows = [row for row in rows if row.get("server_id") in found]
    for key, name in (("server_id", "server"), ("type", "type"), ("action", "action")):
        wanted = str(filters.get(name, "*")).split("*")
        pattern = re.compile(".*".join(map(re.escape, wanted)), re.IGNORECASE | re.DOTALL)
        rows = [row for row in rows if pattern.fullmatch(str(row.get(key)))]
    return list(rows[: filters["limit"]])


def _nothing(what: str, source: Source, filters: Mapping[str, Any]) -> str:
    """Say that nothing was found; and, where no event can be of the type that was asked for, which type was meant."""
    from agentsh_net.core.audit.event_types import EVENT_TYPES

    kind = filters.get("type", "*")
    if "*" in kind or kind in EVENT_TYPES:
        return f"no {what} found{source.place}"
    near = get_close_matches(kind, EVENT_TYPES, n=1)
    known = f"did you mean {near[0]}?" if near else f"there are: {', '.join(EVENT_TYPES)}"
    return f"no {what} found{source.place}: there is no event type {kind!r} ({known})"


def _reason(row: Row) -> str:
    reason, rule = row.get("reason"), row.get("rule")
    return f"{reason} ({rule})" if reason and rule else str(reason or rule or "-")


def _input(row: Row) -> str:
    return shown(row.get("input"))


def _pin(row: Row) -> str:
    return "removed" if row.get("removed") else str(row.get("pin") or "none")


def detail(row: Row) -> str:
    """Say of any event the one thing that makes it worth a line."""
    match row.get("type"):
        case "mcp_network_connection" | "llm_direct_connection" | "undeclared_connection":
            told = f"{row.get('comm') or '?'}[{row.get('pid') or '?'}] -> {row.get('remote_addr')} ({row.get('layer') or row.get('provider')})"
        case "policy_reloaded" | "daemon_started":
            told = f"generation {row.get('generation')}"
        case "policy_rejected":
            return "; ".join(map(str, row.get("problems") or ()))  # its reason says no more
        case "layer_state_changed":
            told = f"{row.get('layer')}: {row.get('state')}"
        case "llm_request_redacted":
            counts: Mapping[str, int] = row.get("counts") or {}
            told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            told = f"{told} ({row.get('mode')})"
        case "llm_request_refused" | "mcp_request_refused":
            told = f"{row.get('method') or '?'} {row.get('path') or '?'}: {row.get('status')}"
        case "events_lost":
            told = f"{row.get('lost')} lost ({row.get('layer')})"
        case _:
            told = str(row.get("tool_name") or _read_without_tool(row) or row.get("detail") or "")
    reason = _reason(row)
    if not told or reason.startswith(f"{told} ("):  # the reason says it already, and names its rule
        return reason
    return f"{told}: {reason}" if reason != "-" else told
