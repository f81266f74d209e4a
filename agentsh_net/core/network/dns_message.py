"""Reads what a DNS answer says of addresses: A, AAAA, CNAME and the address hints of HTTPS and SVCB (RFC 1035, 3596, 9460).

For bytes that anybody may have sent: every loop is bounded, nothing is recursed into, and what is cut or odd is told by
`whole`. Whether an answer is believed is hearsay.py's business. (dnspython would read everything else too: 10 times the work.)
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.network.addresses import Address

# A name is its wire form without compression in lower case: unlike text, a label with a dot in it cannot be taken for two.
WireName = bytes

A, CNAME, AAAA, SVCB, HTTPS = 1, 5, 28, 64, 65
_IN = 1
_HEADER = 12
_RESPONSE, _OPCODE, _TRUNCATED = 0x8000, 0x7800, 0x0200
_MAX_NAME = 255  # RFC 1035, 3.1
# As many as a name may have addresses in core.network.addresses; 1,024 of them with compressed names are 16 KB.
MAX_RECORDS = 1024
# Labels and pointers followed per message, about 1 ms of work: 1,024 records with an owner of four labels each, uncompressed.
MAX_STEPS = 6 * 1024
# Aliases in a row; resolvers give up between 8 and 17 (unbound: 11, BIND: 16).
MAX_ALIASES = 16
_IPV4_HINT, _IPV6_HINT = 4, 6  # RFC 9460, 14.3.2
_MAX_PARAMETERS = 32


@dataclass(frozen=True, slots=True)
class Record:
    """An address of a name, and for how many seconds."""

    owner: WireName
    address: Address
    ttl: int


@dataclass(frozen=True, slots=True)
class Message:
    """The answer section as far as it could be read. `readable`: to its end. `whole`: and its sender did not cut it (TC)."""

    question: WireName
    kind: int
    readable: bool
    whole: bool
    aliases: Mapping[WireName, tuple[WireName, int]] = field(default_factory=dict)
    records: tuple[Record, ...] = ()


@dataclass(frozen=True, slots=True)
class Ascribed:
    """The addresses that an answer gives to one name, and for how many seconds all of it holds."""

    addresses: tuple[Address, ...]
    ttl: int


def wire_name(text: str) -> WireName:
    """Return the wire form of a host name in ASCII. Raises ProtocolError for what is none."""
    labels = text.rstrip(".").lower().encode("ascii", "strict").split(b".") if text.isascii() else [b""]
    if (
        not all(0 < len(label) < 64 for label in labels)
        or sum(len(label) + 1 for label in labels) >= _MAX_NAME
    ):
        raise ProtocolError(f"{text!r} is not a name that DNS knows")
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def parse(data: bytes) -> Message:
    """Return what an answer says. Raises ProtocolError for what is not an answer to one question."""
    if len(data) < _HEADER:
        raise ProtocolError("shorter than a DNS header")
    flags = int.from_bytes(data[2:4], "big")
    if not flags & _RESPONSE or flags & _OPCODE:
        raise ProtocolError("not an answer to a query")
    if data[4:6] != b"\0\1":
        raise ProtocolError("not an answer to one question")
    reader = _Reader(data)
    question, offset = reader.name(_HEADER)
    if offset + 4 > len(data):
        raise ProtocolError("no question")
    answers = _Answers(reader)
    readable = answers.read(offset + 4)
    return Message(
        question=question,
        kind=int.from_bytes(data[offset : offset + 2], "big"),
        readable=readable,
        whole=readable and not flags & _TRUNCATED,
        aliases=answers.aliases,
        records=tuple(answers.records),
    )


def question_of(data: bytes) -> bytes:
    """Return the one question of a query or an answer, as it stands there. Raises ProtocolError for none, or compressed names."""
    offset = _HEADER
    while offset < len(data) and 0 < data[offset] < 64 and offset - _HEADER < _MAX_NAME:
        offset += 1 + data[offset]
    if data[4:6] != b"\0\1" or offset + 5 > len(data) or data[offset]:
        raise ProtocolError("not one question")
    return data[_HEADER : offset + 5]


def ascribe(message: Message, watched: Collection[WireName]) -> dict[WireName, Ascribed]:
    """Return what an answer says of each watched name in it: of the name that was asked for, and of every alias on the way.

    The question gets all addresses of the answer: some clients (musl) take them without looking at their owners.
    """
    found: dict[WireName, Ascribed] = {}
    chain, ttl = [message.question], 1 << 31
    while chain[-1] in message.aliases and len(chain) <= MAX_ALIASES:
        target, seconds = message.aliases[chain[-1]]
        ttl = min(ttl, seconds)
        chain.append(target)
    for name in chain:
        if name in watched:
            mine = [r for r in message.records if name == message.question or r.owner in chain]
            if mine:
                addresses = tuple(dict.fromkeys(r.address for r in mine))
                found[name] = Ascribed(addresses, min(ttl, *(r.ttl for r in mine)))
    return found


def mentioned(message: Message, watched: Collection[WireName]) -> set[WireName]:
    """Return the watched names that an answer speaks of, whether or not it gives them addresses."""
    names = {message.question, *message.aliases, *(target for target, _ in message.aliases.values())}
    return {name for name in names if name in watched}


@dataclass(slots=True)
class _Answers:
    """What was read of an answer section so far."""

    reader: _Reader
    aliases: dict[WireName, tuple[WireName, int]] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)

    def read(self, offset: int) -> bool:
        """Read the section that begins at `offset`; say whether all of it was there."""
        data = self.reader.data
        count = int.from_bytes(data[6:8], "big")
        try:
            for _ in range(min(count, MAX_RECORDS)):
                owner, offset = self.reader.name(offset)
                body = offset + 10
                if body > len(data):
                    return False
                kind, rank, ttl, size = struct.unpack_from(">HHIH", data, offset)
                offset = body + size
                if offset > len(data):
                    return False
                if rank == _IN:  # a TTL with the highest bit counts as 0 (RFC 2181, 8)
                    self._take(kind, owner, 0 if ttl >> 31 else ttl, body, offset)
        except ProtocolError:
            return False
        return count <= MAX_RECORDS

    def _take(self, kind: int, owner: WireName, ttl: int, start: int, end: int) -> None:
        body = self.reader.data[start:end]
        if kind == A and len(body) == 4:
            self.records.append(Record(owner, IPv4Address(body), ttl))
        elif kind == AAAA and len(body) == 16:
            self.records.append(Record(owner, IPv6Address(body), ttl))
        elif kind == CNAME:
            self.aliases.setdefault(owner, (self.reader.name(start)[0], ttl))
        elif kind in {SVCB, HTTPS} and len(body) > 2:
            target, offset = self.reader.name(start + 2)
            if body[:2] == b"\0\0":  # AliasMode
                self.aliases.setdefault(owner, (target, ttl))
            else:
                self.records += [Record(owner, a, ttl) for a in _hints(self.reader.data[offset:end])]


def _hints(data: bytes) -> Iterator[Address]:
    """Yield the addresses among the parameters of a service binding."""
    offset = 0
    for _ in range(_MAX_PARAMETERS):
        if offset + 4 > len(data):
            return
        key = int.from_bytes(data[offset : offset + 2], "big")
        value = data[offset + 4 : offset + 4 + int.from_bytes(data[offset + 2 : offset + 4], "big")]
        offset += 4 + len(value)
        if key == _IPV4_HINT:
            yield from (IPv4Address(value[i : i + 4]) for i in range(0, len(value) & ~3, 4))
        elif key == _IPV6_HINT:
            yield from (IPv6Address(value[i : i + 16]) for i in range(0, len(value) & ~15, 16))


class _Reader:
    """Reads names, and counts what that costs."""

    __slots__ = ("_steps", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._steps = 0

    def name(self, offset: int) -> tuple[WireName, int]:
        """Return the name at an offset, and where it ends. Raises ProtocolError.

        A pointer may lead anywhere, as the C library lets it (RFC 1035 says backwards): the bounds end a loop.
        """
        data, end = self.data, 0
        parts: list[bytes] = []
        size = 1
        while True:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise ProtocolError("more names than an answer needs")
            length = data[offset] if offset < len(data) else 0x80
            if length == 0:
                break
            if length >= 0xC0 and offset + 1 < len(data):
                end = end or offset + 2
                offset = (length & 0x3F) << 8 | data[offset + 1]
                continue
            size += length + 1
            if length > 63 or size > _MAX_NAME or offset + length >= len(data):
                raise ProtocolError("a name that cannot be read")
            parts.append(data[offset : offset + 1 + length])
            offset += 1 + length
        return b"".join(parts).lower() + b"\0", end or offset + 1
