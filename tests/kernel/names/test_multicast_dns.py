"""A name that ends in .local is asked of the neighbours on each network, and what anything but an answer is left unread."""

from __future__ import annotations

import os
import time
from ipaddress import IPv4Address, ip_address

import pytest
from netns import box
from netns.box import Namespace
from netns.neighbour import Neighbour

from agentsh_net.core.network.addresses import Address
from agentsh_net.kernel.names import multicast_dns

HERE = (ip_address("127.0.0.1"), IPv4Address(box.HERE_V4), ip_address(box.HERE_V6))


@pytest.mark.parametrize(
    ("name", "local"), [("nas.local", True), ("NAS.Local.", True), ("local", False), ("nas.localx", False)]
)
def test_names_of_neighbours_end_in_local(name: str, local: bool) -> None:
    assert multicast_dns.is_local(name) is local


def neighbours() -> tuple[list[Address], list[Address], list[object], float, list[object]]:
    far = box.there()
    plain = Neighbour(far, "10.99.0.2")
    plain.records = {("nas.local", "A"): ["10.99.0.2", "10.99.0.3"], ("nas.local", "AAAA"): ["fd00:99::2"]}
    first = [a for said in multicast_dns.ask("nas.local", "A", HERE) for a in said.addresses]
    six = [a for said in multicast_dns.ask("nas.local", "AAAA", HERE) for a in said.addresses]
    began = time.monotonic()
    nobody = multicast_dns.ask("other.local", "A", HERE, patience=0.2)
    took = time.monotonic() - began
    return first, six, list(nobody), took, list(multicast_dns.ask("nas.local", "A", HERE[:1]))


@pytest.mark.kernel
def test_a_neighbour_is_heard_and_where_nobody_answers_it_ends_in_time() -> None:
    first, six, nobody, took, nowhere = box.in_box(neighbours)
    assert sorted(first) == [ip_address("10.99.0.2"), ip_address("10.99.0.3")]
    assert six == [ip_address("fd00:99::2")]
    assert (nobody, nowhere) == ([], [])
    assert took < 1.0 * box.SLOWNESS


def loud() -> list[list[Address]]:
    """One neighbour says more than all others; what is not of the network answers too, from this host."""
    far = box.there()
    liar, honest = Neighbour(far, "10.99.0.2"), Neighbour(far, "10.99.0.3")
    liar.records = {("nas.local", "A"): [f"10.1.0.{n}" for n in range(1, 60)]}
    honest.records = {("nas.local", "A"): ["10.99.0.3"]}
    here = Namespace(os.open("/proc/self/ns/net", os.O_RDONLY))
    agent = Neighbour(here, box.HERE_V4)
    agent.records = {("nas.local", "A"): ["10.66.0.1"]}
    return [list(said.addresses) for said in multicast_dns.ask("nas.local", "A", HERE)]


@pytest.mark.kernel
def test_nobody_crowds_another_out_and_this_host_is_not_heard() -> None:
    found = box.in_box(loud)
    assert sorted(map(len, found)) == [1, 4]
    assert [ip_address("10.99.0.3")] in found
    assert ip_address("10.66.0.1") not in [address for said in found for address in said]
