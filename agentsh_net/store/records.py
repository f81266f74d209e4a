"""What is kept besides events, and the rows that values become: tools, pins, sessions, events.

Pure: it writes statements and runs none (`writer` runs them, `queries` reads the tables back).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from agentsh_net.core.model import PinState
from agentsh_net.core.trust.identity import Identity, mark
from agentsh_net.core.values import jsontext

# One SQL statement with the parameters of each of its executions. A change is a few of them, done in one transaction.
Statement = tuple[str, Sequence[Sequence[Any]]]
Change = Sequence[Statement]


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """A tool as a server last offered it; `removed` is when the server stopped offering it."""

    server_id: str
    name: str
    hash: str
    definition: Mapping[str, Any] = field(default_factory=dict)
    max_severity: str = ""  # of what detectors found in the definition
    first_seen: str = ""
    last_seen: str = ""
    removed: str | None = None


@dataclass(frozen=True, slots=True)
class PinRecord:
    """The version of a tool that is trusted (or, while `state` is new, the one that waits for trust)."""

    server_id: str
    tool: str
    hash: str
    definition: Mapping[str, Any] = field(default_factory=dict)
    state: PinState = PinState.NEW
    trusted_at: str | None = None
    trusted_by: str | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session; its token is kept as a digest only."""

    session_id: str
    token_sha256: str
    created: str


# Tools of one server that it no longer offers: one that names its tools anew with every list would fill the disk, and events go first.
MAX_REMOVED = 1000

_COLUMNS = ("id", "type", "timestamp", "session_id", "action", "server_id", "tool_name")
INSERT_EVENT = "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
# Rows of one statement where there are many: SQLite gives the interpreter's lock away once a statement, and a busy thread
# keeps it for milliseconds.
_TOGETHER = 50
_INSERT_TOGETHER = INSERT_EVENT + ", (?, ?, ?, ?, ?, ?, ?, ?)" * (_TOGETHER - 1)
INSERT_CANDIDATE = "INSERT OR IGNORE INTO candidates VALUES (?, ?, ?)"

EventRow = tuple[str, str, str, str, str, str, str, str]
CandidateRow = tuple[str, str, str]


RequestRow = tuple[str | int | None, ...]

