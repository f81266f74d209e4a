"""Server-sent events: bytes in, frames out, by the WHATWG rules (HTML standard, 9.2.5 and 9.2.6).

A frame keeps every byte it came in, blank line included, so that what nobody has an opinion on leaves untouched: the raws of all
frames, joined, are the input. What a frame means is the dialects' business.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

BOM: Final = b"\xef\xbb\xbf"
_BLANK_IN_CRLF: Final = b"\r\n\r\n"  # the end of a line, and an empty one
_LF: Final = ord("\n")
_CR: Final = ord("\r")
# CRLF is one line ending and must never be read as CR and then an empty line ended by LF.
_END_OF_FRAME: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_LINE_ENDING: Final = re.compile(rb"\r\n|\n|\r")


class Frame(NamedTuple):
    """One event, or a run of comments and blank lines. `data` is None where nothing would be dispatched.

    `oversize`: a piece of an event that outgrew the bound; its fields are unknown and more pieces may follow. `flaw`: why clients
    could read something else out of its bytes (of framings with checks).
    """

    raw: bytes
    event: str = ""
    data: bytes | None = None
    oversize: bool = False
    flaw: str = ""


def parse(raw: bytes, *, first: bool = False) -> Frame:
    """Return the frame whose bytes are `raw`; one BOM is skipped where the stream begins."""
    if (usual := _usual(raw)) is not None:
        return usual
    event, lines = "", []
    text = raw[len(BOM) :] if first and raw.startswith(BOM) else raw
    # Most streams have no CR, and splitting at LF alone costs a fifth; those that have end every line in CRLF.
    mixed = text.find(b"\r") >= 0
    if mixed and (usual := _usual_in_crlf(raw)) is not None:
        return usual
    for line in _LINE_ENDING.split(text) if mixed else text.split(b"\n"):
        name, colon, value = line.partition(b":")
        value = value[1:] if colon and value.startswith(b" ") else value
        if name == b"data":
            lines.append(value)
        elif name == b"event":
            event = value.decode("utf-8", "replace")
    return Frame(raw, event, b"\n".join(lines) if lines else None)


def _usual(raw: bytes) -> Frame | None:
    """Return the frame of a name and one line of data, as nearly all are; None where it is not exactly that."""
    name_ends = raw.find(b"\n")
    at = name_ends + len(b"\ndata: ")
    if not raw.startswith(b"event: ") or raw[name_ends:at] != b"\ndata: " or raw.find(b"\r") >= 0:
        return None
    end = len(raw) - len(b"\n\n")
    if raw.find(b"\n", at) != end or raw[-1] != _LF:
        return None
    return Frame(raw, raw[len(b"event: ") : name_ends].decode("utf-8", "replace"), raw[at:end])


def _usual_in_crlf(raw: bytes) -> Frame | None:
    """As `_usual`, of an event whose lines all end in CRLF: Python's servers end them so."""
    if not raw.endswith(_BLANK_IN_CRLF) or not raw.startswith(b"event: "):
        return None
    name_ends = raw.find(b"\r")
    at = name_ends + len(b"\r\ndata: ")
    end = len(raw) - len(_BLANK_IN_CRLF)
    if (
        raw[name_ends:at] != b"\r\ndata: "
        or raw.find(b"\n") != name_ends + 1
        or raw.find(b"\r", at) != end
        or raw.find(b"\n", at) != end + 1
    ):
        return None
    return Frame(raw, raw[len(b"event: ") : name_ends].decode("utf-8", "replace"), raw[at:end])


