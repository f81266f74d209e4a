"""Every address of every declared server is known soon after DNS knows it, and a DNS that fails changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dns._asyncio_backend
import dns.message
import dns.rrset
import pytest
from netns import box

from agentsh_net.core.configuration.settings import Resolve
from agentsh_net.core.network import nat64
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.dns_message import Ascribed, wire_name
from agentsh_net.kernel.names.address_memory import AddressMemory
from agentsh_net.kernel.names.hosts_file import HostsFile
from agentsh_net.kernel.names.name_servers import NameServers
from agentsh_net.kernel.names.resolver import Answer, ResolveError, Resolver, ask_dns

A1, A2, V6 = ip_address("203.0.113.1"), ip_address("203.0.113.2"), ip_address("2001:db8::1")


class Dns:
    """Answers from a table that the test changes; an absent name fails."""

    def __init__(self, **table: list[Any]) -> None:
        self.table: dict[tuple[str, str], list[Any]] = {tuple(k.split("_")): v for k, v in table.items()}
        self.asked: list[tuple[str, str]] = []
        self.ttl = 60.0
        self.aliases: tuple[str, ...] = ()

    async def __call__(self, name: str, kind: str) -> Answer:
        self.asked.append((name, kind))
        if (name, kind) not in self.table:
            raise ResolveError("timed out")
        return Answer(tuple(self.table[name, kind]), self.ttl, self.aliases)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def resolver(ask: Any, tmp_path: Path, **parts: Any) -> tuple[Resolver, list[Mapping[str, Any]]]:
    told: list[Mapping[str, Any]] = []
    settings = parts.pop("settings", Resolve())
    made = Resolver(
        settings,
        changed=told.append,
        ask=ask,
        hosts_file=HostsFile(tmp_path / "hosts"),
        own=lambda: (),
        jitter=lambda: 0.0,
        **parts,
    )
    return made, told


def test_watching_asks_for_both_kinds_and_returns_all_addresses(tmp_path: Path) -> None:
    dns_ = Dns(one_A=[A1, A2], one_AAAA=[V6], two_A=[A1])
    made, told = resolver(dns_, tmp_path)
    assert asyncio.run(made.watch({"a": "one", "b": "two", "c": "10.0.0.1"})) == {
        "a": (A1, A2, V6),
        "b": (A1,),
        "c": (ip_address("10.0.0.1"),),
    }
    assert told == []
    assert sorted(dns_.asked) == [("one", "A"), ("one", "AAAA"), ("two", "A"), ("two", "AAAA")]


def test_a_known_name_is_not_asked_again_by_a_reload(tmp_path: Path) -> None:
    async def scenario() -> list[tuple[str, str]]:
        dns_ = Dns(one_A=[A1], one_AAAA=[V6], two_A=[A2], two_AAAA=[V6])
        made, _ = resolver(dns_, tmp_path, clock=Clock())
        await made.watch({"a": "one"})
        dns_.asked.clear()
        await made.watch({"a": "one", "b": "two"})
        return dns_.asked

    assert asyncio.run(scenario()) == [("two", "A"), ("two", "AAAA")]


def test_an_address_that_comes_to_this_host_is_told_and_those_of_its_links_are_nobodys(
    tmp_path: Path,
) -> None:
    clock = Clock()
    made, told = resolver(Dns(), tmp_path, clock=clock)
    made._own = lambda: (A1, ip_address("127.0.0.1"), ip_address("fe80::1"), ip_address("::1"))

    async def scenario() -> None:
        await made.watch({"a": str(A1)})
        made._tell()
        assert (told, made.own()) == ([], {canonical(A1)})
        made._own = lambda: (A1, A2)
        made._tell()
        assert told == []  # it was asked a moment ago
        clock.now = 1.0
        made._tell()

    asyncio.run(scenario())
    assert (told, made.own()) == ([{"a": (A1,)}], {canonical(A1), canonical(A2)})


def test_the_other_names_of_a_server_are_kept_as_long_as_its_addresses(tmp_path: Path) -> None:
    dns, clock = Dns(a_A=[A1], a_AAAA=[V6]), Clock()
    made, told = resolver(dns, tmp_path, clock=clock)
    found = []

    async def scenario() -> None:
        dns.aliases = ("a.cdn.test", "pool.test")
        found.append((await made.watch({"s": "a", "t": str(A2)}), made.aliases())[1])
        whole = dns.table
        for later, dns.table, dns.aliases in (
            (120, {}, ()),
            (200, whole, ("other.test",)),
            (300, whole, ("other.test",)),
            (3600, {}, ()),
        ):
            clock.now += later
            await made._ask_due()
            found.append(made.aliases())
            made._tell()

    asyncio.run(scenario())
    first, last = frozenset({"a.cdn.test", "pool.test"}), frozenset({"other.test"})
    assert [each["s"] for each in found] == [first, first, first | last, last, last]
    assert len(told) == 2  # although the addresses are the same


async def run_until(made: Resolver, condition: Any) -> None:
    task = asyncio.create_task(made.run())
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_a_change_in_dns_is_told_once(tmp_path: Path) -> None:
    async def scenario() -> list[Mapping[str, Any]]:
        dns_ = Dns(one_A=[A1], one_AAAA=[])
        clock = Clock()
        made, told = resolver(dns_, tmp_path, clock=clock)
        await made.watch({"a": "one"})
        dns_.table["one", "A"] = [A2]
        clock.now = 61
        await run_until(made, lambda: told)
        asked = len(dns_.asked)
        clock.now = 122
        await run_until(made, lambda: len(dns_.asked) > asked)
        return told

    assert asyncio.run(scenario()) == [{"a": (A1, A2)}]


def test_dns_failing_for_an_hour_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
        dns_ = Dns(one_A=[A1], one_AAAA=[])
        clock = Clock()
        made, told = resolver(dns_, tmp_path, clock=clock)
        await made.watch({"a": "one"})
        dns_.table.clear()
        for now in range(60, 3700, 600):
            clock.now, asked = now, len(dns_.asked)
            await run_until(made, lambda asked=asked: len(dns_.asked) > asked)
        return told, made.addresses()

    assert asyncio.run(scenario()) == ([], {"a": (A1,)})


def test_an_edit_of_the_hosts_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsh_net.kernel.names.resolver._HOSTS_FILE_EVERY", 0.01)

    async def scenario() -> list[Mapping[str, Any]]:
        made, told = resolver(Dns(one_A=[A1], one_AAAA=[V6]), tmp_path)
        await made.watch({"a": "one"})
        (tmp_path / "hosts").write_text("127.0.0.9 one\n")
        await run_until(made, lambda: told)
        return told

    assert asyncio.run(scenario()) == [{"a": (ip_address("127.0.0.9"), A1, V6)}]


def test_a_rebinding_answer_is_refused_and_said(tmp_path: Path) -> None:
    made, _ = resolver(Dns(one_A=[A1, ip_address("127.0.0.1")], one_AAAA=[]), tmp_path)
    assert asyncio.run(made.watch({"a": "one"})) == {"a": (A1,)}
    assert made.refused == {"one": ["127.0.0.1: loopback"]}


def test_a_name_that_never_resolved_is_a_problem_and_no_failure(tmp_path: Path) -> None:
    made, _ = resolver(Dns(), tmp_path)
    assert asyncio.run(made.watch({"a": "one"})) == {"a": ()}
    assert made.problems() == {"one": "A: timed out; AAAA: timed out"}


class NameServer(asyncio.DatagramProtocol):
    """A name server of a few lines, on a loopback that is the box's own."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, peer: Any) -> None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        answer = dns.message.make_response(query)
        kind = dns.rdatatype.to_text(question.rdtype)
        records = {
            ("mcp.test.", "A"): [
                ("mcp.test.", 300, "CNAME", "pool.test."),
                ("pool.test.", 7, "A", "10.99.0.2"),
            ],
            ("mcp.test.", "AAAA"): [("mcp.test.", 300, "CNAME", "pool.test.")],
        }.get((question.name.to_text(), kind))
        if records is None:
            answer.set_rcode(dns.rcode.SERVFAIL)
        for name, ttl, record, value in records or ():
            answer.answer.append(dns.rrset.from_text(name, ttl, "IN", record, value))
        self.transport.sendto(answer.to_wire(), peer)


