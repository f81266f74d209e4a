"""Rows 14-17, 19, 20, 29 of the catalogue: who asks, from where, and with a socket from when, makes no difference."""

from __future__ import annotations

import array
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from netns import box
from netns.scene import MARK, attempt, outcome
from netns.stage import BAD, GOOD, NOT_HERE, PLANES, Row, Seen, Stage, Told, play
from netns.syscalls import pidfd_getfd

from agentsh_net.core.network.addresses import plain

pytestmark = pytest.mark.kernel

CGROUP = Path("/sys/fs/cgroup")
SO_MARK = 36
TCP = {"ebpf": {"EPERM"}, "nftables": {"ECONNREFUSED"}}
UDP = {"ebpf": {"EPERM"}, "nftables": {"EPERM"}}
# What is written is accepted into the socket's buffer; none of it leaves.
DROPPED = {"ebpf": {"EPERM"}, "nftables": {"ETIMEDOUT"}}
# Devices on top of this namespace's uplink, by which its frames leave all the same.
SHARED = (
    "macvlan mode bridge",
    "macvlan mode private",
    "ipvlan mode l2",
    "ipvlan mode l3",
    "ipvlan mode l3s",
)
BUFFERED = {"ebpf": {"connected"}, "nftables": {"connected", "ECONNRESET", "EPIPE"}}

OWN_UPLINK = (
    "nftables judges the packets of its own network namespace; a namespace with a device of its own to the outside sends none "
    "through it, and whoever can give it one (CAP_NET_ADMIN over the device) could as well delete the table"
)

ROUTER = """
ip link add outside type veth peer name inside
ip link set inside netns /proc/self/fd/{fd}
ip addr add 10.98.0.1/24 dev outside
ip link set outside up
"""
# Linux 6.7; the other end gets a name of the kernel's own.
NETKIT = """
ip link del outside
ip link add outside type netkit
ip link set nk0 name inside netns /proc/self/fd/{fd}
ip addr add 10.98.0.1/24 dev outside
ip link set outside up
"""
BRIDGE = """
ip link add port type veth peer name inside
ip link set inside netns /proc/self/fd/{fd}
ip link add bridge type bridge
ip link set port master bridge up
ip link set here master bridge
ip link set bridge up
"""
# The route: what this namespace would answer to a container that it has no way to ends here, and nobody is told that it did.
SHARING = """
ip link add own link here type {kind}
ip link set own netns /proc/self/fd/{fd}
ip route replace blackhole 10.99.0.98
"""
BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
CONTAINER = """
ip link set lo up
ip addr add 10.98.0.2/24 dev inside
ip link set inside up
ip route add default via 10.98.0.1
"""
UPLINK = """
ip link set lo up
ip link add own type veth peer name far
ip link set far netns /proc/self/fd/{fd}
ip addr add 10.97.0.1/24 dev own
ip link set own up
ip route add 10.99.0.0/24 via 10.97.0.2
"""
FAR = "ip addr add 10.97.0.2/24 dev far; ip link set far up"


def shell(script: str, *fds: int) -> None:
    subprocess.run(["sh", "-ec", script], check=True, pass_fds=fds)


def connected(client: socket.socket) -> str:
    return outcome(lambda: client.connect((BAD, 443)))


