"""Rows 1-10, 26, 27 of the catalogue: whatever kind of socket and whatever spelling of the address, the denied server is not reached.

Row 13 (SCTP) is in test_raw.py: this kernel may not have the protocol, but anybody can forge its packets. Rows 24 and 25 (shared
addresses) are in test_sni.py, row 35 (agents that go around the proxy) in test_llm_direct.py.
"""

from __future__ import annotations

import os
import socket
import struct

import pytest
from netns.scene import outcome
from netns.stage import BAD, BAD6, GOOD, NAT64, PLANES, SIX_TO_FOUR, Row, Seen, Stage, play
from netns.syscalls import CONNECT, SENDMSG, connect, sendmmsg, sendto, sockaddr, through_ring

pytestmark = pytest.mark.kernel

V4, V6 = socket.AF_INET, socket.AF_INET6
STREAM, DGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM
UDPLITE, MPTCP, ICMP, ICMP6 = 136, 262, 1, 58
MAPPED = f"::ffff:{BAD}"
MSG_FASTOPEN, TCP_FASTOPEN_CONNECT = 0x20000000, 30
ECHO = struct.pack(">BBHHH", 8, 0, 0, 1, 1)
ECHO6 = struct.pack(">BBHHH", 128, 0, 0, 1, 1)

# What the attacker is told, by layer: TCP is reset by the packet plane, datagrams are refused as they are sent.
TCP = {"ebpf": {"EPERM"}, "nftables": {"ECONNREFUSED"}}
UDP = {"ebpf": {"EPERM"}, "nftables": {"EPERM"}}
# The first packet of these leaves in somebody else's time, or its error is swallowed on the way.
LATER = {"ebpf": {"EPERM"}, "nftables": {"EINPROGRESS", "ECONNREFUSED"}}
SILENT = {"ebpf": {"EPERM", "connected"}, "nftables": {"EPERM", "connected"}}


def opened(family: int, kind: int = STREAM, protocol: int = 0) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    made.settimeout(2)
    return made


def tcp(address: str, port: int = 443, protocol: int = 0) -> str:
    with opened(V6 if ":" in address else V4, STREAM, protocol) as client:
        return outcome(lambda: client.connect((address, port)))


def datagram(address: str, port: int = 443, protocol: int = 0, data: bytes = b"x") -> str:
    with opened(V6 if ":" in address else V4, DGRAM, protocol) as client:
        return outcome(lambda: client.sendto(data, (address, port)))


def connected(address: str, port: int = 443, protocol: int = 0, data: bytes = b"x") -> str:
    """Connect a datagram socket and send; say what came of sending, or of connecting where that failed."""
    with opened(V6 if ":" in address else V4, DGRAM, protocol) as client:
        said = outcome(lambda: client.connect((address, port)))
        return said if said != "connected" else outcome(lambda: client.send(data))


def sendmsg(address: str) -> str:
    with opened(V4, DGRAM) as client:
        return outcome(lambda: client.sendmsg([b"x"], [], 0, (address, 443)))


def several(stage: Stage) -> str:
    """Hide the denied one behind an allowed one."""
    with opened(V4, DGRAM) as client:
        sent, said = sendmmsg(client, b"x", sockaddr(GOOD, 9), sockaddr(BAD, 443))
        assert sent == 1
        return said


def connected_to_another(stage: Stage) -> str:
    with opened(V4, DGRAM) as client:
        client.connect((GOOD, 9))
        return outcome(lambda: client.sendto(b"x", (BAD, 443)))


def lying_family(family: int, sockaddr_family: int | None, address: str, call: str) -> str:
    with opened(family, DGRAM) as client:
        where = sockaddr(address, 443, sockaddr_family)
        return connect(client, where) if call == "connect" else sendto(client, b"x", where)


def fast_open(protocol: int = 0, address: str = BAD) -> str:
    with opened(V4, STREAM, protocol) as client:
        return sendto(client, b"GET /", sockaddr(address, 443), MSG_FASTOPEN)


def fast_open_connect(stage: Stage) -> str:
    """With this option connect() sends nothing; the first write does."""
    with opened(V4) as client:
        client.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
        said = connect(client, sockaddr(BAD, 443))
        return said if said == "EPERM" else outcome(lambda: client.send(b"GET /"))


def ring(opcode: int, kind: int, *, thread: bool = False) -> str:
    with socket.socket(V4, kind) as client:
        return through_ring(opcode, client, sockaddr(BAD, 443), thread=thread)


def ping(family: int, kind: int, *, connecting: bool = False) -> str:
    address, protocol, data = (BAD, ICMP, ECHO) if family == V4 else (BAD6, ICMP6, ECHO6)
    return connected(address, 0, protocol, data) if connecting else datagram(address, 0, protocol, data)


