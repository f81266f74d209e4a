"""Either plane alone refuses a denied MCP server in every spelling and tells who tried; together they do, and tell it once."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsh_net.core.audit.events import NetworkConnection
from agentsh_net.core.configuration import config as configuration
from agentsh_net.core.network import attribution, kernel_plan
from agentsh_net.core.network.plane import Plan
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins
from agentsh_net.kernel.bpf.probe_source import PROGRAMS
from agentsh_net.kernel.host import Host
from agentsh_net.kernel.leftovers import leftovers
from netns import box
from netns.scene import BOTH, MARK, at, attempt, drain, listening, marked, opened, outcome, plan

pytestmark = pytest.mark.kernel

EBPF, NFT = ("ebpf",), ("nftables",)
# An emulated machine makes as many tries at each change, and takes half a second for one.
CHANGES = 200 if box.SLOWNESS == 1 else 40

PLANES = pytest.mark.parametrize("layers", [EBPF, NFT, BOTH], ids="+".join)
SPELLINGS = pytest.mark.parametrize(
    "address", ["10.99.0.2", "fd00:99::2", "::ffff:10.99.0.2"], ids=["v4", "v6", "mapped"]
)

ADDRESSES = {"evil": ("10.99.0.2", "fd00:99::2"), "good": ("10.99.0.3", "fd00:99::3")}


def policy(mode: str = "enforce", generation: int = 1) -> tuple[Snapshot, Plan]:
    """Return a real snapshot with one denied and one allowed server, and its plan."""
    mapping = {
        "version": 1,
        "sandbox": {
            "mcp": {
                "servers": [
                    {"id": "evil", "type": "http", "url": "https://evil.test/mcp"},
                    {"id": "good", "type": "http", "url": "https://good.test/mcp"},
                ],
                "server_policy": "denylist",
                "denied_servers": [{"id": "evil"}],
            }
        },
        "network": {"mode": mode},
    }
    config = configuration.parse(mapping)
    snapshot = Snapshot(
        generation, configuration.digest(mapping), config, Registry(config.sandbox.mcp.servers), Pins()
    )
    known = {server: [at(a).address for a in found] for server, found in ADDRESSES.items()}
    return snapshot, kernel_plan.build(snapshot, known)


FOREIGN_MARKS = """
table inet other {
  chain early { type filter hook output priority -20; ct mark set ct mark or 0x7; meta mark set meta mark or 0x7; }
  chain late { type filter hook postrouting priority 0; meta mark & 0x00ff0007 == 0x00a50007 counter; }
}
"""
ALIAS = "table ip nat { chain out { type nat hook output priority -100; ip daddr 10.99.0.6 dnat to 10.99.0.2; }; }"
ROUTER = """
ip link add outside type veth peer name inside
ip link set inside netns /proc/self/fd/{fd}
ip addr add 10.98.0.1/24 dev outside
ip link set outside up
"""
CONTAINER = """
ip link set lo up
ip addr add 10.98.0.2/24 dev inside
ip link set inside up
ip route add default via 10.98.0.1
"""


def nft(ruleset: str) -> None:
    subprocess.run(["nft", "-f", "-"], input=ruleset, text=True, check=True)


def shell(script: str, **how: object) -> None:
    subprocess.run(["sh", "-ec", script], check=True, **how)


def refusal(layers: tuple[str, ...]) -> str:
    return "EPERM" if "ebpf" in layers else "ECONNREFUSED"


def events(kernel: Host, snapshot: Snapshot, wanted: Plan, count: int) -> list[NetworkConnection]:
    return [attribution.attribute(snapshot, record, wanted) for record in drain(kernel, count)]


@PLANES
@SPELLINGS
def test_a_denied_server_is_refused_at_once_and_the_event_says_who(
    layers: tuple[str, ...], address: str
) -> None:
    def inside() -> tuple[str, float, list[NetworkConnection], int]:
        there = box.there()
        _servers = [listening(there, a) for a in ADDRESSES["evil"]]
        snapshot, wanted = policy()
        kernel = opened(wanted, *layers)
        start = time.monotonic()
        result = attempt(address)
        return result, time.monotonic() - start, events(kernel, snapshot, wanted, 1), os.getpid()

    result, seconds, (event,), pid = box.in_box(inside)
    assert result == refusal(layers)
    assert seconds < 0.5
    assert (event.action, event.server_id, event.server_type, event.remote_host) == (
        "block",
        "evil",
        "http",
        "evil.test",
    )
    assert event.rule
    assert event.layer == layers[0]
    assert event.protocol == "tcp"
    assert event.uid == 0
    if "ebpf" in layers:
        assert (event.pid, event.comm) == (pid, Path("/proc/self/comm").read_text().strip())
        assert event.exe == os.path.realpath("/proc/self/exe")


@PLANES
@SPELLINGS
def test_an_allowed_server_is_reached_and_told_once_with_its_process(
    layers: tuple[str, ...], address: str
) -> None:
    reached = address.replace("::2", "::3").replace("0.2", "0.3")

    def inside() -> tuple[str, list[NetworkConnection], list[object], int]:
        there = box.there()
        _servers = [listening(there, a) for a in ADDRESSES["good"]]
        snapshot, wanted = policy()
        kernel = opened(wanted, *layers)
        with socket.create_connection((reached, 443), 5) as connection:
            found = events(kernel, snapshot, wanted, 1)
            connection.sendall(b"more packets of the same connection")
            select.select(kernel.filenos(), [], [], 0.2)
            return "connected", found, kernel.records(), os.getpid()

    result, (event,), more, pid = box.in_box(inside)
    assert (result, more) == ("connected", [])
    assert (event.action, event.would, event.server_id, event.layer) == ("allow", None, "good", layers[0])
    assert (event.pid, event.comm) == (pid, Path("/proc/self/comm").read_text().strip())


@PLANES
def test_in_tag_mode_a_denied_server_is_reached_and_would_have_been_blocked(layers: tuple[str, ...]) -> None:
    def inside() -> tuple[str, list[NetworkConnection]]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        snapshot, wanted = policy("tag")
        kernel = opened(wanted, *layers)
        return attempt("10.99.0.2"), events(kernel, snapshot, wanted, 1)

    result, (event,) = box.in_box(inside)
    assert result == "connected"
    assert (event.action, event.would, event.server_id) == ("allow", "block", "evil")


@PLANES
def test_a_datagram_to_a_denied_server_is_refused(layers: tuple[str, ...]) -> None:
    def inside() -> tuple[list[str], list[NetworkConnection]]:
        box.there()
        snapshot, wanted = policy()
        kernel = opened(wanted, *layers)
        results = []
        for family, address in (
            (socket.AF_INET, "10.99.0.2"),
            (socket.AF_INET6, "fd00:99::2"),
            (socket.AF_INET6, "::ffff:10.99.0.2"),
        ):
            with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
                results.append(outcome(lambda s=datagrams, a=address: s.sendto(b"x", (a, 443))))
        return results, events(kernel, snapshot, wanted, 3)

    results, found = box.in_box(inside)
    assert results == ["EPERM"] * 3
    assert [(e.server_id, e.protocol, e.action) for e in found] == [("evil", "udp", "block")] * 3


def test_the_connection_mark_is_set_in_our_bits_and_no_other() -> None:
    def inside() -> str:
        there = box.there()
        server = listening(there, "10.99.0.3")
        nft(FOREIGN_MARKS)
        opened(marked(policy()[1]), *NFT)
        with socket.create_connection(("10.99.0.3", 443), 5) as connection:
            connection.sendall(b"x")
            server.accept()[0].recv(1)
            tracked = Path("/proc/net/nf_conntrack").read_text()
        listed = subprocess.run(
            ["nft", "list", "chain", "inet", "other", "late"], check=True, capture_output=True, text=True
        ).stdout
        return tracked + listed

    text = box.in_box(inside)
    assert f"mark={MARK | 7} " in text
    assert "counter packets 0" not in text


def test_the_packet_plane_refuses_what_is_forwarded_for_a_container() -> None:
    def inside() -> tuple[str, str]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        container = box.new_namespace()
        shell(ROUTER.format(fd=container.fd), pass_fds=[container.fd])
        container.call(lambda: shell(CONTAINER))
        there.call(lambda: shell(f"ip route add 10.98.0.0/24 via {box.HERE_V4}"))
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        before = container.call(lambda: attempt("10.99.0.2"))
        opened(policy()[1], *NFT)
        return before, container.call(lambda: attempt("10.99.0.2"))

    assert box.in_box(inside) == ("connected", "ECONNREFUSED")


def test_a_dnat_alias_of_a_denied_server_is_refused_by_the_packet_plane() -> None:
    def inside() -> str:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        nft(ALIAS)
        opened(policy()[1], *NFT)
        return attempt("10.99.0.6")

    assert box.in_box(inside) == "ECONNREFUSED"


@PLANES
def test_a_connection_that_stood_before_is_closed_by_the_sweep(layers: tuple[str, ...]) -> None:
    def inside() -> tuple[str, list[NetworkConnection], int]:
        there = box.there()
        _servers = [listening(there, a) for a in ("10.99.0.2", "10.99.0.3")]
        old, innocent = (socket.create_connection((a, 443), 5) for a in ("10.99.0.2", "10.99.0.3"))
        snapshot, wanted = policy()
        kernel = opened(wanted, *layers)
        swept = [attribution.attribute(snapshot, r, wanted) for r in kernel.sweep(wanted)]
        innocent.sendall(b"still there")
        return outcome(lambda: old.recv(1)), swept, os.getpid()

    result, (event,), pid = box.in_box(inside)
    assert result == "ECONNABORTED"
    assert (event.layer, event.action, event.server_id, event.pid) == ("sweep", "block", "evil", pid)


@PLANES
def test_a_connection_that_stood_before_carries_nothing_more_even_unswept(
    layers: tuple[str, ...],
) -> None:
    def inside() -> bytes:
        there = box.there()
        server = listening(there, "10.99.0.2")
        old = socket.create_connection(("10.99.0.2", 443), 5)
        far, _ = server.accept()
        opened(policy()[1], *layers)
        with contextlib.suppress(OSError):
            old.sendall(b"secret")
        return far.recv(10) if select.select([far], [], [], 0.3)[0] else b""

    assert box.in_box(inside) == b""


@PLANES
def test_sigkill_leaves_enforcement_on_and_a_restart_takes_over_without_letting_anybody_through(
    layers: tuple[str, ...],
) -> None:
    def inside() -> tuple[set[str], int, list[bool], list[str]]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        _, wanted = policy()
        _first = owner(wanted, layers)
        with trying("10.99.0.2") as results:
            for _ in range(4):
                box.kill(_first)
                assert attempt("10.99.0.2") == refusal(layers)
                _first = owner(wanted, layers)
            box.kill(_first)
        last = opened(wanted, *layers)
        left = len(leftovers())
        in_force = [s.in_force for s in last.status() if s.wanted]
        last.close(remove=True)
        return results, left, in_force, leftovers()

    results, left, in_force, after = box.in_box(inside)
    assert results <= {refusal(layers)}
    assert len(results) == 1
    assert left == {EBPF: len(PROGRAMS), NFT: 2, BOTH: len(PROGRAMS) + 2}[layers]
    assert all(in_force)
    assert after == []


@PLANES
def test_many_changes_of_plan_let_nobody_through_whom_all_of_them_deny(
    layers: tuple[str, ...],
) -> None:
    def inside() -> set[str]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        always = at("10.99.0.2")
        kernel = opened(plan(1, deny=(always,)), *layers)
        with trying("10.99.0.2") as results:
            for generation in range(2, 2 + CHANGES):
                # The same denial in another shape each time: on every port, or on this port.
                mine = always if generation % 2 else at("10.99.0.2", 443)
                kernel.apply(
                    plan(
                        generation,
                        deny=(mine, at(f"10.99.1.{generation % 250}")),
                        tag=(at("10.99.0.3", 443),),
                    )
                )
        return results

    assert box.in_box(inside) == {refusal(layers)}


def test_what_one_plane_lets_pass_the_other_refuses_and_tells() -> None:
    def inside() -> tuple[str, str]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        snapshot, wanted = policy()
        kernel = opened(wanted, *BOTH)
        kernel._ebpf.delete(Plan(), kernel_plan.diff(wanted, Plan()))  # as if the first fence had a hole
        return attempt("10.99.0.2"), events(kernel, snapshot, wanted, 1)[0].layer

    assert box.in_box(inside) == ("ECONNREFUSED", "nftables")


def owner(wanted: Plan, layers: tuple[str, ...]) -> int:
    """Start a process that holds the kernel, and return its pid once it enforces."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        opened(wanted, *layers)
        os.write(writer, b"ready")
        threading.Event().wait()
    os.close(writer)
    assert os.read(reader, 5) == b"ready"
    os.close(reader)
    return child


@contextlib.contextmanager
def trying(address: str) -> Iterator[set[str]]:
    """Connect in a loop, in a process of its own, and collect what came of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        while True:
            os.write(writer, f"{attempt(address)}\n".encode())
    os.close(writer)
    results: set[str] = set()
    collector = threading.Thread(target=lambda: results.update(line.strip() for line in os.fdopen(reader)))
    collector.start()
    try:
        yield results
    finally:
        box.kill(child)
        collector.join()
