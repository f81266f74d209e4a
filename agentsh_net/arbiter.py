"""The thread that answers the workers' rate questions: one set of buckets, so that limits are exact over all workers.

A thread of its own, because a worker waits for the answer: it must not queue behind the daemon's other work.
Policy is not its business; workers are not trusted, so every question is checked and bounded.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Protocol

import orjson

from agentsh_net.core.link import MAX_CHARGE

MAX_SERVERS = 4096


class Buckets(Protocol):
    """Token buckets (`core.ratelimit.Buckets`)."""

    def take(self, server_id: str, call_key: str, now: float) -> bool:
        """Charge a call once and say whether it is within the rate."""
        ...


class Arbiter:
    """Answers `[number, server, call key]` with `[number, within]` on every socket it was given."""

    def __init__(self, buckets: Buckets, clock: Callable[[], float]) -> None:
        self._buckets = buckets
        self._clock = clock
        self._lock = threading.Lock()
        self._charging = threading.Lock()  # the daemon's own thread charges too, for shims
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._attached: list[socket.socket] = []
        self._servers: set[str] = set()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="agentsh-net-arbiter", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def replace(self, buckets: Buckets) -> None:
        """Charge these buckets from now on (a reload; what they inherit is the caller's business)."""
        self._buckets = buckets

    def charge(self, server_id: str) -> bool:
        """Charge one call to a server, from any thread, and say whether it is within the rate."""
        with self._charging:
            return self._buckets.take(server_id, "", self._clock())

    def attach(self) -> socket.socket:
        """Return a new socket for a worker to ask on."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with self._lock:
            self._attached.append(ours)
        self._notify()
        return theirs

    def stop(self) -> None:
        """Stop the thread and close every socket."""
        self._stopping = True
        self._notify()
        if self._thread.is_alive():
            self._thread.join()
        for key in list(self._selector.get_map().values()):
            self._forget(key.fileobj)
        self._selector.close()
        self._wake.close()

    def _notify(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a wake-up is already waiting
            self._wake.send(b"!")

    def _run(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    self._woken.recv(64)
                    self._take_up()
                else:
                    self._serve(key.fileobj)

    def _take_up(self) -> None:
        with self._lock:
            attached, self._attached = self._attached, []
        for connection in attached:
            self._selector.register(connection, selectors.EVENT_READ)

    def _serve(self, connection: object) -> None:
        """Answer one question; a worker that is gone or talks nonsense is not listened to any more."""
        assert isinstance(connection, socket.socket)  # noqa: S101 - only sockets are registered
        try:
            question = connection.recv(MAX_CHARGE + 1)
            match orjson.loads(question) if 0 < len(question) <= MAX_CHARGE else None:
                case [int(number), str(server_id), str(call_key)] if self._known(server_id):
                    with self._charging:
                        within = self._buckets.take(server_id, call_key, self._clock())
                    connection.send(orjson.dumps([number, within]))
                case _:
                    self._forget(connection)
        except BlockingIOError:
            return  # the worker does not read its answers; it will time out on its own
        except (OSError, orjson.JSONDecodeError):
            self._forget(connection)

    def _known(self, server_id: str) -> bool:
        """Bound the buckets a worker can make: it asks about declared servers, and there are never this many."""
        self._servers.add(server_id)
        return len(self._servers) <= MAX_SERVERS

    def _forget(self, connection: object) -> None:
        assert isinstance(connection, socket.socket)  # noqa: S101 - only sockets are registered
        self._selector.unregister(connection)
        connection.close()
