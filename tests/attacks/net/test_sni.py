"""Rows 24, 25 and 27 of the catalogue: at a shared address the denied name is refused however it is said, and nobody else.

Two declared servers and a web site that nobody declared have one address. Only the eBPF plane reads names; what the packet
plane does alone, and beside it, is claimed here too.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from attacks.net.test_processes import in_child
from attacks.net.test_sessions import enter
from netns import box, tls
from netns.daemon import running
from netns.name_server import NameServer
from netns.scene import at, drain, listening, opened, outcome
from netns.stage import BOTH, EBPF, NFT

from agentsh_net.core.audit.events import NetworkConnection
from agentsh_net.core.configuration import config as configuration
from agentsh_net.core.network import attribution, kernel_plan
from agentsh_net.core.network.plane import Plan
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins

pytestmark = pytest.mark.kernel

BAD, BAD6 = "10.99.0.6", "fd00:99::6"
EVIL, GOOD, WEB = "evil.test", "good.test", "web.test"
WITH_EBPF = pytest.mark.parametrize("layers", [EBPF, BOTH], ids="+".join)
MPTCP = 262
CUT = "ECONNABORTED"  # what a client is told whose socket is destroyed


def policy(denied: tuple[str, ...] = ("evil",), generation: int = 1, **network: Any) -> tuple[Snapshot, Plan]:
    """Return a snapshot in which both servers live at BAD and BAD6, and its plan."""
    servers = [{"id": name, "type": "http", "url": f"https://{name}.test/mcp"} for name in ("evil", "good")]
    rules = {"servers": servers, "server_policy": "denylist", "denied_servers": [{"id": d} for d in denied]}
    settings = {"mode": "enforce", "on_shared_address": "sni", **network}
    mapping = {"version": 1, "sandbox": {"mcp": rules}, "network": settings}
    config = configuration.parse(mapping)
    registry = Registry(config.sandbox.mcp.servers)
    snapshot = Snapshot(generation, configuration.digest(mapping), config, registry, Pins())
    return snapshot, kernel_plan.build(
        snapshot, {s: [at(a).address for a in (BAD, BAD6)] for s in ("evil", "good")}
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one attempt: what the client was told, which names the server heard whole, and the events."""

    said: str
    heard: list[str | None]
    events: list[NetworkConnection]
    owner: int = field(default_factory=os.getpid)


class Site:
    """One address with many names, and the planes of a policy in front of it. Made inside a box."""

    def __init__(self, layers: tuple[str, ...], **network: Any) -> None:
        self.there = box.there()
        pem = tls.authority(Path(tempfile.mkdtemp()), EVIL, GOOD, WEB)
        ends = [(a, p) for a in (BAD, BAD6) for p in (443, 8443)]
        self.server = tls.TlsServer([listening(self.there, *end) for end in ends], pem)
        self.trust = tls.context(pem)
        self.snapshot, self.plan = policy(**network)
        self.kernel = opened(self.plan, *layers)

    def visit(self, name: str | None, address: str = BAD, port: int = 443) -> Seen:
        """Say a word to a server by TLS."""
        return self.see(lambda: tls.visit(self.trust, name, address, port))

    def utter(self, *parts: bytes, address: str = BAD, port: int = 443, within: float = 2.0) -> Seen:
        """Send bytes, each part in a segment of its own."""
        return self.see(lambda: tls.utter(parts, address, port, within=within))

    def see(self, action: Callable[[], str]) -> Seen:
        """Do it, with a daemon that reads what the kernel tells meanwhile, and for a moment after."""
        said: list[str] = []
        before = len(self.server.heard)
        client = threading.Thread(target=lambda: said.append(action()))
        client.start()
        events = []
        while client.is_alive() or select.select(self.kernel.filenos(), [], [], 0.02)[0]:
            select.select(self.kernel.filenos(), [], [], 0.005)
            events += [attribution.attribute(self.snapshot, r, self.plan) for r in self.kernel.records()]
        return Seen(said[0], self.server.heard[before:], events)


