"""Rows 7, 15, 17-19, 27 by ways that the other files do not take: zero copy, spliced data, a device or a network of one's own."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from attacks.net.test_processes import BUFFERED, CONTAINER, ROUTER, TCP, UDP, shell
from attacks.net.test_routes import NO_SOCKET, nft
from netns import box
from netns.packets import IP, checksum, udp, v4
from netns.scene import at, attempt, drain, opened, outcome, plan
from netns.stage import BAD, PLANES, Row, Seen, Stage, Told, play
from netns.syscalls import SEND_ZC, SENDMSG_ZC, SENDTO, sockaddr, through_ring

pytestmark = pytest.mark.kernel

NOT_HERE = "EINVAL"  # as a kernel answers that does not know the operation
TUN = Path("/dev/net/tun")
VMADDR_CID_LOCAL = 1
# linux/if_tun.h
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
CLONE_NEWUSER = 0x10000000
# What is connected ends with its attack: a frame of it that came later would be taken for the next one's.
NOTHING_LATER = socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0)
# The program at egress can only drop; the packet plane resets.
DROPPED = {"ebpf": {"ETIMEDOUT"}, "nftables": {"ECONNREFUSED"}}
ALIAS = "10.95.0.1"
ON_LINK, BROADCAST, GROUP = "fe80::99", "10.99.0.255", "239.1.2.3"
NAT = f"""
table ip nat {{
	chain out {{ type nat hook output priority -100; ip daddr {ALIAS} dnat to {BAD}; }}
}}
"""


def ring(opcode: int, *, thread: bool = False) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        return through_ring(opcode, client, sockaddr(BAD, 443), thread=thread)


def sent_file(stage: Stage) -> str:
    """Data that no call of ours names a destination for, on a socket that was connected before the daemon came."""
    client, file = stage.early.associated, os.memfd_create("data")
    os.write(file, b"x")
    client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # what an attack before this one was told
    return outcome(lambda: os.sendfile(client.fileno(), file, 0, 1))


def spliced(choose: Callable[[Stage], socket.socket]) -> Callable[[Stage], str]:
    def attack(stage: Stage) -> str:
        client, (reader, writer) = choose(stage), os.pipe()
        client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        os.write(writer, b"x")
        said = outcome(lambda: os.splice(reader, client.fileno(), 1))
        if client.type == socket.SOCK_STREAM:
            client.setsockopt(*NOTHING_LATER)
            client.close()
        return said

    return attack


def tun(name: str) -> int:
    """Make a TUN device in this network namespace; what is written to it comes in there."""
    device = os.open(TUN, os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def injected(stage: Stage) -> str:
    """A packet that comes in by a TUN device as if from outside, and is passed on."""
    if not TUN.exists():
        return NOT_HERE
    device = tun("agent")
    shell("ip addr add 10.96.0.1/24 dev agent; ip link set agent up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    packet = bytearray(v4(BAD, udp()))
    packet[12:16] = socket.inet_aton("10.96.0.2")
    packet[10:12] = checksum(packet[:20])
    said = outcome(lambda: os.write(device, packet))
    os.close(device)
    return said


def by_private_network(stage: Stage) -> str:
    """By a route that what is not marked takes, into a TUN device whose reader would pass it on, as Tailscale has it; then past it by the mark."""
    if not TUN.exists():
        return NOT_HERE
    device = tun("private")
    unmarked = "not fwmark 0x80000/0xff0000 lookup 52 priority 5270"
    shell(f"ip link set private up; ip route add {BAD}/32 dev private table 52; ip rule add {unmarked}")
    said = attempt(BAD)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 0x80000)
        client.settimeout(2)
        again = outcome(lambda: client.connect((BAD, 443)))
    shell(f"ip rule del {unmarked}")
    os.close(device)
    return said if said == again else f"{said}, {again}"


def in_network_of_its_own() -> int:
    """Enter a user and a network namespace as anybody may, with nothing but a TUN device; return it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | box.CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    for ids in ("uid_map", "gid_map"):
        Path(f"/proc/self/{ids}").write_text("0 0 1")
    device = tun("own")
    shell("ip addr add 10.0.2.100/24 dev own; ip link set own up")
    return device


def user_mode_network(stage: Stage) -> Told:
    """As slirp4netns and pasta do it: a helper outside puts what an agent's own network sends into sockets of its own."""
    if not TUN.exists():
        return Told(NOT_HERE, os.getpid())
    ours, theirs = socket.socketpair()
    agent = os.fork()
    if agent == 0:
        ours.close()
        device = in_network_of_its_own()
        socket.send_fds(theirs, [b"x"], [device])
        # Past its own cgroup's programs: there it may do what it likes.
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as sender:
            sender.sendto(v4(BAD, udp(b"hello")), ("own", IP))
        theirs.recv(1)
        os._exit(0)
    theirs.close()
    _, (device,), _, _ = socket.recv_fds(ours, 1, 1)
    while (packet := os.read(device, 2048))[16:20] != socket.inet_aton(BAD):
        pass  # the namespace's own chatter
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as helper:
        said = outcome(lambda: helper.sendto(packet[28:], (BAD, 443)))
    ours.close()
    os.waitpid(agent, 0)
    return Told(said, os.getpid())


def aliased_in_container(stage: Stage) -> str:
    """A container rewrites the address by rules of its own, in its own namespace; this one routes."""
    container = box.new_namespace()
    shell(ROUTER.format(fd=container.fd), container.fd)
    container.call(lambda: shell(CONTAINER))
    container.call(lambda: nft(NAT))
    stage.there.call(lambda: shell(f"ip route replace 10.98.0.0/24 via {box.HERE_V4}"))
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def reach() -> str:
        with socket.socket() as client:
            client.settimeout(2)
            client.setsockopt(*NOTHING_LATER)
            return outcome(lambda: client.connect((ALIAS, 443)))

    said = str(container.call(reach))
    shell("ip link del outside")
    return said


