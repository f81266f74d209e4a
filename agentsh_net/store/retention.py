"""How long and how much is kept: the oldest events go first, in small transactions, and their pages go back to the disk.

Tools, pins and sessions are state, not history: they are never pruned.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Final

from agentsh_net.clock import lowest_id
from agentsh_net.core.configuration.settings import Retention
from agentsh_net.store.records import Change

# Events a transaction: some ten milliseconds, so that neither writer nor readers wait long.
CHUNK: Final = 500
PAGES: Final = 2000  # pages (of 4 KiB) given back at a time, for the same reason

_DAY_NS: Final = 86_400 * 10**9
# How fast a clock that leapt ahead is believed, in seconds a second: a day in ten minutes. An hour of a wrong clock then costs
# six days' worth of what was oldest, and who runs the daemon ten minutes a day keeps up.
HASTE: Final = 144


class PatientClock:
    """The wall clock, by which what is too old is deleted: ahead of the time that has passed, it is believed little by little.

    By one wrong reading (a bad time server, a machine that was resumed) everything is too old. `known` is the time that was
    believed last (ns since the epoch), 0 where nobody knows; it never falls. To be used by several threads.
    """

    def __init__(
        self,
        known: int = 0,
        wall_ns: Callable[[], int] = time.time_ns,
        running_ns: Callable[[], int] = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME),
    ) -> None:
        self._wall_ns = wall_ns
        self._running_ns = running_ns
        self._running = running_ns()
        self._lock = threading.Lock()
        self.known = known or wall_ns()

    def now(self) -> int:
        """Return what time it is, as far as that is believed; never later than the wall clock says."""
        with self._lock:
            wall, running = self._wall_ns(), self._running_ns()
            most = self.known + HASTE * (running - self._running)
            self._running = running
            self.known = max(self.known, min(wall, most))
            return min(wall, self.known)


def known_time(connection: sqlite3.Connection) -> int:
    """Return the time that `remembering` stored last, 0 where nobody did."""
    found = connection.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'time'").fetchone()
    return int(found[0]) if found else 0


def remembering(known_ns: int) -> Change:
    """Return what stores a time for the next daemon's clock."""
    return [("INSERT OR REPLACE INTO meta VALUES ('time', ?)", [(str(known_ns),)])]


def prune(connection: sqlite3.Connection, retention: Retention, now_ns: int) -> int:
    """Delete one chunk of what is too old or too much; return how many events went. 0 means there is nothing to do."""
    condition = "id < ?"
    bound: str | int = lowest_id(now_ns - int(retention.max_age_days * _DAY_NS))
    if used_bytes(connection) > retention.max_size_mb * 1_000_000:
        condition, bound = "? IS NOT NULL", 1
    chunk = f"SELECT id FROM events WHERE {condition} ORDER BY id LIMIT {CHUNK}"  # noqa: S608 - constants of this file
    last = connection.execute(f"SELECT max(id) FROM ({chunk})", (bound,)).fetchone()[0]  # noqa: S608 - likewise
    if last is None:
        return 0
    connection.execute("BEGIN IMMEDIATE")
    try:
        gone = connection.execute("DELETE FROM events WHERE id <= ?", (last,)).rowcount
        connection.execute("DELETE FROM candidates WHERE event_id <= ?", (last,))
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    # One step of this pragma frees one page; `execute` would take one step only, a script is run to its end.
    connection.executescript(f"PRAGMA incremental_vacuum({PAGES})")
    return gone


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes that hold data (free pages of the file are not counted)."""
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