def refused(seen: Seen, sni: str = EVIL, server: str = "evil") -> bool:
    """Say whether the server heard nothing, the client was told at once, and one event tells whom it was refused."""
    assert (seen.said, seen.heard) == (CUT, []), seen
    (event,) = seen.events
    assert (event.action, event.layer, event.sni, event.server_id) == ("block", "ebpf", sni, server), event
    assert (event.pid, bool(event.comm)) == (seen.owner, True)
    return True


def passed(seen: Seen, sni: str) -> bool:
    """Say whether a name was heard and answered: with an event where it is declared, without one where it is not."""
    assert seen.heard == [sni], seen
    wanted = [("allow", "ebpf", sni, sni.removesuffix(".test"))] if sni == GOOD else []
    assert [(e.action, e.layer, e.sni, e.server_id) for e in seen.events] == wanted, seen
    return True


def names(layers: tuple[str, ...]) -> dict[str, Seen]:
    site = Site(layers)
    return {
        f"{name} at {address}": site.visit(name, address)
        for name in (EVIL, GOOD, WEB)
        for address in (BAD, BAD6, f"::ffff:{BAD}")
    } | {f"{name} at 8443": site.visit(name, port=8443) for name in (EVIL, GOOD, WEB)}


@WITH_EBPF
def test_the_denied_name_is_refused_and_its_neighbours_are_untouched(layers: tuple[str, ...]) -> None:
    for what, seen in box.in_box(names, layers).items():
        name = what.split()[0]
        assert refused(seen) if name == EVIL else passed(seen, name), what


EVIL_B = EVIL.encode()
SPELLINGS = {
    "upper case": b"EVIL.TEST",
    "mixed case": b"eViL.tEsT",
    "a dot at its end": b"evil.test.",
}
OUTSIDE = tls.server_name(b"web.test")
HELLO, SHARES = tls.message(OUTSIDE, tls.key_shares()), tls.message(tls.key_shares())
LONG = b"\0\x15\xff\xff"  # an extension that ends far behind the hello
UNKNOWN = {
    "no server name": tls.records(tls.message(tls.key_shares())),
    "no extensions": tls.records(tls.message()),
    "an encrypted hello around another name": tls.hello(b"public.test", tls.encrypted_hello()),
    "an encrypted hello in front of another name": tls.hello(b"public.test", before=tls.encrypted_hello()),
    "two names": tls.records(tls.message(tls.server_name(b"web.test", EVIL_B), tls.key_shares())),
    "two extensions": tls.records(
        tls.message(tls.server_name(b"web.test"), tls.server_name(EVIL_B), tls.key_shares())
    ),
    "a name of another type": tls.records(tls.message(tls.server_name(EVIL_B, kind=1), tls.key_shares())),
    "a zero in the name": tls.hello(b"web.test\0.evil.test"),
    "two dots": tls.hello(b"evil.test.."),
    "a name of 256 bytes": tls.hello(b"a" * 256),
    "an empty name": tls.hello(b""),
    "a dot first": tls.hello(b".web.test"),
    "a list that says it is empty": tls.records(
        tls.message(OUTSIDE.replace(b"\0\x0b\0", b"\0\0\0"), tls.key_shares())
    ),
    "a message of another kind": tls.records(b"\2" + HELLO[1:]),
    "a record of another version": b"\x16\2" + tls.records(HELLO)[2:],
    "extensions behind the extensions": tls.records(
        HELLO[:1] + (len(HELLO) - 4 + len(OUTSIDE)).to_bytes(3, "big") + HELLO[4:] + OUTSIDE
    ),
    "a name behind the extensions": tls.records(
        SHARES[:1] + (len(SHARES) - 4 + len(OUTSIDE)).to_bytes(3, "big") + SHARES[4:] + OUTSIDE
    ),
    "an extension that is longer than the hello": tls.records(tls.message(OUTSIDE, LONG)),
    "a hello that goes on behind its end": tls.records(b"\1\0\0\x22" + HELLO[4:38]) + tls.records(HELLO[38:]),
    "an alert first": b"\x15\x03\x01\x00\x02\x01\x00" + tls.hello(EVIL_B),
    "a change of cipher first": b"\x14\x03\x01\x00\x01\x01" + tls.hello(EVIL_B),
    "SSL 2": b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10" + bytes(37),
    "plain HTTP": b"POST /mcp HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    "one byte": b"\x00",
    "an empty record first": b"\x16\x03\x01\x00\x00" + tls.hello(EVIL_B),
    "a hello of 20,000 bytes": tls.records(
        tls.message(tls.extension(21, bytes(20000)), tls.server_name(EVIL_B))
    ),
    "a name behind its end": tls.records(tls.message(tls.key_shares(), OUTSIDE[:3]) + OUTSIDE[3:]),
    "records of one byte": tls.records(tls.hello(b"web.test")[5:], 1),
}
SAID = {
    "in two segments, cut in the record's header": tls.pieces(tls.hello(EVIL_B), 3),
    "in two segments, cut in the name": tls.pieces(tls.hello(EVIL_B), tls.hello(EVIL_B).index(EVIL_B) + 4),
    "in two records": [tls.records(tls.hello(EVIL_B)[5:], 60)],
    "in records of ten bytes": [tls.records(tls.hello(EVIL_B)[5:], 10)],
    "in records of ten bytes and segments of seven": [
        tls.records(tls.hello(EVIL_B)[5:], 10)[i : i + 7] for i in range(0, 400, 7)
    ],
    "with post-quantum key shares": [tls.hello(EVIL_B, quantum=True)],
    "behind 1,500 bytes": [tls.hello(EVIL_B, before=tls.extension(21, bytes(1500)))],
    "with an encrypted hello": [tls.hello(EVIL_B, tls.encrypted_hello())],
    "by OpenSSL": [tls.own_hello(EVIL)],
    "with early words behind it": [tls.hello(EVIL_B) + tls.records(bytes(500), kind=23)],
    "in segments of one byte": [bytes([b]) for b in tls.hello(EVIL_B)],
}