def beside_a_name_server(folder: Path, scenario: Callable[[], Awaitable[Any]]) -> Any:
    """Return what the scenario returns in a box whose name server is ours."""
    resolv = folder / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")

    async def served() -> Any:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            NameServer, ("127.0.0.1", 53), family=socket.AF_INET
        )
        try:
            return await scenario()
        finally:
            transport.close()

    def inside() -> Any:
        subprocess.run(["mount", "--bind", resolv, os.path.realpath("/etc/resolv.conf")], check=True)
        return asyncio.run(served())

    return box.in_box(inside)


@pytest.mark.kernel
def test_real_answers_are_read_with_the_lowest_ttl_of_their_alias_chain(tmp_path: Path) -> None:
    async def scenario() -> list[Any]:
        found: list[Any] = [await ask_dns("mcp.test", "A"), await ask_dns("mcp.test", "AAAA")]
        try:
            await ask_dns("broken.test", "A")
        except ResolveError as error:
            found.append(str(error))
        return [*found, await ask_dns("localhost", "A")]

    first, empty, failure, local = beside_a_name_server(tmp_path, scenario)
    assert first == Answer((ip_address("10.99.0.2"),), 7.0, ("pool.test",))
    assert empty.addresses == ()
    assert failure == "127.0.0.1: SERVFAIL"
    assert local.addresses == ()


