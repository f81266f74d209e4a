"""Rows 11-13 of the catalogue, and source routes: packets made by hand do not reach the denied server where a plane can see them."""

from __future__ import annotations

import functools
import socket
import struct
from collections.abc import Callable
from ipaddress import ip_address

import pytest
from netns import box, packets
from netns.packets import (
    ALL,
    HERE_V4,
    IP,
    IPV6,
    LOCAL_EXPERIMENTAL,
    QINQ,
    SCTP,
    VLAN,
    frame,
    hardware_address,
    send_by_xdp,
    send_frame,
    udp,
    v4,
    v6,
)
from netns.scene import at, drain, opened, outcome, plan
from netns.stage import (
    BAD,
    BAD6,
    EBPF,
    GOOD,
    GOOD6,
    OTHER,
    OTHER6,
    PLANES,
    SIX_TO_FOUR,
    Row,
    Seen,
    Stage,
    play,
)
from netns.tap import Tap

from agentsh_net.core.network.plane import ConnectRecord, Fate

pytestmark = pytest.mark.kernel

V4, V6, RAW, DGRAM = socket.AF_INET, socket.AF_INET6, socket.SOCK_RAW, socket.SOCK_DGRAM
DCCP = 33
IPPROTO_RAW, IPV6_HDRINCL, IPV6_RTHDR, IP_OPTIONS = 255, 36, 57, 4
ECHO, ECHO6 = struct.pack(">BBHHH", 8, 0, 0, 1, 1), struct.pack(">BBHHH", 128, 0, 0, 1, 1)
INIT = struct.pack(">HHII", 40000, 443, 0, 0) + struct.pack(">BBHIIHHI", 1, 0, 20, 1, 65536, 1, 1, 1)

REFUSED = {"ebpf": {"EPERM"}, "nftables": {"EPERM"}}
# A dropped first packet is tried again until the attacker gives up; a reset would come from the denied server, not from here.
HANGS = {"ebpf": {"ETIMEDOUT"}, "nftables": {"ETIMEDOUT", "ECONNREFUSED"}}
DROPPED = {"nftables": {"ENOBUFS"}}
UNTOLD = {"nftables": {"connected", "ENOBUFS"}}

NO_HOOK = (
    "no cgroup hook sees a packet socket, and its frames pass no socket that a program could be attached to; it takes "
    "CAP_NET_RAW, which `agentsh-net exec` gives to nobody"
)
NO_HOOK_AT_ALL = (
    "an AF_XDP socket hands its frames to the driver past every hook of the stack; it takes CAP_NET_RAW, which "
    "`agentsh-net exec` gives to nobody"
)


def raw(family: int, protocol: int, data: bytes, to: str, *, connecting: bool = False) -> str:
    with socket.socket(family, RAW, protocol) as client:
        if connecting:
            client.connect((to, 0))
            return outcome(lambda: client.send(data))
        return outcome(lambda: client.sendto(data, (to, 0)))


def whole(packet: bytes, to: str) -> str:
    """Send a packet with its IP header (IP_HDRINCL), and tell the kernel that it is for somebody else."""
    family = V6 if ":" in to else V4
    with socket.socket(family, RAW, IPPROTO_RAW) as client:
        if family == V6:
            client.setsockopt(socket.IPPROTO_IPV6, IPV6_HDRINCL, 1)
        return outcome(lambda: client.sendto(packet, (to, 0)))


def sctp(stage: Stage) -> str:
    try:
        client = socket.socket(V4, socket.SOCK_STREAM, SCTP)
    except OSError:  # this kernel has none: the first packet of an association by hand
        return raw(V4, SCTP, INIT, BAD)
    with client:
        client.settimeout(2)
        return outcome(lambda: client.connect((BAD, 443)))


def source_route(kind: int, final: str) -> str:
    """Ask for another destination, by way of the denied server (RFC 791, loose source route)."""
    with socket.socket(V4, kind) as client:
        client.settimeout(0.5)
        client.setsockopt(socket.IPPROTO_IP, IP_OPTIONS, bytes([131, 7, 4]) + socket.inet_aton(BAD) + b"\0")
        if kind == DGRAM:
            return outcome(lambda: client.sendto(b"x", (final, 443)))
        return outcome(lambda: client.connect((final, 443)))


