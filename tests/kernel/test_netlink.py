"""A netlink request gets its answers, all of them and no others, and a refusal is an OSError with its number."""

from __future__ import annotations

import errno
import struct

import pytest

from agentsh_net.core.abi import netlink
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.netlink import Netlink, missing

ROUTE = 0
GET_LINK, GET_ADDRESS = 18, 22


def test_a_dump_is_answered_to_its_end() -> None:
    with Netlink(ROUTE) as connection:
        answers = connection.ask(GET_ADDRESS, bytes(8), flags=netlink.DUMP)
    assert any(b"lo\0" in message.body for message in answers)


def test_requests_follow_one_another_on_one_socket() -> None:
    with Netlink(ROUTE) as connection:
        first = connection.ask(GET_LINK, struct.pack("=BxHiII", 0, 0, 1, 0, 0))
        second = connection.ask(GET_LINK, struct.pack("=BxHiII", 0, 0, 1, 0, 0))
    assert len(first) == len(second) == 1


def test_a_refusal_is_an_error_with_the_kernels_number() -> None:
    with Netlink(ROUTE) as connection, pytest.raises(OSError, match="No such device") as caught:
        connection.ask(GET_LINK, struct.pack("=BxHiII", 0, 0, 0x7FFFFFF0, 0, 0))
    assert caught.value.errno == errno.ENODEV


def test_a_protocol_that_the_kernel_lacks_is_a_kernel_error() -> None:
    with pytest.raises(KernelError, match="protocol 31"):
        Netlink(31)


@pytest.mark.parametrize(
    ("number", "absent"), [(errno.ENOENT, True), (errno.ESRCH, True), (errno.EPERM, False)]
)
def test_absent_and_forbidden_are_told_apart(number: int, absent: bool) -> None:
    assert missing(OSError(number, "")) is absent
