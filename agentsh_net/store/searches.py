"""Searches of events: a SELECT of ids for each stretch of an index that serves the question, merged in the order of ids.

SQLite keeps no statistics here, and left alone reads a million rows to find none: which index leads is found by counting a little.
Not its business: what the filters mean (`filters`), and pages of whole events (`queries`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentsh_net.core.values import jsontext
from agentsh_net.store.filters import Filters, Where, matching

# Entries of an index: counted in 0.3 ms, and read to the end, their rows too, in some 20.
COUNTED: Final = 5_000
# Servers or tools that a pattern is compared with, at a step down an index each: some 10 ms.
NAMES: Final = 2_000
# Names that a pattern may mean, each a stretch of its own; SQLite takes 500 SELECTs together.
ARMS: Final = 50

# Partial indexes serve these, so that they stand here word for word as in the schema.
BLOCKED: Final = Where("action = 'block'")
DETECTED: Final = Where("instr(json, '\"detections\":[{') > 0")

_EVERYTHING: Final = Where()
_NOTHING: Final = Where("0")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the question. `plain` asks it of a row that is found already; `stretches` of an index hold all the answers."""

    plain: Where
    stretches: tuple[Where, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """A part of the question that one of an event's candidates may answer too: a server or a tool, perhaps by a pattern.

    `meant` are the names on record that it may mean, None where they are too many to say.
    """

    column: str
    value: str
    meant: tuple[str, ...] | None

    def plain(self, table: str) -> Where:
        """Return what is asked of a row of a table that is found already."""
        return matching(_EVERYTHING, f"+{table}.{self.column}", self.value)

    def stretches(self, table: str) -> tuple[Where, ...]:
        """Return the stretches of the table's index that hold all the answers; none where no index serves."""
        return tuple(Where(f"{table}.{self.column} = ?", (name,)) for name in self.meant or ())


@dataclass(frozen=True, slots=True)
class Search:
    """`arms` are SELECTs of ids: together they find every event that is wanted. An ORDER BY behind `sql` makes it a merge."""

    arms: tuple[Where, ...]

    @property
    def sql(self) -> str:
        """Return the statement that finds each id once."""
        return " UNION ".join(arm.sql for arm in self.arms)

    @property
    def values(self) -> tuple[Any, ...]:
        """Return what the statement binds."""
        return tuple(value for arm in self.arms for value in arm.values)


def search(
    connection: sqlite3.Connection, filters: Filters, types: Sequence[str] = (), *, detected: bool = False
) -> Search:
    """Return the search for events of these types (none: of all) that the filters match.

    `detected` asks for those in which a detector found something.
    """
    asked = _asked(filters, types, detected=detected)
    given = (("tool_name", filters.tool), ("server_id", filters.server))
    named = [Named(column, value, _meant(connection, column, value)) for column, value in given if value]
    if any(name.meant == () for name in named):
        return Search((_of_events(_NOTHING),))
    lead = _lead(connection, asked, named, filters.when())
    plain = [part.plain for part in asked if part is not lead]
    if not isinstance(lead, Named):
        about = [_about(named)] if named else []
        stretches = lead.stretches if lead else (_EVERYTHING,)
        return Search(
            tuple(_of_events(stretch.with_all(filters.when(), *plain, *about)) for stretch in stretches)
        )
    others = [name for name in named if name is not lead]
    itself = [filters.when(), *plain, *(name.plain("events") for name in others)]
    candidate = [filters.when("c.event_id"), *plain, *(name.plain("c") for name in others)]
    return Search(
        (
            *(_of_events(stretch.with_all(*itself)) for stretch in lead.stretches("events")),
            *(_of_candidates(stretch.with_all(*candidate)) for stretch in lead.stretches("c")),
        )
    )


def _asked(filters: Filters, types: Sequence[str], *, detected: bool) -> list[Part]:
    """Return what is asked of the event itself, whatever it is about."""
    parts = []
    if detected:
        # An input may hold such text too.
        exactly = DETECTED.also("json_array_length(json, '$.detections') > 0")
        parts.append(Part(exactly, (exactly,)))
    if filters.session:
        plain = matching(_EVERYTHING, "+session_id", filters.session)
        parts.append(Part(plain, _exactly("session_id", filters.session)))
    if filters.action:
        plain = Where("+action = ?", (filters.action,))
        parts.append(Part(plain, (BLOCKED,) if filters.action == "block" else ()))
    if types:
        kinds = tuple(Where("type = ?", (kind,)) for kind in types)
        parts.append(Part(Where(f"+type IN ({', '.join('?' * len(types))})", tuple(types)), kinds))
    if filters.type:
        parts.append(Part(matching(_EVERYTHING, "+type", filters.type), _exactly("type", filters.type)))
    return parts


def _exactly(column: str, value: str) -> tuple[Where, ...]:
    return () if "*" in value else (Where(f"{column} = ?", (value,)),)


def _meant(connection: sqlite3.Connection, column: str, value: str) -> tuple[str, ...] | None:
    """Return the names on record that a value may mean, None where there are too many to look through."""
    if "*" not in value:
        return (value,)
    found: set[str] = set()
    for table in ("events", "candidates"):
        # One step down the index for each name that there is.
        steps = (
            f"WITH RECURSIVE seen(name) AS (SELECT min({column}) FROM {table} UNION ALL "  # noqa: S608 - fixed text
            f"SELECT (SELECT min({column}) FROM {table} WHERE {column} > seen.name) FROM seen WHERE seen.name IS NOT NULL "
            f"LIMIT {NAMES + 2}) SELECT name FROM seen WHERE name IS NOT NULL"
        )
        names = [row[0] for row in connection.execute(steps)]
        if len(names) > NAMES:
            return None
        pattern = matching(Where("name IS NOT NULL"), "name", value)
        sql = f"SELECT name FROM (SELECT value AS name FROM json_each(?)) WHERE {pattern.sql}"  # noqa: S608 - fixed text, bound values
        found.update(
            row[0] for row in connection.execute(sql, (jsontext.dumps(names).decode(), *pattern.values))
        )
    return tuple(sorted(found)) if len(found) <= ARMS else None


def _lead(
    connection: sqlite3.Connection, asked: Sequence[Part], named: Sequence[Named], when: Where
) -> Part | Named | None:
    """Return the part with the fewest entries of an index to read, None where none serves. Of equals it is the first."""
    costs: list[tuple[int, Part | Named]] = [
        (_count(connection, "events", part.stretches, when), part) for part in asked if part.stretches
    ]
    for name in (name for name in named if name.meant is not None):
        own = _count(connection, "events", name.stretches("events"), when)
        costs.append(
            (own + _count(connection, "candidates", name.stretches("candidates"), _EVERYTHING), name)
        )
    return min(costs, key=lambda cost: cost[0])[1] if costs else None


def _count(connection: sqlite3.Connection, table: str, stretches: Sequence[Where], when: Where) -> int:
    count = 0
    for stretch in stretches:
        entries = _select(f"SELECT 1 FROM {table}", stretch.with_all(when))  # noqa: S608 - fixed text
        sql = f"SELECT count(*) FROM ({entries.sql} LIMIT {COUNTED})"  # noqa: S608 - fixed text, bound values
        count += connection.execute(sql, entries.values).fetchone()[0]
        if count >= COUNTED:
            break
    return count


def _about(named: Sequence[Named]) -> Where:
    """Return the condition that an event, or a candidate of its name or address, is about what is asked for."""
    itself = _EVERYTHING.with_all(*(name.plain("events") for name in named))
    candidate = Where("c.event_id = events.id").with_all(*(name.plain("c") for name in named))
    sql = f"({itself.sql} OR EXISTS (SELECT 1 FROM candidates c WHERE {candidate.sql}))"  # noqa: S608 - fixed text, bound values
    return Where(sql, (*itself.values, *candidate.values))


def _of_events(where: Where) -> Where:
    return _select("SELECT id FROM events", where)


def _of_candidates(where: Where) -> Where:
    """Return the arm for events whose candidates are asked for. CROSS JOIN keeps the order: from the candidates to their events."""
    return _select("SELECT c.event_id FROM candidates c CROSS JOIN events ON events.id = c.event_id", where)


def _select(what: str, where: Where) -> Where:
    return Where(f"{what} WHERE {where.sql}", where.values)
