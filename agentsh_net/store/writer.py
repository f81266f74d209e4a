"""The one writer of the database: a thread with a bounded queue and batched commits. Nobody ever waits for the disk to hand in an event.

A full disk or a locked file is trouble, told once; what no longer fits the queue is counted and recorded as `events_lost` afterwards.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentsh_net.clock import new_id, now_rfc3339
from agentsh_net.core.audit.events import EventsLost
from agentsh_net.core.configuration.settings import Retention
from agentsh_net.core.errors import StoreError
from agentsh_net.lock_file import LockFile
from agentsh_net.store import records, retention
from agentsh_net.store.connect import disk_bytes, hold, log_of, open_writer, store_error
from agentsh_net.store.records import CandidateRow, Change, EventRow

# Events: ten seconds of a thousand a second, longer than a checkpoint or a short lock takes.
MAX_QUEUED: Final = 10_000
# Of JSON: what the daemon may hold in memory while the disk does not answer.
MAX_QUEUED_BYTES: Final = 64 << 20
MAX_CHANGES: Final = 1_000  # changes of tools, pins and sessions; one is a whole server's list
BATCH: Final = 500  # events for which a transaction is begun at once
# Events a transaction, about 15 ms of work: one that is behind waits for fewer fsyncs.
MAX_BATCH: Final = 2_000
BATCH_DELAY: Final = 0.05  # seconds an event waits for company: a quick look at the CLI still finds it
RETRY_DELAY: Final = 1.0  # seconds between tries while the disk does not answer
PRUNE_EVERY: Final = 60.0  # seconds
PRUNE_AFTER: Final = 5_000  # events, some megabytes: a flood fills a disk in less than a minute

# Ns of the time that is believed: one write an hour where nothing else is written.
REMEMBER_EVERY: Final = 3_600 * 10**9

# While there is trouble and nothing to write, a write that says whether it is over.
_PROBE: Final[Change] = [("INSERT OR REPLACE INTO meta VALUES ('writable', datetime())", [()])]


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """How the store is doing. `lost` counts since the start; `trouble` is empty while all is well."""

    path: str
    bytes: int
    queued: int
    written: int
    lost: int
    trouble: str = ""
    remedy: str = ""


class _Queued(NamedTuple):
    """An event on its way."""

    row: EventRow
    candidates: Sequence[CandidateRow]


class Writer:
    """Writes events, tools, pins and sessions. Opening raises StoreError; afterwards trouble goes to `on_trouble`.

    `on_trouble` is called in the writer's thread, once per change of state, with the error, and with None on recovery.
    It must not raise and must not call back.
    """

    def __init__(
        self,
        path: Path,
        limits: Retention,
        on_trouble: Callable[[StoreError | None], None],
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._path = path
        self._limits = limits
        self._on_trouble = on_trouble
        self._lock: LockFile = hold(path)
        try:
            self._connection = open_writer(path)
        except BaseException:
            self._lock.abandon()
            raise
        self._inode = path.stat().st_ino
        self._stored_time = retention.known_time(self._connection)
        self._clock = retention.PatientClock(self._stored_time, now_ns)
        self._wake = threading.Condition()
        # Everything below is shared and touched under the condition's lock only.
        self._events: deque[_Queued] = deque()
        self._queued_bytes = 0
        self._changes: deque[tuple[Change, Future[None]]] = deque()
        self._unreported = 0
        self._lost = 0
        self._written = 0
        self._trouble: StoreError | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def put(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Hand in stamped events (as JSON). Never waits and never raises for the disk's sake."""
        self._queue([_Queued(records.event_row(event), records.candidate_rows(event)) for event in events])

    def put_rows(self, rows: Sequence[EventRow]) -> None:
        """Hand in events as rows, none of which may mean another server or tool than it names; as `put` does."""
        self._queue([_Queued(row, ()) for row in rows])

    def takes_more(self) -> bool:
        """Say whether there is room for who can wait; one who hands in all the same while there is trouble loses events."""
        with self._wake:
            behind = len(self._events) > MAX_QUEUED // 2 or self._queued_bytes > MAX_QUEUED_BYTES // 2
            return not behind or self._trouble is not None or not self._thread.is_alive()

    def now(self) -> int:
        """Return the time (ns since the epoch) by which something is too old to be kept."""
        return self._clock.now()

    def _queue(self, events: Sequence[_Queued]) -> None:
        with self._wake:
            before = len(self._events)
            size = self._queued_bytes + sum(len(queued.row[-1]) for queued in events)
            if not self._closing and before + len(events) <= MAX_QUEUED and size <= MAX_QUEUED_BYTES:
                self._events.extend(events)
                self._queued_bytes = size
                events = ()
            for queued in events:
                size = self._queued_bytes + len(queued.row[-1])
                if self._closing or len(self._events) >= MAX_QUEUED or size > MAX_QUEUED_BYTES:
                    self._lost += 1
                    self._unreported += 1
                    if self._unreported == 1:
                        self._wake.notify()
                    continue
                self._events.append(queued)
                self._queued_bytes = size
            if before == 0 or before < BATCH <= len(self._events):
                self._wake.notify()

    def change(self, change: Change) -> Future[None]:
        """Hand in a change of tools, pins or sessions (made by `records`); the future ends with it on the disk or StoreError."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # not to be cancelled: whoever leaves must not end the writer
        with self._wake:
            if self._closing or len(self._changes) >= MAX_CHANGES:
                future.set_exception(
                    StoreError("the store takes no more changes", remedy="see: agentsh-net status")
                )
                return future
            self._changes.append((change, future))
            self._wake.notify()
        return future

    def status(self) -> StoreStatus:
        """Return how the store is doing."""
        size = disk_bytes(self._path)
        with self._wake:
            trouble = self._trouble
            if not self._thread.is_alive() and not self._closing:
                trouble = StoreError("the writer has ended", remedy="see the daemon's log, then restart it")
            return StoreStatus(
                path=str(self._path),
                bytes=size,
                queued=len(self._events),
                written=self._written,
                lost=self._lost,
                trouble=str(trouble or ""),
                remedy=trouble.remedy if trouble else "",
            )

    def close(self, timeout: float = 5.0) -> int:
        """Write what is queued, within `timeout` seconds, and let go of the file; return how many events were not written."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout)
        with self._wake:
            return len(self._events) + self._unreported

    def _run(self) -> None:
        next_prune, unpruned = time.monotonic(), 0
        while self._wait(next_prune):
            try:
                self._follow_the_path()
                self._apply_changes()
                written = self._commit_batch()
                if not written and self._trouble:
                    self._transact(_PROBE)
                unpruned += written
                if unpruned >= PRUNE_AFTER or time.monotonic() >= next_prune:
                    more, unpruned = self._prune(written), 0
                    next_prune = time.monotonic() + (0 if more else PRUNE_EVERY)
            except sqlite3.Error as error:
                self._stumble(store_error(error, self._path))
            except StoreError as error:
                self._stumble(error)
            else:
                self._tell(None)
        self._refuse_changes(StoreError("the store is closed"))
        self._connection.close()  # the last connection checkpoints the log and removes it
        self._lock.release()

    def _wait(self, next_prune: float) -> bool:
        """Sleep until there is work; return False when it is time to end."""
        with self._wake:
            idle = 0.0 if self._trouble else max(0.0, next_prune - time.monotonic())
            self._wake.wait_for(
                lambda: self._events or self._changes or self._unreported or self._closing, idle
            )
            if self._events and not self._changes:
                self._wake.wait_for(
                    lambda: len(self._events) >= BATCH or self._changes or self._closing, BATCH_DELAY
                )
            # While closing, trouble ends it: the disk had its chance, and shutdown must not hang on it.
            return not self._closing or bool((self._events or self._unreported) and self._trouble is None)

    def _follow_the_path(self) -> None:
        """Open the database anew if its file was moved or deleted: SQLite would go on writing to the nameless one."""
        try:
            if self._path.stat().st_ino == self._inode:
                return
        except FileNotFoundError:
            pass  # told below, with the case of another file in its place
        except OSError as error:
            raise StoreError(
                f"{self._path} cannot be reached: {error.strerror}", remedy="see: dmesg | tail"
            ) from error
        if self._inode:
            gone = f"{self._path} was moved or deleted"
            self._tell(StoreError(gone, remedy="a new one is made, without the events so far"))
            self._inode = 0  # no file has it: that is told once, however long no other can be opened
        self._leave()
        if not self._lock.stands():  # it went with its directory
            before, self._lock = self._lock, hold(self._path)
            before.abandon()
        self._connection = open_writer(self._path)
        self._inode = self._path.stat().st_ino
        self._stored_time = 0  # not in this file

    def _leave(self) -> None:
        """Close the file that is gone with all of its log in it: SQLite would take the log for that of the file in its place."""
        log = log_of(self._path)
        try:
            held = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.ProgrammingError:
            return  # it is closed, and what is there now could not be opened
        except sqlite3.Error:
            held = True
        if held and self._path.exists():
            raise StoreError(
                f"{log} is the log of the file that was here before",
                remedy=f"end who reads it: fuser -v {log}; where its disk is full, free space there",
            )
        self._connection.close()

    def _apply_changes(self) -> None:
        while True:
            with self._wake:
                if not self._changes:
                    return
                change, future = self._changes.popleft()
            try:
                self._transact(change)
            except sqlite3.Error as error:
                future.set_exception(store_error(error, self._path))
                raise
            future.set_result(None)

    def _prune(self, written: int) -> bool:
        """Delete what retention does not keep, more than was just written: a flood must not outrun it. Say whether there is more."""
        gone, now = 0, self._clock.now()
        if self._clock.known >= self._stored_time + REMEMBER_EVERY:
            self._transact(retention.remembering(self._clock.known))
            self._stored_time = self._clock.known
        while gone <= written:
            chunk = retention.prune(self._connection, self._limits, now)
            if not chunk:
                return False
            gone += chunk
        return True

    def _commit_batch(self) -> int:
        """Write the oldest events; they leave the queue only when they are on the disk. Return how many there were."""
        with self._wake:
            batch = list(islice(self._events, MAX_BATCH))
            lost = self._unreported
        rows = [queued.row for queued in batch]
        if lost:
            rows.append(_lost_row(lost))
        if not rows:
            return 0
        candidates = [row for queued in batch for row in queued.candidates]
        self._transact([*records.insert_events(rows), (records.INSERT_CANDIDATE, candidates)])
        with self._wake:
            for queued in batch:
                self._events.popleft()
                self._queued_bytes -= len(queued.row[-1])
            self._unreported -= lost
            self._written += len(batch)
        return len(rows)

    def _transact(self, change: Change) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for sql, rows in change:
                self._connection.executemany(sql, rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            # SQLite rolls back by itself on some errors (a full disk among them).
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _stumble(self, error: StoreError) -> None:
        self._tell(error)
        self._refuse_changes(error)
        with self._wake:
            self._wake.wait_for(lambda: self._closing, RETRY_DELAY)

    def _tell(self, trouble: StoreError | None) -> None:
        with self._wake:
            before, self._trouble = self._trouble, trouble
        if str(before or "") != str(trouble or ""):
            self._on_trouble(trouble)

    def _refuse_changes(self, error: StoreError) -> None:
        with self._wake:
            refused = [future for _, future in self._changes]
            self._changes.clear()
        for future in refused:
            future.set_exception(error)


def _lost_row(lost: int) -> EventRow:
    event = EventsLost(layer="store", lost=lost, reason="the store could not take them in time")
    return records.event_row(event.stamped(id=new_id(), timestamp=now_rfc3339()).to_json())