def said(layers: tuple[str, ...]) -> tuple[dict[str, Seen], dict[str, Seen], dict[str, Seen]]:
    site = Site(layers)
    return (
        {what: site.utter(tls.hello(name)) for what, name in SPELLINGS.items()},
        {what: site.utter(*parts) for what, parts in SAID.items()},
        {what: site.utter(data) for what, data in UNKNOWN.items()},
    )


def test_the_denied_name_is_refused_however_it_is_said_and_so_is_what_cannot_be_known() -> None:
    spelt, cut, unknown = box.in_box(said, EBPF)
    assert all(refused(seen) for seen in (*spelt.values(), *cut.values()))
    for what, seen in unknown.items():
        sni = "public.test" if "around" in what or "in front" in what else ""
        assert refused(seen, sni), what
        assert "network.on_unknown_sni is block" in seen.events[0].reason


def neighbours(layers: tuple[str, ...]) -> dict[str, Seen]:
    """Say the allowed name in every way in which the denied one is said above."""
    site = Site(layers)
    good = {
        what: [p.replace(EVIL_B, GOOD.encode()) for p in parts]
        for what, parts in SAID.items()
        if len(parts) == 1
    }
    whole = tls.hello(GOOD.encode())
    good["in records of ten bytes"] = [tls.records(whole[5:], 10)]
    good["in two records"] = [tls.records(whole[5:], 60)]
    good["in segments of one byte"] = [bytes([b]) for b in whole]
    good["in two segments"] = tls.pieces(whole, whole.index(b"good") + 2)
    good["in upper case"] = [tls.hello(b"GOOD.TEST")]
    good["by OpenSSL"] = [tls.own_hello(GOOD)]
    return {what: site.utter(*parts) for what, parts in good.items()}


