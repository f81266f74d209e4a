"""A stage for attacks: a denied and an allowed server, the planes of a policy, and for each attack what came of it.

What came of it is threefold: what the attacker was told, how many frames reached the denied server, and the events. That
events and lost records together are as many as the refusals that the kernel counted is checked for every attack.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentsh_net.core.audit.events import NetworkConnection
from agentsh_net.core.configuration import config as configuration
from agentsh_net.core.network import attribution, kernel_plan
from agentsh_net.core.network.plane import Plan
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins
from agentsh_net.kernel.host import Host
from netns import box
from netns.scene import at, listening, opened
from netns.tap import Tap

EBPF, NFT, BOTH = ("ebpf",), ("nftables",), ("ebpf", "nftables")
PLANES = (EBPF, NFT, BOTH)

BAD, BAD6, GOOD, GOOD6 = "10.99.0.2", "fd00:99::2", "10.99.0.3", "fd00:99::3"
# Listens like all of them, and no policy knows of it.
OTHER, OTHER6 = "10.99.0.4", "fd00:99::4"
# The denied IPv4 address in IPv6 (RFC 6052, RFC 3056).
NAT64, SIX_TO_FOUR = SPELLINGS = "64:ff9b::a63:2", "2002:a63:2::1"
NOT_HERE = "ENOTSUP"  # what an attack is said to be told that cannot be made
SERVERS = {"evil": (BAD, BAD6), "good": (GOOD, GOOD6)}


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one attack. `owner` is the attacker's process."""

    said: str
    arrived: int
    events: list[NetworkConnection]
    refused: int
    lost: int
    owner: int


@dataclass(frozen=True, slots=True)
class Told:
    """What an attacker was told that is not this process."""

    said: str
    owner: int


@dataclass(frozen=True, slots=True)
class Row:
    """One attack of the catalogue. `says`: what the attacker may be told, by layer; `open_on`: where it succeeds, and why.

    `unseen`: no connect hook sees it, so it is stopped as a packet; and of two planes the packet plane is the first to do so.
    `unnamed`: its process is gone, or cannot be told from a packet.
    """

    attack: Callable[[Stage], str | Told]
    protocol: str
    says: Mapping[str, set[str]]
    open_on: Mapping[str, str] = field(default_factory=dict)
    port: int | None = 443
    address: str = BAD
    unseen: bool = False
    unnamed: bool = False

    @property
    def blamed(self) -> tuple[object, ...]:
        """What every event blames."""
        return ("evil",)

    def blames(self, event: Any) -> tuple[object, ...]:
        """Return what an event blames."""
        return (event.server_id,)

    def hole(self, layers: tuple[str, ...]) -> str:
        """Return why it succeeds where only these layers stand, or nothing."""
        return "; ".join(self.open_on.values()) if all(layer in self.open_on for layer in layers) else ""

    def check(self, seen: Seen, layers: tuple[str, ...]) -> None:
        """Assert what is claimed of this attack."""
        if reason := self.hole(layers):
            assert seen.arrived > 0, f"it does not succeed any more, so strike the reason: {reason}"
            assert seen.events == []
            return
        order = reversed(layers) if self.unseen else layers
        first = next(layer for layer in order if layer not in self.open_on)
        assert seen.arrived == 0
        assert seen.said in self.says[first], seen
        assert len(seen.events) + seen.lost == seen.refused
        assert seen.events
        for event in seen.events:
            assert (event.action, event.protocol) == ("block", self.protocol), event
            assert self.blames(event) == self.blamed
            assert event.layer in layers
            if self.port is not None:
                host = f"[{self.address}]" if ":" in self.address else self.address
                assert event.remote_addr == f"{host}:{self.port}"
            if event.layer == "ebpf" and not self.unnamed:
                assert event.pid == seen.owner
        assert seen.events[0].layer == first

    def check_if_here(self, seen: Seen, layers: tuple[str, ...]) -> None:
        """Assert what is claimed, where this kernel has the socket or device that the attack is made with."""
        if seen.said == NOT_HERE:
            pytest.skip(
                f"this kernel ({os.uname().release}) has no such socket or device: the attack cannot be made"
            )
        self.check(seen, layers)


