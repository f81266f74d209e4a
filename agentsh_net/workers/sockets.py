"""The sockets of one thread that serves the workers: made by any thread, waited for together.

What is said on them, and when it ends, is not its business.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

State = TypeVar("State")


class WorkerSockets(Generic[State]):
    """Each socket comes with a state of its own, which `state` makes."""

    def __init__(self, state: Callable[[], State], kind: socket.SocketKind = socket.SOCK_STREAM) -> None:
        self._state = state
        self._kind = kind
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._new: list[socket.socket] = []

    def attach(self) -> socket.socket:
        """Return a worker's end of a new pair; ours is waited for from now on."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, self._kind)
        ours.setblocking(False)
        with self._lock:
            self._new.append(ours)
        self.wake()
        return theirs

    def wake(self) -> None:
        """Let `wait` return, from any thread."""
        with contextlib.suppress(BlockingIOError):  # a wake-up is already waiting
            self._wake.send(b"!")

    def wait(self, seconds: float | None = None) -> list[tuple[socket.socket, State]]:
        """Wait so long for what can be read; return nothing where it was woken."""
        ready = [(cast("socket.socket", key.fileobj), key.data) for key, _ in self._selector.select(seconds)]
        if any(connection is self._woken for connection, _ in ready):
            self._woken.recv(64)
            self._take_up()
        return [(connection, state) for connection, state in ready if connection is not self._woken]

    def all(self) -> list[tuple[socket.socket, State]]:
        """Return what is attached and was not dropped."""
        return [
            (cast("socket.socket", key.fileobj), key.data)
            for key in self._selector.get_map().values()
            if key.fileobj is not self._woken
        ]

    def drop(self, connection: socket.socket) -> None:
        """Listen to a worker no more."""
        self._selector.unregister(connection)
        connection.close()

    def close(self) -> None:
        """Close everything; nobody may wait any more."""
        self._take_up()
        for connection, _ in self.all():
            self.drop(connection)
        self._selector.close()
        self._wake.close()
        self._woken.close()

    def _take_up(self) -> None:
        with self._lock:
            new, self._new = self._new, []
        for connection in new:
            self._selector.register(connection, selectors.EVENT_READ, self._state())