@pytest.mark.kernel
@pytest.mark.parametrize("turns", range(4))
def test_who_is_cancelled_about_when_the_answer_comes_asks_no_more(
    tmp_path: Path, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> list[bool]:
        loop = asyncio.get_running_loop()
        asking = loop.create_task(ask_dns("mcp.test", "A"))
        heard: list[bool] = []

        def cancel(later: int) -> None:
            if later:
                loop.call_soon(cancel, later - 1)
            else:
                heard.append(asking.cancel())

        def received(protocol: Any, data: bytes, peer: Any) -> None:
            cancel(turns)
            hand_on(protocol, data, peer)

        protocol = dns._asyncio_backend._DatagramProtocol
        hand_on = protocol.datagram_received
        monkeypatch.setattr(protocol, "datagram_received", received)
        await asyncio.wait([asking])
        return [*heard, asking.cancelled()]

    accepted, cancelled = beside_a_name_server(tmp_path, scenario)
    assert cancelled == accepted
    assert accepted or turns > 1  # since Python 3.12 it is done by then


def test_after_a_restart_while_dns_fails_a_name_has_the_addresses_that_it_had(tmp_path: Path) -> None:
    memory = tmp_path / "addresses.json"
    before, _ = resolver(Dns(one_A=[A1], one_AAAA=[V6]), tmp_path, memory=AddressMemory(memory))
    asyncio.run(before.watch({"a": "one"}))
    after, _ = resolver(Dns(), tmp_path, memory=AddressMemory(memory))
    assert asyncio.run(after.watch({"a": "one"})) == {"a": (A1, V6)}


def test_what_dns_said_since_is_newer_than_the_memory(tmp_path: Path) -> None:
    async def scenario() -> dict[str, Any]:
        memory = AddressMemory(tmp_path / "addresses.json")
        memory.write({"one": (A1,)})
        dns_, clock = Dns(one_A=[A2], one_AAAA=[]), Clock()
        made, _ = resolver(dns_, tmp_path, memory=memory, clock=clock, settings=Resolve(grace=10.0))
        both = await made.watch({"a": "one"})
        await made.watch({})
        clock.now = 100.0
        return {"at once": both["a"], "later": (await made.watch({"a": "one"}))["a"]}

    assert asyncio.run(scenario()) == {"at once": (A1, A2), "later": (A2,)}


def said(name: str, *addresses: Any, ttl: int = 60) -> dict[bytes, Ascribed]:
    return {wire_name(name): Ascribed(tuple(addresses), ttl)}


NS, STRANGER = ip_address("10.0.0.53"), ip_address("10.0.0.66")


def listening(
    tmp_path: Path, clock: Clock, **table: list[Any]
) -> tuple[Resolver, list[Mapping[str, Any]], Dns]:
    conf = tmp_path / "resolv.conf"
    conf.write_text("nameserver 10.0.0.53\nsearch corp.test\n")
    asked = Dns(**table)
    servers = NameServers(files=[conf], clock=clock)
    made, told = resolver(asked, tmp_path, name_servers=servers, clock=clock)
    return made, told, asked


def test_an_overheard_address_is_told_at_once_and_beside_what_we_know(tmp_path: Path) -> None:
    made, told, _ = listening(tmp_path, Clock(), evil_A=[A1])
    asyncio.run(made.watch({"e": "evil"}))
    assert made.overheard(said("evil", A1, A2, V6), NS)
    assert told == [{"e": (A1,)}]  # the resolver's own word does not change
    assert made.hearsay() == {"e": (A2, V6)}
    assert not made.overheard(said("evil", A2), STRANGER)
    assert len(told) == 1


def test_an_overheard_address_is_never_loopback_ours_or_a_name_servers(tmp_path: Path) -> None:
    made, _, _ = listening(tmp_path, Clock(), evil_A=[A1])
    made._own = lambda: (A2,)
    assert made.own() == {canonical(A2)}
    asyncio.run(made.watch({"e": "evil"}))
    assert not made.overheard(said("evil", ip_address("127.0.0.1"), ip_address("169.254.1.1"), A2, NS), NS)
    assert made.hearsay() == {}


def test_a_name_is_known_by_what_the_search_list_makes_of_it(tmp_path: Path) -> None:
    made, _, _ = listening(tmp_path, Clock(), evil_A=[A1])
    asyncio.run(made.watch({"e": "evil", "f": "far.test"}))
    assert {*made.wire_names()} == {
        wire_name(n) for n in ("evil", "evil.corp.test", "far.test", "far.test.corp.test")
    }
    assert made.overheard(said("evil.corp.test", A2), NS)
    assert made.hearsay() == {"e": (A2,)}


def test_hearsay_ends_with_its_time_and_with_its_name(tmp_path: Path) -> None:
    clock = Clock()
    made, told, _ = listening(tmp_path, clock, evil_A=[A1])
    asyncio.run(made.watch({"e": "evil"}))
    made.overheard(said("evil", A2), STRANGER)

    async def later() -> None:
        clock.now = 301
        await runs_a_while(made)

    asyncio.run(later())
    assert made.hearsay() == {}
    assert len(told) == 2
    made.overheard(said("evil", A2), STRANGER)
    asyncio.run(made.watch({"o": "other"}))
    assert made.hearsay() == {}


async def runs_a_while(made: Resolver, until: Callable[[], bool] = lambda: True) -> None:
    task = asyncio.create_task(made.run())
    made._woken.set()
    async with asyncio.timeout(60):
        rounds = 0
        while rounds < 20 or not until():
            rounds += 1
            await asyncio.sleep(0.001)
            made._woken.set()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_what_the_stub_got_counts_as_our_own_answer(tmp_path: Path) -> None:
    made, told, _ = listening(tmp_path, Clock(), evil_A=[A1])
    asyncio.run(made.watch({"e": "evil"}))
    assert made.released(said("evil", A2) | said("unwatched", V6))
    assert told == [{"e": (A1, A2)}]


def test_who_is_asked_to_hurry_asks_once_the_smallest_ttl_is_over(tmp_path: Path) -> None:
    clock = Clock()
    made, _, asked = listening(tmp_path, clock, evil_A=[A1], evil_AAAA=[V6])

    async def script() -> list[int]:
        counts = []
        await made.watch({"e": "evil"})
        for clock.now in (1.0, 6.0):
            made.ask_soon({wire_name("evil")})
            await runs_a_while(made)
            counts.append(sum(name == "evil" for name, _ in asked.asked))
        return counts

    assert asyncio.run(script()) == [2, 4]


def test_the_state_of_names_is_told(tmp_path: Path) -> None:
    clock = Clock()
    made, _, _ = listening(tmp_path, clock, evil_A=[A1])
    asyncio.run(made.watch({"e": "evil"}))
    clock.now = 4
    state = made.names()["evil"]
    assert (state.addresses, state.age, state.failure) == ((A1,), 4, "AAAA: timed out")


def test_hearsay_of_our_name_servers_outlives_a_restart_as_hearsay(tmp_path: Path) -> None:
    file = tmp_path / "heard.json"

    async def first() -> None:
        made, _, _ = listening(tmp_path, Clock(), evil_A=[A1])
        made._overheard = AddressMemory(file)
        await made.watch({"e": "evil"})
        made.overheard(said("evil", A2), NS)
        made.overheard(said("evil", V6), STRANGER)
        await runs_a_while(made, file.exists)

    async def second() -> tuple[object, object]:
        made, _ = resolver(Dns(evil_A=[A1]), tmp_path, clock=Clock(), overheard=AddressMemory(file))
        return await made.watch({"e": "evil"}), made.hearsay()

    asyncio.run(first())
    assert asyncio.run(second()) == ({"e": (A1,)}, {"e": (A2,)})


def test_a_networks_own_translator_is_known_from_the_first_moment_over_failures_and_restarts(
    tmp_path: Path,
) -> None:
    spelled = [ip_address(f"2001:db8:64::{a}") for a in (A1, A2)]
    memory, clock = AddressMemory(tmp_path / "memory"), Clock()
    dns_ = Dns(one_A=[A1], one_AAAA=[V6])
    dns_.table[nat64.NAME, "AAAA"] = [
        ip_address("2001:db8:64::192.0.0.170"),
        ip_address("2001:db8:64::192.0.0.171"),
    ]
    made, told = resolver(dns_, tmp_path, memory=memory, clock=clock)

    async def script() -> None:
        assert await made.watch({"a": "one", "b": str(A2)}) == {"a": (A1, V6), "b": (A2,)}
        await runs_a_while(made)
        del dns_.table[nat64.NAME, "AAAA"]  # nobody answers
        clock.now = 400.0
        await runs_a_while(made)

    asyncio.run(script())
    assert told == [{"a": (A1, V6, spelled[0]), "b": (A2, spelled[1])}]
    assert made.addresses() == told[-1]
    again, _ = resolver(Dns(), tmp_path, memory=AddressMemory(tmp_path / "memory"))
    assert asyncio.run(again.watch({"a": "one"})) == {"a": (A1, V6, spelled[0])}


def test_a_network_that_has_no_translator_any_more_has_no_spellings(tmp_path: Path) -> None:
    clock = Clock()
    dns_ = Dns(one_A=[A1], one_AAAA=[])
    dns_.table[nat64.NAME, "AAAA"] = [ip_address("2001:db8:64::192.0.0.170")]
    made, _ = resolver(dns_, tmp_path, clock=clock)

    async def script() -> tuple[int, int]:
        await made.watch({"a": "one"})
        await runs_a_while(made)
        before = len(made.addresses()["a"])
        dns_.table[nat64.NAME, "AAAA"] = []
        clock.now = 400.0
        await runs_a_while(made)
        return before, len(made.addresses()["a"])

    assert asyncio.run(script()) == (2, 1)


def test_other_name_servers_are_asked_at_once_what_the_old_ones_said_for_an_hour(tmp_path: Path) -> None:
    clock, conf = Clock(), tmp_path / "resolv.conf"
    conf.write_text("nameserver 192.0.2.53\n")
    servers = NameServers(files=[conf], clock=clock)

    async def scenario() -> tuple[list[tuple[str, str]], set[bytes]]:
        dns_ = Dns(one_A=[A1], one_AAAA=[V6])
        dns_.ttl = 3600.0
        made, _ = resolver(dns_, tmp_path, clock=clock, name_servers=servers)
        await made.watch({"a": "one"})
        made._follow_name_servers()
        dns_.asked.clear()
        conf.write_text("nameserver 192.0.2.54\nsearch vpn.test\n")
        clock.now = 6.0
        made._follow_name_servers()
        await made._ask_due()
        return sorted(dns_.asked), {*made.wire_names()}

    names = {wire_name("one"), wire_name("one.vpn.test")}
    assert asyncio.run(scenario()) == ([("one", "A"), ("one", "AAAA")], names)
