"""What the gateway tells of its calls, read when there is time for it: a record for which nobody waits wakes nobody by itself.

Until then it lies in the kernel, where it outlives the worker that wrote it. What somebody waits for goes over `link`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from agentsh_net.core.audit.events import Event
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links import link

# Seconds that what follows a record waits for company: less than the store's own delay, and than the patience of who joins calls
# with connections (`audit.correlator`).
PAUSE: Final = 0.02
_SPACE: Final = 64 << 10  # bytes read at once: what is longer is read on without a pause


class Journal:
    """One worker's. A worker that breaks its rules is broken or taken over: `on_violation` is told why."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._source, self._theirs = socket.socketpair()
        self._source.setblocking(False)
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._space = memoryview(bytearray(_SPACE))
        self._framer = link.Framer(link.MAX_FROM_WORKER)
        self.on_violation: Callable[[str], None] = lambda _: None
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._source, self._woken)

    def attach(self) -> socket.socket:
        """Return the worker's end, which is the caller's to close."""
        return self._theirs

    def _woken(self) -> None:
        self._loop.remove_reader(self._source)
        self._read()

    def _read(self) -> None:
        """Take what came, and look again after a pause; where nothing came meanwhile, sleep until something does."""
        try:
            size = self._source.recv_into(self._space)
        except BlockingIOError:
            self._loop.add_reader(self._source, self._woken)
            return
        except ConnectionError:
            size = 0
        if not size or not self._take(bytes(self._space[:size])):
            self._source.close()
            self.closed.set_result(None)
            return
        self._loop.call_later(0 if self._framer.waiting else PAUSE, self._read)

    def _take(self, data: bytes) -> bool:
        """Hand on what is whole; False where it is nothing that a sound worker writes."""
        try:
            for payload in self._framer.feed(data):
                for value in link.events_of(payload):
                    self._on_event(link.event_from_worker(value))
        except ProtocolError as error:
            self.on_violation(f"broke the rules of its journal: {error}")
            return False
        return True
