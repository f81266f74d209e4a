"""The cgroup of whoever connected is told of every socket of this namespace, and of one that is gone it is told that nobody can say."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import pytest
from netns import box
from netns.scene import attempt

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.abi.sock_diag import TCP
from agentsh_net.kernel.sockets import clients
from agentsh_net.kernel.sockets.clients import cgroup_of

pytestmark = pytest.mark.kernel

_MPTCP, _BIND_TO_DEVICE, _FREEBIND = 262, 25, 15


def listening(address: str = "127.0.0.1") -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.bind((address, 0))
    listener.listen(8)
    return listener


def ends(accepted: tuple[socket.socket, tuple[str, int]]) -> Packet:
    """Return what the client of an accepted connection sends."""
    connection, peer = accepted
    own = connection.getsockname()
    addresses = [ip_address(end[0]) for end in (peer, own)]
    source, destination = [(a.ipv4_mapped or a) if isinstance(a, IPv6Address) else a for a in addresses]
    return Packet(source, destination, TCP, peer[1], own[1])


def here() -> int:
    return Path("/sys/fs/cgroup").stat().st_ino


def every_kind_of_client() -> list[bool]:
    box.there()  # brings `lo` up
    box.await_that(lambda: attempt(box.HERE_V6, 1) == "ECONNREFUSED")  # the veth pair is up
    v4, v6 = listening(), listening("::")
    (port,), (port_v6,) = [[s.getsockname()[1]] for s in (v4, v6)]

    def bound_to_a_device() -> socket.socket:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, b"lo\0")
        client.connect(("127.0.0.1", port))
        return client

    def bound_to(address: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), source_address=(address, 0))

    def mapped() -> socket.socket:
        client = socket.socket(socket.AF_INET6)
        client.connect(("::ffff:127.0.0.1", port))
        return client

    def multipath() -> socket.socket:
        try:
            client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, _MPTCP)
        except OSError:  # a kernel without it
            client = socket.socket()
        client.connect(("127.0.0.1", port))
        return client

    kinds: list[tuple[socket.socket, Callable[[], socket.socket]]] = [
        (v4, lambda: socket.create_connection(("127.0.0.1", port))),
        (v4, bound_to_a_device),
        (v4, lambda: bound_to("127.7.7.7")),
        (v4, lambda: bound_to(box.HERE_V4)),
        (v4, mapped),
        (v4, multipath),
        (v6, lambda: socket.create_connection(("127.0.0.1", port_v6))),
        (v6, lambda: socket.create_connection(("::1", port_v6))),
        (v6, lambda: socket.create_connection((box.HERE_V4, port_v6))),
        (v6, lambda: socket.create_connection((box.HERE_V6, port_v6))),
    ]
    said = []
    for listener, connect in kinds:
        client = connect()
        accepted = listener.accept()
        said.append(cgroup_of(ends(accepted)) == here())
        client.shutdown(socket.SHUT_WR)
        said.append(cgroup_of(ends(accepted)) == here())
    return said


def test_every_kind_of_client_on_this_host_is_found_also_when_it_has_sent_all_that_it_will() -> None:
    assert box.in_box(every_kind_of_client) == [True] * 20


def gone() -> list[int | None]:
    box.there()
    listener = listening()
    said = []
    for linger in (None, struct.pack("ii", 1, 0)):
        client = socket.create_connection(listener.getsockname())
        client.sendall(b"all that it has to say")
        if linger is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        wanted = Packet(
            ip_address("127.0.0.1"),
            ip_address("127.0.0.1"),
            TCP,
            client.getsockname()[1],
            listener.getsockname()[1],
        )
        client.close()
        listener.accept()
        # A polite one is known by its own socket until the kernel keeps no more of it than that its port is taken.
        said.append(box.await_that(lambda w=wanted: cgroup_of(w) is None))
    never = Packet(ip_address("127.0.0.1"), ip_address("127.0.0.1"), TCP, 9, listener.getsockname()[1])
    return [*said, cgroup_of(never) is None]


def still_asking() -> int | None:
    """Connect where no more are taken up, and say whose the last one is."""
    box.there()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    asking = []
    for _ in range(4):
        asking.append(socket.socket())
        asking[-1].setblocking(False)
        asking[-1].connect_ex(listener.getsockname())
    ends = asking[-1].getsockname()[1], listener.getsockname()[1]
    return cgroup_of(Packet(ip_address("127.0.0.1"), ip_address("127.0.0.1"), TCP, *ends))


def test_who_still_asks_for_a_connection_is_not_whoever_had_one_with_the_same_ends() -> None:
    assert box.in_box(still_asking) is None


def test_of_a_client_of_this_host_that_is_gone_nobody_can_say() -> None:
    assert box.in_box(gone) == [True, True, True]


def elsewhere() -> list[int | None]:
    there = box.there()
    listener = listening("0.0.0.0")
    port = listener.getsockname()[1]
    client = there.socket(socket.AF_INET)
    client.connect((box.HERE_V4, port))
    said = [cgroup_of(ends(listener.accept()))]
    client.close()
    # Bound to a device of this host's, it is not to be found by its ends.
    hidden = socket.socket()
    hidden.setsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, b"here\0")
    hidden.settimeout(2)
    try:
        hidden.connect((box.HERE_V4, port))
        said.append(cgroup_of(ends(listener.accept())))
    except TimeoutError:  # a kernel on which such a one does not get here
        said.append(None)
    return said


def test_who_is_in_another_namespace_is_nobodys_here_and_who_hides_is_not_taken_for_one() -> None:
    assert box.in_box(elsewhere) == [0, None]


def made_elsewhere() -> list[bool]:
    box.there()
    listener = listening()
    inside = Path("/sys/fs/cgroup/inside")
    inside.mkdir()
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        before = socket.socket()
        (inside / "cgroup.procs").write_text(str(os.getpid()))
        both = socket.socket(), before
        for client in both:
            client.connect(listener.getsockname())
            os.write(ready[1], b"!")
        os.read(go[0], 1)
        os._exit(0)
    said = []
    for expected in (inside.stat().st_ino, here()):
        os.read(ready[0], 1)
        said.append(cgroup_of(ends(listener.accept())) == expected)
    os.write(go[1], b"!")
    os.waitpid(child, 0)
    inside.rmdir()
    return said


def test_what_counts_is_where_the_socket_was_made() -> None:
    assert box.in_box(made_elsewhere) == [True, True]


def test_a_kernel_that_tells_of_no_socket_says_nothing_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    loopback = ip_address("127.0.0.1")
    assert clients.are_shown()
    monkeypatch.setattr(clients, "look_up", lambda *_: None)
    assert cgroup_of(Packet(loopback, loopback, TCP, 9, 10)) == 0
    assert not clients.are_shown()


def shown_by_ipv6_alone() -> bool:
    subprocess.run(["ip", "-4", "address", "flush", "dev", "lo"], check=True)
    return clients.are_shown()


def test_a_host_of_ipv6_alone_tells_of_its_sockets_too() -> None:
    assert box.in_box(shown_by_ipv6_alone)