def by_vsock() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection within this machine that has no address of a network. Raises OSError."""
    with socket.socket(socket.AF_VSOCK) as server:
        server.bind((VMADDR_CID_LOCAL, socket.VMADDR_PORT_ANY))
        server.listen()
        client = socket.socket(socket.AF_VSOCK)
        client.connect(server.getsockname())
        return client, server.accept()[0]


def through(pair: Callable[[], tuple[socket.socket, socket.socket]]) -> Callable[[Stage], Told]:
    """A forwarder behind a socket of a family without addresses: no plane sees the way to it."""
    return lambda _: forwarded(pair)


def forwarded(pair: Callable[[], tuple[socket.socket, socket.socket]]) -> Told:
    """The forwarder is the one that is refused, and named."""
    try:
        ours, theirs = pair()
    except OSError:
        return Told(NOT_HERE, os.getpid())
    forwarder = os.fork()
    if forwarder == 0:
        theirs.recv(1)
        theirs.sendall(attempt(BAD).encode())
        os._exit(0)
    ours.sendall(b"?")
    said = ours.recv(64).decode()
    os.waitpid(forwarder, 0)
    return Told(said, forwarder)


ROWS = {
    "7 io_uring send": Row(lambda s: ring(SENDTO), "udp", UDP),
    "7 io_uring send_zc": Row(lambda s: ring(SEND_ZC), "udp", UDP),
    "7 io_uring send_zc, kernel thread": Row(lambda s: ring(SEND_ZC, thread=True), "udp", UDP),
    "7 io_uring sendmsg_zc": Row(lambda s: ring(SENDMSG_ZC), "udp", UDP),
    "15 sendfile on an old association": Row(sent_file, "udp", UDP, unseen=True),
    "15 splice into an old association": Row(spliced(lambda s: s.early.associated), "udp", UDP, unseen=True),
    "15 splice into an old connection": Row(
        spliced(lambda s: s.early.established), "tcp", BUFFERED, unseen=True, unnamed=True
    ),
    "17 a packet written to a TUN device": Row(
        injected, "udp", {"nftables": {"connected"}}, open_on={"ebpf": NO_SOCKET}, unnamed=True
    ),
    "17 user-mode network": Row(user_mode_network, "udp", UDP),
    "18 a private network's routes and mark": Row(by_private_network, "tcp", TCP),
    "18 DNAT within a container": Row(aliased_in_container, "tcp", DROPPED, unnamed=True),
    "19 forwarder behind a Unix socket": Row(through(socket.socketpair), "tcp", TCP),
    "19 forwarder behind a vsock": Row(through(by_vsock), "tcp", TCP),
    "27 port 0": Row(lambda s: attempt(BAD, 0), "tcp", TCP, port=0),
}


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], dict[str, Seen]]:
    return request.param, play(ROWS, request.param)


@pytest.mark.parametrize("name", ROWS)
def test_the_denied_server_is_not_reached_by_another_way(
    played: tuple[tuple[str, ...], dict[str, Seen]], name: str
) -> None:
    layers, seen = played
    if seen[name].said == NOT_HERE:
        pytest.skip(
            f"this kernel ({os.uname().release}) knows no such operation or device: the attack cannot be made"
        )
    ROWS[name].check(seen[name], layers)


def beside_the_address(layers: tuple[str, ...]) -> tuple[dict[str, str], int, int]:
    """Reach for a denied server by its address on the link, and by what names nobody; count the events, and what arrived."""
    far = box.there()
    far.call(lambda: shell(f"ip addr add {ON_LINK}/64 dev there nodad; ip route add {GROUP}/32 dev there"))
    here, there = (
        socket.if_nametoindex("here"),
        far.call(lambda: socket.if_nametoindex("there")),
    )
    shell(f"ip route add {GROUP}/32 dev here")
    server, ears = far.socket(socket.AF_INET6), far.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((ON_LINK, 443, 0, there))
    server.listen()
    ears.bind(("0.0.0.0", 443))
    ears.settimeout(2)
    member = socket.inet_aton(GROUP) + socket.inet_aton(BAD)
    ears.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    wanted = plan(deny=(at(BAD), at(ON_LINK)))
    kernel = opened(wanted, *layers)
    said = {}
    with socket.socket(socket.AF_INET6) as client:
        client.settimeout(0.5)
        said["link"] = outcome(lambda: client.connect((ON_LINK, 443, 0, here)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        for where in (BROADCAST, GROUP):
            said[where] = outcome(lambda w=where: client.sendto(b"x", (w, 443)))
            assert ears.recv(8) == b"x"
    return said, len(drain(kernel, 1)), sum(s.denied for s in kernel.status())


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_an_address_of_the_link_is_one_like_others_and_what_names_nobody_is_for_nobody(
    layers: tuple[str, ...],
) -> None:
    """Row 27's kin. A broadcast and a multicast reach the denied host as they reach all others: no address says who is meant, and
    no rule of ours could tell it from mDNS. They are datagrams; MCP is HTTP, of which the least part is an answer from one."""
    said, told, refused = box.in_box(beside_the_address, layers)
    first = TCP[layers[0]]
    assert (said["link"] in first, said[BROADCAST], said[GROUP]) == (True, "connected", "connected")
    assert (told, refused) == (1, 1)
