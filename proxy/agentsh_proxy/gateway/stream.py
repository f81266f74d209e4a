"""Answers of the gateway's own making in front of servers that have no HTTP of theirs: a queue for each stream, and what was sent.

What is kept of a session lets a client that lost its connection have the rest (`Last-Event-ID`). Bounded throughout.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from agentsh_net.core.mcp.jsonrpc import Id

# Bytes that wait for a client that does not read, before its stream is cut: one large answer always fits.
MAX_QUEUED: Final = 1 << 20
# What is kept of a session for a client that comes back: bytes, and events. A minute of a chatty server.
MAX_KEPT_BYTES: Final = 1 << 20
MAX_KEPT: Final = 512
RETRY: Final = 1000  # milliseconds that a client waits before it comes back

GENERAL: Final = 0  # the number of the stream that a GET opens


class Stream:
    """What goes to one answer of ours. `ids` are the requests it still has to answer."""

    __slots__ = (
        "_news", "_queue", "_queued", "attached", "cut", "ids", "listener", "number", "tokens", "whole",
    )  # fmt: skip

    def __init__(self, number: int, ids: Iterable[Id] = ()) -> None:
        self.number = number
        self.ids = list(ids)
        self.tokens: list[Id] = []
        self.attached = True  # somebody reads it
        self.cut = False  # somebody read it too slowly
        self.listener: Callable[[], None] | None = None  # is told of news in place of who awaits them
        self.whole: Callable[[bytes], None] | None = None  # sends a message that is the whole answer
        self._queue: deque[tuple[int, bytes]] = deque()
        self._queued = 0
        self._news: asyncio.Event | None = None  # once somebody awaits it

    def put(self, seq: int, message: bytes) -> None:
        """Add a message; a stream that nobody reads takes none."""
        if not self.attached:
            return
        if self._queue and self._queued + len(message) > MAX_QUEUED:
            self.cut = True
        else:
            self._queue.append((seq, message))
            self._queued += len(message)
        self.wake()

    def detach(self) -> None:
        """Take note that nobody reads any more; what comes now is kept by the session only."""
        self.attached = False
        self._queue.clear()
        self._queued = 0

    def attach(self) -> None:
        """Take note that somebody reads again."""
        self.attached = True
        self.cut = False

    @property
    def waiting(self) -> bool:
        """Say whether there is something to send."""
        return bool(self._queue)

    @property
    def lone(self) -> bool:
        """Say whether one message is all that there is to send."""
        return len(self._queue) == 1 and not self.ids

    def take(self) -> tuple[int, bytes]:
        """Return the next number and message; there has to be one."""
        seq, message = self._queue.popleft()
        self._queued -= len(message)
        return seq, message

    def wake(self) -> None:
        """Let who waits look again."""
        if self.listener is not None:
            self.listener()
        elif self._news is not None:
            self._news.set()

    async def news(self) -> None:
        """Wait until there is something to send, or nothing more to wait for."""
        if self._queue or self.cut:
            return
        if self._news is None:
            self._news = asyncio.Event()
        self._news.clear()
        await self._news.wait()


class Kept:
    """What one session was sent last."""

    __slots__ = ("_events", "_size", "seq")

    def __init__(self) -> None:
        self._events: deque[tuple[int, int, bytes]] = deque()  # stream, number, message
        self._size = 0
        self.seq = 0

    def add(self, stream: int, message: bytes) -> int:
        """Keep a message; return its number."""
        self.seq += 1
        self._events.append((stream, self.seq, message))
        self._size += len(message)
        while len(self._events) > MAX_KEPT or self._size > MAX_KEPT_BYTES:
            self._size -= len(self._events.popleft()[2])
        return self.seq

    def since(self, stream: int, seq: int) -> list[tuple[int, bytes]]:
        """Return what a stream was sent after a number."""
        return [(number, message) for of, number, message in self._events if of == stream and number > seq]


def event(stream: int, seq: int, message: bytes) -> bytes:
    """Return a message as an event that can be resumed after; without a number, as one that cannot."""
    name = b"id: %d-%d\n" % (stream, seq) if seq else b""
    return b"event: message\n" + name + b"data: " + message + b"\n\n"


def priming(stream: int, seq: int) -> bytes:
    """Return what lets a client come back to a stream that said nothing yet (2025-11-25, Streamable HTTP, "sending messages")."""
    return b"id: %d-%d\nretry: %d\ndata: \n\n" % (stream, seq, RETRY)


def place_in(last_event_id: str) -> tuple[int, int] | None:
    """Return stream and number of an event id of ours; None for any other."""
    stream, dash, seq = last_event_id.partition("-")
    plain = stream.isdecimal() and seq.isdecimal() and len(last_event_id) < 40 and last_event_id.isascii()
    return (int(stream), int(seq)) if dash and plain else None