INSERT_REQUEST = (
    "INSERT OR REPLACE INTO llm_requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Below the age, or as old as what made room.
DELETE_REQUESTS = "DELETE FROM llm_requests WHERE id < ? OR id <= ?"


def request_row(
    record_id: str,
    words: Mapping[str, Any],
    ended: str,
    request_bytes: int,
    answer_bytes: int,
    *,
    truncated: bool,
) -> RequestRow:
    """Return the row of a request to a provider, by what was said of it; what nobody said is empty, or unknown."""
    texts = ("session_id", "provider", "dialect", "model", "method", "path")
    counts = (words.get("status", 0), words.get("input_tokens"), words.get("output_tokens"))
    said = (words.get("request_id"), words.get("outcome"))
    return (
        record_id,
        _text(words.get("started")),
        ended,
        *(_text(words.get(name)) for name in texts),
        *counts,
        *map(_text, said),
        request_bytes,
        answer_bytes,
        int(truncated),
    )


def event_row(event: Mapping[str, Any]) -> EventRow:
    """Return the row of a stamped event: the columns that can be searched, and the whole of it as JSON."""
    values: Iterable[Any] = [*map(event.get, _COLUMNS)]
    try:
        clean = "".join(values).isascii()  # as nearly always, and for the price of one step
    except TypeError:
        clean = False
    return (*(values if clean else map(_text, values)), jsontext.dumps(event).decode())


def insert_events(rows: Sequence[EventRow]) -> Change:
    """Record events."""
    whole = len(rows) - len(rows) % _TOGETHER
    flat = [
        tuple(chain.from_iterable(rows[start : start + _TOGETHER])) for start in range(0, whole, _TOGETHER)
    ]
    return [(_INSERT_TOGETHER, flat), (INSERT_EVENT, rows[whole:])]


def candidate_rows(event: Mapping[str, Any]) -> list[CandidateRow]:
    """Return what a name or an address may also have meant, so that a search by server or tool finds the event."""
    candidates = event.get("candidates")
    if not candidates:
        return []
    own = (_text(event.get("server_id")), _text(event.get("tool_name")))
    pairs = []
    for candidate in candidates:
        if isinstance(candidate, Mapping):
            pairs.append((_text(candidate.get("server_id")), _text(candidate.get("tool_name"))))
        else:
            pairs.append((_text(candidate), own[1]))
    return [(_text(event.get("id")), *pair) for pair in pairs if pair != own]


def save_tools(tools: Iterable[ToolRecord], now: str) -> Change:
    """Record tools that a server offers now; the time a tool was first seen is kept."""
    sql = (
        "INSERT INTO tools VALUES (?, ?, ?, ?, ?, ?, ?, NULL) ON CONFLICT (server_id, name) DO UPDATE SET"
        " hash = excluded.hash, definition = excluded.definition, max_severity = excluded.max_severity,"
        " last_seen = excluded.last_seen, removed = NULL"
    )
    return [(sql, [_tool_row(tool, now) for tool in tools])]


def mark_removed(keys: Iterable[tuple[str, str]], now: str) -> Change:
    """Record that servers stopped offering tools, given as (server id, name); of each server the last MAX_REMOVED are kept."""
    sql = "UPDATE tools SET removed = ? WHERE server_id = ? AND name = ? AND removed IS NULL"
    names = [_name(*key) for key in keys]
    kept = "SELECT name FROM tools WHERE server_id = ?1 AND removed IS NOT NULL ORDER BY removed DESC, name LIMIT ?2"
    forget = f"DELETE FROM tools WHERE server_id = ?1 AND removed IS NOT NULL AND name NOT IN ({kept})"  # noqa: S608 - constants
    servers = [(server_id, MAX_REMOVED) for server_id in dict.fromkeys(server_id for server_id, _ in names)]
    return [(sql, [(now, *name) for name in names]), (forget, servers)]


def save_pins(pins: Iterable[PinRecord], *, only_missing: bool = False) -> Change:
    """Record pins as they now are; with `only_missing` those that are there stay as they are."""
    verb = "INSERT OR IGNORE" if only_missing else "INSERT OR REPLACE"
    sql = verb + " INTO pins VALUES (?, ?, ?, ?, ?, ?, ?)"
    rows = [
        (*_name(p.server_id, p.tool), p.hash, _json(p.definition), p.state, p.trusted_at, p.trusted_by)
        for p in pins
    ]
    return [(sql, rows)]


def delete_pins(keys: Iterable[tuple[str, str]]) -> Change:
    """Forget pins, given as (server id, tool)."""
    return [("DELETE FROM pins WHERE server_id = ? AND tool = ?", [_name(*key) for key in keys])]


def save_identities(identities: Iterable[Identity], *, by: str, only_missing: bool = False) -> Change:
    """Record what servers are and were trusted to be; `by` is who trusted what carries the newest trust."""
    verb = "INSERT OR IGNORE" if only_missing else "INSERT"
    sql = f"{verb} INTO identities VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    if not only_missing:  # who trusted it stays on record as long as the trust is the same
        sql += (
            " ON CONFLICT (server_id, aspect) DO UPDATE SET pinned = excluded.pinned, pinned_mark = excluded.pinned_mark,"
            " offered = excluded.offered, offered_mark = excluded.offered_mark, state = excluded.state,"
            " declared = excluded.declared, trusted_by = CASE WHEN trusted_at IS excluded.trusted_at"
            " THEN trusted_by ELSE excluded.trusted_by END, trusted_at = excluded.trusted_at"
        )
    return [(sql, [_identity_row(identity, by) for identity in identities])]


def save_session(session: SessionRecord) -> Change:
    """Record a session."""
    row = (session.session_id, session.token_sha256, session.created)
    return [("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", [row])]


def delete_sessions(session_ids: Sequence[str]) -> Change:
    """Forget sessions; their events stay."""
    return [("DELETE FROM sessions WHERE session_id = ?", [(each,) for each in session_ids])]


def only_sessions(sessions: Sequence[SessionRecord]) -> Change:
    """Record these, and forget every other."""
    saved = [step for session in sessions for step in save_session(session)]
    return [("DELETE FROM sessions", [()]), *saved]


def _text(value: Any) -> str:
    """Return text that SQLite can hold: a lone surrogate, which UTF-8 cannot, becomes its escape."""
    if value is None:
        return ""
    if type(value) is str and value.isascii():
        return value
    return str(value).encode("utf-8", "backslashreplace").decode()


def _tool_row(tool: ToolRecord, now: str) -> Sequence[str]:
    names = _name(tool.server_id, tool.name)
    return (*names, tool.hash, _json(tool.definition), tool.max_severity, tool.first_seen or now, now)


def _identity_row(i: Identity, by: str) -> Sequence[Any]:
    pinned, offered = _json(i.pinned), _json(i.offered)
    marks = (mark(i.aspect, i.pinned), mark(i.aspect, i.offered))
    who = (i.trusted_at, by) if i.trusted_at else (None, None)
    return (
        _text(i.server_id), i.aspect.value, pinned, marks[0], offered, marks[1], i.state.value, int(i.declared), *who
    )  # fmt: skip


def _name(server_id: str, tool: str) -> tuple[str, str]:
    return _text(server_id), _text(tool)


def _json(value: Any) -> str:
    return jsontext.dumps(value).decode()
