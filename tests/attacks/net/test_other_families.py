"""Row 9's kin: sockets of families that have the kernel open a socket of its own for them, and of protocols that carry no port.

Anybody may make them, and the kernel loads the module for whoever asks. This one may have none of them: guests (`./dev vm`) have.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable

import pytest
from netns.stage import BAD, PLANES, Row, Seen, Stage, play
from netns.syscalls import connect, sendto, sockaddr

pytestmark = pytest.mark.kernel

AF_SMC, IPPROTO_L2TP = 43, 115
TCP = {"ebpf": {"EPERM"}, "nftables": {"ECONNREFUSED"}}
# No connect hook sees it: it is dropped at egress, and its sender is told or not.
ASIDE = {layer: {"connected", "EPERM", "ECONNREFUSED"} for layer in ("ebpf", "nftables")}
NOT_HERE = "ENOTSUP"


def of(
    family: int, kind: int, protocol: int, attack: Callable[[socket.socket], str]
) -> Callable[[Stage], str]:
    def mounted(stage: Stage) -> str:
        try:
            made = socket.socket(family, kind, protocol)
        except OSError:
            return NOT_HERE
        with made:
            return attack(made)

    return mounted


def l2tp(client: socket.socket) -> str:
    """A sockaddr_l2tpip: the connection's number where others have a port."""
    return sendto(client, b"x" * 8, struct.pack("=HH4sI4x", socket.AF_INET, 0, socket.inet_aton(BAD), 7))


ROWS = {
    "9 SMC, which begins as TCP": Row(
        of(AF_SMC, socket.SOCK_STREAM, 0, lambda s: connect(s, sockaddr(BAD, 443))), "tcp", TCP
    ),
    "9 L2TP over IP": Row(
        of(socket.AF_INET, socket.SOCK_DGRAM, IPPROTO_L2TP, l2tp), "115", ASIDE, port=0, unseen=True, unnamed=True
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], dict[str, Seen]]:
    return request.param, play(ROWS, request.param)


@pytest.mark.parametrize("name", ROWS)
def test_the_denied_server_is_not_reached_by_a_socket_that_the_kernel_makes(
    played: tuple[tuple[str, ...], dict[str, Seen]], name: str
) -> None:
    layers, seen = played
    if seen[name].said == NOT_HERE:
        pytest.skip(f"this kernel ({os.uname().release}) has no such socket: the attack cannot be made")
    ROWS[name].check(seen[name], layers)
