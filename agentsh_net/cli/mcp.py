"""`mcp`: what agents called, what servers offer, what the kernel saw. Each command is a query and the columns of its table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from agentsh_net.cli.lazy import LazyGroup
from agentsh_net.cli.output import Column, Format, Row, decision, moment, short_hash, show, shown
from agentsh_net.cli.source import Source, reading

_ALL: Final = ("session", "server", "tool", "type", "action", "since")
_EVERY_SERVER: Final = 1_000_000

_TIME: Final = Column("TIME (UTC)", lambda row: moment(row.get("timestamp")))
_ACTION: Final = Column("ACTION", decision)
_SERVER: Final = Column("SERVER", lambda row: str(row.get("server_id") or "-"))
_TOOL: Final = Column("TOOL", lambda row: str(row.get("tool_name") or "-"), fold=True)


@click.group(cls=LazyGroup, lazy={"pins": "agentsh_net.cli.pins:pins"})
def mcp() -> None:
    """Tool calls, servers, tools, pins and events."""


@mcp.command()
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
        _SERVER,
        _TOOL,
        Column("REASON", _reason, fold=True),
        Column("INPUT", _input, fold=True),
    )
    show(source.rows("calls", filters), form, columns, empty="no calls found")


@mcp.command()
@reading(*_ALL)
def events(source: Source, filters: Mapping[str, Any], form: Format) -> None:
    """List everything that was recorded, the newest last."""
    kind = Column("TYPE", lambda row: str(row.get("type", "-")))
    columns = (_TIME, _ACTION, kind, _SERVER, Column("DETAIL", detail, fold=True))
    show(source.rows("events", filters), form, columns, empty="no events found")


@mcp.command()
@reading(*_ALL)
def detections(source: Source, filters: Mapping[str, Any], form: Format) -> None:
    """List events in which a detector found something, the newest last."""
    columns = (
        _TIME,
        Column("SEVERITY", lambda row: str(row.get("max_severity") or "-")),
        _SERVER,
        _TOOL,
        Column("DETECTIONS", lambda row: shown(row.get("detections")), fold=True),
    )
    show(source.rows("detections", filters), form, columns, empty="no detections found")


@mcp.command()
@reading(
    *_ALL,
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
    show(source.rows("tools", filters), form, columns, empty="no tools found")


@mcp.command()
@reading(
    *_ALL,
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
    show(rows, form, columns, empty="no servers found")


def _declared(source: Source, filters: Mapping[str, Any]) -> list[Row]:
    """Return the declared servers that the filters match: their own words by the daemon, what was recorded of them by the store."""
    rows: Sequence[Row] = source.call("status")["servers"]
    recorded = {name: filters[name] for name in ("session", "tool", "since") if name in filters}
    if recorded:
        found = {row["server_id"] for row in source.rows("servers", {**recorded, "limit": _EVERY_SERVER})}
        rows = [row for row in rows if row.get("server_id") in found]
    for key, name in (("server_id", "server"), ("type", "type"), ("action", "action")):
        wanted = str(filters.get(name, "*")).split("*")
        pattern = re.compile(".*".join(map(re.escape, wanted)), re.IGNORECASE | re.DOTALL)
        rows = [row for row in rows if pattern.fullmatch(str(row.get(key)))]
    return list(rows[: filters["limit"]])


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
        case "mcp_network_connection" | "llm_direct_connection":
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
        case "events_lost":
            told = f"{row.get('lost')} lost ({row.get('layer')})"
        case _:
            told = str(row.get("tool_name") or row.get("detail") or "")
    reason = _reason(row)
    if not told or reason.startswith(f"{told} ("):  # the reason says it already, and names its rule
        return reason
    return f"{told}: {reason}" if reason != "-" else told