class Decoder:
    """Cuts a byte stream into frames. At most `max_frame` bytes are held; what is longer comes out in oversize pieces."""

    __slots__ = ("_buffer", "_first", "_max", "_oversize", "_scanned")

    def __init__(self, max_frame: int) -> None:
        self._max = max_frame
        self._buffer = bytearray()
        self._scanned = 0  # bytes of the buffer that hold no end of frame
        self._oversize = False
        self._first = True

    @property
    def aligned(self) -> bool:
        """Say whether a frame begins with the next byte."""
        return not (self._buffer or self._oversize or self._first)

    @property
    def pending(self) -> int:
        """Return how many bytes wait for the rest of their frame."""
        return len(self._buffer)

    def take(self) -> bytes | None:
        """Hand over the bytes that wait for the rest of their frame; None in the middle of an oversize event.

        The caller lets whole frames pass by (and says so with `skip`) and feeds back what remains.
        """
        if self._oversize:
            return None
        if not self._buffer:
            return b""
        waiting = bytes(self._buffer)
        self._buffer.clear()
        self._scanned = 0
        return waiting

    def skip(self) -> None:
        """Note that frames passed by outside of this decoder: the next is not the stream's first."""
        self._first = False

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes."""
        if not self._buffer and not self._oversize and (frame := self._whole(data)) is not None:
            return [frame]
        self._buffer += data
        frames: list[Frame] = []
        start = 0
        while (end := self._end(start)) >= 0:
            # Whole at once or in pieces, the bound is one.
            self._oversize = self._oversize or end - start > self._max
            frames.append(self._frame(bytes(self._buffer[start:end])))
            start = end
        if start:
            del self._buffer[:start]
        # A line ending may be split between feeds: look again at what could be its first three bytes (CR LF CR).
        self._scanned = max(0, len(self._buffer) - 3)
        if self._oversize or len(self._buffer) > self._max:
            frames += self._overflow()
        return frames

    def finish(self) -> Frame | None:
        """Return what the stream ended in the middle of: by the standard it is not dispatched, by some clients it is."""
        if not self._buffer:
            return None
        frame = self._frame(bytes(self._buffer))
        self._buffer.clear()
        return frame

    def _whole(self, data: bytes) -> Frame | None:
        """Return the frame that `data` is for certain, and no more: what most reads are, without a way through the buffer."""
        size = len(data)
        if size > self._max:
            return None
        if (usual := _usual_in_crlf(data)) is not None:
            self._first = False
            return usual
        if data.find(b"\n\n") == size - 2 > 0:
            return self._frame(data) if data[0] != _LF and data.find(b"\r") < 0 else None
        if not data.find(_BLANK_IN_CRLF) == size - 4 > 0 or data[0] == _CR:
            return None
        # Where every line ends in CRLF, nothing else can end the frame before.
        alone = data.count(b"\r") == data.count(b"\n") == data.count(b"\r\n")
        return self._frame(data) if alone else None

    def _end(self, start: int) -> int:
        """Return where the frame that begins at `start` ends, or -1."""
        if start < len(self._buffer) and self._buffer[start] in b"\r\n" and not self._oversize:
            match = _LINE_ENDING.match(self._buffer, start)
            return match.end() if match else -1
        begin = max(start, self._scanned)
        self._scanned = 0
        plain = self._buffer.find(b"\n\n", begin)
        # Without a CR before it (or at all), that is what the expression would find, at a thirtieth of its cost.
        if self._buffer.find(b"\r", begin, plain if plain >= 0 else len(self._buffer)) < 0:
            return plain + 2 if plain >= 0 else -1
        match = _END_OF_FRAME.search(self._buffer, begin)
        return match.end() if match else -1

    def _frame(self, raw: bytes) -> Frame:
        if self._oversize:
            self._oversize = self._first = False
            return Frame(raw, oversize=True)
        frame = parse(raw, first=self._first)
        self._first = False
        return frame

    def _overflow(self) -> list[Frame]:
        """Give out the oversize event so far, all but what may be the first bytes of its end."""
        self._oversize = True
        self._first = False
        keep = 3
        piece = bytes(self._buffer[:-keep])
        del self._buffer[: len(piece)]
        self._scanned = 0
        return [Frame(piece, oversize=True)] if piece else []