ROWS = {
    "1 TCP": Row(lambda s: tcp(BAD), "tcp", TCP),
    "1 TCP v6": Row(lambda s: tcp(BAD6), "tcp", TCP, address=BAD6),
    "2 mapped TCP": Row(lambda s: tcp(MAPPED), "tcp", TCP),
    "2 mapped UDP": Row(lambda s: datagram(MAPPED), "udp", UDP),
    "3 connected UDP": Row(lambda s: connected(BAD), "udp", UDP),
    "3 connected UDP v6": Row(lambda s: connected(BAD6), "udp", UDP, address=BAD6),
    "3 sendto": Row(lambda s: datagram(BAD), "udp", UDP),
    "3 sendto v6": Row(lambda s: datagram(BAD6), "udp", UDP, address=BAD6),
    "3 sendmsg": Row(lambda s: sendmsg(BAD), "udp", UDP),
    "3 sendmmsg behind an allowed one": Row(several, "udp", UDP),
    "4 sendto from a socket connected elsewhere": Row(connected_to_another, "udp", UDP),
    "5 AF_UNSPEC sockaddr": Row(lambda s: lying_family(V4, 0, BAD, "sendto"), "udp", UDP),
    "5 AF_INET sockaddr, v6 socket, sendto": Row(lambda s: lying_family(V6, None, BAD, "sendto"), "udp", UDP),
    "6 Fast Open": Row(lambda s: fast_open(), "tcp", LATER),
    "6 Fast Open by connect": Row(fast_open_connect, "tcp", TCP),
    "7 io_uring connect": Row(lambda s: ring(CONNECT, STREAM), "tcp", TCP),
    "7 io_uring connect, kernel thread": Row(lambda s: ring(CONNECT, STREAM, thread=True), "tcp", TCP),
    "7 io_uring sendmsg": Row(lambda s: ring(SENDMSG, DGRAM), "udp", UDP),
    "8 MPTCP": Row(lambda s: tcp(BAD, 443, MPTCP), "tcp", TCP),
    "8 MPTCP mapped": Row(lambda s: tcp(MAPPED, 443, MPTCP), "tcp", TCP),
    "8 MPTCP v6": Row(lambda s: tcp(BAD6, 443, MPTCP), "tcp", TCP, address=BAD6),
    "8 MPTCP Fast Open": Row(lambda s: fast_open(MPTCP), "tcp", LATER),
    "9 UDP-Lite sendto": Row(lambda s: datagram(BAD, 443, UDPLITE), "udplite", UDP),
    "9 UDP-Lite connected": Row(lambda s: connected(BAD, 443, UDPLITE), "udplite", UDP, unseen=True),
    "9 UDP-Lite connected v6": Row(lambda s: connected(BAD6, 443, UDPLITE), "udplite", UDP, address=BAD6, unseen=True),
    "9 UDP-Lite connected mapped": Row(lambda s: connected(MAPPED, 443, UDPLITE), "udplite", UDP),
    "10 ping socket": Row(lambda s: ping(V4, DGRAM), "icmp", UDP, port=0, unseen=True),
    "10 ping socket, connected": Row(lambda s: ping(V4, DGRAM, connecting=True), "icmp", UDP, port=0),
    "10 ping socket v6": Row(lambda s: ping(V6, DGRAM), "ipv6-icmp", SILENT, port=0, address=BAD6, unseen=True),
    "26 NAT64": Row(lambda s: tcp(NAT64), "tcp", TCP),
    "26 NAT64 UDP": Row(lambda s: datagram(NAT64), "udp", UDP),
    "26 6to4": Row(lambda s: tcp(SIX_TO_FOUR), "tcp", TCP),
    "26 6to4 UDP": Row(lambda s: datagram(SIX_TO_FOUR), "udp", UDP),
    "27 another port": Row(lambda s: tcp(BAD, 8443), "tcp", TCP, port=8443),
    "27 HTTP/3": Row(lambda s: datagram(BAD, 443, 0, b"\xc0\0\0\0\1"), "udp", UDP),
}  # fmt: skip


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], dict[str, Seen]]:
    return request.param, play(ROWS, request.param)


@pytest.mark.parametrize("name", ROWS)
def test_the_denied_server_is_not_reached_and_the_event_says_who_tried(
    played: tuple[tuple[str, ...], dict[str, Seen]], name: str
) -> None:
    layers, seen = played
    if seen[name].said in {"ENOTSUP", "EOPNOTSUPP"}:
        pytest.skip(f"this kernel ({os.uname().release}) knows no such socket: the attack cannot be made")
    ROWS[name].check(seen[name], layers)
