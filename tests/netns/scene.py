"""What the kernel tests say over and over: a plan in a line, an opened kernel, an attempt, what was recorded of it."""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address

from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.plane import ConnectRecord, Endpoint, Fate, Plan, Rule
from agentsh_net.kernel import host as kernel_host
from agentsh_net.kernel.host import Host
from netns.box import SLOWNESS, await_that, kill

MARK, MASK = 0x00A50000, 0x00FF0000
BOTH = ("ebpf", "nftables")


def at(address: str, port: int = 0) -> Endpoint:
    """Return an endpoint as the planes look it up."""
    return Endpoint(canonical(ip_address(address)), port)


def plan(generation: int = 1, *, deny: tuple[Endpoint, ...] = (), tag: tuple[Endpoint, ...] = ()) -> Plan:
    """Return a plan with these fates; the servers are called `bad` and `good`."""
    rules = {e: Rule(Fate.DENY, ("bad",)) for e in deny} | {e: Rule(Fate.TAG, ("good",)) for e in tag}
    return Plan(generation, rules)


def marked(wanted: Plan) -> Plan:
    """Return the plan with a mark for tagged connections."""
    return replace(wanted, mark=MARK, mark_mask=MASK)


def opened(wanted: Plan, *layers: str, load: Callable[[], object] | None = None) -> Host:
    """Open these layers, all required, and apply the plan."""
    network = Network(mode="enforce", layers=layers or BOTH, required=True)
    host = kernel_host.open_kernel(network) if load is None else kernel_host.open_kernel(network, load=load)
    host.apply(wanted)
    return host


def attempt(address: str, port: int = 443, family: int = 0, kind: int = socket.SOCK_STREAM) -> str:
    """Connect and say what came of it: `connected`, or the name of the error."""
    family = family or (socket.AF_INET6 if ":" in address else socket.AF_INET)
    with socket.socket(family, kind) as client:
        client.settimeout(5)
        return outcome(lambda: client.connect((address, port)))


def outcome(action: Callable[[], object]) -> str:
    """Do it and say `connected`, or the name of the error."""
    try:
        action()
    except TimeoutError:
        return "ETIMEDOUT"
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "connected"


def drain(host: Host, count: int, *, within: float = 120) -> list[ConnectRecord]:
    """Return `count` records, or fail; and any that stand beside them."""
    found: list[ConnectRecord] = []
    within *= SLOWNESS
    deadline = time.monotonic() + within
    while len(found) < count:
        ready, _, _ = select.select(host.filenos(), [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{len(found)} of {count} records within {within} s: {found}"
        found += host.records()
    return found


def listening(namespace: object, address: str, port: int = 443, protocol: int = 0) -> socket.socket:
    """Return a socket that listens in a namespace."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = namespace.socket(family, socket.SOCK_STREAM, protocol)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen(4096)  # who waits for a refusal connects until it comes, and nobody accepts
    return server


@contextmanager
def trying(address: str, port: int = 443) -> Iterator[Counter[str]]:
    """Connect in a tight loop meanwhile, in a process of its own, and count what came of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.nice(10)  # tight enough, and daemons may start beside it
        while True:
            os.write(writer, f"{attempt(address, port)}\n".encode())
    os.close(writer)
    outcomes: Counter[str] = Counter()

    def collect() -> None:
        with os.fdopen(reader) as lines:
            outcomes.update(line.strip() for line in lines)

    collector = threading.Thread(target=collect)
    collector.start()
    await_that(lambda: outcomes)
    try:
        yield outcomes
    finally:
        kill(child)
        collector.join()
