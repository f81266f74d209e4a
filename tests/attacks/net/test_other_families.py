"""Row 9's kin: sockets of families that have the kernel open a socket of its own for them, and of protocols that no connect hook sees.

Anybody may make them, and the kernel loads the module of most for whoever asks. This one may have none of them: guests
(`./dev vm`) have.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Callable

import pytest
from attacks.net.test_routes import NO_SOCKET
from netns.box import HERE_V4, await_that
from netns.scene import outcome
from netns.stage import BAD, BAD6, NOT_HERE, PLANES, Row, Seen, Stage, play
from netns.syscalls import connect, sendto, sockaddr

pytestmark = pytest.mark.kernel

AF_RXRPC, AF_SMC = 33, 43
SOCK_DCCP, IPPROTO_DCCP, IPPROTO_L2TP, SMC_V6 = 6, 33, 115, 1
SOL_DCCP, DCCP_SERVICE = 269, 2
SOL_RXRPC, RXRPC_USER_CALL_ID = 272, 1
TIPC_PORT = 6118
# Since Linux 6.2 a thread of the kernel's sends what is said by RxRPC, for whoever says it.
BY_A_THREAD = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 2)
TCP = {"ebpf": {"EPERM"}, "nftables": {"ECONNREFUSED"}}
# No connect hook sees it: it is dropped at egress, and its sender is told or not.
ASIDE = {layer: {"connected", "EPERM", "ECONNREFUSED"} for layer in ("ebpf", "nftables")}
# The first packet is tried again until the attacker gives up, or its kernel does.
GIVEN_UP = {layer: {"EPERM", "ETIMEDOUT", "ECONNREFUSED", "EHOSTUNREACH"} for layer in ("ebpf", "nftables")}


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


def l2tp6(client: socket.socket) -> str:
    """A sockaddr_l2tpip6."""
    address = socket.inet_pton(socket.AF_INET6, BAD6)
    return sendto(client, b"x" * 8, struct.pack("=HHI16sII", socket.AF_INET6, 0, 0, address, 0, 7))


def dccp(address: str) -> Callable[[socket.socket], str]:
    def attack(client: socket.socket) -> str:
        client.settimeout(1)
        client.setsockopt(SOL_DCCP, DCCP_SERVICE, 7)
        return outcome(lambda: client.connect((address, 443)))

    return attack


def rxrpc(stage: Stage) -> str:
    """A call of AFS's: datagrams by a socket of the kernel's own."""

    def call(client: socket.socket) -> str:
        where = struct.pack("=HHHH", AF_RXRPC, 1, socket.SOCK_DGRAM, 16) + sockaddr(BAD, 7001).ljust(
            28, b"\0"
        )
        assert connect(client, where) == "connected"  # which sends nothing
        number = [(SOL_RXRPC, RXRPC_USER_CALL_ID, struct.pack("@L", 1))]
        before = stage._refusals()[0]
        said = outcome(lambda: client.sendmsg([b"x" * 8], number))
        await_that(lambda: stage._refusals()[0] > before)  # it is sent in the kernel's own time
        return said

    return of(AF_RXRPC, socket.SOCK_DGRAM, socket.AF_INET, call)(stage)


def tipc(stage: Stage) -> str:
    """A cluster's messages, which the kernel sends in datagrams to whom root names."""
    uplink = ["media", "udp", "name", "uplink"]
    try:
        at = ["localip", HERE_V4, "remoteip", BAD]
        subprocess.run(["tipc", "bearer", "enable", *uplink, *at], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return NOT_HERE
    subprocess.run(["tipc", "bearer", "disable", *uplink], check=True)
    return "connected"


UNTOLD = {layer: {"connected", "EPERM", "EHOSTUNREACH"} for layer in ("ebpf", "nftables")}

ROWS = {
    "9 SMC, which begins as TCP": Row(
        of(AF_SMC, socket.SOCK_STREAM, 0, lambda s: connect(s, sockaddr(BAD, 443))), "tcp", TCP
    ),
    "9 SMC v6": Row(
        of(AF_SMC, socket.SOCK_STREAM, SMC_V6, lambda s: connect(s, sockaddr(BAD6, 443))), "tcp", TCP, address=BAD6
    ),
    "9 L2TP over IP": Row(
        of(socket.AF_INET, socket.SOCK_DGRAM, IPPROTO_L2TP, l2tp), "115", ASIDE, port=0, unseen=True, unnamed=True
    ),
    "9 L2TP over IPv6": Row(
        of(socket.AF_INET6, socket.SOCK_DGRAM, IPPROTO_L2TP, l2tp6), "115", ASIDE, port=0, address=BAD6, unseen=True, unnamed=True
    ),
    "9 DCCP": Row(of(socket.AF_INET, SOCK_DCCP, IPPROTO_DCCP, dccp(BAD)), "dccp", GIVEN_UP, unseen=True),
    "9 DCCP v6": Row(of(socket.AF_INET6, SOCK_DCCP, IPPROTO_DCCP, dccp(BAD6)), "dccp", GIVEN_UP, address=BAD6, unseen=True),
    "9 RxRPC": Row(rxrpc, "udp", UNTOLD, port=7001, unnamed=True),
    "9 TIPC over UDP": Row(
        tipc, "udp", UNTOLD, port=TIPC_PORT, open_on={"ebpf": NO_SOCKET}, unseen=True, unnamed=True
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
    ROWS[name].check_if_here(seen[name], layers)
