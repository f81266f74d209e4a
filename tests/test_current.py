"""What is in force changes one thing at a time, in an order in which nothing is weaker than both states."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import Future
from ipaddress import IPv4Address
from typing import Any

from fake_kernel import FakeKernel

from agentsh_net.config.policy_file import Loaded
from agentsh_net.core.addresses import Address, canonical
from agentsh_net.core.config import digest, parse
from agentsh_net.core.events import Event
from agentsh_net.core.pins import Pins
from agentsh_net.core.plane import ConnectRecord, Fate, Plan
from agentsh_net.core.ratelimit import Buckets
from agentsh_net.core.registry import Registry
from agentsh_net.core.settings import RateLimits
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.current import Current, Means

A, B = IPv4Address("10.9.0.1"), IPv4Address("10.9.0.2")


class Names:
    """A resolver that knows what it was told, and notes when it is asked."""

    def __init__(self, known: dict[str, Address], log: list[str], kernel: FakeKernel) -> None:
        self.known, self.log, self.kernel = known, log, kernel

    def hearsay(self) -> dict[str, tuple[Address, ...]]:
        return {}

    async def watch(self, hosts: Mapping[str, str]) -> dict[str, tuple[Address, ...]]:
        self.log.append(f"asked with {self.kernel.text() or 'nothing'} in force")
        return {sid: (self.known[host],) if host in self.known else () for sid, host in hosts.items()}


class Workers:
    pids: tuple[int, ...] = (4242,)

    def __init__(self, log: list[str], kernel: FakeKernel) -> None:
        self.log, self.kernel = log, kernel

    async def start(self, snapshot: Snapshot) -> None:
        self.log.append(f"workers start at {snapshot.generation}")

    async def publish(self, snapshot: Snapshot) -> None:
        self.log.append(f"workers told {snapshot.generation} with {self.kernel.text()} in force")


class Disk:
    def change(self, rows: Any) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done


class Rates:
    buckets: Buckets | None = None

    def replace(self, buckets: Buckets) -> None:
        self.buckets = buckets

    def limit(self, *_: Any) -> None:
        """So are the providers' limits."""

    def follow(self, *_: Any, **__: Any) -> None:
        """Session rules are the arbiter's tests'."""


def policy(*denied: str, **hosts: str) -> Loaded:
    servers = [{"id": sid, "type": "http", "url": f"http://{host}:8000/mcp"} for sid, host in hosts.items()]
    mcp = {"servers": servers, "denied_servers": [{"id": sid} for sid in denied]}
    mapping = {"version": 1, "sandbox": {"mcp": mcp}, "network": {"mode": "enforce"}}
    return Loaded(parse(mapping), mapping, digest(mapping), None)


class Stage:
    def __init__(self, first: Loaded, known: dict[str, Address]) -> None:
        self.log: list[str] = []
        self.events: list[Event] = []
        self.kernel = FakeKernel()
        self.names = Names(known, self.log, self.kernel)
        self.rates = Rates()
        means: Any = Means(
            writer=Disk(), arbiter=self.rates, buckets=Buckets(RateLimits()), pool=Workers(self.log, self.kernel),
            kernel=self.kernel, resolver=self.names,
        )  # type: ignore[arg-type]  # fmt: skip
        registry = Registry(first.config.sandbox.mcp.servers)
        self.current = Current(
            first, registry, Pins(), means, emit=self.events.append, log=logging.getLogger("t")
        )


def test_the_kernel_enforces_known_addresses_before_anybody_is_asked_for_new_ones() -> None:
    stage = Stage(policy(a="a.test"), {"a.test": A, "b.test": B})

    async def script() -> None:
        await stage.current.establish()
        await stage.current.switch(policy("a", a="a.test", b="b.test"))

    asyncio.run(script())
    assert stage.log == [
        "asked with nothing in force",
        "workers start at 1",
        "workers told 2 with deny 10.9.0.1:0 a in force",
        "asked with deny 10.9.0.1:0 a in force",
    ]
    assert stage.kernel.text() == "deny 10.9.0.1:0 a\ntag 10.9.0.2:8000 b"


def test_a_literal_address_needs_no_resolver() -> None:
    stage = Stage(policy(), {})

    async def script() -> None:
        await stage.current.establish()
        await stage.current.switch(policy("x", x="10.9.0.1"))

    asyncio.run(script())
    assert stage.log[-1] == "asked with deny 10.9.0.1:0 x in force"


