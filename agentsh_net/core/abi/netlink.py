"""Netlink messages and attributes as bytes: made and read here, sent by kernel/netlink.py (RFC 3549; include/uapi/linux/netlink.h).

Knows framing only. What a family says inside its attributes is read by that family's own file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from agentsh_net.core.errors import KernelError

REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
NOOP, ERROR, DONE, OVERRUN = 1, 2, 3, 4
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_ERRNO = struct.Struct("=i")
_NESTED_OR_BYTE_ORDER = 0xC000
# No family that we read sends more attributes at one level; a message that claims to is cut here.
_MAX_ATTRIBUTES = 64


@dataclass(frozen=True, slots=True)
class Message:
    """One netlink message without its header."""

    type: int
    sequence: int
    body: bytes

    @property
    def errno(self) -> int | None:
        """Return the error number of an error message (0 is an acknowledgement), None for any other message."""
        if self.type != ERROR or len(self.body) < _ERRNO.size:
            return None
        return -int(_ERRNO.unpack_from(self.body)[0])


def message(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    """Return a message with its header."""
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, sequence, 0) + body


def messages(data: bytes) -> Iterator[Message]:
    """Yield the messages of one datagram. Raises KernelError for a length that does not fit."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, kind, _flags, sequence, _port = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            raise KernelError(f"a netlink message of {length} bytes at {offset} of {len(data)}")
        yield Message(kind, sequence, data[offset + _HEADER.size : offset + length])
        offset += _aligned(length)


def attribute(kind: int, value: bytes) -> bytes:
    """Return an attribute, padded to four bytes."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(_aligned(length) - length)


def attributes(data: bytes, offset: int = 0) -> dict[int, bytes]:
    """Return the attributes of one level by type. Raises KernelError for a length that does not fit."""
    found: dict[int, bytes] = {}
    while offset + _ATTRIBUTE.size <= len(data) and len(found) < _MAX_ATTRIBUTES:
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size or offset + length > len(data):
            raise KernelError(f"a netlink attribute of {length} bytes at {offset} of {len(data)}")
        found[kind & ~_NESTED_OR_BYTE_ORDER] = data[offset + _ATTRIBUTE.size : offset + length]
        offset += _aligned(length)
    return found


def number(value: bytes) -> int:
    """Return an attribute in network byte order as a number."""
    return int.from_bytes(value, "big")


def text(value: bytes) -> str:
    """Return an attribute that is a C string."""
    return value.split(b"\0", 1)[0].decode("utf-8", "replace")


def string(value: str) -> bytes:
    """Return a C string."""
    return value.encode() + b"\0"


def _aligned(length: int) -> int:
    return (length + 3) & ~3