def in_child(action: Callable[[], str]) -> Told:
    """Do it in a child process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, action().encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        said = told.read()
    os.waitpid(child, 0)
    return Told(said, child)


def enter(path: str) -> None:
    folder = CGROUP / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def made_before_entering(stage: Stage) -> Told:
    def action() -> str:
        client = socket.socket()
        client.settimeout(2)
        enter("session")
        return connected(client)

    return in_child(action)


def over_unix_socket(stage: Stage) -> Told:
    """A helper in another cgroup makes the socket and sends it (SCM_RIGHTS)."""
    mine, theirs = socket.socketpair()
    helper = os.fork()
    if helper == 0:
        enter("helper")
        made = socket.socket()
        theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [made.fileno()]))])
        os._exit(0)
    _, fds, _, _ = socket.recv_fds(mine, 1, 1)
    os.waitpid(helper, 0)
    with socket.socket(fileno=fds[0]) as client:
        client.settimeout(2)
        return Told(connected(client), os.getpid())


def out_of_another_process(stage: Stage) -> Told:
    """Take the socket of a process in another cgroup (pidfd_getfd)."""
    reader, writer = os.pipe()
    helper = os.fork()
    if helper == 0:
        enter("helper")
        os.write(writer, socket.socket().detach().to_bytes(4, "little"))
        signal.pause()
    fd = int.from_bytes(os.read(reader, 4), "little")
    try:
        with pidfd_getfd(helper, fd) as client:
            client.settimeout(2)
            return Told(connected(client), os.getpid())
    finally:
        box.kill(helper)


def from_cgroup(path: str) -> Callable[[Stage], Told]:
    def action() -> str:
        enter(path)
        return attempt(BAD)

    return lambda _: in_child(action)


def left_again(stage: Stage) -> Told:
    """Enter a session and leave it for the root: what was attached to the session alone would be evaded."""

    def action() -> str:
        enter("session")
        client = socket.socket()
        client.settimeout(2)
        (CGROUP / "cgroup.procs").write_text(str(os.getpid()))
        return connected(client)

    return in_child(action)


def in_cgroup_namespace(stage: Stage) -> Told:
    def action() -> str:
        enter("session")
        return subprocess.run(
            ["unshare", "--cgroup", "--mount", "python3", "-c", CONNECT], capture_output=True, text=True
        ).stdout.strip()

    return in_child(action)


CONNECT = f"""
import errno, socket
s = socket.socket(); s.settimeout(2)
try:
    s.connect(("{BAD}", 443)); print("connected")
except OSError as e:
    print(errno.errorcode[e.errno])
"""


def behind(router: str) -> Callable[[Stage], str]:
    """From a container's namespace, routed through this one, by a pair of devices that `router` makes."""
    return lambda stage: in_container(stage, router)


def in_container(stage: Stage, router: str) -> str:
    container = box.new_namespace()
    try:
        shell(router.format(fd=container.fd), container.fd)
    except subprocess.CalledProcessError:
        return NOT_HERE
    container.call(lambda: shell(CONTAINER))
    stage.there.call(lambda: shell(f"ip route replace 10.98.0.0/24 via {box.HERE_V4}"))
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    return str(container.call(lambda: attempt(BAD)))


def bridged(stage: Stage) -> str:
    """As container engines set it: tables of `inet` see a bridge's packets too."""
    if not BRIDGED.exists():
        return NOT_HERE
    return on_the_bridge(stage, "1")


def on_the_bridge(stage: Stage, seen: str = "0") -> str:
    """From a container on one bridge with the denied server: no packet is routed by anybody."""
    if BRIDGED.exists():
        BRIDGED.write_text(seen)
    container = box.new_namespace()
    shell(BRIDGE.format(fd=container.fd), container.fd)
    container.call(lambda: shell("ip addr add 10.99.0.99/24 dev inside; ip link set inside up"))
    said = str(container.call(lambda: attempt(BAD)))
    shell("ip link del bridge; ip link del port")
    return said


def with_own_uplink(stage: Stage) -> str:
    """From a namespace (unshare -n) that has a way of its own to the outside, in this very cgroup."""
    elsewhere, far = box.new_namespace(), stage.there
    elsewhere.call(lambda: shell(UPLINK.format(fd=far.fd), far.fd))
    far.call(lambda: shell(FAR))
    return str(elsewhere.call(lambda: attempt(BAD)))


def sharing(kind: str) -> Callable[[Stage], str]:
    """From a container with a device of its own on top of this namespace's uplink."""

    def attack(stage: Stage) -> str:
        container = box.new_namespace()
        try:
            shell(SHARING.format(kind=kind, fd=container.fd), container.fd)
        except subprocess.CalledProcessError:
            return NOT_HERE
        container.call(
            lambda: shell("ip addr add 10.99.0.98/24 dev own; ip link set lo up; ip link set own up")
        )
        said = str(container.call(lambda: attempt(BAD)))
        container.call(lambda: shell("ip link del own"))
        return said

    return attack


def old_connection(stage: Stage) -> str:
    with stage.early.established as client:
        said = outcome(lambda: client.send(b"x"))
        # It would be tried again for minutes.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
    return said


def through_forwarder(stage: Stage) -> Told:
    """A forwarder on loopback, as `ssh -D` is one: it is the one that is refused, and named."""
    listener = socket.create_server(("127.0.0.1", 0))
    forwarder = os.fork()
    if forwarder == 0:
        with listener.accept()[0] as client:
            client.sendall(attempt(BAD).encode())
        os._exit(0)
    with socket.create_connection(listener.getsockname(), 5) as client:
        said = client.recv(64).decode()
    os.waitpid(forwarder, 0)
    return Told(said, forwarder)


