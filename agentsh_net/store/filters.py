"""The filters of every reading command, checked, and the SQL conditions they become (with bound values only).

Not its business: running them (`queries`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Self

from agentsh_net.clock import lowest_id, rfc3339
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values.canonical import SURROGATE

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000_000  # more than this is an export: take the file

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
# What the newest event says that tells a server's type: one step down an index for each server.
_TYPE_OF_SERVER: Final = """(SELECT json_extract(e.json, '$.server_type') FROM events e
    WHERE e.server_id = known.server_id AND e.type IN ('mcp_tool_call_intercepted', 'mcp_network_connection')
    AND json_extract(e.json, '$.server_type') > '' ORDER BY e.id DESC LIMIT 1)"""

_KNOWN: Final = ("session", "server", "tool", "type", "action", "since", "limit", "after")


@dataclass(frozen=True, slots=True)
class Where:
    """A condition and the values it binds."""

    sql: str = "1"
    values: tuple[Any, ...] = ()

    def also(self, sql: str, *values: Any) -> Where:
        """Return the condition narrowed by another."""
        return Where(f"{self.sql} AND {sql}", (*self.values, *values))

    def with_all(self, *others: Where) -> Where:
        """Return the condition narrowed by others."""
        parts = (self, *others)
        return Where(" AND ".join(p.sql for p in parts), tuple(v for p in parts for v in p.values))


@dataclass(frozen=True, slots=True)
class Filters:
    """What a reader wants to see. `*` in a value stands for anything; servers and tools match without regard to case."""

    session: str = ""
    server: str = ""
    tool: str = ""
    type: str = ""
    action: str = ""
    since_ns: int = 0
    limit: int = DEFAULT_LIMIT
    after: str = ""

    @classmethod
    def parse(cls, filters: Mapping[str, Any], now_ns: int) -> Self:
        """Return the checked filters; absent and None are the same. Raises ProtocolError naming the bad one."""
        unknown = sorted(set(filters) - set(_KNOWN))
        if unknown:
            raise ProtocolError(f"there is no filter {unknown[0]!r}: known are {', '.join(_KNOWN)}")
        given = {name: value for name, value in filters.items() if value is not None}
        limit = given.pop("limit", DEFAULT_LIMIT)
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_LIMIT:
            raise ProtocolError(f"filter limit: found {limit!r}; expected a number from 1 to {MAX_LIMIT}")
        for name, value in given.items():
            if not isinstance(value, str):
                raise ProtocolError(f"filter {name}: found {value!r}; expected text")
            # An argument that was no UTF-8: SQLite takes none, and events have no such names either.
            if SURROGATE.search(value):
                raise ProtocolError(f"filter {name}: found {value!r}; expected text in UTF-8")
        if given.get("action", "allow") not in {"allow", "block"}:
            raise ProtocolError(f"filter action: found {given['action']!r}; expected allow or block")
        since = given.pop("since", "")
        return cls(**given, limit=limit, since_ns=since_ns(since, now_ns) if since else 0)

    def when(self, ids: str = "id") -> Where:
        """Return the condition on when an event happened, and that it stands behind `after`; `ids` is the column of its id."""
        where = Where(f"{ids} > ?", (self.after,)) if self.after else Where()
        if not self.since_ns:
            return where
        # An id is made when an event is handed in, not before it happened (but for the order of two clock readings):
        # the bound by id makes the search short, the timestamp makes it exact. One bound, as an index serves only one.
        earliest = lowest_id(self.since_ns - 10**9)
        where = where if self.after >= earliest else Where(f"{ids} >= ?", (earliest,))
        return where.also("timestamp >= ?", rfc3339(self.since_ns))

    def of_requests(self) -> Where:
        """Return the condition on the table `llm_requests`."""
        where = matching(Where(), "session_id", self.session)
        return where.also("id >= ?", lowest_id(self.since_ns)) if self.since_ns else where

    def of_names(self, server: str, tool: str, time: str) -> Where:
        """Return the condition on a table of tools or pins, whose columns are given."""
        where = matching(
            matching(Where(), f"{server} COLLATE NOCASE", self.server), f"{tool} COLLATE NOCASE", self.tool
        )
        return where.also(f"{time} >= ?", rfc3339(self.since_ns)) if self.since_ns else where

    def of_tools(self) -> Where:
        """Return the condition on tools: their names, when they were seen, and what events of them there are."""
        where = self.of_names("tools.server_id", "tools.name", "last_seen")
        events = self._by_action(self._by_session(matching(Where(), "type", self.type)))
        if events == Where():
            return where
        return where.also(
            f"(tools.server_id, tools.name) IN (SELECT server_id, tool_name FROM events WHERE {events.sql} UNION "  # noqa: S608 - fixed text, bound values
            f"SELECT c.server_id, c.tool_name FROM candidates c JOIN events ON events.id = c.event_id WHERE {events.sql})",
            *events.values,
            *events.values,
        )

    def of_servers(self) -> Where:
        """Return the condition on servers on record: by id, by a tool they offer, by the time and kind of what was recorded of them.

        `type` is a server's (stdio, http, sse), as the newest event says that tells it.
        """
        where = replace(self, tool="").of_names("server_id", "", "last_event")
        if self.tool:
            tools = matching(Where(), "name COLLATE NOCASE", self.tool)
            where = where.also(f"server_id IN (SELECT server_id FROM tools WHERE {tools.sql})", *tools.values)  # noqa: S608 - fixed text, bound values
        if self.type:
            where = matching(where, _TYPE_OF_SERVER, self.type)
        events = self._by_action(self._by_session(Where()))
        if events == Where():
            return where
        return where.also(
            f"server_id IN (SELECT server_id FROM events WHERE {events.sql} UNION "  # noqa: S608 - fixed text, bound values
            f"SELECT c.server_id FROM candidates c JOIN events ON events.id = c.event_id WHERE {events.sql})",
            *events.values,
            *events.values,
        )

    def _by_session(self, where: Where) -> Where:
        return matching(where, "session_id", self.session)

    def _by_action(self, where: Where) -> Where:
        if self.action == "block":
            return where.also("action = 'block'")  # literal, so that the partial index serves it
        return where.also("action = ?", self.action) if self.action else where


def since_ns(text: str, now_ns: int) -> int:
    """Return the time (ns since the epoch) that `10m`, `2h`, `7d` or an ISO 8601 date or time means. Without a zone it is UTC."""
    relative = re.fullmatch(r"(\d{1,9})([smhdw])", text.strip())
    if relative:
        return max(1, now_ns - int(relative[1]) * _UNITS[relative[2]] * 10**9)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ProtocolError(
            f"--since: found {text!r}; expected 10m, 2h, 7d or a time like 2025-01-31T12:00:00Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(1, int(moment.timestamp() * 1_000_000) * 1000)


def matching(where: Where, column: str, value: str) -> Where:
    """Return the condition narrowed to what a column says; `*` in the value stands for anything, no value asks for nothing."""
    if not value:
        return where
    if "*" not in value:
        return where.also(f"{column} = ?", value)
    escaped = re.sub(r"([%_\\])", r"\\\1", value).replace("*", "%")
    return where.also(f"{column} LIKE ? ESCAPE '\\'", escaped)
