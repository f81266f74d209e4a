"""What the planes saw becomes records with wall-clock time and the process behind them, one record per connection."""

from __future__ import annotations

import os
import socket
import time
from ipaddress import IPv4Address, ip_address
from pathlib import Path

import pytest
from netns import box
from netns.scene import at, listening

from agentsh_net.core.abi import nflog, wire
from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.abi.sock_diag import INET, TCP, Socket
from agentsh_net.core.network.plane import Fate
from agentsh_net.kernel.process import Processes
from agentsh_net.kernel.sightings import Sighted

PEER = at("203.0.113.1").address


def connect(fate: Fate = Fate.TAG, pid: int = 0, port: int = 443) -> wire.Record:
    boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return wire.Record(
        boot, 0, 11, 12, pid, 2, 1000, 7, PEER, port, 6, 10, fate, "connect6", observed=False, comm="curl"
    )  # fmt: skip


def packet(fate: Fate = Fate.TAG, source: int = 40000, time_ns: int = 0) -> nflog.Logged:
    ends = IPv4Address("10.0.0.1"), IPv4Address("203.0.113.1")
    return nflog.Logged(fate, 7, Packet(*ends, 6, source, 443, 1), 1000, time_ns)


@pytest.fixture
def sighted() -> Sighted:
    return Sighted(Processes(None, Path("/nonexistent")))


def test_a_connect_has_wall_clock_time_and_all_that_was_recorded(sighted: Sighted) -> None:
    before = time.time_ns()
    (found,) = sighted.connects([connect(Fate.DENY, pid=42)])
    assert abs(found.time_ns - before) < 1_000_000_000
    assert (found.layer, found.fate, found.address, found.port) == ("ebpf", Fate.DENY, PEER, 443)
    assert (found.pid, found.uid, found.comm, found.generation) == (42, 1000, "curl", 7)
    assert found.family == 10


def test_a_living_process_has_its_executable() -> None:
    (found,) = Sighted(Processes(None)).connects([connect(pid=os.getpid())])
    assert found.exe == os.path.realpath("/proc/self/exe")


def test_a_tagged_connection_that_both_planes_saw_is_one_record(sighted: Sighted) -> None:
    assert len(sighted.connects([connect()])) == 1
    assert sighted.packets([packet()]) == []
    assert len(sighted.packets([packet(source=40001)])) == 1


def test_a_segment_that_is_sent_again_is_no_second_record(sighted: Sighted) -> None:
    assert [len(sighted.packets([packet()])) for _ in range(3)] == [1, 0, 0]
    assert len(sighted.packets([packet(Fate.DENY)] * 2)) == 2


def test_a_tagged_packet_that_ebpf_did_not_see_is_a_record(sighted: Sighted) -> None:
    sighted.connects([connect(port=80)])
    (found,) = sighted.packets([packet()])
    assert (found.layer, found.fate, found.address, found.uid, found.family) == (
        "nftables",
        Fate.TAG,
        PEER,
        1000,
        2,
    )


def test_a_refused_packet_is_always_news(sighted: Sighted) -> None:
    sighted.connects([connect(Fate.TAG)])
    assert [r.fate for r in sighted.packets([packet(Fate.DENY)])] == [Fate.DENY]


def test_the_kernels_time_of_a_packet_is_kept_and_otherwise_it_is_now(sighted: Sighted) -> None:
    assert sighted.packets([packet(time_ns=5)])[0].time_ns == 5
    assert abs(sighted.packets([packet(source=40001)])[0].time_ns - time.time_ns()) < 1_000_000_000


def test_nothing_seen_is_nothing_said(sighted: Sighted) -> None:
    assert sighted.connects([]) == sighted.packets([]) == sighted.swept([], 1) == []


def test_a_swept_socket_is_a_denial_with_its_owner() -> None:
    with socket.socket() as mine:
        inode = os.fstat(mine.fileno()).st_ino
        swept = Socket(
            INET, TCP, IPv4Address("10.0.0.1"), 1, IPv4Address("203.0.113.1"), 443, 1000, inode, bytes(48)
        )
        (found,) = Sighted(Processes(None)).swept([swept], 7)
    assert (found.layer, found.fate, found.address, found.port, found.generation) == (
        "sweep",
        Fate.DENY,
        PEER,
        443,
        7,
    )
    assert (found.pid, found.uid) == (os.getpid(), 1000)
    assert found.comm == Path("/proc/self/comm").read_text().strip()


@pytest.mark.kernel
def test_a_packet_is_traced_to_the_process_whose_socket_still_stands_but_not_in_every_call() -> None:
    def inside() -> tuple[int, int, int]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        mine = socket.create_connection(("10.99.0.2", 443))
        source, port = mine.getsockname()
        seen, again = (
            nflog.Logged(
                Fate.TAG, 1, Packet(ip_address(source), ip_address("10.99.0.2"), 6, port, 443, n), 0, 0
            )
            for n in range(2)
        )
        sighted = Sighted(Processes(None))
        first, second = sighted.packets([seen]), sighted.packets([again])
        return first[0].pid, second[0].pid, os.getpid()

    first, second, pid = box.in_box(inside)
    assert first == pid
    assert second == 0