class Early:
    """Sockets that were there before the planes were."""

    def __init__(self) -> None:
        self.stream, self.datagrams = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.established = socket.create_connection((BAD, 443), 5)
        self.associated = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.associated.connect((BAD, 443))
        for each in (self.stream, self.datagrams, self.established, self.associated):
            each.settimeout(2)


class Stage:
    """Everything that an attack needs. Made inside a box."""

    def __init__(
        self,
        layers: tuple[str, ...],
        *,
        network: Mapping[str, Any] | None = None,
        servers: Mapping[str, tuple[str, ...]] = SERVERS,
    ) -> None:
        self.layers = layers
        self.there = box.there()
        self.servers = [listening(self.there, a) for a in (BAD, BAD6, GOOD, GOOD6, OTHER, OTHER6)]
        for spelling in SPELLINGS:  # a translator, as networks without IPv4 have one
            subprocess.run(["ip", "route", "add", spelling, "via", OTHER6], check=True)
        # As distributions have it: everybody may have ping sockets.
        Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 2147483647")
        self.early = Early()
        self.tap = Tap(self.there, (*SERVERS["evil"], *SPELLINGS), marker=OTHER)
        self.snapshot, self.plan = policy(network or {}, servers=servers)
        self.kernel: Host = opened(self.plan, *layers)
        self._counted = self._refusals()

    def mount(self, attack: Callable[[Stage], str | Told]) -> Seen:
        """Let it happen, wait until everything is told, and return what was seen."""
        self.tap.arrived()
        told = attack(self)
        told = told if isinstance(told, Told) else Told(told, os.getpid())
        arrived = self.tap.arrived()
        events, refused, lost = self.settle()
        return Seen(told.said, arrived, events, refused, lost, told.owner)

    def settle(self, *, within: float = 3.0) -> tuple[list[NetworkConnection], int, int]:
        """Return the events since the last call, how many refusals the kernel counted, and how many records were lost."""
        events: list[NetworkConnection] = []
        deadline = time.monotonic() + within * box.SLOWNESS
        while True:
            while records := self.kernel.records():
                events += [
                    event
                    for r in records
                    if (event := attribution.attribute(self.snapshot, r, self.plan)).action == "block"
                    and r.layer != "sweep"
                ]
            now = self._refusals()
            refused, lost = now[0] - self._counted[0], now[1] - self._counted[1]
            if len(events) + lost >= refused or time.monotonic() > deadline:
                self._counted = now
                return events, refused, lost
            select.select(self.kernel.filenos(), [], [], 0.02)

    def _refusals(self) -> tuple[int, int]:
        states = [s for s in self.kernel.status() if s.wanted]
        assert all(s.in_force for s in states), states
        return sum(s.denied for s in states), sum(s.lost for s in states)


def policy(
    network: Mapping[str, Any],
    generation: int = 1,
    *,
    denied: bool = True,
    servers: Mapping[str, tuple[str, ...]] = SERVERS,
) -> tuple[Snapshot, Plan]:
    """Return a real snapshot with one denied and one allowed server, and its plan."""
    rules = {
        "servers": [{"id": name, "type": "http", "url": f"https://{name}.test/mcp"} for name in servers],
        "server_policy": "denylist",
        "denied_servers": [{"id": "evil"}] if denied else [],
    }
    mapping = {"version": 1, "sandbox": {"mcp": rules}, "network": {"mode": "enforce", **network}}
    config = configuration.parse(mapping)
    registry = Registry(config.sandbox.mcp.servers)
    snapshot = Snapshot(generation, configuration.digest(mapping), config, registry, Pins())
    known = {server: [at(a).address for a in found] for server, found in servers.items()}
    own = (
        {at(box.HERE_V4).address, at(box.HERE_V6).address} if config.network.egress.sessions != "open" else ()
    )
    return snapshot, kernel_plan.build(snapshot, known, own=own)


def play(rows: Mapping[str, Row], layers: tuple[str, ...]) -> dict[str, Seen]:
    """Mount every attack in one box, in order, and return what came of each."""

    def inside() -> dict[str, Seen]:
        stage = Stage(layers)
        return {name: stage.mount(row.attack) for name, row in rows.items()}

    return box.in_box(inside)
