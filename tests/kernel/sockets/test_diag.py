"""Sockets are found by the ends of their packets; a kernel that lists none is told of."""

from __future__ import annotations

import errno
import socket
import subprocess

import pytest
from netns import box
from netns.scene import at, listening

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink
from agentsh_net.kernel.sockets.diag import connected, listener, look_up

pytestmark = pytest.mark.kernel


def test_the_sender_of_a_packet_is_found_by_its_ends_and_a_stranger_is_not() -> None:
    def inside() -> tuple[bool, object]:
        there = box.there()
        server = listening(there, "10.99.0.2")
        connection = socket.create_connection(("10.99.0.2", 443), 5)
        address, port = connection.getsockname()
        source, destination = at(address).address.ipv4_mapped, at("10.99.0.2").address.ipv4_mapped
        with Netlink(SOCK_DIAG) as diag:
            found = look_up(diag, Packet(source, destination, 6, port, 443))
            stranger = look_up(diag, Packet(source, destination, 6, port + 1, 443))
        server.close()
        return found is not None and found.source_port == port and found.inode > 0, stranger

    assert box.in_box(inside) == (True, None)


def test_a_listener_of_ones_own_is_there_while_it_is_asked_about_also_where_loopback_is_down() -> None:
    def inside() -> tuple[bool, object]:
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
        with Netlink(SOCK_DIAG) as diag:
            with listener() as ends:
                found = look_up(diag, ends)
            return found is not None and found.source_port == ends.source_port, look_up(diag, ends)

    assert box.in_box(inside) == (True, None)


def test_a_kernel_that_lists_no_sockets_is_told_of_and_not_taken_for_one_that_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(Netlink, "ask", ask)
    with Netlink(SOCK_DIAG) as diag, pytest.raises(KernelError, match="lists no TCP sockets") as caught:
        list(connected(diag))
    assert "modprobe tcp_diag" in caught.value.remedy
