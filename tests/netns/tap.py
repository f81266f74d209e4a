"""What reaches the far end: every frame at any device of it, told by the address that it is for."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

from netns.box import Namespace, await_that

_ALL = 3  # ETH_P_ALL
_OUTGOING = 4  # PACKET_OUTGOING
_TAGS = {b"\x81\x00", b"\x88\xa8"}
_PORT = 9  # discard: nobody listens, nobody minds


class Tap:
    """Counts frames for some addresses. A marker sent after an attack tells that everything before it has been seen."""

    def __init__(self, there: Namespace, addresses: tuple[str, ...], marker: str) -> None:
        self._wanted = {ip_address(a) for a in addresses}
        self._marker = marker
        self._tap = there.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        self._tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._tap.setblocking(False)
        self._markers = 0

    def arrived(self) -> int:
        """Return how many frames for the addresses came since the last call; everything sent until now is counted."""
        self._markers += 1
        mark = f"marker {self._markers}".encode()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(mark, (self._marker, _PORT))
        found: list[bytes] = []

        def marked() -> bool:
            found.extend(self._frames())
            return any(frame.endswith(mark) for frame in found)

        await_that(marked)
        return sum(destination(frame) in self._wanted for frame in found)

    def _frames(self) -> Iterator[bytes]:
        while True:
            try:
                frame, address = self._tap.recvfrom(1 << 16)
            except BlockingIOError:
                return
            if address[2] != _OUTGOING:
                yield frame


def destination(frame: bytes) -> IPv4Address | IPv6Address | None:
    """Return whom an Ethernet frame is for, behind as many tags as it has, as a receiver would read it."""
    offset = 14
    while frame[offset - 2 : offset] in _TAGS:
        offset += 4
    kind, packet = frame[offset - 2 : offset], frame[offset:]
    if kind == b"\x08\x00" and packet[:1] and packet[0] >> 4 == 4 and len(packet) >= 20:
        return IPv4Address(packet[16:20])
    if kind == b"\x86\xdd" and packet[:1] and packet[0] >> 4 == 6 and len(packet) >= 40:
        return IPv6Address(packet[24:40])
    return None
