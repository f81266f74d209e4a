"""The table at the devices holds whole denied addresses in every spelling, as text that stays in our own table."""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import ip_address

from netns.scene import at, plan

from agentsh_net.core.network.kernel_plan import diff
from agentsh_net.core.network.plane import Fate, Plan, Rule
from agentsh_net.core.nft import packet_fence

V4, V6 = at("10.99.0.2"), at("fd00:99::2")


def made(wanted: object) -> str:
    return packet_fence.fill(wanted, ("eth0", "wlan0"), nflog_group=5)


def test_a_denied_address_is_there_in_every_spelling_a_packet_can_have() -> None:
    text = made(plan(deny=(V4, V6)))
    assert "deny4 { 0x0a630002 }" in text
    assert "deny6 { 0x0064ff9b00000000000000000a630002, 0xfd000099000000000000000000000002 }" in text
    assert "site6 { 0x20020a630002 }" in text


def test_what_is_only_tagged_or_denied_at_a_port_is_not_its_business() -> None:
    wanted = plan(deny=(at("10.99.0.4", 443),), tag=(at("10.99.0.3"),))
    assert not packet_fence.wanted(wanted)
    assert packet_fence.wanted(plan(deny=(V4,), tag=(V6,)))
    assert not packet_fence.wanted(replace(plan(deny=(V4,)), sessions_only=True))
    assert "element" not in made(wanted)


def test_every_command_stays_in_our_own_table() -> None:
    for line in made(plan(deny=(V4,))).splitlines():
        verb, kind, family, table, *_ = line.split()
        assert (verb, family, table) == ("add", "netdev", "agentsh_net")
        assert kind in {"counter", "set", "chain", "rule", "element"}


def test_it_hangs_on_every_device_but_loopback() -> None:
    assert packet_fence.devices([(1, "lo"), (7, "eth1"), (2, "eth0")]) == ("eth0", "eth1")
    assert 'devices = { "eth0", "wlan0" }' in made(plan(deny=(V4,)))


def hung(text: str) -> dict[str, list[str]]:
    """Return the devices of each chain that hangs on some."""
    found = re.findall(r"add chain netdev agentsh_net (\w+) .* devices = \{ (.*) \} priority", text)
    return {chain: re.findall(r'"(\w+)"', devices) for chain, devices in found}


def test_many_devices_are_dealt_out_to_chains_of_as_many_as_the_kernel_takes() -> None:
    names = packet_fence.devices([(n, f"veth{n}") for n in range(2, 702)])
    text = packet_fence.fill(plan(deny=(V4,)), names, nflog_group=5)
    chains = hung(text)
    assert sorted(map(len, chains.values())) == [233, 233, 234]
    assert sorted(name for devices in chains.values() for name in devices) == sorted(names)
    assert {text.count(f"add rule netdev agentsh_net {chain} ") for chain in chains} == {6}


def test_chains_for_other_devices_stand_beside_those_that_go() -> None:
    old = hung(made(plan(deny=(V4,))))
    new = hung(packet_fence.hang(plan(deny=(V4,)), ("eth1",), beside=old))
    again = hung(packet_fence.hang(plan(deny=(V4,)), ("eth0",), beside=new))
    assert (*old.values(), *new.values(), *again.values()) == (["eth0", "wlan0"], ["eth1"], ["eth0"])
    assert not old.keys() & new.keys()
    assert old.keys() == again.keys()
    assert packet_fence.take_down(old) == "".join(f"delete chain netdev agentsh_net {c}\n" for c in old)


def test_a_kernel_that_cannot_tell_what_has_a_route_is_not_asked() -> None:
    assert "rtclassid" in made(plan(deny=(V4,)))
    assert "rtclassid" not in packet_fence.fill(plan(deny=(V4,)), ("eth0",), nflog_group=5, routed=False)


def test_without_ebpf_what_has_a_route_is_judged_too() -> None:
    assert "rtclassid" not in made(replace(plan(deny=(V4,)), alone=True))


def test_a_change_adds_first_and_then_deletes_what_only_the_old_plan_stopped() -> None:
    old, new = plan(deny=(V4,)), plan(2, deny=(V6, at("10.99.0.2", 443)))
    step = diff(old, new)
    assert (
        packet_fence.widen(step)
        == "add element netdev agentsh_net deny6 { 0xfd000099000000000000000000000002 }\n"
    )
    gone = packet_fence.narrow(old, new, step)
    assert "delete element netdev agentsh_net deny4 { 0x0a630002 }" in gone
    assert "fd0000990" not in gone


def test_a_change_of_servers_alone_takes_nothing_away() -> None:
    old, new = (Plan(1, {V4: Rule(Fate.DENY, servers)}) for servers in (("bad",), ("bad", "worse")))
    step = diff(old, new)
    assert step.adds == new.rules
    assert packet_fence.narrow(old, new, step) == ""
    assert packet_fence.widen(diff(old, old)) == ""


def test_a_denial_that_becomes_a_tag_is_taken_away() -> None:
    old, new = plan(deny=(V4,)), plan(2, tag=(V4,))
    assert "delete element" in packet_fence.narrow(old, new, diff(old, new))


def test_the_keys_to_confirm_are_padded_as_the_kernel_tells_them() -> None:
    assert packet_fence.keys(plan(deny=(V4,))) == {
        "deny4": {ip_address("10.99.0.2").packed},
        "deny6": {ip_address("64:ff9b::a63:2").packed},
        "site6": {bytes.fromhex("20020a6300020000")},
    }
