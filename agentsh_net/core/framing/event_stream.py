"""Amazon's event stream (application/vnd.amazon.eventstream): messages of headers and a payload, with two CRC32 each.

Length of all (4 bytes, big-endian), length of the headers (4), CRC32 of these 8, headers, payload, CRC32 of all before it. Read
strictly: what fails a check, or could be read in two ways, is told as such. What a message means is the dialects' business.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.sse import Frame

_PRELUDE: Final = struct.Struct(">III")
_CRC: Final = struct.Struct(">I")
_LENGTH: Final = struct.Struct(">H")
OVERHEAD: Final = _PRELUDE.size + _CRC.size

_STRING: Final = 7
# What the values of the other types take: true, false, byte, short, integer, long, timestamp, uuid.
_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES: Final = 6

# botocore takes every type but the last two for an event, the SDKs for JavaScript refuse what they do not know.
_TYPES: Final = frozenset({"event", "error", "exception"})

# Marks a frame's event as the name of an error: `:message-type` is not `event`.
ERROR: Final = "!"


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `headers` are those that are text, the only ones that decide anything."""

    headers: Mapping[str, str]
    payload: bytes

    @property
    def event(self) -> str:
        """Return what kind of event this is; the kind of error with ERROR before it."""
        kind = self.headers.get(":message-type", "event")
        if kind == "event":
            return self.headers.get(":event-type", "")
        return ERROR + self.headers.get(":exception-type", self.headers.get(":error-code", kind))


def make(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return a message with these headers, all of them text."""
    return _made(b"".join(_header(name, value) for name, value in headers.items()), payload)


def with_payload(raw: bytes, payload: bytes) -> bytes:
    """Return a message with its headers as they are and another payload."""
    _, size, _ = _PRELUDE.unpack_from(raw)
    return _made(raw[_PRELUDE.size : _PRELUDE.size + size], payload)


def read(raw: bytes) -> Message:
    """Return what a whole message says. Raises ProtocolError where its checks fail, or its headers can be read in two ways."""
    total, size = _lengths(raw)
    if total != len(raw):
        raise ProtocolError("a message is not as long as it says")
    if crc32(raw[: -_CRC.size]) != _CRC.unpack_from(raw, total - _CRC.size)[0]:
        raise ProtocolError("the CRC of a message is wrong")
    end = _PRELUDE.size + size
    headers = _headers(raw[_PRELUDE.size : end])
    if (kind := headers.get(":message-type", "event")) not in _TYPES:
        raise ProtocolError(f"a message of the type {kind[:80]!r}")
    return Message(headers, raw[end : -_CRC.size])


def _lengths(raw: bytes | bytearray) -> tuple[int, int]:
    """Return the length of a message and of its headers. Raises ProtocolError where they cannot be."""
    total, size, check = _PRELUDE.unpack_from(raw)
    if crc32(raw[:8]) != check:
        raise ProtocolError("the CRC of a message's lengths is wrong")
    if total < OVERHEAD or size > total - OVERHEAD:
        raise ProtocolError("a message's lengths cannot be")
    return total, size


def _made(headers: bytes, payload: bytes) -> bytes:
    total = OVERHEAD + len(headers) + len(payload)
    prelude = struct.pack(">II", total, len(headers))
    message = prelude + _CRC.pack(crc32(prelude)) + headers + payload
    return message + _CRC.pack(crc32(message))


def _header(name: str, value: str) -> bytes:
    said, told = name.encode(), value.encode()
    return bytes([len(said)]) + said + bytes([_STRING]) + _LENGTH.pack(len(told)) + told


def _headers(block: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    seen: set[str] = set()
    at = 0
    try:
        while at < len(block):
            begin, at = at + 1, at + 1 + block[at]
            name = block[begin:at].decode("utf-8")
            kind, at = block[at], at + 1
            size = _SIZES.get(kind)
            if size is None:
                if kind not in (_STRING, _BYTES):
                    raise ProtocolError(f"a header of the unknown type {kind}")
                (size,) = _LENGTH.unpack_from(block, at)
                at += _LENGTH.size
            value, at = block[at : at + size], at + size
            if at > len(block):
                raise ProtocolError("a header is shorter than its length says")
            if name.casefold() in seen:
                raise ProtocolError(f"the header {name!r} stands twice")
            seen.add(name.casefold())
            if kind == _STRING:
                found[name] = value.decode("utf-8")
            elif name.startswith(":"):
                raise ProtocolError(f"the header {name!r} is no text")
    except (IndexError, struct.error) as error:
        raise ProtocolError("a header is cut off") from error
    except UnicodeDecodeError as error:
        raise ProtocolError("a header is not UTF-8") from error
    return found


class EventStreamDecoder:
    """Cuts a byte stream into messages. At most `max_frame` bytes are held; what is longer comes out in oversize pieces.

    A frame's `flaw` says why a message cannot be trusted. After lengths that cannot be, nothing can: there is no next message.
    """

    __slots__ = ("_broken", "_buffer", "_left", "_max")

    def __init__(self, max_frame: int) -> None:
        self._max = max_frame
        self._buffer = bytearray()
        self._left = 0  # bytes of an oversize message that are still to come
        self._broken = ""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the messages that `data` completes."""
        self._buffer += data
        frames: list[Frame] = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def finish(self) -> Frame | None:
        """Return what the stream ended in the middle of."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if not rest:
            return None
        return Frame(rest, oversize=True) if self._left else Frame(rest, flaw="a message without its end")

    def _next(self) -> Frame | None:
        if self._left:
            piece = self._taken(min(self._left, len(self._buffer)))
            self._left -= len(piece)
            return Frame(piece, oversize=True) if piece else None
        if self._broken:
            return Frame(self._taken(len(self._buffer)), flaw=self._broken) if self._buffer else None
        if len(self._buffer) < _PRELUDE.size:
            return None
        try:
            total, _ = _lengths(self._buffer)
        except ProtocolError as error:
            self._broken = str(error)
            return self._next()
        if total > self._max:
            self._left = total
            return self._next()
        return self._message(self._taken(total)) if len(self._buffer) >= total else None

    def _taken(self, size: int) -> bytes:
        piece = bytes(self._buffer[:size])
        del self._buffer[:size]
        return piece

    @staticmethod
    def _message(raw: bytes) -> Frame:
        try:
            message = read(raw)
        except ProtocolError as error:
            return Frame(raw, flaw=str(error))
        return Frame(raw, message.event, message.payload or None)