def test_the_allowed_name_is_heard_however_it_is_said() -> None:
    for what, seen in box.in_box(neighbours, EBPF).items():
        assert seen.said == "answered", (what, seen)
        assert seen.heard[0].lower() == GOOD
        assert [(e.action, e.server_id, e.sni) for e in seen.events] == [("allow", "good", GOOD)], what


def odd() -> Seen:
    return Site(EBPF).utter(tls.hello(b"a-site_0z9.test"))


def test_a_neighbours_name_may_have_every_character_that_names_have() -> None:
    seen = box.in_box(odd)
    assert (seen.said, seen.heard, seen.events) == ("answered", ["a-site_0z9.test"], [])


def everywhere() -> tuple[set[str], list[str | None], int]:
    """Cut the denied hello at every place into two segments."""
    site = Site(EBPF)
    hello = tls.hello(EVIL_B)
    told = [site.utter(*parts) for parts in tls.cuts(hello)]
    return (
        {seen.said for seen in told},
        site.server.heard,
        sum(len(seen.events) for seen in told) - len(hello) + 1,
    )


@pytest.mark.slow
def test_a_hello_that_is_cut_anywhere_is_refused() -> None:
    assert box.in_box(everywhere) == ({CUT}, [], 0)


def fast_open(site: Site, name: bytes) -> Callable[[], str]:
    """Say the name in the SYN."""

    def talk() -> str:
        with socket.socket() as client:
            client.settimeout(2)
            client.setsockopt(socket.IPPROTO_TCP, 34, 1)  # TCP_FASTOPEN_NO_COOKIE
            said = outcome(
                lambda: (client.sendto(tls.hello(name), socket.MSG_FASTOPEN, (BAD, 443)), client.recv(1))
            )
            return "answered" if said == "connected" else said

    return talk


def urgent() -> str:
    """Put a byte into the name that a server does not read: `eviXl.test` on the wire, `evil.test` to whoever listens."""
    hello = tls.hello(EVIL_B)
    at_l = hello.index(EVIL_B) + 3
    with socket.create_connection((BAD, 443), 2) as client:
        client.sendall(hello[:at_l])
        client.send(b"X", socket.MSG_OOB)
        said = outcome(lambda: (client.sendall(hello[at_l:]), client.recv(1)))
        return "answered" if said == "connected" else said


def again() -> str:
    """Say an allowed name, disconnect, connect the same socket anew and say the denied one."""
    with socket.socket() as client:
        client.settimeout(2)
        client.connect((BAD, 443))
        client.sendall(tls.hello(WEB.encode()))
        client.recv(1)
        client.sendall(tls.records(bytes(9), kind=23))  # behind which nothing of it is read any more
        disconnect(client)
        client.connect((BAD, 443))
        client.sendall(tls.hello(EVIL_B))
        return outcome(lambda: client.recv(1))


def disconnect(client: socket.socket) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.connect(client.fileno(), bytes(16), 16) == 0


def by_hand() -> str:
    """Send TCP from a raw socket, as a network stack of one's own would."""
    segment = struct.pack(">HHIIBBHHH", 40000, 443, 1, 1, 5 << 4, 0x18, 65535, 0, 0) + tls.hello(WEB.encode())
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as raw:
        return outcome(lambda: raw.sendto(segment, (BAD, 0)))


def datagram(kind: int = socket.SOCK_DGRAM, *, connected: bool = False) -> str:
    with socket.socket(socket.AF_INET, kind) as client:
        if connected:
            return outcome(lambda: client.connect((BAD, 443)))
        return outcome(lambda: client.sendto(b"\xc0 an Initial of QUIC", (BAD, 443)))


def multipath(address: str) -> str:
    with socket.socket(
        socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, MPTCP
    ) as client:
        client.settimeout(0.5)
        client.connect((address, 443))
        client.sendall(tls.hello(GOOD.encode()))
        said = outcome(lambda: client.recv(1))
        return "answered" if said == "connected" else said


