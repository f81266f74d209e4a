"""What the DNS stub and its supervisor say to each other, a datagram each: the stub holds an answer until it is told what to do.

Bytes only. Whether an answer may go is the supervisor's business; the stub does not read it at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentsh_net.core.errors import ProtocolError

# A DNS message of the largest size and a head; and more name servers than resolv.conf(5) has.
MAX_DATAGRAM = (1 << 16) + 16
MAX_SERVERS = 16


@dataclass(frozen=True, slots=True)
class Serving:
    """The stub has given up its privileges, and answers."""


@dataclass(frozen=True, slots=True)
class Held:
    """An answer that waits."""

    number: int
    message: bytes


@dataclass(frozen=True, slots=True)
class Decided:
    """What becomes of an answer: it goes to who asked, or who asked gets SERVFAIL."""

    number: int
    release: bool


@dataclass(frozen=True, slots=True)
class Upstream:
    """Whom to ask from now on."""

    servers: tuple[str, ...]


Message = Serving | Held | Decided | Upstream


def encode(message: Message) -> bytes:
    """Return the datagram."""
    match message:
        case Serving():
            return b"S"
        case Held(number, body):
            return b"H" + number.to_bytes(4, "big") + body
        case Decided(number, release):
            return b"D" + number.to_bytes(4, "big") + bytes([release])
        case Upstream(servers):
            return b"U" + ",".join(servers).encode()


def decode(data: bytes) -> Message:
    """Return the message. Raises ProtocolError."""
    kind, number, body = data[:1], int.from_bytes(data[1:5], "big"), data[5:]
    if kind == b"S" and len(data) == 1:
        return Serving()
    if kind == b"H" and body:
        return Held(number, body)
    if kind == b"D" and len(body) == 1:
        return Decided(number, body != b"\0")
    if kind == b"U" and data.isascii():
        return Upstream(tuple(s for s in data[1:].decode().split(",") if s)[:MAX_SERVERS])
    raise ProtocolError(f"a message of {len(data)} bytes that the DNS stub's link does not know")
