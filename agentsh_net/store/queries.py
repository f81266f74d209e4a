"""Reading the audit trail: what the CLI asks, whether the daemon runs the query or the CLI does (`--direct-db`).

Rows come oldest first, so that the newest stands last, above the prompt. Answers are pages: no read transaction outlives one,
so a slow reader never keeps the writer's log from being checkpointed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import PinState
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.values import jsontext
from agentsh_net.store.connect import reader
from agentsh_net.store.filters import Filters, Where
from agentsh_net.store.records import PinRecord, SessionRecord, ToolRecord
from agentsh_net.store.searches import search

# Of JSON a page: one answer of the control socket, and the most a query holds in memory.
PAGE_BYTES: Final = 4 << 20
PAGE_ROWS: Final = 1_000
# Seconds a page may take: a query that no index serves ends with advice, not with a busy daemon.
DEADLINE: Final = 10.0

_CALLS: Final = ("mcp_tool_call_intercepted", "mcp_tool_called")
_INSPECTED: Final = (
    *_CALLS,
    "mcp_tool_result_inspected",
    "mcp_tool_seen",
    "mcp_tool_changed",
    "mcp_server_seen",
    "mcp_server_changed",
)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of an answer; `next` is what to pass as filter `after` for the following ones, None at the end.

    `older`, of a first page: the limit left some out that are older than all that it lets through.
    """

    rows: list[dict[str, Any]]
    next: str | None = None
    older: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the page as the control socket sends it."""
        return {"rows": self.rows, "next": self.next, "older": self.older}


def page(path: Path, kind: str, filters: Mapping[str, Any]) -> Page:
    """Return the first page of an answer. Raises ProtocolError for an unknown kind or a bad filter, StoreError for the file."""
    wanted = Filters.parse(filters, time.time_ns())
    ask = _KINDS.get(kind)
    if ask is None:
        raise ProtocolError(f"there is no query {kind!r}: known are {', '.join(_KINDS)}")
    deadline = time.monotonic() + DEADLINE
    with reader(path) as connection:
        # Asked every 10,000 steps of SQLite's machine, about every millisecond; True interrupts the query.
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        return ask(connection, wanted)


def load_tools(path: Path) -> list[ToolRecord]:
    """Return every tool that is known, removed ones too: what the daemon's registry starts from."""
    with reader(path) as connection:
        return [
            ToolRecord(**{**row, "definition": jsontext.loads(row["definition"])})
            for row in connection.execute("SELECT * FROM tools ORDER BY server_id, name")
        ]


def load_pins(path: Path) -> list[PinRecord]:
    """Return every pin."""
    with reader(path) as connection:
        return [
            PinRecord(
                **{**row, "definition": jsontext.loads(row["definition"]), "state": PinState(row["state"])}
            )
            for row in connection.execute("SELECT * FROM pins ORDER BY server_id, tool")
        ]


def load_identities(path: Path) -> list[Identity]:
    """Return what servers are and were trusted to be."""
    with reader(path) as connection:
        return [
            Identity(
                row["server_id"],
                Aspect(row["aspect"]),
                PinState(row["state"]),
                jsontext.loads(row["pinned"]),
                jsontext.loads(row["offered"]),
                row["trusted_at"] or "",
                bool(row["declared"]),
            )
            for row in connection.execute("SELECT * FROM identities ORDER BY server_id, aspect")
        ]


def load_sessions(path: Path) -> list[SessionRecord]:
    """Return every session."""
    with reader(path) as connection:
        found = connection.execute(
            "SELECT session_id, token_sha256, created FROM sessions ORDER BY session_id"
        )
        return [SessionRecord(*row) for row in found]


def _events(
    connection: sqlite3.Connection, filters: Filters, types: Sequence[str] = (), *, detected: bool = False
) -> Page:
    order, older = "", False
    if not filters.after and filters.limit <= PAGE_ROWS:
        order = "DESC"  # the newest; they are told oldest first all the same
    elif not filters.after:  # the newest too, but more of them than a page has: find the one before them
        found = search(connection, filters, types, detected=detected)
        before = connection.execute(
            f"{found.sql} ORDER BY 1 DESC LIMIT 1 OFFSET ?", (*found.values, filters.limit)
        ).fetchone()
        older = before is not None
        filters = replace(filters, after=before["id"] if before else "")
    found, most = search(connection, filters, types, detected=detected), min(filters.limit, PAGE_ROWS)
    ids = connection.execute(f"{found.sql} ORDER BY 1 {order} LIMIT ?", (*found.values, most + 1)).fetchall()
    older = older or (order == "DESC" and len(ids) > most)
    selected = connection.execute(
        "SELECT id, json FROM events WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        (jsontext.dumps([row["id"] for row in ids[:most]]).decode(),),
    )
    rows, size = [], 0
    for row in selected:
        rows.append(jsontext.loads(row["json"]))
        size += len(row["json"])
        if size >= PAGE_BYTES or len(rows) >= PAGE_ROWS:
            return Page(rows, next=row["id"], older=older)
    return Page(rows, older=older)


def _any_events(connection: sqlite3.Connection, filters: Filters) -> Page:
    return _events(connection, filters)


def _calls(connection: sqlite3.Connection, filters: Filters) -> Page:
    return _events(connection, filters, _CALLS)


def _detections(connection: sqlite3.Connection, filters: Filters) -> Page:
    return _events(connection, filters, _INSPECTED, detected=True)


def _tools(connection: sqlite3.Connection, filters: Filters) -> Page:
    return _few(connection, _TOOLS, filters.of_tools(), "tools.server_id, tools.name", filters)


def _servers(connection: sqlite3.Connection, filters: Filters) -> Page:
    return _few(connection, _SERVERS, filters.of_servers(), "server_id", filters)