def ways(layers: tuple[str, ...]) -> dict[str, Seen]:
    site = Site(layers)
    site.there.call(lambda: Path("/proc/sys/net/ipv4/tcp_fastopen").write_text(str(0x603)))
    site.server.close(BAD6)
    site.server.listen(listening(site.there, BAD6, protocol=MPTCP))
    return {
        "Fast Open": site.see(fast_open(site, EVIL_B)),
        "Fast Open, allowed": site.see(fast_open(site, GOOD.encode())),
        "urgent data": site.see(urgent),
        "the same socket again": site.see(again),
        "TCP by hand": site.see(by_hand),
        "UDP": site.see(datagram),
        "UDP, connected": site.see(lambda: datagram(connected=True)),
        "MPTCP, to a server that speaks TCP": site.see(lambda: multipath(BAD)),
        "MPTCP": site.see(lambda: multipath(BAD6)),
    }


def test_every_other_way_to_the_shared_endpoint_is_refused_with_an_event() -> None:
    seen = box.in_box(ways, EBPF)
    assert refused(seen["Fast Open"])
    assert seen["Fast Open, allowed"].said == "answered"
    assert refused(seen["urgent data"], sni="evi")
    assert "urgent data" in seen["urgent data"].events[0].reason
    assert seen["the same socket again"].said == CUT
    assert [e.sni for e in seen["the same socket again"].events] == [EVIL]
    assert seen["MPTCP, to a server that speaks TCP"].heard == [GOOD]
    # Its path is cut, and nothing of it arrives; but the kernel tells an MPTCP client nothing of that.
    assert (seen["MPTCP"].said, seen["MPTCP"].heard) == ("ETIMEDOUT", [])
    assert [e.action for e in seen["MPTCP"].events] == ["block"]
    assert "MPTCP" in seen["MPTCP"].events[0].reason
    for what, protocol in {
        "TCP by hand": "tcp",
        "UDP": "udp",
        "UDP, connected": "udp",
    }.items():
        (event,) = seen[what].events
        assert (seen[what].said, event.action, event.protocol, event.server_id) == (
            "EPERM",
            "block",
            protocol,
            "evil",
        ), what
        assert "network.on_unknown_sni is block" in event.reason
    assert "not of a TCP socket" in seen["TCP by hand"].events[0].reason


def tagged() -> dict[str, Seen]:
    site = Site(EBPF, on_unknown_sni="tag")
    return {
        "evil": site.visit(EVIL),
        "none": site.visit(None),
        "hidden": site.utter(tls.hello(b"public.test", tls.encrypted_hello())),
        "quic": site.see(datagram),
        "cut": site.utter(*tls.pieces(tls.hello(EVIL_B), 70)),
    }


def test_with_on_unknown_sni_tag_only_the_name_is_refused_and_the_unknown_is_told() -> None:
    seen = box.in_box(tagged)
    assert refused(seen["evil"])
    assert refused(seen["cut"])
    assert (seen["none"].heard, seen["hidden"].said, seen["quic"].said) == ([None], "answered", "connected")
    for what in ("none", "hidden", "quic"):
        (event,) = seen[what].events
        assert (event.action, event.would, event.server_id) == ("allow", "block", "evil"), what
        assert "network.on_unknown_sni is tag" in event.reason


FLOOD = 20_000


def flooded(unknown: str) -> tuple[bool, Seen, Seen]:
    """Have an unprivileged process begin thousands of connections, which cost a SYN each, beside three that stand."""
    site, said, cut = Site(EBPF, on_unknown_sni=unknown), tls.hello(EVIL_B), 40
    good = site.trust.wrap_socket(socket.create_connection((BAD, 443), 2), server_hostname=GOOD)
    drain(site.kernel, 1)
    with socket.create_connection((BAD, 443), 2) as evil, socket.create_connection((BAD, 443), 2) as late:
        for client in (evil, late):
            client.settimeout(2)
        evil.sendall(said[:cut])
        late.sendall(tls.hello(GOOD.encode())[:cut])
        flood()
        refused = site.see(lambda: outcome(lambda: (evil.sendall(said[cut:]), evil.recv(1))))
        heard = site.see(
            lambda: outcome(lambda: (late.sendall(tls.hello(GOOD.encode())[cut:]), late.recv(1)))
        )
        return stands(good), refused, heard


