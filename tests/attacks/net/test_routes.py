"""Row 18 of the catalogue and its kin: an address that becomes the denied one on the way, or is another name of this host."""

from __future__ import annotations

import base64
import os
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from netns import box
from netns.daemon import running
from netns.scene import at, attempt, drain, listening, opened, outcome
from netns.stage import BAD, BAD6, BOTH, EBPF, NFT, OTHER, PLANES, Row, Seen, Stage, play
from pyroute2 import IPVS, IPVSDest, IPVSService, WireGuard
from pyroute2.netlink.exceptions import NetlinkError

from agentsh_net.core.network import attribution
from agentsh_net.core.network.plane import Fate, Plan, Rule

pytestmark = pytest.mark.kernel

MPTCP, REUSE = 262, (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
ALIAS, LATE_ALIAS, REWRITTEN, VIRTUAL = "10.99.0.5", "10.99.0.6", "10.99.0.7", "10.99.0.8"
SEGMENTED = "fd00:77::1"
# As a container engine makes them, at whatever priority; and rewritten behind our own chain, without connection tracking.
NAT = f"""
table ip nat {{
	chain out {{ type nat hook output priority -100; ip daddr {ALIAS} dnat to {BAD}; }}
	chain late {{ type nat hook output priority 10; ip daddr {LATE_ALIAS} dnat to {BAD}; }}
}}
"""
REWRITE = f"""
table ip late {{
	chain out {{ type filter hook output priority 10; ip daddr {REWRITTEN} ip daddr set {BAD}; }}
}}
"""
TCP = {"ebpf": {"EPERM"}, "nftables": {"ECONNREFUSED"}}
UDP = {"ebpf": {"EPERM"}, "nftables": {"EPERM"}}
# At the device a packet is dropped, and nobody is told.
LATE = UDP | {"nftables": {"connected"}}
# The program at egress can only drop; the packet plane resets.
HANGS = {"ebpf": {"ETIMEDOUT"}, "nftables": {"ECONNREFUSED"}}


def nft(text: str) -> None:
    subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)


def tcp(address: str, nat: str = "") -> str:
    if nat:
        nft(nat)
    with socket.socket() as client:
        client.settimeout(0.5)
        return outcome(lambda: client.connect((address, 443)))