def _pins(connection: sqlite3.Connection, filters: Filters) -> Page:
    where = filters.of_names("server_id", "tool_name", "trusted_at")
    found = _few(connection, _PINS, where, "server_id, kind = 'tool', kind, tool_name", filters)
    for row in found.rows:
        row["pinned"] = jsontext.loads(row["pinned"])
        row["offered"] = jsontext.loads(row["offered"]) if row["offered"] else None
    return found


def _requests(connection: sqlite3.Connection, filters: Filters) -> Page:
    where, after, older = filters.of_requests(), filters.after, False
    if not after:
        before = connection.execute(
            f"SELECT id FROM llm_requests WHERE {where.sql} ORDER BY id DESC LIMIT 1 OFFSET ?",  # noqa: S608 - fixed text, bound values
            (*where.values, filters.limit),
        ).fetchone()
        after, older = (before["id"], True) if before else ("", False)
    selected = connection.execute(
        f"SELECT * FROM llm_requests WHERE {where.sql} AND id > ? ORDER BY id LIMIT ?",  # noqa: S608 - fixed text, bound values
        (*where.values, after, min(filters.limit, PAGE_ROWS)),
    )
    rows = [{**dict(row), "truncated": bool(row["truncated"])} for row in selected]
    return Page(rows, next=rows[-1]["id"] if len(rows) == PAGE_ROWS else None, older=older)


def _few(connection: sqlite3.Connection, select: str, where: Where, order: str, filters: Filters) -> Page:
    """Return a page of a table that is small by nature (tools, pins, servers); `after` counts the rows of the pages before."""
    start = int(filters.after) if filters.after.isdecimal() else 0
    found = connection.execute(
        f"{select} WHERE {where.sql} ORDER BY {order} LIMIT ? OFFSET ?", (*where.values, filters.limit, start)
    )
    rows, size = [], 0
    for row in found:
        rows.append(dict(row))
        size += sum(len(value) for value in row if isinstance(value, str))
        if size >= PAGE_BYTES or len(rows) >= PAGE_ROWS:
            return Page(rows, next=str(start + len(rows)))
    return Page(rows)


# In both: a pin is written when it is trusted; that the tool has changed since is seen by its hash.
_TOOLS: Final = """
    SELECT tools.server_id, tools.name AS tool_name, tools.hash AS tool_hash, CASE WHEN pins.state = 'trusted' AND tools.hash <> pins.hash THEN 'changed' ELSE pins.state END AS pin,
        pins.hash AS pinned_hash, max_severity,
        first_seen, last_seen, removed, json_extract(tools.definition, '$.description') AS description
    FROM tools LEFT JOIN pins ON pins.server_id = tools.server_id AND pins.tool = tools.name"""

# Every server that events or tools name. The recursion steps through the index: one seek a server, not one row an event.
_SERVERS: Final = """
    WITH RECURSIVE
    seen(server_id) AS (
        SELECT min(server_id) FROM events WHERE server_id > ''
        UNION ALL
        SELECT (SELECT min(server_id) FROM events WHERE server_id > seen.server_id) FROM seen WHERE seen.server_id IS NOT NULL
    ),
    named(server_id) AS (SELECT server_id FROM seen WHERE server_id IS NOT NULL UNION SELECT server_id FROM tools),
    known AS (
        SELECT server_id,
            (SELECT count(*) FROM tools WHERE tools.server_id = named.server_id AND removed IS NULL) AS tools,
            (SELECT count(*) FROM pins JOIN tools ON tools.server_id = pins.server_id AND tools.name = pins.tool
                WHERE pins.server_id = named.server_id AND (pins.state = 'changed' OR tools.hash <> pins.hash))
            + (SELECT count(*) FROM identities WHERE identities.server_id = named.server_id AND state = 'changed') AS changed_pins,
            (SELECT timestamp FROM events WHERE events.server_id = named.server_id ORDER BY id DESC LIMIT 1) AS last_event
        FROM named
    )
    SELECT * FROM known"""

# Tools and what servers are themselves (`kind`: tool, or an aspect), as they stand now to what was trusted; what is
# offered and was never trusted is `new`.
_PINS: Final = """
    SELECT * FROM (
        SELECT pins.server_id, pins.tool AS tool_name, 'tool' AS kind,
            CASE WHEN pins.state = 'trusted' AND tools.hash <> pins.hash THEN 'changed' ELSE pins.state END AS state,
            pins.hash AS pinned_hash, tools.hash AS tool_hash, trusted_at, trusted_by, pins.definition AS pinned,
            tools.definition AS offered
        FROM pins LEFT JOIN tools ON tools.server_id = pins.server_id AND tools.name = pins.tool
        UNION ALL
        SELECT server_id, name, 'tool', 'new', NULL, hash, NULL, NULL, '{}', definition
        FROM tools
        WHERE removed IS NULL AND NOT EXISTS (SELECT 1 FROM pins WHERE pins.server_id = tools.server_id AND pins.tool = tools.name)
        UNION ALL
        SELECT server_id, '' AS tool_name, aspect AS kind, state, pinned_mark, offered_mark, trusted_at,
            CASE WHEN declared THEN 'the policy file' ELSE trusted_by END, pinned, offered
        FROM identities
        WHERE aspect <> 'instructions' OR coalesce(json_extract(pinned, '$.text'), '') <> ''
            OR coalesce(json_extract(offered, '$.text'), '') <> ''
    )"""

_KINDS: Final[Mapping[str, Callable[[sqlite3.Connection, Filters], Page]]] = {
    "events": _any_events,
    "calls": _calls,
    "detections": _detections,
    "tools": _tools,
    "servers": _servers,
    "pins": _pins,
    "requests": _requests,
}