def flood() -> None:
    child = os.fork()
    if child == 0:
        os.setresuid(65534, 65534, 65534)
        for _ in range(FLOOD):
            with socket.socket() as other:
                other.setblocking(False)
                other.connect_ex((BAD, 8443))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("unknown", ["block", "tag"])
def test_a_flood_of_connections_pushes_nobody_out_of_what_was_read(unknown: str) -> None:
    stood, evil, good = box.in_box(lambda: flooded(unknown))
    assert stood
    assert (good.said, good.heard, [(e.action, e.sni) for e in good.events]) == (
        "connected",
        [GOOD],
        [("allow", GOOD)],
    )
    assert [(e.pid, bool(e.comm)) for e in good.events] == [(good.owner, True)]
    assert refused(evil)  # with its process, which is remembered in the socket too


def alone(unknown: str) -> tuple[dict[str, Seen], str]:
    site = Site(NFT, on_unknown_sni=unknown)
    detail = next(s.detail for s in site.kernel.status() if s.layer == "nftables")
    return {name: site.visit(name) for name in (EVIL, GOOD, WEB)}, detail


def test_the_packet_plane_alone_reads_no_names_refuses_the_shared_endpoint_whole_and_says_so() -> None:
    seen, detail = box.in_box(alone, "block")
    assert {s.said for s in seen.values()} == {"ECONNREFUSED"}
    assert all(e.action == "block" and e.layer == "nftables" for s in seen.values() for e in s.events)
    assert "server names cannot be read by this layer: of the shared endpoints 2 refused whole" in detail


def test_the_packet_plane_alone_tags_what_it_cannot_know_where_the_operator_said_so() -> None:
    seen, detail = box.in_box(alone, "tag")
    assert [s.heard for s in seen.values()] == [[EVIL], [GOOD], [WEB]]
    assert all(
        [(e.action, e.would, e.layer) for e in s.events] == [("allow", "block", "nftables")]
        for s in seen.values()
    )
    assert "2 only tagged" in detail


def stands(client: ssl.SSLSocket) -> bool:
    """Say whether a server still answers."""
    try:
        client.sendall(b"x")
        return client.recv(100) != b""
    except OSError:
        return False


def changed() -> dict[str, Any]:
    """Policies change, and the daemon is replaced, over connections that stand."""
    site = Site(BOTH)

    def client(name: str) -> ssl.SSLSocket:
        return site.trust.wrap_socket(socket.create_connection((BAD, 443), 2), server_hostname=name)

    good, web = client(GOOD), client(WEB)
    said: dict[str, Any] = {}
    site.kernel.close(remove=False)  # what it holds stays in the kernel, as after a crash
    site.kernel = opened(site.plan, *BOTH)
    site.kernel.sweep(site.plan)
    said["after a restart"] = [stands(good), stands(web), site.visit(EVIL).said, site.visit(GOOD).heard]
    site.snapshot, site.plan = policy(("good",), generation=2)
    site.kernel.apply(site.plan)
    swept = [attribution.attribute(site.snapshot, r, site.plan) for r in site.kernel.sweep(site.plan)]
    said["after another policy"] = [stands(good), stands(web), site.visit(GOOD).said, site.visit(EVIL).heard]
    said["swept"] = [(e.layer, e.action, e.server_id, e.sni) for e in swept]
    said["in force"] = [s.in_force for s in site.kernel.status()]
    return said


def test_connections_outlive_a_restart_and_end_when_policy_turns_against_their_name() -> None:
    said = box.in_box(changed)
    assert said["after a restart"] == [True, True, CUT, [GOOD]]
    assert said["after another policy"] == [False, True, CUT, [EVIL]]
    assert set(said["swept"]) == {("sweep", "block", "good", GOOD)}
    assert said["in force"] == [True, True]


