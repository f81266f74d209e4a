"""A socket's cookie leads to the process that holds it, once for all its packets, and at a bounded cost."""

from __future__ import annotations

import os
import socket
import struct

import pytest
from netns import box
from netns.scene import listening

from agentsh_net.kernel.process import Processes
from agentsh_net.kernel.sockets import owners as socket_owners
from agentsh_net.kernel.sockets.owners import SocketOwners

pytestmark = pytest.mark.kernel

SO_COOKIE = 57


def cookie(of: socket.socket) -> int:
    return struct.unpack("=Q", of.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))[0]


def test_the_holder_of_a_connected_socket_is_found() -> None:
    def inside() -> tuple[dict[int, int], dict[int, int]]:
        _server = listening(box.there(), "10.99.0.2")
        stream = socket.create_connection(("10.99.0.2", 443), 5)
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.connect(("10.99.0.2", 53))
        cookies = [cookie(stream), cookie(datagrams)]
        return SocketOwners(Processes(None)).by_cookie([*cookies, 12345678, 0]), dict.fromkeys(
            cookies, os.getpid()
        )

    found, wanted = box.in_box(inside)
    assert found == wanted


def test_looking_is_rare_and_what_was_found_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_owners, "_EVERY", 1e9)

    def inside() -> tuple[bool, bool, bool]:
        _server = listening(box.there(), "10.99.0.2")
        first, second = (socket.create_connection(("10.99.0.2", 443), 5) for _ in range(2))
        owners = SocketOwners(Processes(None))
        owners._next_look = -1e10
        found = cookie(first) in owners.by_cookie([cookie(first)])
        again = cookie(first) in owners.by_cookie([cookie(first)])
        return found, again, cookie(second) in owners.by_cookie([cookie(second)])

    assert box.in_box(inside) == (True, True, False)
