"""A JSON array that comes in pieces: bytes in, frames out, one an element, each with what stands before it.

Elements are objects; objects that follow each other without an array are cut alike. What is neither is kept to the end, one frame,
so that nothing hides in it. Bounded as `core.framing.sse` is.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.framing.sse import BOM, Frame

_BETWEEN: Final = re.compile(rb"[ \t\r\n,\[\]]*")
_MARK: Final = re.compile(rb'["{}\[\]]')
_IN_STRING: Final = re.compile(rb'["\\]')


class ArrayDecoder:
    """Cuts a JSON array at the ends of its elements. At most `max_frame` bytes are held; more comes out in oversize pieces."""

    __slots__ = (
        "_broken", "_buffer", "_depth", "_first", "_max", "_oversize", "_scanned", "_start", "_string",
    )  # fmt: skip

    def __init__(self, max_frame: int) -> None:
        self._max = max_frame
        self._buffer = bytearray()
        self._scanned = 0  # bytes of the buffer that were looked at
        self._start = 0  # where the element begins in the buffer, once `_depth` is not 0
        self._depth = 0
        self._string = False
        self._first = True
        self._broken = False  # neither an element nor what may stand between two
        self._oversize = False

    def feed(self, data: bytes) -> list[Frame]:
        """Return the elements that `data` completes."""
        self._buffer += data
        frames: list[Frame] = []
        while not self._broken and (end := self._end()) >= 0:
            frames.append(self._frame(bytes(self._buffer[:end]), self._start))
            del self._buffer[:end]
            self._scanned = 0
        return [*frames, *self._overflow()]

    def finish(self) -> Frame | None:
        """Return what is left: the end of the array, or what is no element."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if not rest:
            return None
        if self._oversize:
            return Frame(rest, oversize=True)
        between = not self._broken and not self._depth
        return Frame(rest) if between else Frame(rest, data=rest)

    def _frame(self, raw: bytes, start: int) -> Frame:
        if self._oversize or len(raw) > self._max:
            self._oversize = False
            return Frame(raw, oversize=True)
        return Frame(raw, data=raw[start:])

    def _end(self) -> int:
        """Return where the element ends, or -1."""
        if not self._depth and not self._opened():
            return -1
        buffer, at = self._buffer, self._scanned
        while match := (_IN_STRING if self._string else _MARK).search(buffer, at):
            at = match.end()
            mark = match.group()
            if mark == b"\\":
                if at == len(buffer):  # what is escaped is still to come
                    self._scanned = at - 1
                    return -1
                at += 1
            elif mark == b'"':
                self._string = not self._string
            else:
                self._depth += 1 if mark in b"{[" else -1
                if not self._depth:
                    return at
        self._scanned = len(buffer)
        return -1

    def _opened(self) -> bool:
        """Go to the beginning of the next element, and say whether it is there."""
        at = self._scanned
        if self._first and not at:
            if BOM.startswith(bytes(self._buffer[:3])) and len(self._buffer) < len(BOM):
                return False
            at = len(BOM) if self._buffer.startswith(BOM) else 0
        match = _BETWEEN.match(self._buffer, at)
        self._scanned = at = match.end() if match else at
        if at == len(self._buffer):
            return False
        self._first = False
        if self._buffer[at : at + 1] != b"{":
            self._broken = True
            return False
        self._start, self._depth, self._scanned = at, 1, at + 1
        return True

    def _overflow(self) -> list[Frame]:
        """Give out what is too long so far; where it ends is still looked for."""
        if not self._oversize and len(self._buffer) <= self._max:
            return []
        # All but a backslash whose other half is still to come.
        size = len(self._buffer) if self._broken else self._scanned
        piece = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._scanned = self._start = 0
        self._oversize = True
        return [Frame(piece, oversize=True)] if piece else []