def datagram(address: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        return outcome(lambda: client.sendto(b"x", (address, 443)))


def rewritten(stage: Stage) -> str:
    nft(REWRITE)
    return datagram(REWRITTEN)


def segmented(stage: Stage) -> str:
    """To an innocent address by way of the denied server: a route of root's writes the segments (RFC 8754)."""
    if ip(f"-6 route add {SEGMENTED} encap seg6 mode inline segs {BAD6} dev here").returncode:
        return "ENOTSUP"
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client:
        return outcome(lambda: client.sendto(b"x", (SEGMENTED, 443)))


def handed_out(stage: Stage) -> str:
    """An allowed MPTCP server hands out the denied address (ADD_ADDR), and the kernel itself opens a second path to it."""

    def far() -> socket.socket:
        subprocess.run(["ip", "mptcp", "endpoint", "add", BAD, "dev", "there", "signal"], check=True)
        subprocess.run(["ip", "mptcp", "limits", "set", "subflow", "2"], check=True)
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
        server.setsockopt(*REUSE)
        server.bind(("0.0.0.0", 8000))
        server.listen()
        return server

    server = stage.there.call(far)
    subprocess.run(["ip", "mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2"], check=True)
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    client.connect((OTHER, 8000))
    peer, _ = server.accept()
    for _ in range(3):
        client.sendall(b"x")
        peer.recv(1)
        peer.sendall(b"y")
        client.recv(1)
    before = stage._counted[0]
    box.await_that(lambda: stage._refusals()[0] > before)
    for end in (client, peer, server):
        end.close()
    return "refused"


def called_back(stage: Stage) -> str:
    """The denied server connects to us: a connection has two ends, and data flows both ways whoever began it."""
    Path("/proc/sys/net/ipv4/tcp_synack_retries").write_text("0")
    caller = stage.there.socket(socket.AF_INET)
    with socket.socket() as server, caller:
        server.bind(("0.0.0.0", 7000))
        server.listen()
        caller.bind((BAD, 0))
        caller.settimeout(0.3)
        return outcome(lambda: caller.connect((box.HERE_V4, 7000)))


def answered(stage: Stage) -> str:
    """The denied server asks first, by datagram, and we answer."""
    caller = stage.there.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, caller:
        server.bind(("0.0.0.0", 7000))
        server.settimeout(2)
        caller.bind((BAD, 443))
        caller.sendto(b"what do you know?", (box.HERE_V4, 7000))
        _, asker = server.recvfrom(64)
        return outcome(lambda: server.sendto(b"everything", asker))


def tunnelled(kind: str, more: str = "", device: str = "tunnel") -> Callable[[Stage], str]:
    """To an innocent address, through a tunnel of the kernel's whose far end is the denied server."""

    def attack(stage: Stage) -> str:
        make = f"link add {device} type {kind} remote {BAD} {more}"
        steps = (
            *(make, f"link set {device} addrgenmode none", f"link set {device} multicast off up"),
            *(f"addr add 192.0.2.1/24 dev {device}", f"neigh add 192.0.2.7 lladdr 02:00:00:00:00:01 dev {device}"),
        )  # fmt: skip
        # A device without a link layer has no neighbours: the last step may fail.
        done = ip(*steps)
        if done.returncode and not Path(f"/sys/class/net/{device}").exists():
            return "ENOTSUP"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            said = outcome(lambda: client.sendto(b"x", ("192.0.2.7", 443)))
        subprocess.run(["ip", "link", "del", device], check=True)
        return said

    return attack


def wireguard(stage: Stage) -> str:
    """To an innocent address, through WireGuard whose peer is at the denied address: it asks for a key first."""
    subprocess.run(["modprobe", "-qa", "wireguard"], check=False)
    steps = "link add guard type wireguard; link set guard up; addr add 192.0.2.1/24 dev guard"
    if ip(*steps.split("; ")).returncode:
        return "ENOTSUP"
    key = base64.b64encode(bytes(range(32))).decode()
    with WireGuard() as guard, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        peer = {
            "public_key": key,
            "endpoint_addr": BAD,
            "endpoint_port": 51820,
            "allowed_ips": ["192.0.2.0/24"],
        }
        guard.set("guard", private_key=key, peer=peer)
        said = outcome(lambda: client.sendto(b"x", ("192.0.2.7", 443)))

        def sent() -> int:
            (found,) = guard.info("guard")[0].get_attr("WGDEVICE_A_PEERS")
            return int(found.get_attr("WGPEER_A_TX_BYTES"))

        box.await_that(sent)  # a thread of the kernel's does it
    ip("link del guard")
    return said


def ipsec(stage: Stage) -> str:
    """To an innocent address, in ESP to the denied one."""
    subprocess.run(
        ["modprobe", "-qa", "xfrm_user", "esp4", "gcm", "aes_generic", "ctr", "ghash_generic"], check=False
    )
    ends = f"src {box.HERE_V4} dst {BAD}"
    made = ip(
        f"xfrm state add {ends} proto esp spi 7 mode tunnel aead rfc4106(gcm(aes)) 0x{bytes(20).hex()} 128",
        f"xfrm policy add src {box.HERE_V4} dst 192.0.2.7 dir out tmpl {ends} proto esp mode tunnel",
        f"route add 192.0.2.7 via {OTHER}",
    )
    if made.returncode:
        return "ENOTSUP"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        said = outcome(lambda: client.sendto(b"x", ("192.0.2.7", 443)))
    ip("xfrm policy flush", "xfrm state flush", "route del 192.0.2.7")
    return said


def ip(*steps: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", "-batch", "-"], input="\n".join(steps), text=True, capture_output=True)


def under_the_host(stage: Stage) -> str:
    """Through a tunnel to an innocent host, which would pass it on: the packet's own address is seen before it is wrapped."""
    make = f"link add way type vxlan id 6 dstport 4789 local {box.HERE_V4} remote {OTHER} dev here"
    steps = (
        make,
        "link set way addrgenmode none",
        "link set way multicast off up",
        f"route add {BAD}/32 dev way",
    )
    if ip(*steps).returncode:
        return "ENOTSUP"
    said = tcp(BAD)
    ip("link del way")
    return said


def virtual_server(stage: Stage) -> str:
    """The host's load balancer (IPVS) turns an address of its own into the denied one."""
    subprocess.run(["modprobe", "-qa", "ip_vs", "ip_vs_rr"], check=False)
    try:
        with IPVS() as balancer:
            service = IPVSService(addr=VIRTUAL, port=443, protocol=socket.IPPROTO_TCP, sched_name="rr")
            balancer.service("add", service=service)
            balancer.dest("add", service=service, dest=IPVSDest(addr=BAD, port=443, fwd_method=0))
    except (NetlinkError, OSError):
        return "ENOTSUP"
    subprocess.run(["ip", "addr", "add", f"{VIRTUAL}/32", "dev", "lo"], check=True)
    with socket.socket() as client:
        client.settimeout(0.5)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))  # nothing later
        return outcome(lambda: client.connect((VIRTUAL, 443)))