def segment_route(stage: Stage) -> str:
    """The same in IPv6: a routing header of type 4 (RFC 8754), which needs no privilege."""
    segments = socket.inet_pton(V6, OTHER6) + socket.inet_pton(V6, BAD6)
    with socket.socket(V6, DGRAM) as client:
        client.setsockopt(
            socket.IPPROTO_IPV6, IPV6_RTHDR, struct.pack(">BBBBBBH", 0, 4, 4, 1, 1, 0, 0) + segments
        )
        return outcome(lambda: client.sendto(b"x", (OTHER6, 443)))


def extended(stage: Stage) -> str:
    """Hide the ports behind extension headers."""
    option = struct.pack(">BB6x", 60, 0)
    return whole(v6(BAD6, option + struct.pack(">BB6x", packets.UDP, 0) + udp(), first=0), GOOD6)


def authenticated(stage: Stage) -> str:
    """Hide them behind an authentication header (RFC 4302), whose length is counted in other units than the others'."""
    return whole(v6(BAD6, struct.pack(">BB22x", packets.UDP, 4) + udp(), first=51), GOOD6)


def fragment(place: int) -> str:
    """A later fragment has no ports at all; the place is in units of eight bytes."""
    packet = bytearray(v4(BAD, b"x" * 16))
    packet[6:8] = struct.pack(">H", place)
    return whole(bytes(packet), GOOD)


def fragment6(place: int) -> str:
    return whole(v6(BAD6, struct.pack(">BBHI", packets.UDP, 0, place << 3, 7) + b"x" * 16, first=44), GOOD6)


def first_fragment(stage: Stage) -> str:
    """The reserved byte of its header is where others have their length; receivers ignore it."""
    return whole(v6(BAD6, struct.pack(">BBHI", packets.UDP, 9, 1, 7) + udp(), first=44), GOOD6)


def packet_socket(make: Callable[[bytes], bytes], **how: object) -> Callable[[Stage], str]:
    def attack(stage: Stage) -> str:
        to = hardware_address(stage.there, "there")
        return outcome(lambda: send_frame(make(to), to, **how))

    return attack


def sent_by(send: Callable[..., None], **how: bool) -> Callable[[Stage], str]:
    def attack(stage: Stage) -> str:
        to = hardware_address(stage.there, "there")
        return outcome(lambda: send(frame(to, IP, PACKET), to, **how))

    return attack


def framed(packet: bytes, kind: int = IP, *tags: int) -> Callable[[bytes], bytes]:
    return lambda to: frame(to, kind, packet, *tags)


def from_xdp(stage: Stage) -> str:
    data = frame(hardware_address(stage.there, "there"), IP, v4(BAD, udp()))
    return outcome(lambda: send_by_xdp(data))


PACKET = v4(BAD, udp())
by_hand = functools.partial(Row, says=REFUSED, unseen=True)
by_frame = functools.partial(Row, protocol="udp", says=DROPPED, open_on={"ebpf": NO_HOOK})

