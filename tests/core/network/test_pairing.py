"""A tagged connection that both planes saw is one event; what only the packet plane saw is never hidden for long or for good."""

from __future__ import annotations

from ipaddress import IPv6Address

from agentsh_net.core.network.pairing import WINDOW_NS, Sightings

HERE, ELSEWHERE = IPv6Address("::ffff:10.0.0.1"), IPv6Address("::ffff:10.0.0.2")


def test_the_first_packet_of_a_recorded_connect_is_its_echo_once() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    assert pairs.is_echo(HERE, 443, 6, 1)
    assert not pairs.is_echo(HERE, 443, 6, 2)


def test_as_many_packets_are_echoes_as_there_were_connects() -> None:
    pairs = Sightings()
    for _ in range(3):
        pairs.connected(HERE, 443, 6, 0)
    assert [pairs.is_echo(HERE, 443, 6, 1) for _ in range(4)] == [True, True, True, False]


def test_another_endpoint_or_protocol_is_no_echo() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    assert not pairs.is_echo(ELSEWHERE, 443, 6, 1)
    assert not pairs.is_echo(HERE, 444, 6, 1)
    assert not pairs.is_echo(HERE, 443, 17, 1)


def test_multipath_tcp_is_tcp_on_the_wire() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 262, 0)
    assert pairs.is_echo(HERE, 443, 6, 1)


def test_an_old_connect_hides_nothing() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    assert not pairs.is_echo(HERE, 443, 6, WINDOW_NS + 1)


def test_an_expired_connect_does_not_stand_before_a_fresh_one() -> None:
    pairs = Sightings()
    pairs.connected(HERE, 443, 6, 0)
    pairs.connected(HERE, 443, 6, WINDOW_NS)
    assert pairs.is_echo(HERE, 443, 6, WINDOW_NS + 1)


def test_what_is_remembered_is_bounded() -> None:
    pairs = Sightings()
    for port in range(1, 10_001):
        pairs.connected(HERE, port, 6, 0)
    assert not pairs.is_echo(HERE, 1, 6, 1)
    assert pairs.is_echo(HERE, 10_000, 6, 1)
    assert sum(pairs.is_echo(HERE, port, 6, 1) for port in range(1, 10_001)) == 4095
