"""A connection to an allowed server is one event, however it begins, and the kernel tracks nobody's connections for that."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agentsh_net.core.network.plane import ConnectRecord, Plan
from agentsh_net.core.nft import flows
from agentsh_net.kernel.host import Host
from netns import box
from netns.scene import BOTH, at, attempt, drain, listening, marked, opened, plan
from netns.test_planes import CONTAINER, ROUTER, nft, shell

pytestmark = pytest.mark.kernel

NFT = ("nftables",)
GOOD, GOOD6 = "10.99.0.3", "fd00:99::3"
ALLOWED = plan(tag=(at(GOOD, 443), at(GOOD6, 443)))
UDP, UDPLITE, MPTCP = 17, 136, 262
MSG_FASTOPEN = 0x20000000


def scene(*layers: str, wanted: Plan = ALLOWED) -> tuple[Host, box.Namespace]:
    """Open the planes beside a peer where the allowed server listens."""
    far = box.there()
    return opened(wanted, *layers), far


def told(kernel: Host, count: int) -> list[tuple[str, int]]:
    """Return layer and protocol of `count` records and of whatever else is told before a connection that comes after them."""
    found = drain(kernel, count)
    assert attempt(GOOD) in {"connected", "ECONNREFUSED"}
    found += drain(kernel, 1)
    return [(record.layer, record.protocol) for record in found[:-1]]


def counted(kernel: Host) -> int:
    """Return how many packets the packet plane has tagged."""
    return next(s.tagged for s in kernel.status() if s.layer == "nftables")


def tracked() -> int:
    """Return how many connections the kernel tracks in this network namespace."""
    count = Path("/proc/sys/net/netfilter/nf_conntrack_count")
    return int(count.read_text()) if count.exists() else 0  # nobody has asked for any yet


def talk(server: socket.socket, client: socket.socket) -> None:
    """Say something in both directions, so that there are packets that begin nothing."""
    peer, _ = server.accept()
    with peer, client:
        for _ in range(5):
            client.sendall(b"x")
            peer.sendall(peer.recv(1))
            client.recv(1)


def plain(server: socket.socket) -> None:
    talk(server, socket.create_connection((GOOD, 443), 5))


def six(server: socket.socket) -> None:
    del server
    assert attempt(GOOD6) == "ECONNREFUSED"  # nobody listens, and the connection was made all the same


def multipath(server: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as client:
        client.connect((GOOD, 443))
        talk(server, client)


def fast_open(server: socket.socket) -> None:
    Path("/proc/sys/net/ipv4/tcp_fastopen").write_text("1027")  # without a cookie too
    client = socket.socket()
    client.sendto(b"early", MSG_FASTOPEN, (GOOD, 443))
    talk(server, client)


def congestion_told(server: socket.socket) -> None:
    Path("/proc/sys/net/ipv4/tcp_ecn").write_text("1")  # its SYN carries two more flags (RFC 3168)
    talk(server, socket.create_connection((GOOD, 443), 5))


BEGINNINGS = {
    "TCP": plain,
    "TCP, v6": six,
    "MPTCP": multipath,
    "Fast Open": fast_open,
    "ECN": congestion_told,
}


def begun(
    layers: tuple[str, ...], begin: Callable[[socket.socket], None]
) -> tuple[list[tuple[str, int]], int]:
    kernel, far = scene(*layers)
    server = listening(far, GOOD)
    begin(server)
    return told(kernel, 1), tracked()


@pytest.mark.parametrize("layers", [NFT, BOTH], ids="+".join)
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_connection_is_one_event_however_it_begins(layers: tuple[str, ...], beginning: str) -> None:
    assert box.in_box(begun, layers, BEGINNINGS[beginning]) == ([(layers[0], 6)], 0)


def unanswered(layers: tuple[str, ...]) -> tuple[list[tuple[str, int]], int]:
    kernel, far = scene(*layers)
    deaf = "table ip deaf { chain i { type filter hook input priority 0; tcp dport 443 drop; }; }"
    far.call(lambda: subprocess.run(["nft", deaf], check=True))
    with socket.socket() as client:
        client.setblocking(False)
        client.connect_ex((GOOD, 443))
        box.await_that(lambda: counted(kernel) > 1)
    sent = counted(kernel)
    far.call(lambda: subprocess.run(["nft", "delete table ip deaf"], check=True))
    return told(kernel, 1), sent


@pytest.mark.parametrize("layers", [NFT, BOTH], ids="+".join)
def test_a_first_segment_that_is_sent_again_is_the_same_connection(layers: tuple[str, ...]) -> None:
    assert box.in_box(unanswered, layers) == ([(layers[0], 6)], 2)


def from_one_port(layers: tuple[str, ...]) -> list[tuple[str, int]]:
    kernel, far = scene(*layers)
    server = listening(far, GOOD)
    for _ in range(3):
        with socket.socket() as client:
            # Reset: the port is free.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            client.bind(("10.99.0.1", 5555))
            client.connect((GOOD, 443))
            server.accept()[0].close()
    return told(kernel, 3)


@pytest.mark.parametrize("layers", [NFT, BOTH], ids="+".join)
def test_connections_that_follow_each_other_from_one_port_are_each_told(layers: tuple[str, ...]) -> None:
    assert box.in_box(from_one_port, layers) == [(layers[0], 6)] * 3


def datagrams() -> tuple[list[tuple[str, int]], int]:
    kernel, _ = scene(*NFT)
    for family, address, protocol in (
        (socket.AF_INET, GOOD, UDP),
        (socket.AF_INET6, GOOD6, UDP),
        (socket.AF_INET6, f"::ffff:{GOOD}", UDP),
        (socket.AF_INET, GOOD, UDPLITE),
    ):
        with socket.socket(family, socket.SOCK_DGRAM, protocol) as client:
            for _ in range(20):
                client.sendto(b"x", (address, 443))
            kernel.apply(plan(kernel._plan.generation + 1, tag=tuple(ALLOWED.rules)))
            client.sendto(b"x", (address, 443))
    return told(kernel, 4), tracked()


def test_a_flow_of_datagrams_is_one_event_and_stays_it_when_policy_changes() -> None:
    flows_told, count = box.in_box(datagrams)
    assert (sorted(flows_told), count) == ([("nftables", UDP)] * 3 + [("nftables", UDPLITE)], 0)


def with_no_room_left() -> tuple[list[ConnectRecord], int, int]:
    kernel, _ = scene(*NFT, wanted=plan(tag=tuple(at(GOOD, port) for port in (*range(1000, 2000), 443))))
    told_of: list[ConnectRecord] = []
    for _ in range(flows.SIZE // 1000 + 1):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            for port in range(1000, 2000):
                client.sendto(b"x", (GOOD, port))
            told_of += drain(kernel, 1000)
    full, before = len(told_of), counted(kernel)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for _ in range(20):
            client.sendto(b"x", (GOOD, 443))
        last = drain(kernel, 1)
    return last + kernel.records(), full, counted(kernel) - before


def test_a_flow_that_finds_no_room_is_told_all_the_same_and_once() -> None:
    last, full, tagged = box.in_box(with_no_room_left)
    assert full == flows.SIZE // 1000 * 1000 + 1000
    assert [record.port for record in last] == [443]
    assert tagged == 20


def tracking() -> bool:
    """Say whether the kernel tracks a connection that is made now."""
    before = tracked()
    assert attempt(GOOD) == "connected"
    return tracked() > before


def switched() -> None:
    """Have a mark wanted and not wanted, by one daemon and by daemons that follow each other."""
    kernel, far = scene(*BOTH)
    _server = listening(far, GOOD)
    assert not tracking()
    kernel.apply(marked(plan(2, tag=tuple(ALLOWED.rules))))
    assert tracking()
    kernel.apply(plan(3, tag=tuple(ALLOWED.rules)))
    box.await_that(lambda: not tracking())  # the kernel lets rules go some time after they are deleted
    for wanted in (marked(ALLOWED), ALLOWED):
        kernel.close(remove=False)  # as a killed daemon leaves it
        kernel = opened(wanted, *BOTH)
        box.await_that(lambda wanted=wanted: tracking() == bool(wanted.mark))
    kernel.apply(marked(plan(2, tag=tuple(ALLOWED.rules))))
    assert tracking()
    kernel.close(remove=True)
    box.await_that(lambda: not tracking())


def test_connections_are_tracked_while_a_mark_is_wanted_and_no_longer() -> None:
    box.in_box(switched)


def forwarded(layers: tuple[str, ...]) -> list[tuple[str, int]]:
    kernel, far = scene(*layers)
    server = listening(far, GOOD)
    container = box.new_namespace()
    shell(ROUTER.format(fd=container.fd), pass_fds=[container.fd])
    container.call(lambda: shell(CONTAINER))
    far.call(lambda: shell(f"ip route add 10.98.0.0/24 via {box.HERE_V4}"))
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    talk(server, container.call(lambda: socket.create_connection((GOOD, 443), 5)))
    with container.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for _ in range(20 if layers == NFT else 1):  # eBPF tells every sendto
            client.sendto(b"x", (GOOD, 443))
    return told(kernel, 2)


@pytest.mark.parametrize("layers", [NFT, BOTH], ids="+".join)
def test_what_is_forwarded_for_a_container_is_told_once_too(layers: tuple[str, ...]) -> None:
    assert box.in_box(forwarded, layers) == [(layers[0], 6), (layers[0], UDP)]


SERVICE = (
    "table ip nat { chain o { type nat hook output priority -100; ip daddr 10.99.0.6 dnat to 10.99.0.3; }; }"
)


def translated(layers: tuple[str, ...]) -> list[tuple[str, int]]:
    kernel, far = scene(*layers, wanted=plan(tag=(at(GOOD, 443), at("10.99.0.6", 443))))
    server = listening(far, GOOD)
    nft(SERVICE)
    talk(server, socket.create_connection(("10.99.0.6", 443), 5))
    return told(kernel, 1)


def test_alone_the_packet_plane_tells_once_of_an_allowed_server_that_becomes_another() -> None:
    assert box.in_box(translated, NFT) == [("nftables", 6)]
