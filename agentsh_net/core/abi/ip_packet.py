"""Reads the addresses and ports of a packet's first bytes: IPv4 (RFC 791), IPv6 with extension headers (RFC 8200).

Reads what netfilter copied, nothing deeper; a packet that is cut or odd has the fields that could be read, port 0 for the rest.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

_TCP = 6
_WITH_PORTS = {_TCP, 17, 33, 132, 136}
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _OPTIONS = 0, 43, 44, 51, 60
# RFC 8200 has each kind at most once, destination options twice.
_MAX_EXTENSIONS = 8
_ETHERTYPES = {b"\x08\x00": 4, b"\x86\xdd": 6}
_TAGS = {b"\x81\x00", b"\x88\xa8"}


@dataclass(frozen=True, slots=True)
class Packet:
    """Who talks to whom. `protocol` is IPPROTO_*; ports are 0 where there are none, or where they could not be read.

    `sequence` is TCP's: a segment that is sent again has the same.
    """

    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    protocol: int
    source_port: int = 0
    destination_port: int = 0
    sequence: int = 0


def read(data: bytes, version: int = 0) -> Packet | None:
    """Return the packet that begins with `data`, None where not even its addresses can be read.

    `version` is what the kernel took it for; its own first byte is asked only without that: a raw socket may lie there.
    """
    version = version or (data[0] >> 4 if data else 0)
    if version == 4 and len(data) >= 20:
        return _v4(data)
    if version == 6 and len(data) >= 40:
        return _v6(data)
    return None


def read_frame(data: bytes) -> Packet | None:
    """Return the packet in an Ethernet frame, however often tagged (IEEE 802.1Q), or in `data` itself where there is no frame."""
    offset = 12
    while data[offset : offset + 2] in _TAGS:
        offset += 4
    version = _ETHERTYPES.get(data[offset : offset + 2])
    return read(data) if version is None else read(data[offset + 2 :], version)


def _v4(data: bytes) -> Packet:
    header, fragment = (data[0] & 0xF) * 4, int.from_bytes(data[6:8], "big") & 0x1FFF
    source, destination = IPv4Address(data[12:16]), IPv4Address(data[16:20])
    transport = () if fragment or header < 20 else _transport(data, header, data[9])
    return Packet(source, destination, data[9], *transport)


def _v6(data: bytes) -> Packet:
    source, destination = IPv6Address(data[8:24]), IPv6Address(data[24:40])
    protocol, offset = data[6], 40
    for _ in range(_MAX_EXTENSIONS):
        if protocol not in {_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _OPTIONS} or offset + 8 > len(
            data
        ):
            break
        if protocol == _FRAGMENT and int.from_bytes(data[offset + 2 : offset + 4], "big") >> 3:
            return Packet(source, destination, data[offset])
        words = data[offset + 1]
        size = {_FRAGMENT: 8, _AUTHENTICATION: (words + 2) * 4}.get(protocol, (words + 1) * 8)
        protocol, offset = data[offset], offset + size
    return Packet(source, destination, protocol, *_transport(data, offset, protocol))


def _transport(data: bytes, offset: int, protocol: int) -> tuple[int, ...]:
    """Return what can be read of ports and sequence number."""
    if protocol not in _WITH_PORTS or offset + 4 > len(data):
        return ()
    whole = protocol == _TCP and offset + 8 <= len(data)
    return struct.unpack_from(">HHI" if whole else ">HH", data, offset)
