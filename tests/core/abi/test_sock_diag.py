"""A listed socket reads back as its ends and its owner, and its destruction names exactly that socket."""

from __future__ import annotations

import socket
import struct
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

import pytest

from agentsh_net.core.abi import netlink, sock_diag

V4_ENDS = struct.pack(
    ">HH16s16s", 40000, 443, bytes([10, 0, 0, 1]) + bytes(12), bytes([10, 0, 0, 2]) + bytes(12)
)
IDENTITY = V4_ENDS + struct.pack("=III", 3, 0xAA, 0xBB)


def listed(family: int = sock_diag.INET, identity: bytes = IDENTITY) -> netlink.Message:
    body = struct.pack("=BBBB48sIIIII", family, 1, 0, 0, identity, 0, 0, 0, 1000, 4711)
    return netlink.Message(sock_diag.BY_FAMILY, 1, body + b"attributes")


def test_a_listed_socket_has_its_ends_its_user_and_its_inode() -> None:
    found = sock_diag.parse(listed(), sock_diag.TCP)
    assert found == sock_diag.Socket(
        sock_diag.INET,
        sock_diag.TCP,
        IPv4Address("10.0.0.1"),
        40000,
        IPv4Address("10.0.0.2"),
        443,
        1000,
        4711,
        IDENTITY,
        state=1,
    )


def test_a_listed_socket_has_the_kernels_number_of_it() -> None:
    found = sock_diag.parse(listed(), sock_diag.TCP)
    assert found is not None
    assert found.cookie == 0xBB_0000_00AA


def test_protocols_and_states_have_the_kernels_numbers() -> None:
    assert (sock_diag.TCP, sock_diag.UDP) == (socket.IPPROTO_TCP, socket.IPPROTO_UDP)
    assert (sock_diag.INET, sock_diag.INET6) == (socket.AF_INET, socket.AF_INET6)
    assert (sock_diag.UDPLITE, sock_diag.SYN_SENT) == (136, 2)  # in.h, tcp_states.h


def test_an_ipv6_socket_has_ipv6_ends() -> None:
    ends = struct.pack(
        ">HH16s16s", 1, 2, IPv6Address("fd00::1").packed, IPv6Address("::ffff:10.0.0.2").packed
    )
    found = sock_diag.parse(listed(sock_diag.INET6, ends + bytes(12)), sock_diag.TCP)
    assert found is not None
    assert (found.source, found.destination) == (IPv6Address("fd00::1"), IPv6Address("::ffff:10.0.0.2"))


def test_what_a_map_keeps_in_a_socket_is_asked_for_and_read() -> None:
    plain, asked = (sock_diag.listing(sock_diag.INET, sock_diag.TCP, fd) for fd in (None, 7))
    assert asked == plain + struct.pack("=HHHHi", 12, 2, 8, 1, 7)
    value = netlink.attribute(2, bytes(4)) + netlink.attribute(3, b"kept")
    stored = netlink.attribute(20, netlink.attribute(1, value))
    message = replace(listed(), body=listed().body.removesuffix(b"attributes") + stored)
    found = sock_diag.parse(message, sock_diag.TCP)
    assert found is not None
    assert found.storage == b"kept"


def test_what_a_map_keeps_is_nothing_where_it_cannot_be_read() -> None:
    broken = netlink.attribute(20, b"\x03\0\1\0")
    message = replace(listed(), body=listed().body.removesuffix(b"attributes") + broken)
    found = sock_diag.parse(message, sock_diag.TCP)
    assert found is not None
    assert found.storage == b""


@pytest.mark.parametrize("message", [netlink.Message(3, 1, listed().body), netlink.Message(20, 1, b"short")])
def test_what_is_no_listed_socket_is_left_out(message: netlink.Message) -> None:
    assert sock_diag.parse(message, sock_diag.TCP) is None


def test_the_destruction_names_the_socket_by_the_kernels_own_identity() -> None:
    found = sock_diag.parse(listed(), sock_diag.TCP)
    assert found is not None
    request = sock_diag.destruction(found)
    assert len(request) == 56
    assert request[:2] == bytes([sock_diag.INET, sock_diag.TCP])
    assert request[8:] == IDENTITY


def test_a_listing_asks_for_every_state_but_listening_closed_and_over() -> None:
    states = struct.unpack_from("=I", sock_diag.listing(sock_diag.INET6, sock_diag.UDP), 4)[0]
    assert [n for n in range(12) if not states >> n & 1] == [6, 7, 10]


def test_a_question_for_one_socket_has_its_ends_and_no_cookie() -> None:
    request = sock_diag.single(sock_diag.TCP, IPv4Address("10.0.0.1"), 40000, IPv4Address("10.0.0.2"), 443)
    assert request[8:] == V4_ENDS + bytes(4) + b"\xff" * 8


def test_the_destruction_of_a_known_connection_has_its_plain_ends_and_its_cookie() -> None:
    ends = IPv6Address("::ffff:10.0.0.1"), 40000, IPv6Address("::ffff:10.0.0.2"), 443
    request = sock_diag.connection(*ends, 0x1_0000_0002)
    assert request[0] == sock_diag.INET
    assert request[8:] == V4_ENDS + bytes(4) + struct.pack("=II", 2, 1)
    six = sock_diag.connection(IPv6Address("fd00::1"), 1, IPv6Address("fd00::2"), 2, 3)
    assert (six[0], six[12:28]) == (sock_diag.INET6, IPv6Address("fd00::1").packed)


def test_one_socket_is_asked_for_by_its_ends_and_an_interface() -> None:
    request = sock_diag.single(sock_diag.TCP, IPv4Address("10.0.0.1"), 40000, IPv4Address("10.0.0.2"), 443, 3)
    assert request[:2] == bytes([sock_diag.INET, sock_diag.TCP])
    assert request[8:44] == V4_ENDS
    assert request[44:] == struct.pack("=I", 3) + b"\xff" * 8
