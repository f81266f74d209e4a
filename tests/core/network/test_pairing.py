"""A tagged connection that is seen several times is one event; what only the packet plane saw is never hidden for long or for good."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.network.pairing import AGAIN_NS, WINDOW_NS, Sightings
from agentsh_net.core.nft import flows

HERE = IPv6Address("::ffff:10.0.0.1")
ME, THERE, ELSEWHERE = (IPv4Address(f"10.0.0.{n}") for n in (9, 1, 2))


def first(
    source_port: int = 1, *, to: IPv4Address = THERE, port: int = 443, protocol: int = 6, sequence: int = 0
) -> Packet:
    return Packet(ME, to, protocol, source_port, port, sequence)


def test_the_first_packet_of_a_recorded_connect_is_its_echo_once() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    assert not pairs.is_news(first(1), 1)
    assert pairs.is_news(first(2), 2)


def test_as_many_packets_are_echoes_as_there_were_connects() -> None:
    pairs = Sightings()
    for _ in range(3):
        pairs.connected(HERE, 443, 6, 0)
    assert [pairs.is_news(first(n), 1) for n in range(4)] == [False, False, False, True]


def test_another_endpoint_or_protocol_is_no_echo() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    assert pairs.is_news(first(to=ELSEWHERE), 1)
    assert pairs.is_news(first(port=444), 1)
    assert pairs.is_news(first(protocol=17), 1)


def test_multipath_tcp_is_tcp_on_the_wire() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 262, 0)
    assert not pairs.is_news(first(), 1)


@pytest.mark.parametrize("spelling", ["64:ff9b::a00:1", "2002:a00:1::", "::ffff:10.0.0.1"])
def test_a_packet_is_an_echo_in_every_spelling_of_its_address(spelling: str) -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    assert not pairs.is_news(Packet(IPv6Address("fd00::9"), IPv6Address(spelling), 6, 1, 443), 1)


def test_an_old_connect_hides_nothing() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    assert pairs.is_news(first(), WINDOW_NS + 1)


def test_an_expired_connect_does_not_stand_before_a_fresh_one() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    pairs.connected(HERE, 443, 6, WINDOW_NS)
    assert not pairs.is_news(first(), WINDOW_NS + 1)


def test_a_packet_that_is_sent_again_is_no_news_whoever_told_of_it() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    told = [
        pairs.is_news(first(port, sequence=7), now * 10**9)
        for now in (0, 1, 3, 7, 15, 31, 63)
        for port in (1, 2)
    ]
    assert told == [False, True] + 12 * [False]


def test_one_that_is_sent_again_uses_up_no_other_connect() -> None:
    pairs = Sightings()
    for _ in range(2):
        pairs.connected(HERE, 443, 6, 0)
    assert [pairs.is_news(first(port), 1) for port in (1, 1, 2, 3)] == [False, False, False, True]


def test_a_connection_from_the_port_of_the_last_one_is_another() -> None:
    pairs = Sightings()
    assert pairs.is_news(first(sequence=7), 0)
    assert pairs.is_news(first(sequence=8), 1)


def test_a_flow_that_the_kernel_remembers_no_longer_is_news() -> None:
    pairs = Sightings()
    assert AGAIN_NS < flows.QUIET * 10**9
    assert [pairs.is_news(first(protocol=17), now) for now in (0, AGAIN_NS, 2 * AGAIN_NS + 1)] == [
        True,
        False,
        True,
    ]


def test_what_is_remembered_is_bounded() -> None:
    pairs = Sightings()
    for port in range(1, 10_001):
        pairs.connected(HERE, port, 6, 0)
    assert pairs.is_news(first(port=1), 1)
    assert not pairs.is_news(first(port=10_000), 1)
    assert sum(not pairs.is_news(first(port=port), 1) for port in range(2, 10_000)) == 4095
    assert pairs.is_news(first(port=1), 2)
