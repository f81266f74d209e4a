"""Every rule has its elements in the right set, in every spelling that a packet can have, and the kernel's keys are the same."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from netns.scene import at, plan

from agentsh_net.core.network.addresses import LOOPBACKS
from agentsh_net.core.network.plane import Endpoint, Fate, Rule
from agentsh_net.core.nft import sets as nft_sets

DENY, TAG = Rule(Fate.DENY, ("bad",)), Rule(Fate.TAG, ("good",))


def elements(endpoint: Endpoint, rule: Rule = DENY) -> list[tuple[str, str, int]]:
    return [element for element, _ in nft_sets.elements({endpoint: rule})]


def test_an_ipv4_address_has_three_spellings_and_with_a_port_two() -> None:
    assert elements(at("10.0.0.1")) == [
        ("deny4", "10.0.0.1", 0),
        ("deny6", "64:ff9b::a00:1", 0),
        ("deny6", "2002:a00:1::", 0),
    ]
    assert elements(at("10.0.0.1", 443), TAG) == [
        ("tag4_port", "10.0.0.1", 443),
        ("tag6_port", "64:ff9b::a00:1", 443),
    ]


@pytest.mark.parametrize(("address", "name"), [("127.0.0.1", "deny4_here"), ("::1", "deny6_here")])
def test_a_denied_port_of_this_host_is_a_port_whatever_the_address(address: str, name: str) -> None:
    assert elements(at(address, 9000)) == [(name, "", 9000)]
    assert elements(at(address, 9000), TAG)[0] == (f"tag{name[4]}_port", address, 9000)
    assert elements(at(address))[0] == (f"deny{name[4]}", address, 0)


def test_the_kernels_keys_are_those_of_the_elements() -> None:
    wanted = plan(deny=(at("10.0.0.1"), Endpoint(LOOPBACKS[0], 443)), tag=(at("fd00::1", 443),))
    https = b"\x01\xbb\0\0"
    assert {name: held for name, held in nft_sets.keys(wanted).items() if held} == {
        "deny4": {ip_address("10.0.0.1").packed},
        "deny6": {ip_address("64:ff9b::a00:1").packed, ip_address("2002:a00:1::").packed},
        "deny4_here": {https},
        "tag6_port": {ip_address("fd00::1").packed + https},
    }
    assert nft_sets.room(wanted.rules).used == {"deny4", "deny6", "deny4_here", "tag6_port"}


def test_every_set_has_a_version() -> None:
    assert {nft_sets.version(name) for name in nft_sets.TYPES} == {4, 6}
    assert all(str(nft_sets.version(name)) in name for name in nft_sets.TYPES)


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "0.0.1.2", "10.0.0.0", "10.1.0.0", "0.7.8.9", "192.0.2.1", "255.255.255.255"]
)
def test_addresses_are_written_as_everybody_writes_them(address: str) -> None:
    rules = plan(1, deny=(at(address, 0), at("2001:db8::1", 0))).rules
    texts = [text for (_, text, _), _ in nft_sets.elements(rules)]
    assert address in texts
    assert len(texts) == 4
    assert texts == [str(ip_address(text)) for text in texts]


@pytest.mark.parametrize(
    "address",
    ["fd00::1:2:3", "64:ff9b:1::a00:1", "64:ff9b::1", "2002:a00::", "2003:a00:1::"],
)
def test_so_are_those_of_ipv6_that_look_like_spellings_of_ipv4(address: str) -> None:
    texts = [text for _, text, _ in elements(at(address))]
    assert address in texts
    assert texts == [str(ip_address(text)) for text in texts]


@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 50_000])
def test_a_set_has_room_for_a_change_of_every_element(count: int) -> None:
    assert 2 * count < nft_sets.size(count) <= max(256, 4 * count)
