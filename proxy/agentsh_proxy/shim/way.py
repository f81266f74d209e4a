"""One direction of a stdio connection: lines in, bytes out in the same order, some of them held until somebody decides.

What a line says and where bytes come from and go to is not its business. Light on purpose (see `shim`).
"""

from __future__ import annotations

from collections import deque

from agentsh_net.core.links.shim_link import MAX_LINE

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

# Bytes that wait to be written before no more is read: a few pipes' worth, so that both peers keep busy.
HIGH_WATER: Final = 1 << 20
# The end of a line too long to read that is kept: the id of the message may stand there.
MAX_TAIL: Final = 4096


class Held:
    """A line that waits for a decision, and for those before it."""

    __slots__ = ("decided", "line")

    def __init__(self, line: bytes, *, decided: bool = False) -> None:
        self.line = line
        self.decided = decided


class Way:
    """Lines of one direction. `take` gets each whole line without its newline and calls `forward` or `hold` for it.

    `take_all` gets whole lines with their newlines first, and says whether all of them pass as they are.
    `overflow` gets the hold of a line past MAX_LINE, to be released or cut; `lost` the beginning and the end of one
    that was cut.
    """

    def __init__(
        self,
        take: Callable[[bytes], None],
        take_all: Callable[[bytes], bool],
        overflow: Callable[[Held], None],
        lost: Callable[[bytes, bytes], None],
    ) -> None:
        self._take = take
        self._take_all = take_all
        self._overflow = overflow
        self._lost = lost
        self._parts: list[bytes] = []  # of the line that has no end yet
        self._size = 0
        self._queue: deque[Held] = deque()
        self._long: Held | None = None  # the line past MAX_LINE that is being read
        self._cutting = False
        self._deferred: list[bytes] = []  # messages of ours that may not stand in the middle of it
        self._head = self._tail = b""
        self._end = b"\n"  # of a line
        self.out = bytearray()  # decided, to be written
        self.waiting = 0  # bytes in the queue

    @property
    def full(self) -> bool:
        """Say whether nothing should be read before something is written or decided."""
        undecided = self._long is not None and not self._long.decided
        return undecided or len(self.out) + self.waiting > HIGH_WATER

    @property
    def idle(self) -> bool:
        """Say whether everything that came is decided and written."""
        return not self.out and not self._queue

    def feed(self, data: bytes) -> None:
        """Take bytes as they were read."""
        if self._long is not None:
            data = self._feed_long(data)
        end = data.rfind(b"\n") + 1
        if not end:
            self._begin_line(data)
            return
        lines, rest = (data, b"") if end == len(data) else (data[:end], data[end:])
        if self._parts:
            lines = b"".join((*self._parts, lines))
            self._parts = []
        self._size = 0
        if not self._queue and self._take_all(lines):
            self.out += lines
        else:
            for line in lines[:-1].split(b"\n"):
                self._take(line)
        self._begin_line(rest)

    def end(self) -> None:
        """Take the end of the input: some readers take what has no newline for a line all the same."""
        rest, self._parts, self._size = b"".join(self._parts), [], 0
        self._end = b""
        if rest:
            self._take(rest)

    def stop(self) -> None:
        """Take no more: what has no end yet is let go, and a line of which a part has gone on gets one."""
        self._parts, self._size = [], 0
        long, self._long = self._long, None
        if long is not None and long.decided and not self._cutting:
            self._hold(Held(b"\n", decided=True))
        elif long is not None and not long.decided:
            self.waiting -= len(long.line)
            long.line = b""
        deferred, self._deferred = self._deferred, []
        for message in deferred:
            self._hold(Held(message + b"\n", decided=True))
        self._flush()

    def forward(self, line: bytes) -> None:
        """Let a line pass as it is."""
        if self._queue:
            self._hold(Held(line + self._end, decided=True))
        else:
            self.out += line
            self.out += self._end

    def insert(self, message: bytes) -> None:
        """Send a message of our own, between lines."""
        if self._long is not None and not self._cutting:
            self._deferred.append(message)
        else:
            self._insert(message)

    def hold(self, line: bytes) -> Held:
        """Keep a line, and what comes after it, until `release`."""
        held = Held(line + self._end)
        self._hold(held)
        return held

    def release(self, held: Held, line: bytes | None) -> None:
        """Decide on a held line: this goes on in its place (None: nothing)."""
        wanted = b"" if line is None else line + (b"\n" if held.line.endswith(b"\n") else b"")
        self.waiting += len(wanted) - len(held.line)
        held.line = wanted
        self._decide(held)

    def release_long(self, held: Held) -> None:
        """Let the line past MAX_LINE pass as it comes."""
        self._decide(held)

    def cut(self, held: Held) -> None:
        """Drop the line past MAX_LINE, to its end; `lost` is called there."""
        self._cutting = True
        self._head, self._tail = held.line[:MAX_TAIL], held.line[-MAX_TAIL:]
        self.waiting -= len(held.line)
        held.line = b""
        self._decide(held)

    def _insert(self, message: bytes) -> None:
        self._hold(Held(message + b"\n", decided=True))
        self._flush()

    def _begin_line(self, data: bytes) -> None:
        if not data:
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size > MAX_LINE:
            self._long = Held(b"".join(self._parts))
            self._parts, self._size = [], 0
            self._hold(self._long)
            self._overflow(self._long)

    def _feed_long(self, data: bytes) -> bytes:
        """Take the next bytes of a line past MAX_LINE; return what comes after it."""
        assert self._long is not None  # noqa: S101 - the caller asks
        end = data.find(b"\n") + 1
        part = data[:end] if end else data
        if self._cutting:
            self._tail = (self._tail + part)[-MAX_TAIL:]
        elif self._queue:  # it is not decided yet, or what stood before it
            self._hold(Held(part, decided=True))
        else:
            self.out += part
        if not end:
            return b""
        cut, self._long, self._cutting = self._cutting, None, False
        for message in self._deferred:
            self._insert(message)
        self._deferred = []
        if cut:
            self._lost(self._head, self._tail)
        return data[end:]

    def _hold(self, held: Held) -> None:
        self._queue.append(held)
        self.waiting += len(held.line)

    def _decide(self, held: Held) -> None:
        held.decided = True
        self._flush()

    def _flush(self) -> None:
        while self._queue and self._queue[0].decided:
            line = self._queue.popleft().line
            self.waiting -= len(line)
            self.out += line