ROWS = {
    "11 raw ICMP": by_hand(lambda s: raw(V4, 1, ECHO, BAD), "icmp", port=0),
    "11 raw ICMP, connected": by_hand(lambda s: raw(V4, 1, ECHO, BAD, connecting=True), "icmp", port=0),
    "11 raw ICMPv6": by_hand(lambda s: raw(V6, 58, ECHO6, BAD6), "ipv6-icmp", port=0, address=BAD6),
    "11 IP_HDRINCL, lying sockaddr": by_hand(lambda s: whole(PACKET, GOOD), "udp"),
    "11 IP_HDRINCL, lying version": by_hand(lambda s: whole(v4(BAD, udp(), version=6), GOOD), "udp"),
    "11 IP_HDRINCL, options": by_hand(lambda s: whole(v4(BAD, udp(), options=bytes([1] * 40)), GOOD), "udp"),
    "11 IP_HDRINCL, later fragment": by_hand(lambda s: fragment(2), "udp", port=0),
    "11 IP_HDRINCL, much later fragment": by_hand(lambda s: fragment(256), "udp", port=0),
    "11 IPV6_HDRINCL, first fragment": by_hand(first_fragment, "udp", address=BAD6),
    "11 IPV6_HDRINCL, later fragment": by_hand(lambda s: fragment6(2), "udp", port=0, address=BAD6),
    "11 IPV6_HDRINCL, much later fragment": by_hand(lambda s: fragment6(32), "udp", port=0, address=BAD6),
    "11 IPV6_HDRINCL, lying sockaddr": by_hand(lambda s: whole(v6(BAD6, udp()), GOOD6), "udp", address=BAD6),
    "11 IPV6_HDRINCL, extension headers": by_hand(extended, "udp", address=BAD6),
    "11 IPV6_HDRINCL, authentication header": by_hand(authenticated, "udp", address=BAD6),
    "11 IPV6_HDRINCL, 6to4": by_hand(lambda s: whole(v6(SIX_TO_FOUR, udp()), GOOD6), "udp"),
    "12 cooked": by_frame(packet_socket(lambda _: PACKET, kind=DGRAM, says=IP)),
    "12 cooked, past the queue": by_frame(packet_socket(lambda _: PACKET, kind=DGRAM, says=IP, bypass=True)),
    "12 framed": by_frame(packet_socket(framed(PACKET))),
    "12 framed v6": by_frame(packet_socket(framed(v6(BAD6, udp()), IPV6)), address=BAD6),
    "12 framed 6to4": by_frame(packet_socket(framed(v6(SIX_TO_FOUR, udp()), IPV6))),
    "12 framed, past the queue": by_frame(packet_socket(framed(PACKET), says=IP, bypass=True)),
    "12 lying protocol": by_frame(packet_socket(framed(PACKET), says=LOCAL_EXPERIMENTAL)),
    "12 lying protocol, past the queue": by_frame(packet_socket(framed(PACKET), says=LOCAL_EXPERIMENTAL, bypass=True)),
    "12 says it is tagged": by_frame(packet_socket(framed(PACKET), says=VLAN)),
    "12 says it is tagged, past the queue": by_frame(packet_socket(framed(PACKET), says=VLAN, bypass=True)),
    "12 tagged": by_frame(packet_socket(framed(PACKET, IP, VLAN))),
    "12 tagged v6": by_frame(packet_socket(framed(v6(BAD6, udp()), IPV6, VLAN)), address=BAD6),
    "12 tagged twice": by_frame(packet_socket(framed(PACKET, IP, QINQ, VLAN))),
    "12 tagged, past the queue": by_frame(packet_socket(framed(PACKET, IP, VLAN), says=ALL, bypass=True)),
    "12 says it is not tagged, past the queue": by_frame(packet_socket(framed(PACKET, IP, VLAN), says=IP, bypass=True)),
    "12 tagged three times": by_frame(packet_socket(framed(PACKET, IP, VLAN, VLAN, VLAN))),
    "12 tagged twice, says it is not, past the queue": by_frame(packet_socket(framed(PACKET, IP, VLAN, VLAN), says=IP, bypass=True)),
    "12 as a hypervisor": by_frame(sent_by(packets.send_with_header)),
    "12 out of a ring": by_frame(sent_by(packets.send_by_ring), says=UNTOLD),
    "12 out of a ring, past the queue": by_frame(sent_by(packets.send_by_ring, bypass=True), says=UNTOLD),
    "12 AF_XDP": Row(from_xdp, "udp", {}, open_on=dict.fromkeys(("ebpf", "nftables"), NO_HOOK_AT_ALL)),
    "13 SCTP": by_hand(sctp, "sctp", says={layer: REFUSED[layer] | HANGS[layer] for layer in HANGS}),
    "13 DCCP": by_hand(lambda s: raw(V4, DCCP, struct.pack(">HH12x", 40000, 443), BAD), "dccp"),
    "source route, TCP": by_hand(lambda s: source_route(socket.SOCK_STREAM, OTHER), "tcp", says=HANGS, unnamed=True),
    "source route, UDP": by_hand(lambda s: source_route(DGRAM, OTHER), "udp", unnamed=True),
    "segment route": by_hand(segment_route, "udp", address=BAD6, unnamed=True),
}  # fmt: skip


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], dict[str, Seen]]:
    return request.param, play(ROWS, request.param)


@pytest.mark.parametrize("name", ROWS)
def test_a_packet_made_by_hand_does_not_arrive(
    played: tuple[tuple[str, ...], dict[str, Seen]], name: str
) -> None:
    layers, seen = played
    ROWS[name].check(seen[name], layers)


