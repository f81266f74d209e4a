"""One turn of the event loop: what is written in it goes out at its end, one write a connection.

A send wakes whoever reads; sends that follow one another at once wake it once. What the bytes are is not its business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

# What waits above this goes out at once: libuv reads one socket up to 32 times a turn, and what waits must stay within backpressure.
# (Writes below it are some tens a turn: at most a hundred KiB of small events.)
MAX_WAITING = 4 << 10


class WriteCoalescer:
    """Holds what was written in this turn, by transport, and writes it when everything that was ready has been read."""

    __slots__ = ("_call_soon", "_waiting")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._waiting: dict[asyncio.Transport, bytes] = {}

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Write at the end of this turn."""
        waiting = self._waiting
        if not waiting:
            self._call_soon(self._end)
        elif transport in waiting:
            data = waiting[transport] + data
        waiting[transport] = data
        if len(data) > MAX_WAITING:
            self.flush(transport)

    def flush(self, transport: asyncio.Transport) -> None:
        """Write now what waits for a transport."""
        data = self._waiting.pop(transport, None)
        if data is not None:
            transport.write(data)

    def drop(self, transport: asyncio.Transport) -> None:
        """Forget what waits for a transport: it is gone, or what it was to send is."""
        self._waiting.pop(transport, None)

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for transport, data in waiting.items():
            transport.write(data)
