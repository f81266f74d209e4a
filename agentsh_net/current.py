"""What is in force: one snapshot, the plan it means for the kernel, and how both become others.

One change at a time, each from the state that the one before it left; a change that fails leaves everything as it was.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from typing import Final

from agentsh_net import briefing, collector
from agentsh_net.clock import now_rfc3339, rfc3339
from agentsh_net.config import options
from agentsh_net.config.policy_file import Loaded
from agentsh_net.core.audit.events import Event
from agentsh_net.core.errors import KernelError, StoreError
from agentsh_net.core.inspect.inspector import Inspector
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.core.network import attribution, kernel_plan, llm_plan
from agentsh_net.core.network.addresses import Address, literal, plain
from agentsh_net.core.network.claims import Claims
from agentsh_net.core.network.plane import ConnectRecord, Fate, Kernel, Plan
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins
from agentsh_net.kernel.limits import Limit, beside_provider, limits, name_server, unswept
from agentsh_net.kernel.names.resolver import Resolver
from agentsh_net.servers import inventory
from agentsh_net.store import records
from agentsh_net.store.writer import Writer
from agentsh_net.workers.arbiter import Arbiter
from agentsh_net.workers.archivist import Archivist
from agentsh_net.workers.pool import Pool

# Seconds before connections are looked through again where that failed: for want of memory or of descriptors, mostly.
SWEEP_AGAIN: Final = 10.0

Addresses = Mapping[str, Sequence[Address]]
# Of this host, of its name servers, and the other names by which servers were found.
_Places = tuple[frozenset[IPv6Address], frozenset[IPv6Address], Mapping[str, Collection[str]]]


@dataclass(frozen=True, slots=True)
class Means:
    """Through what a change takes effect. `pool` is None while the proxy is disabled."""

    writer: Writer
    arbiter: Arbiter
    buckets: Buckets
    pool: Pool | None
    kernel: Kernel
    resolver: Resolver
    archivist: Archivist | None = None


class Current:
    """The state that verdicts are reached by. Its methods that change it want `lock` held, but for `establish`."""

    def __init__(
        self,
        loaded: Loaded,
        registry: Registry,
        pins: Pins,
        means: Means,
        *,
        emit: Callable[[Event], None],
        log: logging.Logger,
    ) -> None:
        self.lock = asyncio.Lock()
        self._started_with = loaded.config
        self.loaded = loaded
        self.inspector = Inspector(loaded.config.sandbox.mcp.inspection)
        inventory.recall(self.inspector, registry, pins)
        registry = self.inspector.inspect(registry).registry  # by the detectors of this version
        self.snapshot = Snapshot(1, loaded.digest, loaded.config, registry, pins, loaded.mapping)
        self.addresses: Addresses = {}
        self.hearsay: Addresses = {}  # what was overheard of their names (core.network.hearsay)
        self.plan = Plan()
        self._claims = Claims()
        self._known_places: _Places = (frozenset(), frozenset(), {})  # as the plan knows them
        self._coming: Plan | None = None  # what the planes are being brought to
        self.pending: tuple[str, ...] = ()  # settings of the file that wait for the next start
        self.on_change: Callable[[], None] = lambda: None  # called when another snapshot is in force
        self._unswept: Limit | None = None  # why connections that policy denies may still stand
        self._swept = 0.0  # when that was tried last
        self._means = means
        self._buckets = means.buckets
        self._emit = emit
        self._log = log

    async def establish(self) -> None:
        """Bring every layer into force for the first time. Raises KernelError where a required one cannot be had."""
        means = self._means
        hosts = kernel_plan.watched_hosts(self.loaded.config)
        self.addresses = await means.resolver.watch(hosts)
        self.hearsay = means.resolver.hearsay()  # what an earlier daemon heard
        self.plan = self._plan(self.snapshot, self.addresses)
        self._follow()
        # First: workers that start beside it slow it down.
        await asyncio.to_thread(means.kernel.apply, self.plan)
        await self.sweep()
        if means.pool is not None:
            await means.pool.start(self.snapshot)

    def _follow(self) -> None:
        """Let sessions be judged by the snapshot in force."""
        mcp = self.snapshot.config.sandbox.mcp
        providers = self.snapshot.config.proxy.providers.values()
        if self._means.archivist is not None:
            self._means.archivist.follow(self.snapshot.config.llm_storage.retention)
        self._means.arbiter.limit({provider.name: provider.limits for provider in providers})
        self._means.arbiter.follow(mcp.cross_server, self.snapshot.registry, audit=not mcp.enforce_policy)

    async def switch(self, loaded: Loaded) -> None:
        """Put a new policy in force: with the addresses known by now at once, with those of new names right after.

        Raises KernelError with the old policy in force.
        """
        servers = loaded.config.sandbox.mcp.servers
        hosts = kernel_plan.watched_hosts(loaded.config)
        with collector.waiting():  # not for names: they may take their time
            inspector = self.inspector.renewed(loaded.config.sandbox.mcp.inspection)
            kept = self.snapshot.registry.with_servers(servers)
            inspected = await asyncio.to_thread(inventory.inspect, kept, self.snapshot.pins, inspector)
            snapshot = Snapshot(
                generation=self.snapshot.generation + 1,
                digest=loaded.digest,
                config=loaded.config,
                registry=inspected.registry,
                pins=self.snapshot.pins,
                mapping=loaded.mapping,
            )
            await self._apply(snapshot, self._known(hosts))
        self.inspector = inspector
        await self._judged_anew(inspected)
        self.pending = options.waiting(self._started_with, loaded.config)
        self.loaded = loaded
        self._buckets = self._buckets.with_limits(loaded.config.sandbox.mcp.rate_limits)
        self._means.arbiter.replace(self._buckets)
        await self.readdress(await self._means.resolver.watch(hosts))

    async def _judged_anew(self, inspected: inventory.Taken) -> None:
        """Tell and store what other detectors make of tools that are as they were."""
        for event in inspected.events:
            self._emit(event)
        try:
            if inspected.saved_tools:
                rows = inventory.rows(inspected, now_rfc3339())
                await asyncio.wrap_future(self._means.writer.change(rows))
        except StoreError as error:
            self._log.error("severities of tools are in force but not stored: %s", error)

    async def readdress(
        self,
        addresses: Addresses,
        hearsay: Addresses | None = None,
        confirmed: Callable[[], None] = lambda: None,
    ) -> None:
        """Take what the declared servers' names resolve to now; on failure the old addresses stay in force.

        `confirmed` is called once the planes have them, before connections that were quicker are closed.
        """
        watched = kernel_plan.watched_hosts(self.snapshot.config)
        addresses = {server_id: addresses.get(server_id, ()) for server_id in watched}
        heard = {
            s: found for s in watched if (found := (self.hearsay if hearsay is None else hearsay).get(s))
        }
        if (addresses, heard, self._places()) == (self.addresses, self.hearsay, self._known_places):
            confirmed()
            return
        before, self.hearsay = self.hearsay, heard
        try:
            await self._apply(self.snapshot, addresses, confirmed)
        except KernelError as error:
            self.hearsay = before
            self._log.error("new addresses are not in force, the old ones are: %s", error)

    async def store_again(self) -> None:
        """Write tools and pins to a database that may be a new one; rows that are there do not change. Raises StoreError."""
        rows = inventory.everything(self.snapshot.registry, self.snapshot.pins, now_rfc3339())
        await asyncio.wrap_future(self._means.writer.change(rows))

    async def change_pins(self, pins: Pins, rows: records.Change) -> None:
        """Put pins in force once they are on the disk. Raises StoreError."""
        await asyncio.wrap_future(self._means.writer.change(rows))
        await self.know(pins=pins)

    async def know(self, registry: Registry | None = None, pins: Pins | None = None) -> None:
        """Have calls judged by what is known of servers. The kernel need not take it: no plan follows from what a server offers."""
        await self._judge_by(self.snapshot.evolve(registry=registry, pins=pins))

    def note(self, pins: Pins) -> None:
        """Keep pins that differ in nothing that a verdict rests on: neither workers nor planes have to hear of them."""
        self.snapshot = replace(self.snapshot, pins=pins)

    def unknown(self) -> list[str]:
        """Say which hosts shall be refused and cannot be, because nobody knows where they are."""
        return briefing.unknown_lines(self.snapshot, self._means.resolver.problems())

    def limits(self) -> list[Limit]:
        """Return what is missing here, and what policy asks for and cannot have."""
        spared = kernel_plan.spared(self.plan, self._known_places[1])
        return [
            *limits(self.loaded.config.network),
            *filter(None, (self._unswept,)),
            *(name_server(str(plain(a)), ids) for a, ids in spared.items()),
            *self._beside_providers(self.plan, self.snapshot),
        ]

    def _beside_providers(self, plan: Plan, snapshot: Snapshot) -> list[Limit]:
        """Return which denied servers have a provider refused with them to whoever goes around the proxy."""
        found = llm_plan.beside(plan.rules).items() if snapshot.config.network.llm_direct == "off" else ()
        return [
            beside_provider(names, [i for i in ids if snapshot.judge_server(i).blocked])
            for ids, names in found
        ]

    async def sweep(self) -> None:
        """Close what is connected against the plan, and tell of it; where that fails, `sweep_again` has another try."""
        before, self._swept = self._unswept, time.monotonic()
        try:
            self.tell(await asyncio.to_thread(self._means.kernel.sweep, self.plan))
        except KernelError as error:
            self._unswept = unswept(error)
            if before is None:
                self._log.warning("%s", self._unswept)
        else:
            self._unswept = None
            if before is not None:
                self._log.info("connections that policy denies are closed again")

    async def sweep_again(self) -> None:
        """Repeat a sweep that failed, when its time has come."""
        if self._unswept is not None and time.monotonic() >= self._swept + SWEEP_AGAIN:
            await self.sweep()

    def tell(self, found: Sequence[ConnectRecord]) -> None:
        """Emit what the kernel saw."""
        own = self._means.pool.processes if self._means.pool is not None else set()
        for record in found:
            if record.fate is Fate.TAG and record.pid in own:
                continue  # our own discovery is no agent's connection, and the gateway tells of its own
            event = attribution.attribute(self.snapshot, record, self._plan_of(record))
            self._emit(replace(event, timestamp=rfc3339(record.time_ns)))

    def _plan_of(self, record: ConnectRecord) -> Plan:
        """Return the plan that a record speaks of: a plane may act by the next one before all of them have it."""
        old = self._coming is None or attribution.rule_of(record, self.plan) is not None
        return self.plan if old or self._coming is None else self._coming

    async def _apply(
        self, snapshot: Snapshot, addresses: Addresses, confirmed: Callable[[], None] = lambda: None
    ) -> None:
        """Bring the kernel, then the workers, to a snapshot; then close what is connected against it. Raises KernelError."""
        plan = self._plan(snapshot, addresses)
        if replace(plan, generation=self.plan.generation) != self.plan:
            self._coming = plan
            try:
                await asyncio.to_thread(self._means.kernel.apply, plan)
                known = self._beside_providers(self.plan, self.snapshot)
                self.plan = plan
                for limit in self._beside_providers(plan, snapshot):
                    if limit not in known:
                        self._log.warning("%s", limit)
            finally:
                self._coming = None
        confirmed()
        self.addresses = addresses
        await self._judge_by(snapshot)
        await self.sweep()

    async def _judge_by(self, snapshot: Snapshot) -> None:
        before, self.snapshot = self.snapshot, snapshot
        self.on_change()
        if snapshot is not before:
            self._follow()
        if snapshot is not before and self._means.pool is not None:
            await self._means.pool.publish(snapshot)

    async def follow_sessions(self) -> None:
        """Let the planes tell the sessions apart that run now. Raises KernelError with the old ones told apart."""
        plan = self._plan(self.snapshot, self.addresses)
        if plan != self.plan:
            await asyncio.to_thread(self._means.kernel.apply, plan)
            self.plan = plan

    def _plan(self, snapshot: Snapshot, addresses: Addresses) -> Plan:
        cgroups = self._means.kernel.cgroups
        sessions = cgroups.live() if cgroups is not None else ()
        self._known_places = self._places()
        return kernel_plan.build(
            snapshot, addresses, self.hearsay, sessions, self._claims, *self._known_places
        )

    def _places(self) -> _Places:
        """Return what else the plan is made of that the resolver knows."""
        resolver = self._means.resolver
        return resolver.own(), resolver.name_servers(), resolver.aliases()

    def _known(self, hosts: Mapping[str, str]) -> Addresses:
        """Return what is known of hosts without asking anybody."""
        watched = kernel_plan.watched_hosts(self.loaded.config)
        by_host = {host: self.addresses.get(key, ()) for key, host in watched.items()}
        return {
            server_id: (found,) if (found := literal(host)) else by_host.get(host, ())
            for server_id, host in hosts.items()
        }
