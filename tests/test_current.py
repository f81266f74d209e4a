"""What is in force changes one thing at a time, in an order in which nothing is weaker than both states."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from socket import AF_INET, IPPROTO_TCP

import pytest
from staging import A, B, Stage, policy

from agentsh_net.core.errors import KernelError
from agentsh_net.core.model import Tool
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.plane import ConnectRecord, Fate, Plan


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
        await stage.current.know(
            registry=stage.current.snapshot.registry.register("a", [Tool("a", "x", "sha256:1")])[0]
        )

    asyncio.run(script())
    assert len(stage.kernel.plans) == 1
    assert stage.current.snapshot.generation == 2  # the registry changed, and the workers know
    assert stage.log[-1].startswith("workers told 2")


def test_what_is_known_of_servers_is_judged_by_though_the_kernel_takes_nothing() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})

    async def script() -> None:
        await stage.current.establish()
        stage.kernel.cgroups.inside["mine"] = [1]  # a session that the kernel has yet to take
        stage.kernel.broken = "no more room"
        await stage.current.know(
            registry=stage.current.snapshot.registry.register("a", [Tool("a", "x", "sha256:1")])[0]
        )

    asyncio.run(script())
    assert stage.log[-1] == "workers told 2 with deny 10.9.0.1:0 a in force"


def test_an_address_that_moves_moves_the_denial() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})

    async def script() -> None:
        await stage.current.establish()
        await stage.current.readdress({"a": (B,), "stranger": (A,)})

    asyncio.run(script())
    assert stage.kernel.text() == "deny 10.9.0.2:0 a"


def test_an_address_that_comes_to_this_host_makes_its_server_one_of_this_hosts() -> None:
    stage = Stage(policy("a", a="10.9.0.1"), {"10.9.0.1": A})

    async def script() -> list[str]:
        await stage.current.establish()
        elsewhere = stage.kernel.text()
        stage.current._means.resolver.ours = frozenset({canonical(A)})  # type: ignore[attr-defined]
        await stage.current.readdress(stage.current.addresses)
        return [elsewhere, *sorted(stage.kernel.text().splitlines())]

    everywhere = ["deny 10.9.0.1:8000 a", "deny 127.0.0.1:8000 a", "deny [::1]:8000 a"]
    assert asyncio.run(script()) == ["deny 10.9.0.1:0 a", *everywhere]


def test_an_address_that_becomes_a_name_servers_is_refused_at_the_servers_port_alone_and_status_says_so() -> (
    None
):
    stage = Stage(policy("a", a="10.9.0.1"), {"10.9.0.1": A})

    async def script() -> list[str]:
        await stage.current.establish()
        elsewhere = stage.kernel.text()
        stage.current._means.resolver.theirs = frozenset({canonical(A)})  # type: ignore[attr-defined]
        await stage.current.readdress(stage.current.addresses)
        return [elsewhere, stage.kernel.text()]

    assert asyncio.run(script()) == ["deny 10.9.0.1:0 a", "deny 10.9.0.1:8000 a"]
    assert any("10.9.0.1 is a name server" in str(limit) for limit in stage.current.limits())


def test_a_sweep_that_failed_is_told_once_and_tried_again_until_it_is_done(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(policy("a", a="10.9.0.1"), {"10.9.0.1": A})
    tries: list[str] = []
    clock = [1000.0]
    monkeypatch.setattr("agentsh_net.current.time.monotonic", lambda: clock[0])

    def sweep(plan: Plan) -> list[ConnectRecord]:
        tries.append("failed" if len(tries) < 2 else "swept")
        if tries[-1] == "failed":
            raise KernelError("no memory", remedy="free some")
        return [ConnectRecord("sweep", Fate.DENY, canonical(A), 8000, IPPROTO_TCP, AF_INET, time_ns=1)]

    stage.kernel.sweep = sweep  # type: ignore[method-assign]

    async def script() -> list[list[str]]:
        await stage.current.establish()
        shown = []
        for seconds in (0.0, 5.0, 6.0, 6.0, 11.0):
            clock[0] += seconds
            await stage.current.sweep_again()
            shown.append([str(limit) for limit in stage.current.limits() if "no memory" in str(limit)])
        return shown

    caplog.set_level("INFO")
    shown = asyncio.run(script())
    assert tries == ["failed", "failed", "swept"]
    assert [bool(told) for told in shown] == [True, True, True, True, False]
    assert [e.layer for e in stage.events if e.type == "mcp_network_connection"] == ["sweep"]  # type: ignore[attr-defined]
    told = [record.getMessage() for record in caplog.records]
    assert sum("no memory" in line and "free some" in line for line in told) == 1
    assert "connections that policy denies are closed again" in told


def test_rate_limits_of_a_new_policy_inherit_what_was_used() -> None:
    limited = {"rate_limits": {"enabled": True, "default_rpm": 1, "default_burst": 1}}
    stage = Stage(policy(more=limited), {})
    assert stage.current._buckets.take("a", "", 0.0)

    async def script() -> None:
        await stage.current.establish()
        await stage.current.switch(policy("a", a="10.9.0.1", more=limited))

    asyncio.run(script())
    assert stage.rates.buckets is not None and not stage.rates.buckets.take("a", "", 0.0)


def test_sessions_and_providers_are_held_to_the_policy_in_force_from_the_first_one_on() -> None:
    stage = Stage(policy(more={"enforce_policy": False}), {})
    told = []

    async def script() -> None:
        await stage.current.establish()
        assert stage.bodies.retention == stage.current.snapshot.config.llm_storage.retention
        told.append((stage.rates.rules, {*stage.rates.providers}))
        await stage.current.switch(policy(more={"cross_server": {"enabled": True}}))
        told.append((stage.rates.rules, {*stage.rates.providers}))

    registry = stage.current.snapshot.registry
    asyncio.run(script())
    providers = {provider.name for provider in stage.current.snapshot.config.proxy.providers.values()}
    now = stage.current.snapshot.registry
    assert told == [((False, registry, True), providers), ((True, now, False), providers)]


def test_our_own_workers_are_not_told_as_agents() -> None:
    from agentsh_net.core.network.addresses import canonical
    from agentsh_net.core.network.plane import ConnectRecord, Fate

    stage = Stage(policy(a="10.9.0.1"), {})
    stage.names.known["10.9.0.1"] = A
    asyncio.run(stage.current.establish())

    def seen(pid: int, fate: Fate = Fate.TAG) -> ConnectRecord:
        return ConnectRecord("ebpf", fate, canonical(A), 8000, IPPROTO_TCP, AF_INET, 1, pid=pid)

    stage.current.tell([seen(4242), seen(77), seen(4242, Fate.DENY)])
    told = [(e.pid, e.action) for e in stage.events if hasattr(e, "pid")]
    assert told == [(77, "allow"), (4242, "block")]


def test_what_an_earlier_daemon_overheard_is_in_force_from_the_start_on() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})
    stage.names.earlier = {"a": (B,)}
    asyncio.run(stage.current.establish())
    assert stage.kernel.text() == "deny 10.9.0.1:0 a\ndeny 10.9.0.2:0 a"


def test_a_new_policys_patterns_judge_the_tools_there_are_and_those_to_come() -> None:
    stage = Stage(policy(a="a.test"), {})
    tool = Tool("a", "x", "sha256:1", {"name": "x", "description": "Opens PROJ-1."})
    patterns = [{"name": "project", "regex": "PROJ-[0-9]+", "severity": "medium"}]

    async def script() -> None:
        await stage.current.establish()
        await stage.current.know(registry=stage.current.snapshot.registry.register("a", [tool])[0])
        await stage.current.switch(policy(a="a.test", more={"inspection": {"custom_patterns": patterns}}))

    asyncio.run(script())
    assert [(e.server_id, e.tool_name, e.max_severity) for e in stage.events] == [("a", "x", "medium")]
    assert stage.disk.changes, "the severity is stored"
    later, _ = stage.current.snapshot.registry.register("a", [replace(tool, name="y")])
    judged = stage.current.inspector.inspect(later).registry.tool("a", "y")
    assert judged is not None and judged.max_severity == "medium"


def test_who_holds_verdicts_is_told_as_soon_as_another_policy_is_in_force() -> None:
    stage = Stage(policy(a="10.9.0.1"), {})
    told: list[str] = []
    stage.current.on_change = lambda: told.append(stage.current.snapshot.judge_server("a").reason)

    async def script() -> None:
        await stage.current.establish()
        await stage.current.switch(policy("a", a="10.9.0.1"))

    asyncio.run(script())
    assert told and "denied_servers" in told[0]


def test_a_plan_that_was_refused_explains_no_connection() -> None:
    stage = Stage(policy("a", a="a.test"), {"a.test": A})

    async def script() -> None:
        await stage.current.establish()
        stage.kernel.broken = "no memory"
        await stage.current.readdress({"a": (B,)})

    asyncio.run(script())
    stage.current.tell([ConnectRecord("ebpf", Fate.DENY, canonical(B), 8000, 6, 2, time_ns=1)])
    assert [event.server_id for event in stage.events] == [""]


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
