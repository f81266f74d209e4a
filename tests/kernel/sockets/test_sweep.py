"""What is connected to a newly denied peer is closed, in every network namespace; everybody else keeps their connection."""

from __future__ import annotations

import socket
from collections import Counter
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from netns import box
from netns.scene import at, listening, outcome, plan

from agentsh_net.core.abi import sock_diag, wire
from agentsh_net.core.network.addresses import Address
from agentsh_net.core.network.plane import Fate, Name, Plan, Rule
from agentsh_net.kernel.sockets.sweep import _condemned, sweep

pytestmark = pytest.mark.kernel


def client(address: str, port: int = 443) -> socket.socket:
    return socket.create_connection((address, port), 5)


def still(connection: socket.socket) -> str:
    """Say whether a connection stands."""
    connection.setblocking(False)
    found = outcome(lambda: connection.recv(1))
    return "open" if found == "EAGAIN" else found


def test_connections_to_denied_peers_are_closed_and_others_stand() -> None:
    def inside() -> tuple[list[str], list[tuple[Address, int]]]:
        there = box.there()
        servers = [listening(there, a) for a in ("10.99.0.2", "10.99.0.3", "fd00:99::2")]
        servers.append(listening(there, "10.99.0.2", 8443))
        connections = [
            client("10.99.0.2"),
            client("10.99.0.3"),
            client("fd00:99::2"),
            client("10.99.0.2", 8443),
        ]
        mapped = socket.socket(socket.AF_INET6)
        mapped.connect(("::ffff:10.99.0.2", 443))
        closed = sweep(plan(deny=(at("10.99.0.2", 443), at("fd00:99::2")), tag=(at("10.99.0.3", 443),)))
        ends = [(s.destination, s.destination_port) for s in closed]
        return [still(c) for c in (*connections, mapped)], ends

    state, closed = box.in_box(inside)
    assert state == ["ECONNABORTED", "open", "ECONNABORTED", "open", "ECONNABORTED"]
    assert Counter(closed) == Counter(
        (ip_address(a), 443) for a in ("10.99.0.2", "::ffff:10.99.0.2", "fd00:99::2")
    )


def test_a_connection_that_is_over_is_not_told_of_as_closed() -> None:
    def inside() -> list[str]:
        there = box.there()
        server = listening(there, "10.99.0.2")
        with client("10.99.0.2") as over:
            peer = server.accept()[0]
        over.close()  # the first to end it waits in TIME_WAIT, for a minute
        peer.close()
        waiting = "06"
        box.await_that(
            lambda: any(
                line.split()[3] == waiting for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            )
        )
        return [str(s.destination) for s in sweep(plan(deny=(at("10.99.0.2"),)))]

    assert box.in_box(inside) == []


def test_a_connected_udp_socket_is_closed_too() -> None:
    def inside() -> tuple[list[int], str]:
        box.there()
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.connect(("10.99.0.2", 53))
        closed = sweep(plan(deny=(at("10.99.0.2"),)))
        return [s.protocol for s in closed], still(datagrams)

    assert box.in_box(inside) == ([sock_diag.UDP], "ECONNABORTED")


def test_a_connection_in_another_namespace_is_closed() -> None:
    def inside() -> tuple[int, str]:
        there = box.there()
        server = socket.socket()
        server.bind((box.HERE_V4, 443))
        server.listen()
        connection = there.socket(socket.AF_INET)
        connection.connect((box.HERE_V4, 443))
        # A process that lives there.
        hold = there.call(lambda: __import__("subprocess").Popen(["sleep", "60"]))
        closed = sweep(plan(deny=(at(box.HERE_V4),)))
        hold.kill()
        hold.wait()
        return len(closed), still(connection)

    assert box.in_box(inside) == (1, "ECONNABORTED")


def test_a_plan_without_denials_looks_at_nothing() -> None:
    def inside() -> tuple[list[object], str]:
        there = box.there()
        server = listening(there, "10.99.0.2")
        connection = client("10.99.0.2")
        return sweep(plan(tag=(at("10.99.0.2", 443),))), still(connection) + server.getsockname()[0]

    assert box.in_box(inside) == ([], "open10.99.0.2")


OPEN, UNREAD, UDP = Fate.SNI_OPEN, b"", sock_diag.UDP


def read(verdict: int, name: str = "") -> bytes:
    """What the probes keep of a connection."""
    return wire.STREAM.pack(*[0] * 10, verdict, *[0] * 5) + wire.encode_name(Name(name))


@pytest.mark.parametrize(
    ("fate", "storage", "more", "closed"),
    [
        (Fate.DENY, UNREAD, {}, True),
        (Fate.TAG, UNREAD, {}, False),
        (Fate.SNI, read(wire.REFUSED, "good.test"), {}, True),
        (OPEN, read(wire.REFUSED, "good.test"), {}, True),
        (Fate.SNI, read(wire.PASSED, "evil.test"), {}, True),
        (OPEN, read(wire.PASSED, "port.test"), {}, True),
        (Fate.SNI, read(wire.PASSED, "good.test"), {}, False),
        (Fate.SNI, read(wire.PASSED, "other.test"), {}, False),
        (Fate.SNI, read(wire.READING, "evil.test"), {}, False),  # its hello is not whole yet
        (Fate.SNI, UNREAD, {}, True),
        (Fate.SNI, UNREAD, {"inode": 0}, False),  # what nobody holds lost what was read of it
        (OPEN, UNREAD, {}, False),
        (Fate.SNI, UNREAD, {"named": False}, True),
        (OPEN, read(wire.REFUSED), {"named": False}, False),
        (Fate.SNI, UNREAD, {"inode": 0, "protocol": UDP}, True),
        (Fate.SNI, UNREAD, {"inode": 0, "named": False}, True),
        (OPEN, UNREAD, {"protocol": UDP}, False),
        (Fate.DENY, UNREAD, {"concerns": False}, False),
    ],
)  # fmt: skip
def test_at_a_shared_endpoint_the_name_that_was_read_says_who_is_closed(
    fate: Fate, storage: bytes, more: dict[str, Any], closed: bool
) -> None:
    there = ip_address("10.99.0.2")
    names = {Name("evil.test"): Fate.DENY, Name("good.test"): Fate.TAG, Name("port.test", 443): Fate.DENY}
    shared = Plan(1, {at("10.99.0.2", 443): Rule(fate, ("a",))}, names=names)
    found = sock_diag.Socket(
        2, more.get("protocol", sock_diag.TCP), there, 1000, there, 443, 0, more.get("inode", 7), b"", storage=storage
    )  # fmt: skip
    concerns = lambda *_: more.get("concerns", True)
    assert _condemned(shared, found, concerns, named=more.get("named", True)) is closed