NO_SOCKET = (
    "what a tunnel wraps leaves by no socket, and a cgroup's program sees a socket's packets; it takes CAP_NET_ADMIN over the "
    "host's network to make one"
)

WITHOUT_ITS_SOCKET = (
    "the balancer rewrites the address behind connect and hands the packet on without its socket, and so without a cgroup; it "
    "takes root's CAP_NET_ADMIN to set one up"
)


def tunnel(kind: str, protocol: str, port: int = 0, more: str = "") -> Row:
    """Return the row of a kind of tunnel; `protocol` and `port` are those of what it wraps packets into."""
    attack, says = tunnelled(kind, more), {"nftables": {"connected"}}
    hole = {"ebpf": NO_SOCKET}
    return Row(attack, protocol, says, port=port, open_on=hole, unseen=True, unnamed=True)


TUNNELS = {
    "VXLAN": ("vxlan", "udp", 4789, "id 5 dstport 4789 dev here"),
    "IPIP": ("ipip", "ipip"),
    "SIT": ("sit", "ipip", 0, "mode any"),
    "GRE": ("gre", "gre"),
    "GRETAP": ("gretap", "gre"),
    "Geneve": ("geneve", "udp", 6081, "id 5"),
    "IPIP in UDP": ("ipip", "udp", 5555, "encap fou encap-sport 5555 encap-dport 5555"),
}

ROWS = {
    **{f"18 tunnel to the denied server, {name}": tunnel(*how) for name, how in TUNNELS.items()},
    "18 tunnel to the denied server, WireGuard": Row(
        wireguard,
        "udp",
        {"nftables": {"connected"}},
        port=51820,
        open_on={"ebpf": NO_SOCKET},
        unseen=True,
        unnamed=True,
    ),
    "18 tunnel to the denied server, IPsec": Row(
        ipsec, "esp", {"ebpf": {"EPERM"}, "nftables": {"EPERM"}}, port=0, unseen=True, unnamed=True
    ),
    "18 the denied server through a tunnel": Row(under_the_host, "tcp", TCP),
    "18 IPVS": Row(
        virtual_server, "tcp", HANGS, open_on={"ebpf": WITHOUT_ITS_SOCKET}, unseen=True, unnamed=True
    ),
    "15 the denied server connects to us": Row(
        called_back,
        "tcp",
        {"ebpf": {"ETIMEDOUT"}, "nftables": {"ETIMEDOUT"}},
        port=None,
        unseen=True,
        unnamed=True,
    ),
    "15 the denied server asks, and we answer": Row(answered, "udp", UDP),
    "18 DNAT alias, TCP": Row(lambda s: tcp(ALIAS, NAT), "tcp", HANGS, unseen=True, unnamed=True),
    "18 DNAT alias, UDP": Row(lambda s: datagram(ALIAS), "udp", UDP, unseen=True, unnamed=True),
    "18 DNAT at a late priority": Row(lambda s: tcp(LATE_ALIAS), "tcp", HANGS, unseen=True, unnamed=True),
    "18 rewritten behind our chain": Row(rewritten, "udp", LATE, unnamed=True),
    "18 segments of a route": Row(segmented, "udp", LATE, address=BAD6, unnamed=True),
    "8 MPTCP, address handed out": Row(
        handed_out, "tcp", {"ebpf": {"refused"}, "nftables": {"refused"}}, port=8000, unnamed=True
    ),
}


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], dict[str, Seen]]:
    return request.param, play(ROWS, request.param)


@pytest.mark.parametrize("name", ROWS)
def test_an_address_that_becomes_the_denied_one_leads_nowhere(
    played: tuple[tuple[str, ...], dict[str, Seen]], name: str
) -> None:
    layers, seen = played
    if seen[name].said == "ENOTSUP":
        pytest.skip(
            f"this kernel ({os.uname().release}) has no such device or service: the attack cannot be made"
        )
    ROWS[name].check(seen[name], layers)


