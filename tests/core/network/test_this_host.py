"""A server on this host is refused at its port by every address that this host has, and its neighbours at other ports are not."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

import pytest

from agentsh_net.core.model import Server, Transport
from agentsh_net.core.network.addresses import LOOPBACKS, canonical
from agentsh_net.core.network.plane import Endpoint, Fate, Rule
from agentsh_net.core.network.this_host import MOST, make_room, refuse_at_every_address

LAN, LAN6, BRIDGE, FAR = (canonical(ip_address(a)) for a in ("10.0.0.1", "fd00::1", "172.17.0.1", "10.9.9.9"))
OWN = (LAN, LAN6, BRIDGE)
EVIL, WORSE, GOOD = (Server(name, Transport.HTTP) for name in ("evil", "worse", "good"))
DENIED, ALLOWED = Rule(Fate.DENY, ("evil",)), Rule(Fate.TAG, ("good",))
EVERYWHERE = {*OWN, *LOOPBACKS}


def at(server: Server, port: int) -> Server:
    return Server(server.id, Transport.HTTP, url=f"http://x:{port}/mcp", host="x", port=port)


def refused(rules: dict[Endpoint, Rule], *ports: int) -> dict[Endpoint, Rule]:
    servers = [at(EVIL, 9000), at(WORSE, 9100), at(GOOD, 9000)]
    refuse_at_every_address(rules, OWN, servers, ports or (9000,))
    return rules


@pytest.mark.parametrize("where", [LAN, LAN6])
def test_what_is_denied_at_one_address_of_this_host_is_denied_at_all_by_its_port_alone(
    where: IPv6Address,
) -> None:
    assert refused({Endpoint(where): DENIED}) == {Endpoint(a, 9000): DENIED for a in EVERYWHERE}


def test_what_is_denied_at_the_loopback_is_denied_at_every_address_of_this_host() -> None:
    """A container reaches it by the bridge's address, which is not this host's loopback to it."""
    assert refused({Endpoint(LOOPBACKS[1], 9000): DENIED}) == {Endpoint(a, 9000): DENIED for a in EVERYWHERE}


def test_other_hosts_and_other_ports_are_as_they_were() -> None:
    rules = {Endpoint(FAR): DENIED, Endpoint(LAN, 9100): ALLOWED, Endpoint(LOOPBACKS[0], 22): ALLOWED}
    assert refused(dict(rules), 9000, 9100, 22) == rules


def test_where_a_server_is_allowed_at_the_same_port_of_another_address_each_keeps_its_own() -> None:
    rules = {Endpoint(LAN): DENIED, Endpoint(BRIDGE, 9000): ALLOWED}
    assert refused(rules) == {Endpoint(LAN, 9000): DENIED, Endpoint(BRIDGE, 9000): ALLOWED}


def test_both_loopbacks_are_one_whoever_is_allowed_elsewhere() -> None:
    rules = refused({Endpoint(LOOPBACKS[0], 9000): DENIED, Endpoint(BRIDGE, 9000): ALLOWED})
    assert rules == {Endpoint(BRIDGE, 9000): ALLOWED} | {Endpoint(a, 9000): DENIED for a in LOOPBACKS}


def test_a_host_of_thousands_of_addresses_is_refused_where_it_was_declared_and_at_its_loopback() -> None:
    """Each address times each port would fill the planes' maps, and a plan that does not fit is no plan."""
    many = [IPv6Address(int(LAN) + n) for n in range(MOST)]
    rules = {Endpoint(LAN): DENIED}
    refuse_at_every_address(rules, many, [at(EVIL, 9000)], (9000,))
    assert rules == {Endpoint(a, 9000): DENIED for a in (LAN, *LOOPBACKS)}


def test_two_denied_servers_at_one_address_make_room_at_the_port_of_each() -> None:
    rules = {Endpoint(LAN): Rule(Fate.DENY, ("evil", "worse"))}
    make_room(rules, LAN, [at(EVIL, 9000), at(WORSE, 9100), at(GOOD, 9000)])
    assert rules == {Endpoint(LAN, 9000): DENIED, Endpoint(LAN, 9100): Rule(Fate.DENY, ("worse",))}


def test_where_names_decide_there_is_room_already() -> None:
    rules = {Endpoint(LAN): Rule(Fate.SNI_OPEN, ("evil", "good"), shared=True)}
    make_room(rules, LAN, [at(EVIL, 9000)])
    assert list(rules) == [Endpoint(LAN)]
