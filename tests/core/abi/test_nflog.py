"""A log message tells fate, generation, packet and user; what is not ours, or broken, is told apart."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

import pytest

from agentsh_net.core.abi import netlink, nflog
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Fate

SYN = (
    struct.pack(">BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0)
    + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    + struct.pack(">HH", 40000, 443)
)


def message(family: int = 2, **changes: bytes | None) -> netlink.Message:
    numbers = {"timestamp": 3, "payload": 9, "prefix": 10, "uid": 11, "sequence": 12}
    fields: dict[str, bytes | None] = {
        "payload": SYN,
        "prefix": b"agentsh-net:deny:7\0",
        "uid": struct.pack(">I", 1000),
        "sequence": struct.pack(">I", 3),
    }
    body = struct.pack(">BBH", family, 0, 4848)
    for name, value in (fields | changes).items():
        if value is not None:
            body += netlink.attribute(numbers[name], value)
    return netlink.Message(nflog.PACKET, 0, body)


def test_a_group_is_bound_by_one_message_that_the_kernel_reads() -> None:
    """include/uapi/linux/netfilter/nfnetlink_log.h: bound, whole packets, a buffer, a timeout, with sequence numbers."""
    body = nflog.bind(4848)
    assert (nflog.PACKET, nflog.CONFIG) == (0x400, 0x401)
    assert body[:4] == struct.pack(">BBH", 0, 0, 4848)
    found = netlink.attributes(body, 4)
    assert set(found) == {1, 2, 3, 4, 6}
    assert found[1] == b"\x01"
    assert (found[2][4:], found[6]) == (b"\x02\0", b"\0\x01")
    assert [struct.unpack(">I", found[n])[0] for n in (3, 4)] == [nflog.BUFFER, nflog.TIMEOUT]


def test_a_logged_packet_says_what_happened_to_whom() -> None:
    logged = nflog.parse(message())
    assert logged is not None
    assert (logged.fate, logged.generation, logged.uid, logged.time_ns) == (Fate.DENY, 7, 1000, 0)
    assert (logged.packet.destination, logged.packet.destination_port) == (IPv4Address("10.0.0.2"), 443)


def test_the_kernels_stamp_is_wall_clock_time() -> None:
    logged = nflog.parse(message(timestamp=struct.pack(">QQ", 1_700_000_000, 5)))
    assert logged is not None
    assert logged.time_ns == 1_700_000_000_000_005_000


def test_a_packet_without_a_socket_has_no_user() -> None:
    logged = nflog.parse(message(uid=None))
    assert logged is not None
    assert logged.uid is None


@pytest.mark.parametrize(
    "changes", [{"prefix": b"other\0"}, {"prefix": None}, {"payload": b"\x00"}, {"payload": None}]
)
def test_a_message_that_is_not_ours_or_has_no_packet_is_left_out(changes: dict[str, bytes | None]) -> None:
    assert nflog.parse(message(**changes)) is None


def test_a_message_of_another_kind_is_left_out_and_has_no_sequence() -> None:
    other = netlink.Message(nflog.CONFIG, 0, message().body)
    assert nflog.parse(other) is None
    assert nflog.sequence(other) is None


def test_every_packet_of_the_group_has_a_sequence_ours_or_not() -> None:
    assert nflog.sequence(message(prefix=b"other\0")) == 3


def test_a_broken_message_is_refused() -> None:
    with pytest.raises(KernelError):
        nflog.parse(netlink.Message(nflog.PACKET, 0, bytes(4) + b"\x01\x00\x01\x00"))


def test_the_group_is_bound_and_asked_for_headers_and_sequence_numbers_in_one_message() -> None:
    body = nflog.bind(4848)
    assert body[:4] == struct.pack(">BBH", 0, 0, 4848)
    asked = netlink.attributes(body, 4)
    assert asked[1] == b"\x01"
    assert asked[2] == struct.pack(">IBB", 128, 2, 0)
    assert asked[6] == struct.pack(">H", 1)


def test_a_packet_that_lies_about_its_version_is_read_as_what_the_kernel_sent() -> None:
    logged = nflog.parse(message(payload=b"\x65" + SYN[1:]))
    assert logged is not None
    assert logged.packet.destination == IPv4Address("10.0.0.2")


def test_a_frame_from_a_device_is_read_behind_its_link_header() -> None:
    logged = nflog.parse(message(5, payload=bytes(12) + b"\x08\0" + SYN))
    assert logged is not None
    assert logged.packet.destination == IPv4Address("10.0.0.2")
