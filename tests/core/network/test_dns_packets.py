"""However an answer is cut into packets, the message comes out once and whole; memory is bounded, and what is lost is counted."""

from __future__ import annotations

import random
import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.network.dns_packets import MAX_BUFFER, MAX_EARLY, MAX_FLOWS, Messages, Payload

SERVER, CLIENT = ip_address("10.0.0.53"), ip_address("10.0.0.1")
SERVER6, CLIENT6 = ip_address("fd00::53"), ip_address("fd00::1")
FIN, SYN, RST, ACK = 1, 2, 4, 16


def ipv4(
    protocol: int, body: bytes, *, fragment: int = 0, options: bytes = b"", padding: bytes = b""
) -> bytes:
    length = 20 + len(options) + len(body)
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, length, 1, fragment, 64, protocol, 0)
    return head + SERVER.packed + CLIENT.packed + options + body + padding


def ipv6(protocol: int, body: bytes, *, extension: bytes = b"") -> bytes:
    kind = 44 if extension else protocol
    return (
        struct.pack(">IHBB", 6 << 28, len(extension) + len(body), kind, 64)
        + SERVER6.packed
        + CLIENT6.packed
        + extension
        + body
    )


def udp(message: bytes, port: int = 53) -> bytes:
    return struct.pack(">HHHH", port, 40000, 8 + len(message), 0) + message


def tcp(sequence: int, data: bytes = b"", flags: int = ACK, client: int = 40000) -> bytes:
    return ipv4(
        6, struct.pack(">HHIIBBHHH", 53, client, sequence & 0xFFFFFFFF, 0, 5 << 4, flags, 512, 0, 0) + data
    )


def framed(*messages: bytes) -> bytes:
    return b"".join(len(m).to_bytes(2, "big") + m for m in messages)


@pytest.mark.parametrize(
    ("packet", "sender"),
    [
        (ipv4(17, udp(b"message")), SERVER),
        (ipv4(17, udp(b"message"), options=bytes(8)), SERVER),
        (ipv4(17, udp(b"message"), padding=bytes(6)), SERVER),
        (ipv6(17, udp(b"message")), SERVER6),
    ],
    ids=["IPv4", "options", "padding", "IPv6"],
)
def test_a_datagram_is_a_message(packet: bytes, sender: object) -> None:
    assert Messages().feed(packet) == [Payload(sender, b"message")]


def test_the_first_fragment_is_told_as_cut() -> None:
    assert Messages().feed(ipv4(17, udp(b"message"), fragment=0x2000)) == [Payload(SERVER, b"message", True)]
    fragment = bytes([17, 0, 0, 1]) + bytes(4)
    assert Messages().feed(ipv6(17, udp(b"message"), extension=fragment)) == [
        Payload(SERVER6, b"message", True)
    ]
    assert Messages().feed(ipv4(17, udp(b"message" * 2)[:-7])) == [Payload(SERVER, b"message", True)]


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"\x45",
        ipv4(17, udp(b"x", 5353)),
        ipv4(17, udp(b"x"), fragment=4),
        ipv4(1, udp(b"x")),
        ipv4(6, b"\0\x35"),
    ],
)
def test_what_is_none_gives_nothing(packet: bytes) -> None:
    assert Messages().feed(packet) == []


@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    st.integers(0, 0xFFFFFFFF),
    st.lists(st.integers(1, 200), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_a_stream_in_any_pieces_and_order_and_with_repeats_gives_each_message_once(
    messages: list[bytes], isn: int, sizes: list[int], order: random.Random, syn: bool
) -> None:
    stream = framed(*messages)
    pieces, at = [], 0
    while at < len(stream):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append((isn + 1 + at, stream[at : at + size]))
        at += size
    first, rest = pieces[:1], pieces[1:]
    if len(rest) > MAX_EARLY:
        return
    order.shuffle(rest)
    again = [order.choice(pieces) for _ in range(3)]
    reader = Messages()
    packets = [tcp(isn, flags=SYN | ACK)] if syn else []
    packets += [tcp(sequence, data) for sequence, data in (*first, *rest, *again)]
    assert [p.message for packet in packets for p in reader.feed(packet)] == messages
    assert reader.lost == 0


def test_connections_beyond_the_bound_push_out_the_eldest_and_are_counted() -> None:
    reader = Messages()
    for client in range(MAX_FLOWS + 5):
        reader.feed(tcp(1, framed(b"whole")[:3], client=client + 1))
    assert reader.lost == 5
    assert reader.feed(tcp(4, framed(b"whole")[3:], client=MAX_FLOWS + 5)) == [Payload(SERVER, b"whole")]


def test_a_connection_that_ends_within_a_message_is_counted() -> None:
    reader = Messages()
    reader.feed(tcp(1, framed(b"whole")[:3]))
    reader.feed(tcp(4, flags=RST))
    assert reader.lost == 1


def test_a_stream_with_a_hole_holds_no_more_than_its_bound() -> None:
    reader = Messages()
    reader.feed(tcp(0, flags=SYN | ACK))
    for n in range(MAX_EARLY + 3):
        reader.feed(tcp(2 + n, b"x"))
    assert reader.lost == 1
    reader.feed(tcp(1, flags=SYN | ACK, client=9))
    reader.feed(tcp(3 + MAX_BUFFER, b"x", client=9))
    assert reader.lost == 2


@given(st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    reader = Messages()
    reader.feed(data)
    reader.feed(b"\x45" + data)
    reader.feed(b"\x60" + data)
