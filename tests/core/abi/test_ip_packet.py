"""A packet's first bytes name its ends and ports, over options, extension headers and fragments, however they are cut."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.abi.ip_packet import Packet, read, read_frame

PORTS = struct.pack(">HH", 40000, 443)
S4, D4, S6, D6 = (
    IPv4Address("10.0.0.1"),
    IPv4Address("10.0.0.2"),
    IPv6Address("fd00::1"),
    IPv6Address("fd00::2"),
)


def v4(protocol: int, payload: bytes, *, options: bytes = b"", fragment: int = 0) -> bytes:
    words = 5 + len(options) // 4
    head = struct.pack(">BBHHHBBH", 0x40 | words, 0, 0, 0, fragment, 64, protocol, 0)
    return head + S4.packed + D4.packed + options + payload


def v6(first: int, payload: bytes) -> bytes:
    return struct.pack(">IHBB", 6 << 28, len(payload), first, 64) + S6.packed + D6.packed + payload


@pytest.mark.parametrize("protocol", [6, 17, 33, 132, 136])
def test_transport_protocols_with_ports_have_them_read(protocol: int) -> None:
    assert read(v4(protocol, PORTS)) == Packet(S4, D4, protocol, 40000, 443)
    assert read(v6(protocol, PORTS)) == Packet(S6, D6, protocol, 40000, 443)


def test_tcp_has_its_sequence_number_read_where_it_was_copied() -> None:
    assert read(v4(6, PORTS + b"\0\0\1\2")) == Packet(S4, D4, 6, 40000, 443, 258)
    assert read(v6(6, PORTS + b"\xff\0\0\0")) == Packet(S6, D6, 6, 40000, 443, 0xFF000000)
    assert read(v4(6, PORTS + b"\0\0\1")) == Packet(S4, D4, 6, 40000, 443)
    assert read(v4(17, PORTS + b"\0\0\1\2")) == Packet(S4, D4, 17, 40000, 443)


def test_a_protocol_without_ports_has_none() -> None:
    assert read(v4(1, PORTS)) == Packet(S4, D4, 1)
    assert read(v6(58, PORTS)) == Packet(S6, D6, 58)


def test_ipv4_options_are_stepped_over() -> None:
    assert read(v4(6, PORTS, options=bytes(40))) == Packet(S4, D4, 6, 40000, 443)


def test_a_later_fragment_has_no_ports() -> None:
    assert read(v4(17, PORTS, fragment=185)) == Packet(S4, D4, 17)
    assert read(v6(44, bytes([17, 0]) + struct.pack(">H", 185 << 3) + bytes(4) + PORTS)) == Packet(S6, D6, 17)


def test_the_first_fragment_has_ports() -> None:
    assert read(v4(17, PORTS, fragment=0x2000)) == Packet(S4, D4, 17, 40000, 443)
    assert read(v6(44, bytes([17, 0]) + struct.pack(">H", 1) + bytes(4) + PORTS)) == Packet(
        S6, D6, 17, 40000, 443
    )


def test_extension_headers_are_stepped_over_by_their_own_length() -> None:
    hop = bytes([43, 1]) + bytes(14)
    routing = bytes([51, 0]) + bytes(6)
    authentication = bytes([60, 4]) + bytes(22)
    options = bytes([6, 0]) + bytes(6)
    assert read(v6(0, hop + routing + authentication + options + PORTS)) == Packet(S6, D6, 6, 40000, 443)


def test_an_endless_row_of_extension_headers_ends() -> None:
    found = read(v6(0, bytes([0, 0, 0, 0, 0, 0, 0, 0]) * 100))
    assert found is not None
    assert (found.protocol, found.destination_port) == (0, 0)


@pytest.mark.parametrize(
    "packet", [v4(6, b""), v4(6, PORTS[:3]), v6(6, PORTS[:2])], ids=["no payload", "cut", "cut v6"]
)
def test_ports_that_were_not_copied_are_zero(packet: bytes) -> None:
    found = read(packet)
    assert found is not None
    assert (found.source_port, found.destination_port) == (0, 0)


@pytest.mark.parametrize("data", [b"", b"\x45", v4(6, b"")[:19], v6(6, b"")[:39], b"\x00" * 60, b"\xf5" * 60])
def test_what_has_no_addresses_is_no_packet(data: bytes) -> None:
    assert read(data) is None


@given(st.binary(max_size=160), st.sampled_from([b"", b"\x45", b"\x4f", b"\x60"]))
def test_any_bytes_are_read_without_an_exception(data: bytes, start: bytes) -> None:
    found = read(start + data)
    assert found is None or 0 <= found.destination_port <= 0xFFFF


def test_the_kernels_word_on_the_version_stands_above_the_packets_own() -> None:
    lying = b"\x65" + v4(17, PORTS)[1:]
    assert read(lying) is None
    assert read(lying, 4) == Packet(S4, D4, 17, 40000, 443)


@pytest.mark.parametrize(
    "tags",
    [b"", b"\x81\0\0\0", b"\x88\xa8\0\1\x81\0\0\2", b"\x81\0\0\0" * 9],
    ids=["plain", "tagged", "twice", "nine times"],
)
def test_a_frame_is_read_behind_its_tags(tags: bytes) -> None:
    addresses = bytes(12)
    assert read_frame(addresses + tags + b"\x08\0" + v4(17, PORTS)) == Packet(S4, D4, 17, 40000, 443)
    assert read_frame(addresses + tags + b"\x86\xdd" + v6(6, PORTS)) == Packet(S6, D6, 6, 40000, 443)


def test_where_there_is_no_frame_the_packet_itself_is_read() -> None:
    assert read_frame(v4(17, PORTS)) == Packet(S4, D4, 17, 40000, 443)
    assert read_frame(bytes(14)) is None
    assert read_frame(b"") is None
