"""Packets and answers that scapy makes are read here as scapy reads them: a second opinion on what bytes mean."""

from __future__ import annotations

import random
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.compat import raw
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import IP, TCP, UDP, IPOption
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)
from scapy.layers.l2 import Dot1Q, Ether
from scapy.layers.sctp import SCTP
from scapy.packet import Packet, Raw

from agentsh_net.core.abi import ip_packet
from agentsh_net.core.network.dns_message import ascribe, parse, wire_name
from agentsh_net.core.network.dns_packets import Messages

PORTS = st.integers(1, 65535)
ADDRESSES4 = st.integers(0, 2**32 - 1).map(IPv4Address)
ADDRESSES6 = st.integers(0, 2**128 - 1).map(IPv6Address)
OPTIONS = st.integers(0, 10).map(lambda words: [IPOption(b"\1" * 4 * words)] if words else [])
EXTENSIONS = st.lists(
    st.sampled_from([IPv6ExtHdrHopByHop, IPv6ExtHdrDestOpt, IPv6ExtHdrRouting, IPv6ExtHdrFragment]),
    max_size=4,
)
LABELS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=20)
NAMES = st.lists(LABELS, min_size=1, max_size=5).map(".".join)


@st.composite
def transports(draw: st.DrawFn) -> Packet:
    kind = draw(st.sampled_from([TCP, UDP, SCTP]))
    ports = {"sport": draw(PORTS), "dport": draw(PORTS)}
    return kind(**ports, **({"seq": draw(st.integers(0, 2**32 - 1))} if kind is TCP else {}))


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    if draw(st.booleans()):
        head = IP(src=str(draw(ADDRESSES4)), dst=str(draw(ADDRESSES4)), options=draw(OPTIONS))
    else:
        head = IPv6(src=str(draw(ADDRESSES6)), dst=str(draw(ADDRESSES6)))
        for extension in draw(EXTENSIONS):
            head /= extension()
    return head / draw(transports()) / Raw(draw(st.binary(max_size=40)))


@given(packets(), st.integers(0, 3))
def test_addresses_and_ports_are_those_that_scapy_wrote(packet: Packet, tags: int) -> None:
    transport = next(packet[kind] for kind in (TCP, UDP, SCTP) if kind in packet)
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")  # else scapy asks the network for them
    for _ in range(tags):
        frame /= Dot1Q(vlan=7)
    for found in (ip_packet.read(raw(packet)), ip_packet.read_frame(raw(frame / packet))):
        assert found is not None
        assert (found.source, found.destination) == (ip_address(packet.src), ip_address(packet.dst))
        assert (found.source_port, found.destination_port) == (transport.sport, transport.dport)
        assert found.sequence == (transport.seq if TCP in packet else 0)


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, list[IPv4Address | IPv6Address], int, bytes]:
    """Return a name, what an answer gives to it by way of its aliases, for how long, and the answer with its names compressed."""
    chain = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
    addresses = draw(st.lists(st.one_of(ADDRESSES4, ADDRESSES6), min_size=1, max_size=6, unique=True))
    ttl = st.integers(0, 86_400)
    records = [
        DNSRR(rrname=name, type="CNAME", ttl=draw(ttl), rdata=alias) for name, alias in pairwise(chain)
    ]
    records += [
        DNSRR(rrname=chain[-1], type="A" if a.version == 4 else "AAAA", ttl=draw(ttl), rdata=str(a))
        for a in addresses
    ]
    message = DNS(id=draw(st.integers(0, 65535)), qr=1, qd=[DNSQR(qname=chain[0])], an=records)
    return chain[0], addresses, min(r.ttl for r in records), raw(message.compress())


@given(answers())
def test_an_answer_says_what_scapy_put_into_it(answer: tuple[str, list[IPv4Address | IPv6Address], int, bytes]) -> None:  # fmt: skip
    name, addresses, ttl, data = answer
    asked = wire_name(name)
    message = parse(data)
    assert message.whole
    found = ascribe(message, {asked})[asked]
    assert (list(found.addresses), found.ttl) == (addresses, ttl)


@pytest.mark.parametrize("seed", range(20))
def test_an_answer_in_segments_that_come_in_any_order_is_put_together(seed: int) -> None:
    chance = random.Random(seed)
    data = raw(
        DNS(
            qr=1,
            qd=[DNSQR(qname="a.test")],
            an=[DNSRR(rrname="a.test", rdata=f"10.0.{i}.1") for i in range(60)],
        )
    )
    stream, size = len(data).to_bytes(2, "big") + data, chance.randint(1, 400)
    head = {"sport": 53, "dport": 40000}
    address = IP(src="10.0.0.53", dst="10.0.0.1")
    segments = [
        address / TCP(**head, flags="A", seq=1001 + at) / Raw(stream[at : at + size])
        for at in range(0, len(stream), size)
    ][:40]
    complete = sum(len(s[Raw]) for s in segments) == len(stream)
    chance.shuffle(segments)
    messages = Messages()
    assert messages.feed(raw(address / TCP(**head, flags="SA", seq=1000))) == []
    found = [payload for segment in segments for payload in messages.feed(raw(segment))]
    assert [payload.message for payload in found] == ([data] if complete else [])
