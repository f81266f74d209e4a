"""The thread that keeps requests and bodies (`llm_storage`): takes pieces from the workers and writes them, bounded, to the disk.

Workers cannot reach the files: they hand over bytes, and every bound holds on this side. What is worth keeping is their business.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentsh_net.clock import lowest_id, new_id, now_rfc3339
from agentsh_net.core.configuration.settings import LlmStorage, Retention
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links.record_link import Kind, Piece, Reader, read_about
from agentsh_net.store import records
from agentsh_net.store.bodies import Bodies, folder_beside
from agentsh_net.workers.sockets import WorkerSockets

# Bytes of a request or an answer, its head included: as much as proxy.max_request is by default.
MAX_PART: Final = 64 << 20
MAX_OPEN: Final = 8192  # records of one worker at once: twice its connections
ROWS_EVERY: Final = 0.25  # seconds between two transactions
PRUNE_EVERY: Final = 60.0  # seconds
_READ: Final = 256 << 10
_DAY_NS: Final = 86_400 * 10**9


@dataclass(slots=True)
class _Record:
    """One that is being written."""

    id: str
    words: dict[str, Any]
    sizes: dict[str, int] = field(default_factory=lambda: {"request": 0, "answer": 0})
    truncated: bool = False


@dataclass(slots=True)
class _Source:
    """A worker's end."""

    reader: Reader = field(default_factory=Reader)
    open: dict[int, _Record] = field(default_factory=dict)


class Archivist:
    """Owns the folder while the daemon runs. `change` hands rows to the store's writer."""

    def __init__(
        self,
        bodies: Bodies,
        retention: Retention,
        change: Callable[[records.Change], Future[None]],
        log: logging.Logger,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._now_ns = now_ns
        self._bodies = bodies
        self._retention = retention
        self._change = change
        self._log = log
        self._workers = WorkerSockets(_Source)
        self._rows: list[records.RequestRow] = []
        self._written = 0  # bytes since the folder was looked through
        self._next_prune = 0.0
        self._trouble = ""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="agentsh-net-archivist", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def follow(self, retention: Retention) -> None:
        """Keep so much from now on."""
        self._retention = retention

    def attach(self) -> socket.socket:
        """Return a new socket for a worker to hand pieces to."""
        return self._workers.attach()

    def stop(self) -> None:
        """Write what is there and end the thread."""
        self._stopping = True
        self._workers.wake()
        if self._thread.is_alive():
            self._thread.join()
        self._workers.close()

    def _run(self) -> None:
        while not self._stopping:
            for connection, source in self._workers.wait(ROWS_EVERY if self._rows else PRUNE_EVERY):
                self._serve(connection, source)
            self._flush()
            self._prune()
        for connection, source in self._workers.all():
            self._empty(connection, source)
        self._flush()

    def _serve(self, connection: socket.socket, source: _Source) -> None:
        """Take what a worker hands over; one that is gone, or talks nonsense, is not listened to any more."""
        try:
            data = connection.recv(_READ)
            for piece in source.reader.feed(data):
                self._take(source, piece)
        except BlockingIOError:
            return
        except (OSError, ProtocolError) as error:
            self._log.debug("a worker's records end: %s", error)
            data = b""
        if not data:
            self._workers.drop(connection)
            self._cut_off(source)

    def _empty(self, connection: socket.socket, source: _Source) -> None:
        """Take what is left in a socket: the worker has ended, or is about to."""
        while connection.fileno() >= 0 and select.select([connection], [], [], 0)[0]:
            self._serve(connection, source)
        self._cut_off(source)

    def _take(self, source: _Source, piece: Piece) -> None:
        if piece.kind is Kind.BEGIN:
            if len(source.open) >= MAX_OPEN:
                raise ProtocolError("more records at once than a worker has connections")
            words = read_about(piece.payload) | {"started": now_rfc3339()}
            source.open[piece.number] = _Record(new_id(), words)
            return
        record = source.open.get(piece.number)
        if record is None:
            raise ProtocolError("a piece of a record that was not begun")
        if piece.kind is Kind.END:
            words = read_about(piece.payload)
            record.truncated |= bool(words.pop("truncated", False))
            record.words |= words
            self._close(source, piece.number)
        else:
            self._append(record, "request" if piece.kind is Kind.REQUEST else "answer", piece.payload)

    def _append(self, record: _Record, part: str, data: bytes) -> None:
        if record.truncated:
            return  # what stands on the disk is the beginning, without a gap
        fits = data[: MAX_PART - record.sizes[part]]
        record.truncated = len(fits) < len(data)
        try:
            self._bodies.append(record.id, part, fits)
        except OSError as error:
            record.truncated = True
            self._tell(f"{error.strerror}")
            return
        self._tell("")
        record.sizes[part] += len(fits)
        self._written += len(fits)

    def _cut_off(self, source: _Source) -> None:
        for number in list(source.open):
            source.open[number].truncated = True
            source.open[number].words.setdefault("outcome", "the worker ended")
            self._close(source, number)

    def _close(self, source: _Source, number: int) -> None:
        record = source.open.pop(number)
        sizes = record.sizes
        row = records.request_row(
            record.id,
            record.words,
            now_rfc3339(),
            sizes["request"],
            sizes["answer"],
            truncated=record.truncated,
        )
        self._rows.append(row)

    def _flush(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._change([(records.INSERT_REQUEST, rows)])  # trouble is the writer's to tell

    def _prune(self) -> None:
        """Remove what is too old or too much: once a minute, and sooner where much was written."""
        limits = self._retention
        room = limits.max_size_mb * 1_000_000
        now = time.monotonic()
        if now < self._next_prune and self._written < room / 20:
            return
        self._next_prune, self._written = now + PRUNE_EVERY, 0
        oldest = lowest_id(self._now_ns() - int(limits.max_age_days * _DAY_NS))
        try:
            _, gone = self._bodies.prune(oldest, room)
        except OSError as error:
            self._tell(f"{error.strerror}")
            return
        self._change([(records.DELETE_REQUESTS, [(oldest, gone)])])

    def _tell(self, trouble: str) -> None:
        """Say what is wrong with the disk, once, and when it is well again."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            self._log.error("bodies are not stored: %s", trouble)
        else:
            self._log.info("bodies are stored again")


def start(
    database: Path,
    settings: LlmStorage,
    change: Callable[[records.Change], Future[None]],
    log: logging.Logger,
    now_ns: Callable[[], int],
) -> Archivist:
    """Return an archivist of the folder beside a database, started; `now_ns`: the time by which something is too old."""
    archivist = Archivist(Bodies(folder_beside(database)), settings.retention, change, log, now_ns)
    archivist.start()
    return archivist