def test_a_change_that_means_the_same_plan_does_not_touch_the_kernel() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})

    async def script() -> None:
        await stage.current.establish()
        await stage.current.readdress({"a": (A,)})
        await stage.current.take({"server_id": "a", "ok": True, "tools": [{"name": "x"}]})

    asyncio.run(script())
    assert len(stage.kernel.plans) == 1
    assert stage.current.snapshot.generation == 2  # the registry changed, and the workers know
    assert stage.log[-1].startswith("workers told 2")


def test_an_address_that_moves_moves_the_denial() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})

    async def script() -> None:
        await stage.current.establish()
        await stage.current.readdress({"a": (B,), "stranger": (A,)})

    asyncio.run(script())
    assert stage.kernel.text() == "deny 10.9.0.2:0 a"


def test_rate_limits_of_a_new_policy_inherit_what_was_used() -> None:
    stage = Stage(policy(), {})

    async def script() -> None:
        await stage.current.establish()
        await stage.current.switch(policy("a", a="10.9.0.1"))

    asyncio.run(script())
    assert stage.rates.buckets is not None


def test_our_own_workers_are_not_told_as_agents() -> None:
    from socket import AF_INET, IPPROTO_TCP

    from agentsh_net.core.addresses import canonical
    from agentsh_net.core.plane import ConnectRecord, Fate

    stage = Stage(policy(a="10.9.0.1"), {})
    stage.names.known["10.9.0.1"] = A
    asyncio.run(stage.current.establish())

    def seen(pid: int) -> ConnectRecord:
        return ConnectRecord("ebpf", Fate.TAG, canonical(A), 8000, IPPROTO_TCP, AF_INET, 1, pid=pid)

    stage.current.tell([seen(4242), seen(77)])
    assert [e.pid for e in stage.events if hasattr(e, "pid")] == [77]


def test_hearsay_is_in_force_before_it_is_confirmed_and_confirmed_before_the_sweep() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})
    log: list[str] = []
    swept = stage.kernel.sweep
    stage.kernel.sweep = lambda plan: log.append("swept") or swept(plan)

    async def script() -> None:
        await stage.current.establish()
        log.clear()
        await stage.current.readdress({"a": (A,)}, {"a": (B,)}, lambda: log.append(stage.kernel.text()))
        await stage.current.readdress({"a": (A,)}, {"a": (B,)}, lambda: log.append("known already"))

    asyncio.run(script())
    assert log == ["deny 10.9.0.1:0 a\ndeny 10.9.0.2:0 a", "swept", "known already"]


def test_hearsay_outlives_a_change_of_policy_and_is_void_once_the_server_is_allowed() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})

    async def script() -> list[str]:
        texts = []
        await stage.current.establish()
        await stage.current.readdress({"a": (A,)}, {"a": (B,)})
        await stage.current.switch(policy("a", a="a.test", b="b.test"))
        texts.append(stage.kernel.text())
        await stage.current.switch(policy(a="a.test"))
        return [*texts, stage.kernel.text()]

    assert asyncio.run(script()) == ["deny 10.9.0.1:0 a\ndeny 10.9.0.2:0 a", "tag 10.9.0.1:8000 a"]


def test_hearsay_that_cannot_be_put_in_force_is_not_confirmed_and_not_taken_for_in_force() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})
    confirmed: list[str] = []

    async def script() -> None:
        await stage.current.establish()
        stage.kernel.broken = "no memory"
        await stage.current.readdress({"a": (A,)}, {"a": (B,)}, lambda: confirmed.append("once"))
        assert (confirmed, stage.current.hearsay) == ([], {})
        stage.kernel.broken = ""
        await stage.current.readdress({"a": (A,)}, {"a": (B,)}, lambda: confirmed.append("twice"))

    asyncio.run(script())
    assert confirmed == ["twice"]
    assert stage.kernel.text() == "deny 10.9.0.1:0 a\ndeny 10.9.0.2:0 a"


def test_what_a_plane_refuses_by_a_plan_that_is_on_its_way_is_told_with_the_server() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})
    record = ConnectRecord("ebpf", Fate.DENY, canonical(B), 8000, 6, 2, time_ns=1)
    apply = stage.kernel.apply

    def early(plan: Plan) -> None:
        stage.current.tell([record])
        apply(plan)

    async def script() -> None:
        await stage.current.establish()
        stage.kernel.apply = early
        await stage.current.readdress({"a": (A,)}, {"a": (B,)})

    asyncio.run(script())
    assert [e.server_id for e in stage.events] == ["a"]
