"""JSON by lines: bytes in, frames out, one a line, each with its own bytes.

Bounded as `core.framing.sse` is. What a line means is the dialects' business.
"""

from __future__ import annotations

from agentsh_net.core.framing.sse import Frame


class LineDecoder:
    """Cuts a byte stream at LF. At most `max_frame` bytes are held; what is longer comes out in oversize pieces."""

    __slots__ = ("_buffer", "_max", "_oversize")

    def __init__(self, max_frame: int) -> None:
        self._max = max_frame
        self._buffer = bytearray()
        self._oversize = False

    def feed(self, data: bytes) -> list[Frame]:
        """Return the lines that `data` completes."""
        self._buffer += data
        at = data.rfind(b"\n") + 1
        if not at:
            return self._overflow()
        end = len(self._buffer) - len(data) + at
        whole = bytes(self._buffer[: end - 1])
        del self._buffer[:end]
        return [*(self._line(line + b"\n") for line in whole.split(b"\n")), *self._overflow()]

    def finish(self) -> Frame | None:
        """Return the line that the stream ended in: clients read it all the same."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return self._line(rest) if rest else None

    def _line(self, raw: bytes) -> Frame:
        if self._oversize or len(raw) > self._max:
            self._oversize = False
            return Frame(raw, oversize=True)
        return Frame(raw, data=raw.strip() or None)

    def _overflow(self) -> list[Frame]:
        if not self._oversize and len(self._buffer) <= self._max:
            return []
        self._oversize = True
        piece = bytes(self._buffer)
        self._buffer.clear()
        return [Frame(piece, oversize=True)] if piece else []
