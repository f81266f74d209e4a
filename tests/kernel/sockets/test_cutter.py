"""A connection whose ClientHello was refused is ended wherever it is, and no other with it."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import threading
from dataclasses import replace
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import pytest
from netns import box
from netns.scene import listening, outcome

from agentsh_net.core.abi import wire
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.plane import Fate, Finding
from agentsh_net.kernel import net_namespaces
from agentsh_net.kernel.sockets.cutter import cut

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
    cut(
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
    """Refuse connections of another namespace: of a process there, of a thread of ours, of a process that is gone."""
    there = box.there()
    process = there.call(lambda: subprocess.Popen(["sleep", "60"]))
    here = [socket.create_server(("10.99.0.1", p)) for p in (443, 444, 445)]
    clients = [there.socket(socket.AF_INET) for _ in here]
    for client, server in zip(clients, here, strict=True):
        client.connect(server.getsockname())
    done, tids = threading.Event(), queue.SimpleQueue()
    guest = threading.Thread(
        target=there.call, args=(lambda: (tids.put(threading.get_native_id()), done.wait()),)
    )
    guest.start()
    try:
        cut([refusal(clients[0], pid=process.pid, tid=process.pid)])
        cut([refusal(clients[1], pid=os.getpid(), tid=tids.get())])
    finally:
        done.set()
        guest.join()
        process.kill()
        process.wait()
    cut([refusal(clients[2], pid=process.pid, tid=process.pid)])
    return [state(client) for client in clients]


def test_in_another_namespace_it_is_ended_as_long_as_its_process_is_there() -> None:
    assert box.in_box(elsewhere) == ["ECONNABORTED", "ECONNABORTED", "EAGAIN"]


def test_who_has_many_namespaces_and_is_gone_is_looked_for_in_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def crowded() -> int:
        entered: list[Path] = []
        monkeypatch.setattr(net_namespaces, "within", lambda path, _: entered.append(path))
        there = box.there()
        process = there.call(lambda: subprocess.Popen(["sleep", "60"]))
        server = socket.create_server(("10.99.0.1", 443))
        with socket.create_connection(server.getsockname()) as client:
            gone = refusal(client, pid=os.getpid(), tid=os.getpid())
        cut([gone])
        process.kill()
        process.wait()
        return len(entered)

    assert box.in_box(crowded) == 0
