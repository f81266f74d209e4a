"""A connection whose ClientHello was refused is ended wherever it is, and no other with it."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import replace
from ipaddress import IPv6Address, ip_address

import pytest
from netns import box
from netns.scene import listening, outcome

from agentsh_net.core.abi import wire
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.plane import Fate, Finding
from agentsh_net.kernel.sockets.cutter import Cutter

pytestmark = pytest.mark.kernel

COOKIE = 57  # SO_COOKIE


def refusal(client: socket.socket, **changes: object) -> wire.Record:
    (here, port), (there, far) = client.getsockname()[:2], client.getpeername()[:2]
    record = wire.Record(
        boot_ns=0, cgroup_id=0, netns_cookie=0, pid=0, tid=0, uid=0, generation=1, protocol=6, family=2, comm="",
        socket_cookie=int.from_bytes(client.getsockopt(socket.SOL_SOCKET, COOKIE, 8), "little"),
        address=canonical(ip_address(there)), port=far, fate=Fate.DENY, hook="hello", observed=False,
        finding=Finding.NAMED, sni="evil.test", source=(canonical(ip_address(here)), port),
    )  # fmt: skip
    return replace(record, **changes)


def state(client: socket.socket) -> str:
    client.setblocking(False)
    return outcome(lambda: client.recv(1))


def cutting() -> list[str]:
    there = box.there()
    servers = [listening(there, a) for a in ("10.99.0.2", "fd00:99::2")]
    four, six, stands, observed, tagged, mapped = (
        socket.create_connection((a, 443), 5)
        for a in ("10.99.0.2", "fd00:99::2", "10.99.0.2", "10.99.0.2", "10.99.0.2", "::ffff:10.99.0.2")
    )
    Cutter().cut(
        [
            refusal(four),
            refusal(six),
            refusal(stands, socket_cookie=1),
            refusal(observed, observed=True),
            refusal(tagged, fate=Fate.TAG),
            refusal(mapped),
            refusal(stands, source=(IPv6Address("::ffff:10.99.0.1"), 1)),
        ]
    )
    assert servers
    return [state(c) for c in (four, six, mapped, stands, observed, tagged)]


def test_the_connections_that_records_tell_of_are_ended_and_no_others() -> None:
    assert box.in_box(cutting) == ["ECONNABORTED"] * 3 + ["EAGAIN"] * 3


def elsewhere() -> list[str]:
    """Refuse two connections of another namespace, one right after the other."""
    there = box.there()
    process = there.call(lambda: subprocess.Popen(["sleep", "60"]))
    here = [socket.create_server(("10.99.0.1", p)) for p in (443, 444)]
    clients = [there.socket(socket.AF_INET) for _ in here]
    for client, port in zip(clients, (443, 444), strict=True):
        client.connect(("10.99.0.1", port))
    try:
        cutter = Cutter()
        cutter.cut([refusal(clients[0])])
        first = [state(c) for c in clients]
        cutter.cut([refusal(clients[1])])
        box.await_that(lambda: cutter.cut(()) or state(clients[1]) == "ECONNABORTED")
        return first
    finally:
        process.kill()
        process.wait()


def test_in_another_namespace_it_is_ended_too_if_need_be_a_moment_later() -> None:
    assert box.in_box(elsewhere) == ["ECONNABORTED", "EAGAIN"]
