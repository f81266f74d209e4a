"""What the planes cost a connection to an address that no rule names (and to an allowed server), beside what hooks cost that do nothing.

Each round measures every state once, and none at its beginning and end; ratios are taken within a round, so that what else the machine does
meanwhile is in both. The peer is a listener outside of the box's cgroup, as a peer on another machine is.
"""

from __future__ import annotations

import os
import socket
import statistics
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from netns.box import Namespace, in_box, new_namespace, there
from netns.scene import BOTH, at, marked, opened, plan

from agentsh_net.core.network.plane import Endpoint, Plan
from agentsh_net.kernel.bpf import syscall
from agentsh_net.kernel.bpf.probe_source import PROGRAMS

UNLISTED, PORT = "10.99.0.4", 9000
# A round of these takes a second on an idle machine, so that its parts lie close together.
CONNECTS = 3000
ROUNDS = 5  # for each of --reps

# r0 = 1; exit: let pass.
_PASS = struct.pack("<BBhi", 0xB7, 0, 0, 1) + struct.pack("<BBhi", 0x95, 0, 0, 0)
_INET = "inet", "type filter hook output priority -10; policy accept;"
_NETDEV = "netdev", 'type filter hook egress device "here" priority 0; policy accept;'


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of socket + connect + close without any plane, and the ratio to it with each state."""

    none: float
    ratios: dict[str, float]


class Client:
    """net_client in a process of its own: counts in, medians out.

    `peer`: a listener that it empties between its connects; `pause`: nanoseconds that it lets pass between two of them.
    """

    def __init__(self, program: str, address: str, peer: socket.socket | None = None, pause: int = 0) -> None:
        fds = [] if peer is None else [peer.fileno()]
        self._process = subprocess.Popen(
            [program, address, str(PORT), str(fds[0] if fds else -1), str(pause)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=fds,
        )
        if peer is not None:  # it waits for nobody, so nobody has to run beside it
            os.sched_setscheduler(self._process.pid, os.SCHED_RR, os.sched_param(1))

    def run(self, count: int) -> tuple[int, float]:
        """Return the last errno and the median of `count` connects in seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        problem, median, _ = map(int, self._process.stdout.readline().split())
        return problem, median / 1e9


def many(count: int, *allowed: Endpoint) -> Plan:
    """Return a plan that denies so many addresses, none of which is UNLISTED."""
    six = (at(f"fd00:77::{n >> 16:x}:{n & 0xFFFF:x}") for n in range(count // 2))
    four = (at(f"10.{110 + (n >> 16)}.{n >> 8 & 255}.{n & 255}") for n in range(count - count // 2))
    return plan(1, deny=(*six, *four), tag=allowed)


def allowed(count: int) -> Plan:
    """Return a plan with so many allowed servers, half of them by IPv6, and ten denied addresses."""
    return many(10, *(at(f"fd00:78::{n:x}" if n % 2 else f"10.109.0.{n}", PORT) for n in range(count)))


def measure(program: str, rounds: int) -> Cost:
    """Measure in a box. `program`: net_client."""
    far = new_namespace()
    peer = _listener(far)  # made here, so that no program in the box sees what it sends
    try:
        return in_box(_inside, program, far, peer, rounds, timeout=120 + 30 * rounds)
    finally:
        peer.close()
        os.close(far.fd)


def _listener(far: Namespace) -> socket.socket:
    listener = far.socket(socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", PORT))
    listener.listen(4096)
    listener.setblocking(False)
    return listener


def _inside(program: str, far: Namespace, peer: socket.socket, rounds: int) -> Cost:
    there(far)
    client = Client(program, UNLISTED, peer)
    nones: list[float] = []
    ratios: dict[str, list[float]] = {name: [] for name in _STATES}

    def taken() -> float:
        client.run(CONNECTS // 4)  # hooks that came or went leave cold caches behind
        problem, median = client.run(CONNECTS)
        assert problem == 0, os.strerror(problem)
        return median

    for _ in range(rounds):
        nones.append(taken())
        for name, state in _STATES.items():
            with state():
                found = taken()
            nones.append(taken())
            ratios[name].append(found / statistics.mean(nones[-2:]))
    return Cost(statistics.median(nones), {name: statistics.median(all_) for name, all_ in ratios.items()})


def _nothing(kinds: Iterable[int], *chains: tuple[str, str]) -> Callable[[], Any]:
    """Return a state with hooks that do nothing where the planes have theirs on the way of a connection."""

    @contextmanager
    def state() -> Iterator[None]:
        cgroup = os.open("/sys/fs/cgroup", os.O_RDONLY | os.O_DIRECTORY)
        programs = []
        for kind in kinds:
            types = syscall.PROGRAM_TYPES
            fd = syscall.load_program("nothing", types[kind], kind, code=_PASS, licence="GPL")
            syscall.attach(cgroup, fd, kind)
            programs.append((fd, kind))
        for family, chain in chains:
            _nft(f"table {family} nothing {{ chain c {{ {chain} }}; }}")
        try:
            yield
        finally:
            for family, _ in chains:
                _nft(f"delete table {family} nothing")
            for fd, kind in programs:
                syscall.detach(cgroup, fd, kind)
                os.close(fd)
            os.close(cgroup)

    return state


def _nft(command: str) -> None:
    subprocess.run(["nft", command], check=True)


def _planes(wanted: Plan, *layers: str) -> Callable[[], Any]:
    @contextmanager
    def state() -> Iterator[None]:
        host = opened(wanted, *layers)
        try:
            yield
        finally:
            host.close(remove=True)

    return state


_STATES: dict[str, Callable[[], Any]] = {
    "programs that do nothing": _nothing(PROGRAMS.values()),
    "an output chain that does nothing": _nothing((), _INET),
    "an egress chain that does nothing": _nothing((), _NETDEV),
    "all hooks, that do nothing": _nothing(PROGRAMS.values(), _INET, _NETDEV),
    "ebpf alone": _planes(many(10), "ebpf"),
    "nftables alone": _planes(many(10), "nftables"),
    "nftables alone, 50 allowed servers": _planes(allowed(50), "nftables"),
    "both planes": _planes(many(10), *BOTH),
    "both planes, 100,000 addresses": _planes(many(100_000), *BOTH),
    "both planes, 50 allowed servers": _planes(allowed(50), *BOTH),
    "both planes, 50 allowed servers and a mark": _planes(marked(allowed(50)), *BOTH),
    "both planes, being an allowed server": _planes(many(10, at(UNLISTED, PORT)), *BOTH),
    "both planes, being an allowed server, and a mark": _planes(marked(many(10, at(UNLISTED, PORT))), *BOTH),
}