# Names of this host, and what each plane says to a TCP client: where a connect hook cannot know the name, the packet is dropped.
NAMES = {
    "127.0.0.1": "EPERM",
    "127.8.9.10": "EPERM",
    "0.0.0.0": "EPERM",
    "::1": "EPERM",
    "::": "EPERM",
    "::ffff:127.0.0.1": "EPERM",
    "::ffff:0.0.0.0": "EPERM",
    "10.99.0.1": "ETIMEDOUT",
    "fd00:99::1": "ETIMEDOUT",
}


def listeners(port: int) -> Iterator[socket.socket]:
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        server = socket.socket(family)
        server.setsockopt(*REUSE)
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind((address, port))
        server.listen()
        yield server


def to_this_host(layers: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str], set[str]]:
    """Reach for a denied local server by every name, then for its neighbour at another port; and who was refused."""
    box.there()
    servers = [*listeners(9000), *listeners(9001)]
    wanted = Plan(1, {at(a, 9000): Rule(Fate.DENY, ("local",)) for a in ("127.0.0.1", "::1")})
    kernel = opened(wanted, *layers)
    said = {}
    for name in NAMES:
        with socket.socket(socket.AF_INET6 if ":" in name else socket.AF_INET) as client:
            client.settimeout(0.5)
            said[name] = outcome(lambda c=client, n=name: c.connect((n, 9000)))
    told = {attribution.rule_of(r, wanted).server_ids[0] for r in drain(kernel, len(NAMES))}
    assert servers
    return said, {name: attempt(name, 9001) for name in NAMES}, told


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_denied_local_server_is_refused_by_every_name_of_this_host_and_its_neighbours_are_not(
    layers: tuple[str, ...],
) -> None:
    said, neighbours, told = box.in_box(to_this_host, layers)
    wanted = {
        EBPF: NAMES,
        NFT: dict.fromkeys(NAMES, "ECONNREFUSED"),
        BOTH: {name: "EPERM" if first == "EPERM" else "ECONNREFUSED" for name, first in NAMES.items()},
    }
    assert said == wanted[layers]
    assert set(neighbours.values()) == {"connected"}
    assert told == {"local"}


# What an operator may call a server on this host: its address in the local network, a name that /etc/hosts has for it.
DECLARED = ("10.99.0.1", "[fd00:99::1]", "lan.test", "127.0.1.1")


def by_declaration(folder: Path, layers: tuple[str, ...]) -> dict[str, tuple[set[str], set[str], str]]:
    """Deny one local server under each of these names, and reach for it, and for its neighbour, by every name of this host."""
    far = box.there()
    servers = [*listeners(9000), *listeners(9001)]
    (folder / "hosts").write_text("10.99.0.1 lan.test\n")
    subprocess.run(["mount", "--bind", str(folder / "hosts"), "/etc/hosts"], check=True)
    seen = {}
    for number, host in enumerate(DECLARED):
        (folder / str(number)).mkdir()
        mcp = {
            "servers": [{"id": "local", "type": "http", "url": f"http://{host}:9000/mcp"}],
            "denied_servers": [{"id": "local"}],
        }
        network = {"mode": "enforce", "layers": list(layers), "required": True}
        off = {"proxy": {"mode": "disabled"}, "gateway": {"enabled": False}, "metrics": {"port": 0}}
        with running(folder / str(number), {"sandbox": {"mcp": mcp}, "network": network, **off}) as daemon:
            said = {attempt(name, 9000) for name in NAMES}
            neighbours = {attempt(name, 9001) for name in NAMES}
            daemon.await_connection(action="block")
            told = {event["server_id"] for event in daemon.connections() if event["action"] == "block"}
            # What is not this host's is none of its business, whatever the port.
            with listening(far, OTHER, 9000):
                seen[host] = said, neighbours | {attempt(OTHER, 9000)}, ",".join(told)
            assert daemon.stop() == 0
    assert servers
    return seen


@pytest.mark.parametrize("layers", [EBPF, NFT], ids="+".join)
def test_a_denied_server_on_this_host_is_refused_by_every_name_whichever_one_it_was_declared_by(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    refused = {"EPERM"} if layers == EBPF else {"ECONNREFUSED"}
    assert box.in_box(by_declaration, tmp_path, layers) == {
        host: (refused, {"connected"}, "local") for host in DECLARED
    }