def older() -> tuple[list[bool], list[tuple[str, str]]]:
    """Connections that stood before the planes, one of which is used before the sweep comes."""
    there = box.there()
    pem = tls.authority(Path(tempfile.mkdtemp()), EVIL)
    server = tls.TlsServer([listening(there, BAD)], pem)
    trust = tls.context(pem)
    talking, silent = (
        trust.wrap_socket(socket.create_connection((BAD, 443), 2), server_hostname=EVIL) for _ in range(2)
    )
    snapshot, plan = policy()
    kernel = opened(plan, *EBPF)
    talking.sendall(b"x")
    events = [attribution.attribute(snapshot, r, plan) for r in drain(kernel, 1)]
    ended = [not stands(talking)]
    events += [attribution.attribute(snapshot, r, plan) for r in kernel.sweep(plan)]
    assert server.heard == [EVIL, EVIL]
    return [*ended, not stands(silent)], [(e.layer, e.action) for e in events]


def test_a_connection_that_is_older_than_the_rule_is_ended_whether_it_speaks_or_listens() -> None:
    assert box.in_box(older) == ([True, True], [("ebpf", "block"), ("sweep", "block")])


def unseen() -> tuple[list[str], list[tuple[str, str]]]:
    """Where the unknown passes: clients that connected before the planes were there, and a server of ours that speaks first."""
    there = box.there()
    server = tls.TlsServer([listening(there, BAD)], pem := tls.authority(Path(tempfile.mkdtemp()), WEB))
    talking = tls.context(pem).wrap_socket(socket.create_connection((BAD, 443), 2), server_hostname=WEB)
    silent = socket.create_connection((BAD, 443), 1)
    snapshot, plan = policy(on_unknown_sni="tag")
    kernel = opened(plan, *EBPF)
    with socket.create_server(("", 9000)) as ours, there.socket(socket.AF_INET) as theirs:
        theirs.bind((BAD, 8443))
        theirs.settimeout(2)
        theirs.connect((box.HERE_V4, 9000))
        greeter = ours.accept()[0]
        said = [
            outcome(lambda: (greeter.sendall(b"220 ours"), theirs.recv(8))),
            outcome(lambda: (talking.sendall(b"x"), talking.recv(100))),
            outcome(lambda: (silent.sendall(tls.hello(EVIL_B)), silent.recv(1))),
        ]
    assert server.heard == [WEB]
    events = [attribution.attribute(snapshot, r, plan) for r in drain(kernel, 1)]
    return said, [(e.action, e.reason.partition("seen, ")[2].partition(";")[0]) for e in events]


def test_where_the_unknown_passes_a_forgotten_connection_does_not_before_its_server_has_answered() -> None:
    assert box.in_box(unseen) == (
        ["connected", "connected", "ETIMEDOUT"],
        [("block", "and to which no server has answered yet")],
    )


def of_sessions() -> dict[str, Seen]:
    """Where sessions alone are policed: an agent by a socket of its own, and by one that was made outside; and who is in none."""
    site = Site(EBPF, scope="sessions")

    def agent(name: str, *, makes_it: bool) -> Callable[[], str]:
        def act() -> str:
            made = None if makes_it else socket.socket()
            enter()
            with made or socket.socket() as client:
                client.settimeout(2)
                client.connect((BAD, 443))
                return outcome(lambda: (client.sendall(tls.hello(name.encode())), client.recv(1)))

        return lambda: in_child(act).said

    return {
        "its own": site.see(agent(EVIL, makes_it=True)),
        "made outside": site.see(agent(EVIL, makes_it=False)),
        "made outside, for nobody's name": site.see(agent(WEB, makes_it=False)),
        "of no session": site.utter(tls.hello(EVIL_B)),
    }


