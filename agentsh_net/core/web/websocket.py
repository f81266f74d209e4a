"""WebSocket frames (RFC 6455): bytes in, control frames and whole messages out, each with the very bytes it came in.

No extension is spoken here: who relays leaves `Sec-WebSocket-Extensions` out of the handshake, so that no message is compressed.
What a message means is not its business.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from agentsh_net.core.errors import ProtocolError

MAX_FRAGMENTS: Final = 4096  # of one message; each frame costs us some hundred bytes
_CONTROL: Final = 0x8
_MAX_CONTROL: Final = 125  # section 5.5


class Opcode(IntEnum):
    """Section 11.8."""

    CONTINUATION = 0x0
    TEXT = 0x1
    BINARY = 0x2
    CLOSE = 0x8
    PING = 0x9
    PONG = 0xA


@dataclass(frozen=True, slots=True)
class Message:
    """A control frame, or a whole message of one or more frames: what it says, and the bytes it came in."""

    opcode: Opcode
    payload: bytes
    raw: bytes

    @property
    def control(self) -> bool:
        """Say whether it is about the connection."""
        return self.opcode >= _CONTROL

    @property
    def text(self) -> bool:
        """Say whether it is read as JSON: some peers parse that whether it came as text or as bytes, in any encoding of Unicode."""
        if self.opcode is Opcode.TEXT:
            return True
        told = self.payload.decode(json.detect_encoding(self.payload), "ignore")  # as `json.loads` has it
        return told.lstrip().startswith(("{", "["))


class Reader:
    """One direction of a connection. `masked`: it comes from the client, whose frames are masked (section 5.3)."""

    __slots__ = ("_buffer", "_masked", "_max", "_opcode", "_parts", "_raws", "_size")

    def __init__(self, *, masked: bool, max_message: int) -> None:
        self._masked = masked
        self._max = max_message
        self._buffer = bytearray()
        self._opcode: Opcode | None = None  # of the message whose fragments come
        self._parts: list[bytes] = []
        self._raws: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield what is whole by now. Raises ProtocolError for what section 5 forbids, and for a message above the bound."""
        self._buffer += data
        while (frame := self._frame()) is not None:
            fin, opcode, payload, raw = frame
            if opcode >= _CONTROL:
                yield Message(opcode, payload, raw)
                continue
            if (opcode is Opcode.CONTINUATION) is (self._opcode is None):
                raise ProtocolError("a WebSocket message within another, or a fragment of none")
            self._opcode = self._opcode or opcode
            self._parts.append(payload)
            self._raws.append(raw)
            self._size += len(payload)
            if len(self._raws) > MAX_FRAGMENTS:
                raise ProtocolError(f"a WebSocket message of more than {MAX_FRAGMENTS} fragments")
            if fin:
                yield Message(self._opcode, b"".join(self._parts), b"".join(self._raws))
                self._opcode, self._parts, self._raws, self._size = None, [], [], 0

    def _frame(self) -> tuple[bool, Opcode, bytes, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        first, second = buffer[0], buffer[1]
        opcode = _opcode(first)
        if bool(second & 0x80) is not self._masked:
            raise ProtocolError("a WebSocket frame that is masked, or not, against its direction")
        length, at = second & 0x7F, 2
        if opcode >= _CONTROL and (length > _MAX_CONTROL or not first & 0x80):
            raise ProtocolError("a WebSocket control frame that is long or fragmented")
        if length >= 126:
            at = 4 if length == 126 else 10
            if len(buffer) < at:
                return None
            length = int.from_bytes(buffer[2:at], "big")
        if self._size + length > self._max:
            raise ProtocolError(f"a WebSocket message of more than {self._max} bytes", status=413)
        key = at
        at += 4 if self._masked else 0
        if len(buffer) < at + length:
            return None
        raw = bytes(buffer[: at + length])
        del buffer[: at + length]
        payload = raw[at:]
        return bool(first & 0x80), opcode, masked(payload, raw[key:at]) if self._masked else payload, raw


def _opcode(first: int) -> Opcode:
    if first & 0x70:
        raise ProtocolError("a WebSocket frame of an extension that was not agreed on")
    try:
        return Opcode(first & 0x0F)
    except ValueError:
        raise ProtocolError("a WebSocket frame of an unknown kind") from None


def masked(payload: bytes, key: bytes) -> bytes:
    """Return a payload masked, or unmasked, with a key of four bytes (section 5.3)."""
    if not payload:
        return b""
    pad = (key * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(payload), "big")


def frame(opcode: Opcode, payload: bytes, key: bytes = b"") -> bytes:
    """Return a whole message as one frame; a client's needs a masking key."""
    length = len(payload)
    mask = 0x80 if key else 0
    if length < 126:
        head = bytes((0x80 | opcode, mask | length))
    elif length < 1 << 16:
        head = bytes((0x80 | opcode, mask | 126)) + length.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, mask | 127)) + length.to_bytes(8, "big")
    return head + key + (masked(payload, key) if key else payload)


def close(code: int, reason: str, key: bytes = b"") -> bytes:
    """Return the frame that ends a connection (section 5.5.1)."""
    text = reason.encode("utf-8", "replace")[: _MAX_CONTROL - 2].decode("utf-8", "ignore").encode()
    return frame(Opcode.CLOSE, code.to_bytes(2, "big") + text, key)
