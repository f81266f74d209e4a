"""From captured packets to DNS messages: UDP (RFC 768), and TCP put together again with its length prefixes (RFC 7766).

Reads packets whose source port is 53. Memory is bounded whatever is sent: who opens more connections than are followed pushes
out the eldest, and what was lost by that is counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from agentsh_net.core.abi.ip_packet import Packet, read
from agentsh_net.core.network.addresses import Address

PORT = 53
_TCP, _UDP = 6, 17
_FIN, _SYN, _RST = 0x01, 0x02, 0x04
# Connections followed at once. Resolvers use TCP for the rare answer that does not fit, and close it within seconds.
MAX_FLOWS = 64
# A message of the largest size and its length prefix; and as much again that came too early.
MAX_BUFFER = (1 << 16) + 2
# Segments that wait for an earlier one: a window of 64 KB in segments of 1,400 bytes.
MAX_EARLY = 48


class Payload(NamedTuple):
    """One DNS message, or its beginning where it was `cut` into fragments, and who sent it."""

    sender: Address
    message: bytes
    cut: bool = False


class _Ends(NamedTuple):
    source: Address
    destination: Address
    port: int


@dataclass(slots=True)
class _Flow:
    """One direction of a connection: the next sequence number, and what is not a whole message yet."""

    next: int
    buffer: bytearray = field(default_factory=bytearray)
    early: dict[int, bytes] = field(default_factory=dict)

    def take(self, sequence: int, data: bytes) -> bool:
        """Take a segment; say whether the flow can still be followed."""
        ahead = (sequence - self.next) & 0xFFFFFFFF
        if ahead >= 1 << 31:  # begins in what is known
            data, ahead = data[(1 << 32) - ahead :], 0
        if ahead > MAX_BUFFER or len(self.early) > MAX_EARLY:
            return False
        if ahead:
            self.early[sequence] = data
            return sum(map(len, self.early.values())) <= MAX_BUFFER
        self._append(data)
        while (late := self.early.pop(self.next, None)) is not None:
            self._append(late)
        return True

    def messages(self) -> Iterator[bytes]:
        """Yield and forget the messages that are whole."""
        while len(self.buffer) >= 2 and len(self.buffer) >= (
            size := 2 + int.from_bytes(self.buffer[:2], "big")
        ):
            yield bytes(self.buffer[2:size])
            del self.buffer[:size]

    def _append(self, data: bytes) -> None:
        self.buffer += data
        self.next = (self.next + len(data)) & 0xFFFFFFFF


class Messages:
    """Turns packets into messages. `lost`: connections that could not be followed to the end of a message."""

    def __init__(self) -> None:
        self._flows: dict[_Ends, _Flow] = {}  # the one used last is the last
        self.lost = 0

    def feed(self, data: bytes) -> list[Payload]:
        """Return the messages that end with this packet (from its IP header on)."""
        packet = read(data)
        if packet is None or packet.source_port != PORT:
            return []
        start, end, fragment = _bounds(data)
        if packet.protocol == _UDP and start + 8 <= end:
            size = int.from_bytes(data[start + 4 : start + 6], "big")
            cut = fragment or start + size > len(data)
            return [Payload(packet.source, data[start + 8 : min(end, start + size)], cut)]
        if packet.protocol == _TCP and start + 20 <= end and not fragment:
            return self._segment(packet, data[start:end])
        return []

    def _segment(self, packet: Packet, segment: bytes) -> list[Payload]:
        sequence, head, flags = struct.unpack_from(">4xI4xBB", segment)
        ends = _Ends(packet.source, packet.destination, packet.destination_port)
        data = segment[(head >> 4) * 4 :]
        flow = self._flows.pop(ends, None)
        # Not seen from the start: a connection kept open, at the start of a message.
        if flags & _SYN or flow is None:
            flow = _Flow((sequence + 1) & 0xFFFFFFFF if flags & _SYN else sequence)
        followed = flow.take(sequence, data) if data and not flags & _SYN else True
        found = [Payload(packet.source, message) for message in flow.messages()]
        if followed and not flags & (_FIN | _RST):
            self._flows[ends] = flow
        elif flow.buffer or flow.early or not followed:
            self.lost += 1
        if len(self._flows) > MAX_FLOWS:
            eldest = self._flows.pop(next(iter(self._flows)))
            self.lost += bool(eldest.buffer or eldest.early)
        return found


def _bounds(data: bytes) -> tuple[int, int, bool]:
    """Return where the transport header begins, where the packet ends, and whether it is the first of several fragments."""
    if data[0] >> 4 == 4:
        # 0: more than 64 KB, put together by the device.
        total = int.from_bytes(data[2:4], "big") or len(data)
        return (data[0] & 0xF) * 4, min(total, len(data)), bool(data[6] & 0x20)
    payload = int.from_bytes(data[4:6], "big")
    kind, offset, fragment = data[6], 40, False
    while kind in {0, 43, 44, 60} and offset + 8 <= len(data):  # ends: offset grows by 8 at least
        fragment = fragment or (kind == 44 and bool(data[offset + 3] & 1))
        kind, offset = data[offset], offset + (8 if kind == 44 else (data[offset + 1] + 1) * 8)
    return offset, min(40 + payload, len(data)) if payload else len(data), fragment