def test_a_sessions_agent_is_refused_the_name_whoever_made_the_socket_and_nobody_else_is() -> None:
    seen = box.in_box(of_sessions)
    for what in ("its own", "made outside"):
        assert (seen[what].said, seen[what].heard) == (CUT, []), what
        assert [(e.action, e.sni) for e in seen[what].events] == [("block", EVIL)], what
    web, outsider = seen["made outside, for nobody's name"], seen["of no session"]
    assert (web.said, web.heard, web.events) == ("connected", [WEB], [])
    assert (outsider.said, outsider.heard, outsider.events) == ("answered", [EVIL], [])


def container() -> tuple[Seen, Seen]:
    """The same from a network namespace of its own, in which a process lives."""
    site = Site(EBPF)
    inside = box.new_namespace()

    def settled() -> subprocess.Popen[bytes]:
        for command in ("link set lo up", f"addr add {BAD}/32 dev lo"):
            subprocess.run(["ip", *command.split()], check=True)
        return subprocess.Popen(["sleep", "60"])

    process = inside.call(settled)
    site.server.listen(listening(inside, BAD))
    try:
        return tuple(
            site.see(lambda n=name: inside.call(lambda: tls.visit(site.trust, n, BAD)))
            for name in (EVIL, GOOD)
        )
    finally:
        process.kill()
        process.wait()


def test_a_client_in_another_network_namespace_is_refused_and_told_too() -> None:
    evil, good = box.in_box(container)
    assert (evil.said, evil.heard, [e.sni for e in evil.events]) == (CUT, [], [EVIL])
    assert (good.heard, [e.sni for e in good.events]) == ([GOOD], [GOOD])


def served(folder: Path) -> dict[str, Any]:
    """The daemon itself, with names that resolve to one address."""
    there = box.there()
    pem = tls.authority(folder, EVIL, GOOD, WEB)
    server, trust = tls.TlsServer([listening(there, BAD)], pem), tls.context(pem)
    dns = NameServer()
    dns.records = {(name, "A"): [BAD] for name in (EVIL, GOOD)}
    servers = [{"id": name, "type": "http", "url": f"https://{name}.test/mcp"} for name in ("evil", "good")]
    network = {"mode": "enforce", "required": True, "on_shared_address": "sni"}
    rules = {"servers": servers, "server_policy": "denylist", "denied_servers": [{"id": "evil"}]}
    said: dict[str, Any] = {}
    with running(folder, {"sandbox": {"mcp": rules}, "network": network}) as daemon:
        said["enforced"] = [tls.visit(trust, name, BAD) for name in (EVIL, GOOD, WEB)]
        said["event"] = daemon.await_connection(action="block", sni=EVIL)
        daemon.crash()
        heard = len(server.heard)
        said["after SIGKILL"] = [tls.visit(trust, name, BAD) for name in (EVIL, GOOD, WEB)]
        said["heard"] = server.heard[heard:]
        daemon.start()
        said["after a restart"] = [tls.visit(trust, name, BAD) for name in (EVIL, GOOD, WEB)]
        said["status"] = daemon.cli("status")
        assert daemon.stop() == 0
    said["after the end"] = tls.visit(trust, EVIL, BAD)
    return said


def test_the_daemon_refuses_a_name_at_a_shared_address_and_so_do_its_probes_without_it(
    tmp_path: Path,
) -> None:
    said = box.in_box(served, tmp_path)
    neighbours = ["1 bytes for good.test", "1 bytes for web.test"]
    assert said["enforced"] == said["after a restart"] == [CUT, *neighbours]
    assert (said["event"]["server_id"], said["event"]["layer"]) == ("evil", "ebpf")
    assert said["event"]["rule"] == "sandbox.mcp.denied_servers[0]"
    # Nobody is there to end the connection: the client waits as long as it likes.
    assert said["after SIGKILL"] == ["ETIMEDOUT", *neighbours]
    assert said["heard"] == [GOOD, WEB]
    assert "1 shared endpoints are left to the ebpf layer" in said["status"]
    assert said["after the end"] == "1 bytes for evil.test"
