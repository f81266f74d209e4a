"""What is in force over a fake kernel, resolver, workers and store, each of which notes what it is asked, in order."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from fake_kernel import FakeKernel

from agentsh_net.config.policy_file import Loaded
from agentsh_net.core.audit.events import Event
from agentsh_net.core.configuration.config import digest, parse
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.core.network.addresses import Address
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins
from agentsh_net.current import Current, Means

A, B = IPv4Address("10.9.0.1"), IPv4Address("10.9.0.2")


class Names:
    """A resolver that knows what it was told, and notes when it is asked."""

    def __init__(self, known: dict[str, Address], log: list[str], kernel: FakeKernel) -> None:
        self.known, self.log, self.kernel = known, log, kernel
        self.ours: frozenset[IPv6Address] = frozenset()
        self.theirs: frozenset[IPv6Address] = frozenset()
        self.earlier: dict[str, tuple[Address, ...]] = {}  # what an earlier daemon overheard

    def own(self) -> frozenset[IPv6Address]:
        return self.ours

    def name_servers(self) -> frozenset[IPv6Address]:
        return self.theirs

    def aliases(self) -> dict[str, frozenset[str]]:
        return {}

    def hearsay(self) -> dict[str, tuple[Address, ...]]:
        return self.earlier

    async def watch(self, hosts: Mapping[str, str]) -> dict[str, tuple[Address, ...]]:
        self.log.append(f"asked with {self.kernel.text() or 'nothing'} in force")
        return {sid: (self.known[host],) if host in self.known else () for sid, host in hosts.items()}


class Workers:
    processes: frozenset[int] = frozenset({4242})

    def __init__(self, log: list[str], kernel: FakeKernel) -> None:
        self.log, self.kernel = log, kernel

    async def start(self, snapshot: Snapshot) -> None:
        self.log.append(f"workers start at {snapshot.generation}")

    async def publish(self, snapshot: Snapshot) -> None:
        self.log.append(f"workers told {snapshot.generation} with {self.kernel.text()} in force")


class Disk:
    """A store that keeps every change, or refuses it where it is `broken`."""

    def __init__(self) -> None:
        self.changes: list[Any] = []
        self.broken: Exception | None = None

    def change(self, rows: Any) -> Future[None]:
        done: Future[None] = Future()
        if self.broken is not None:
            done.set_exception(self.broken)
        else:
            self.changes.append(rows)
            done.set_result(None)
        return done


class Rates:
    """An arbiter that keeps what it was told to go by."""

    buckets: Buckets | None = None

    def replace(self, buckets: Buckets) -> None:
        self.buckets = buckets

    def limit(self, providers: Mapping[str, Any]) -> None:
        self.providers = providers

    def follow(self, settings: Any, registry: Registry, *, audit: bool) -> None:
        self.rules = settings.enabled, registry, audit


class Bodies:
    """An archivist that keeps what it was told to keep."""

    def follow(self, retention: Any) -> None:
        self.retention = retention


def policy(*denied: str, more: Mapping[str, Any] | None = None, **hosts: str) -> Loaded:
    """Return a policy that denies some of these servers; `more` are further keys of `sandbox.mcp`."""
    servers = [{"id": sid, "type": "http", "url": f"http://{host}:8000/mcp"} for sid, host in hosts.items()]
    mcp = {"servers": servers, "denied_servers": [{"id": sid} for sid in denied], **(more or {})}
    mapping = {"version": 1, "sandbox": {"mcp": mcp}, "network": {"mode": "enforce"}}
    return Loaded(parse(mapping), mapping, digest(mapping), None)


class Stage:
    def __init__(self, first: Loaded, known: dict[str, Address]) -> None:
        self.log: list[str] = []
        self.events: list[Event] = []
        self.kernel = FakeKernel()
        self.names = Names(known, self.log, self.kernel)
        self.rates = Rates()
        self.disk = Disk()
        self.bodies = Bodies()
        means: Any = Means(
            writer=self.disk, arbiter=self.rates, buckets=Buckets(first.config.sandbox.mcp.rate_limits), pool=Workers(self.log, self.kernel),
            kernel=self.kernel, resolver=self.names, archivist=self.bodies,
        )  # type: ignore[arg-type]  # fmt: skip
        registry = Registry(first.config.sandbox.mcp.servers)
        self.current = Current(
            first, registry, Pins(), means, emit=self.events.append, log=logging.getLogger("t")
        )
