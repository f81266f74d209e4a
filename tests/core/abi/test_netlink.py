"""Netlink framing reads back what it wrote, and a length that lies is refused, never read past."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.abi import netlink
from agentsh_net.core.errors import KernelError


def test_messages_read_back_in_order_with_their_padding_skipped() -> None:
    data = netlink.message(16, netlink.REQUEST, 1, b"abc") + b"\0" + netlink.message(17, 0, 2, b"")
    assert list(netlink.messages(data)) == [netlink.Message(16, 1, b"abc"), netlink.Message(17, 2, b"")]


def test_a_message_is_what_the_kernel_reads() -> None:
    """include/uapi/linux/netlink.h: length, type, flags, sequence, port."""
    flags = netlink.REQUEST | netlink.ACK | netlink.DUMP
    assert netlink.message(16, flags, 7, b"abc") == struct.pack("=IHHII", 19, 16, 0x305, 7, 0) + b"abc"
    assert (netlink.NOOP, netlink.ERROR, netlink.DONE, netlink.OVERRUN) == (1, 2, 3, 4)
    assert netlink.attribute(3, b"ab") == struct.pack("=HH", 6, 3) + b"ab\0\0"


def test_what_ends_with_a_header_alone_is_read_to_its_end() -> None:
    assert netlink.attributes(netlink.attribute(1, b"ab") + netlink.attribute(2, b"")) == {1: b"ab", 2: b""}
    assert netlink.attributes(b"skip" + netlink.attribute(1, b"ab"), 4) == {1: b"ab"}
    assert netlink.Message(netlink.ERROR, 1, struct.pack("=i", -2)).errno == 2


def test_attributes_read_back_without_their_flags() -> None:
    data = netlink.attribute(1, b"ab") + netlink.attribute(2 | 0x8000, netlink.attribute(1, b"x"))
    found = netlink.attributes(data)
    assert found[1] == b"ab"
    assert netlink.attributes(found[2]) == {1: b"x"}


@pytest.mark.parametrize("length", [0, 15, 17, 0xFFFFFFFF])
def test_a_message_whose_length_does_not_fit_is_refused(length: int) -> None:
    with pytest.raises(KernelError):
        list(netlink.messages(struct.pack("=IHHII", length, 16, 0, 1, 0)))


@pytest.mark.parametrize("length", [0, 3, 9])
def test_an_attribute_whose_length_does_not_fit_is_refused(length: int) -> None:
    with pytest.raises(KernelError):
        netlink.attributes(struct.pack("=HH", length, 1) + b"abcd")


def test_an_endless_row_of_attributes_is_cut() -> None:
    assert len(netlink.attributes(b"".join(netlink.attribute(n, b"") for n in range(1000)))) == 64


@pytest.mark.parametrize(("number", "errno"), [(0, 0), (-2, 2)])
def test_an_error_message_says_its_number_and_zero_is_an_acknowledgement(number: int, errno: int) -> None:
    assert netlink.Message(netlink.ERROR, 1, struct.pack("=i", number) + bytes(16)).errno == errno


def test_other_messages_have_no_error_number() -> None:
    assert netlink.Message(16, 1, bytes(20)).errno is None
    assert netlink.Message(netlink.ERROR, 1, b"").errno is None


def test_numbers_are_in_network_order_and_strings_end_at_their_nul() -> None:
    assert netlink.number(b"\x01\x00") == 256
    assert netlink.text(netlink.string("table") + b"rest") == "table"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (lambda: list(netlink.messages(data)), lambda: netlink.attributes(data)):
        with contextlib.suppress(KernelError):
            read()
