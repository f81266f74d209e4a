"""A name that ends in .local is asked of the neighbours on each network, and what anything but an answer is left unread."""

from __future__ import annotations

import time
from ipaddress import IPv4Address, ip_address

import pytest
from netns import box
from netns.neighbour import Neighbour

from agentsh_net.core.network.addresses import Address
from agentsh_net.kernel import multicast_dns

needs_box = pytest.mark.skipif(bool(box.why_not()), reason=box.why_not() or "-")
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


@needs_box
def test_a_neighbour_is_heard_and_where_nobody_answers_it_ends_in_time() -> None:
    first, six, nobody, took, nowhere = box.in_box(neighbours)
    assert sorted(first) == [ip_address("10.99.0.2"), ip_address("10.99.0.3")]
    assert six == [ip_address("fd00:99::2")]
    assert (nobody, nowhere) == ([], [])
    assert took < 1.0 * box.SLOWNESS