def marked(mark: int) -> Callable[[Stage], str]:
    def attack(_: Stage) -> str:
        with socket.socket() as client:
            client.settimeout(2)
            client.setsockopt(socket.SOL_SOCKET, SO_MARK, struct.pack("=I", mark))
            return connected(client)

    return attack


def bound_to_device(stage: Stage) -> str:
    with socket.socket() as client:
        client.settimeout(2)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"here\0")
        return connected(client)


ROWS = {
    "14 socket older than the daemon": Row(lambda s: connected(s.early.stream), "tcp", TCP),
    "14 datagrams from a socket older than the daemon": Row(
        lambda s: outcome(lambda: s.early.datagrams.sendto(b"x", (BAD, 443))), "udp", UDP
    ),
    "14 socket made before entering a session": Row(made_before_entering, "tcp", TCP),
    "14 SCM_RIGHTS": Row(over_unix_socket, "tcp", TCP),
    "14 pidfd_getfd": Row(out_of_another_process, "tcp", TCP),
    "15 datagrams on an old association": Row(
        lambda s: outcome(lambda: s.early.associated.send(b"x")), "udp", UDP, unseen=True
    ),
    "15 data on an old connection": Row(old_connection, "tcp", BUFFERED, unseen=True, unnamed=True),
    "16 sub-cgroup": Row(from_cgroup("a/b/c"), "tcp", TCP),
    "16 leaving for the root": Row(left_again, "tcp", TCP),
    "16 cgroup namespace": Row(in_cgroup_namespace, "tcp", TCP, unnamed=True),
    "17 container behind a veth": Row(behind(ROUTER), "tcp", TCP),
    "17 container on the same bridge": Row(on_the_bridge, "tcp", DROPPED, unnamed=True),
    "17 container on the same bridge, which tables see": Row(bridged, "tcp", TCP, unnamed=True),
    **{f"17 container's {kind}": Row(sharing(kind), "tcp", DROPPED, unnamed=True) for kind in SHARED},
    "17 container behind netkit": Row(behind(NETKIT), "tcp", TCP),
    "17 namespace with its own uplink": Row(with_own_uplink, "tcp", TCP, open_on={"nftables": OWN_UPLINK}),
    "19 forwarder on loopback": Row(through_forwarder, "tcp", TCP),
    "29 the mark of tagged connections": Row(marked(MARK), "tcp", TCP),
    "29 every mark": Row(marked(0xFFFFFFFF), "tcp", TCP),
    "29 bound to a device": Row(bound_to_device, "tcp", TCP),
}


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], dict[str, Seen]]:
    return request.param, play(ROWS, request.param)


@pytest.mark.parametrize("name", ROWS)
def test_the_denied_server_is_not_reached_whoever_asks(
    played: tuple[tuple[str, ...], dict[str, Seen]], name: str
) -> None:
    layers, seen = played
    ROWS[name].check_if_here(seen[name], layers)


def proxied(layers: tuple[str, ...]) -> tuple[bytes, bytes, list[tuple[str, str, str]]]:
    """Ask a proxy on an allowed host for the denied one; return what it got, what it said, and what was told."""
    stage = Stage(layers)
    stage.settle()
    requests: list[bytes] = []

    def serve() -> None:
        with stage.servers[2].accept()[0] as client:  # GOOD, port 443
            requests.append(client.recv(1024))
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")

    thread = threading.Thread(target=serve)
    thread.start()
    with socket.create_connection((GOOD, 443), 5) as client:
        client.sendall(b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")
        answer = client.recv(1024)
    thread.join()
    told = box.await_that(stage.kernel.records)
    return requests[0], answer, [(r.layer, str(r.fate), str(plain(r.address))) for r in told]


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_proxy_elsewhere_is_seen_as_the_host_that_it_is_and_what_it_is_asked_for_is_not_seen(
    layers: tuple[str, ...],
) -> None:
    """Row 20. The planes see that an allowed host is talked to, and say so. What is asked of it is in the stream: neither plane
    reads streams, and behind TLS nobody could. Policy has a remedy: deny the proxy."""
    request, answer, told = box.in_box(proxied, layers)
    assert request.startswith(b"CONNECT evil.test:443")
    assert b"200" in answer
    assert told == [(layers[0], "tag", GOOD)]
