"""Finds the events of one call: by the id of any of them or the call's own, then what happened to its server meanwhile.

Which of those belong to it is core.audit.story's business.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from agentsh_net.clock import lowest_id
from agentsh_net.core.audit import story
from agentsh_net.core.audit.events import (
    CrossServerBlocked,
    NetworkConnection,
    ToolCalled,
    ToolCallIntercepted,
    ToolResultInspected,
)
from agentsh_net.core.audit.story import Story
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import jsontext
from agentsh_net.core.values.canonical import SURROGATE
from agentsh_net.store.connect import reader
from agentsh_net.store.queries import DEADLINE

Row = dict[str, Any]

SECOND: Final = 1_000_000_000
# Between a model's call and the tool's, as core.audit.joining; and until a result.
PATIENCE: Final = 900 * SECOND
BEFORE: Final = 1 * SECOND  # a connection may be told of a little before the call that led to it was recorded
AFTER: Final = 30 * SECOND  # after the last that is known of a call: a slow server, a connection told late
MAX_MEANWHILE: Final = 2_000  # events; a busy host has more, and then the first count


def find(path: Path, call: str) -> Story | None:
    """Return the story of a call, None where no event has this id. Raises ProtocolError for a text that is no id."""
    if not 0 < len(call) <= 256 or SURROGATE.search(call):
        raise ProtocolError("the id of a call has 1 to 256 characters, in UTF-8")
    deadline = time.monotonic() + DEADLINE
    with reader(path) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        anchor = _anchor(connection, call)
        if anchor is None:
            return None
        intent, executions = _calls(connection, anchor)
        told = story.tell(intent, executions, _meanwhile(connection, intent, executions))
        if not told.connections and any(event.get("via") == "gateway" for event in executions):
            told = replace(told, connections=_opened_before(connection, executions[0]))
        return told


def _anchor(connection: sqlite3.Connection, call: str) -> Row | None:
    """Return the event that an id names: its own id, or the newest call with this id of the model's."""
    found = _one(connection, "id = ?", call) or _called(connection, call)
    if found is None or found["type"] in {ToolCallIntercepted.type, ToolCalled.type}:
        return found
    return _call_behind(connection, found)


def _called(connection: sqlite3.Connection, call: str) -> Row | None:
    """Return the newest call with this id of the model's. INDEXED BY: left alone SQLite would go through all calls to find none."""
    row = connection.execute(
        "SELECT json FROM events INDEXED BY events_by_call WHERE type = 'mcp_tool_call_intercepted'"
        " AND json_extract(json, '$.tool_call_id') = ? ORDER BY id DESC LIMIT 1",
        (call,),
    ).fetchone()
    return jsontext.loads(row["json"]) if row else None


def _call_behind(connection: sqlite3.Connection, event: Row) -> Row:
    """Return the newest call that a result or a connection may belong to, else the event itself."""
    start = lowest_id(_ns(event) - PATIENCE)
    for row in connection.execute(
        "SELECT json FROM events WHERE server_id = ? AND type = ? AND id BETWEEN ? AND ? ORDER BY id DESC LIMIT 500",
        (event.get("server_id", ""), ToolCalled.type, start, lowest_id(_ns(event) + BEFORE)),
    ):
        call: Row = jsontext.loads(row["json"])
        if event["type"] == NetworkConnection.type or story.answers(event, call):
            return call
    raise ProtocolError(f"{event['id']} is an event of type {event['type']} that belongs to no recorded call")


def _calls(connection: sqlite3.Connection, anchor: Row) -> tuple[Row | None, list[Row]]:
    """Return the call as the model wrote it, and as it was seen on the wire."""
    if anchor["type"] == ToolCalled.type:
        intent = (
            _one(connection, "id = ?", anchor["intercepted_id"]) if anchor.get("intercepted_id") else None
        )
        return intent, [anchor]
    rows = connection.execute(
        "SELECT json FROM events WHERE type = ? AND id BETWEEN ? AND ? AND json_extract(json, '$.intercepted_id') = ? ORDER BY id",
        (ToolCalled.type, anchor["id"], lowest_id(_ns(anchor) + PATIENCE), anchor["id"]),
    )
    return anchor, [jsontext.loads(row["json"]) for row in rows]


def _meanwhile(connection: sqlite3.Connection, intent: Row | None, executions: list[Row]) -> list[Row]:
    """Return what may belong to the call: its result, and what connected to its server until then."""
    known = [event for event in (intent, *executions) if event]
    first, last = min(map(_ns, known)), max(map(_ns, known))
    results = [r for r in _of_type(connection, ToolResultInspected.type, first, last + PATIENCE) if any(story.answers(r, e) for e in executions)]  # fmt: skip
    until = (_ns(results[0]) + BEFORE) if results else last + AFTER
    return [
        *results,
        *_of_type(connection, NetworkConnection.type, first - BEFORE, until),
        *_of_type(connection, CrossServerBlocked.type, first - BEFORE, last + BEFORE),
    ]


def _opened_before(connection: sqlite3.Connection, call: Row) -> tuple[Row, ...]:
    """Return the connection that the gateway had open for the call's session: its last one to the server."""
    wanted = "type = ? AND server_id = ? AND session_id = ? AND id BETWEEN ? AND ? ORDER BY id DESC"
    since = lowest_id(_ns(call) - PATIENCE)
    asked = (NetworkConnection.type, call["server_id"], call["session_id"], since, call["id"])
    found = _one(connection, wanted, *asked)
    return (found,) if found is not None and found.get("layer") == "proxy" else ()


def _of_type(connection: sqlite3.Connection, kind: str, start: int, end: int) -> list[Row]:
    rows = connection.execute(
        "SELECT json FROM events WHERE type = ? AND id BETWEEN ? AND ? ORDER BY id LIMIT ?",
        (kind, lowest_id(start), lowest_id(end), MAX_MEANWHILE),
    )
    return [jsontext.loads(row["json"]) for row in rows]


def _one(connection: sqlite3.Connection, where: str, *values: str) -> Row | None:
    row = connection.execute(f"SELECT json FROM events WHERE {where} LIMIT 1", values).fetchone()  # noqa: S608 - fixed text, bound values
    return jsontext.loads(row["json"]) if row else None


def _ns(event: Mapping[str, Any]) -> int:
    """Return when an event happened, in ns since the epoch."""
    return int(datetime.fromisoformat(str(event["timestamp"])).timestamp() * 1_000_000) * 1000