OPTION = struct.pack(">BB6x", 60, 0)  # and another one behind it
LAST_OPTION = struct.pack(">BB6x", packets.UDP, 0)
OUT_OF_SIGHT = (
    v6(BAD6, OPTION * 6 + LAST_OPTION + udp(), 60),
    v6(BAD6, struct.pack(">BBHI", 60, 0, 1, 7) + OPTION, 44),  # the first of several fragments
    v6(BAD6, struct.pack(">BBHI", 60, 0, 1, 7) + LAST_OPTION, 44),  # the ports begin the second one
)


def out_of_sight(layers: tuple[str, ...]) -> tuple[list[str], int, list[ConnectRecord]]:
    tap = Tap(box.there(), (BAD6,), marker=OTHER)
    kernel = opened(plan(deny=(at(BAD6, 443),)), *layers)
    said = [whole(packet, GOOD6) for packet in OUT_OF_SIGHT]
    return said, tap.arrived(), drain(kernel, len(OUT_OF_SIGHT))


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_where_a_port_is_denied_one_that_cannot_be_read_is(layers: tuple[str, ...]) -> None:
    """Behind more extension headers than there are kinds, and behind the end of a first fragment: receivers read both."""
    said, arrived, records = box.in_box(out_of_sight, layers)
    assert (said, arrived) == (["EPERM"] * len(OUT_OF_SIGHT), 0)
    assert [(r.address, r.fate) for r in records] == [(at(BAD6).address, Fate.DENY)] * len(OUT_OF_SIGHT)


def resets() -> tuple[list[str], list[int]]:
    """Say that a connection is over; then the same, with a byte that would be read."""
    box.there()
    kernel = opened(plan(deny=(at(BAD),)), *EBPF)
    bare = struct.pack(">HHIIBBHHH", 40000, 443, 1, 1, 5 << 4, 0x04, 0, 0, 0)
    said = [raw(V4, socket.IPPROTO_TCP, segment, BAD) for segment in (bare, bare + b"x")]
    return said, [record.port for record in drain(kernel, 1)]


def test_a_bare_reset_is_stopped_and_no_news_and_one_that_carries_something_is() -> None:
    assert box.in_box(resets) == (["EPERM"] * 2, [443])


PORTLESS = (
    v6(GOOD6, struct.pack(">BBHI", packets.UDP, 0, 16, 7) + b"x" * 16, 44),  # a later fragment
    v6(GOOD6, b"", 59),  # no next header (RFC 8200, 4.7)
)


def portless(layers: tuple[str, ...]) -> tuple[list[str], int]:
    tap = Tap(box.there(), (GOOD6,), marker=OTHER)
    opened(plan(deny=(at(BAD6, 443),)), *layers)
    there = v6(BAD6, udp(b"x"), packets.UDP)
    return [whole(there, BAD6), *(whole(packet, GOOD6) for packet in PORTLESS)], tap.arrived()


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_where_a_port_is_denied_what_has_none_passes(layers: tuple[str, ...]) -> None:
    assert box.in_box(portless, layers) == (["EPERM", *["connected"] * len(PORTLESS)], len(PORTLESS))


def to_ourselves(layers: tuple[str, ...]) -> tuple[str, bytes, list[Fate]]:
    """Write a frame for a denied server of this host to the loopback device, past whatever judges what leaves."""
    box.there()
    packet = v4(HERE_V4, udp(b"written"))
    packet = packet[:12] + ip_address(OTHER).packed + packet[16:]  # nobody here is believed to come in
    packet = packet[:10] + packets.checksum(packet) + packet[12:]
    with (
        socket.socket(V4, DGRAM) as server,
        socket.socket(V4, DGRAM) as client,
        socket.socket(socket.AF_PACKET, RAW) as writer,
    ):
        server.bind((HERE_V4, 443))
        server.settimeout(10)
        kernel = opened(plan(deny=(at(HERE_V4, 443),)), *layers)
        said = outcome(lambda: client.sendto(b"refused", (HERE_V4, 443)))
        writer.sendto(frame(bytes(6), IP, packet), ("lo", 0))
        return said, server.recv(100), [r.fate for r in drain(kernel, 1)]


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_frame_that_is_written_to_the_loopback_device_reaches_a_denied_server_of_this_host(
    layers: tuple[str, ...],
) -> None:
    """Open, and told in the docs: it takes CAP_NET_RAW, which `agentsh-net exec` gives to nobody.

    A hook that sees it would be asked for every packet that this host sends itself, everybody's.
    """
    assert box.in_box(to_ourselves, layers) == ("EPERM", b"written", [Fate.DENY])
