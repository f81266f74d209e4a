"""Rows 14, 16, 17, 29 with `network.scope: sessions`: a session's agent stays refused whichever trick it knows, and nobody else is."""

from __future__ import annotations

import array
import os
import signal
import socket
import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from attacks.net.test_other_families import BY_A_THREAD, UNTOLD, rxrpc
from attacks.net.test_processes import (
    CGROUP,
    ROUTER,
    TCP,
    UDP,
    connected,
    in_child,
    in_container,
    marked,
)
from attacks.net.test_sctp import SAYS, association
from netns import box
from netns.scene import MARK, attempt, outcome
from netns.stage import BAD, PLANES, Row, Seen, Stage, Told
from netns.syscalls import pidfd_getfd

pytestmark = pytest.mark.kernel

NOBODY = 65534
# What is connected ends with its attack: a frame of it that came later would be taken for the next one's.
NOTHING_LATER = struct.pack("=ii", 1, 0)
MADE_ELSEWHERE = (
    "a packet tells the cgroup in which its socket was made, and this one was made outside of the session: `exec` passes no "
    "internet socket on, and a helper outside that hands one over could as well connect for the agent"
)
CONNECTED_ELSEWHERE = (
    "who connected is in no session, and nobody else is policed; such a helper could as well pass on what the agent says, by a "
    "Unix socket, which no plane sees"
)
FORWARDED = (
    "a packet that is forwarded out of another network namespace tells no socket, and so no session: with this scope they are "
    "nobody's. An agent cannot have such a namespace: it needs CAP_NET_ADMIN over this one for its uplink"
)
# The program at egress can only drop; the packet plane resets.
DROPPED = {"ebpf": {"ETIMEDOUT"}, "nftables": {"ECONNREFUSED"}}


def enter(below: str = "") -> None:
    folder = CGROUP / "agentsh-net/sessions/mine.session" / below
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def leave() -> None:
    (CGROUP / "cgroup.procs").write_text(str(os.getpid()))


def fresh(kind: int = socket.SOCK_STREAM) -> socket.socket:
    made = socket.socket(socket.AF_INET, kind)
    made.settimeout(1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOTHING_LATER)
    return made


def inside(action: Callable[[], str], below: str = "") -> Callable[[Stage], Told]:
    """Do it as the session's agent."""

    def act() -> str:
        enter(below)
        return action()

    return lambda _: in_child(act)


def datagram() -> str:
    with fresh(socket.SOCK_DGRAM) as client:
        return outcome(lambda: client.sendto(b"x", (BAD, 443)))


def made_before_entering(stage: Stage) -> Told:
    def act() -> str:
        client = fresh()
        enter()
        return connected(client)

    return in_child(act)


def over_unix_socket(stage: Stage) -> Told:
    """A helper outside makes the socket and sends it (SCM_RIGHTS)."""
    mine, theirs = socket.socketpair()

    def act() -> str:
        enter()
        _, fds, _, _ = socket.recv_fds(mine, 1, 1)
        with socket.socket(fileno=fds[0]) as client:
            client.settimeout(1)
            return connected(client)

    with fresh() as made:
        rights = array.array("i", [made.fileno()])
        theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    return in_child(act)


def out_of_another_process(stage: Stage) -> Told:
    """Take the socket of a process outside (pidfd_getfd)."""
    reader, writer = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.write(writer, fresh().detach().to_bytes(4, "little"))
        signal.pause()
    fd = int.from_bytes(os.read(reader, 4), "little")

    def act() -> str:
        enter()
        with pidfd_getfd(helper, fd) as client:
            client.settimeout(1)
            return connected(client)

    try:
        return in_child(act)
    finally:
        box.kill(helper)


def handed_out(stage: Stage) -> Told:
    """The agent makes the socket, and a helper outside uses it."""
    mine, theirs = socket.socketpair()
    maker = os.fork()
    if maker == 0:
        enter()
        made = fresh()
        theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [made.fileno()]))])
        os._exit(0)
    _, fds, _, _ = socket.recv_fds(mine, 1, 1)
    os.waitpid(maker, 0)
    with socket.socket(fileno=fds[0]) as client:
        client.settimeout(1)
        return Told(connected(client), os.getpid())


def connected_elsewhere(stage: Stage) -> Told:
    """A helper outside connects, and hands over what is connected."""
    mine, theirs = socket.socketpair()

    def act() -> str:
        enter()
        _, fds, _, _ = socket.recv_fds(mine, 1, 1)
        with socket.socket(fileno=fds[0]) as client:
            return outcome(lambda: client.send(b"x"))

    with fresh() as made:
        made.connect((BAD, 443))
        socket.send_fds(theirs, [b"x"], [made.fileno()])
        return in_child(act)


def left_with_a_socket(stage: Stage) -> Told:
    """Root's agent leaves its session, and takes along a socket that it made inside."""

    def act() -> str:
        enter()
        client = fresh()
        leave()
        return connected(client)

    return in_child(act)


def left_without_right() -> str:
    """As exec starts agents: without root, nobody leaves."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    assert outcome(leave) == "EACCES"
    assert (
        outcome(lambda: (CGROUP / "agentsh-net/workers/cgroup.procs").write_text(str(os.getpid())))
        == "EACCES"
    )
    return attempt(BAD)


def from_container(stage: Stage) -> Told:
    """A child of the agent's in a network namespace behind this one."""

    def act() -> str:
        enter()
        return in_container(stage, ROUTER)

    return in_child(act)


def as_agent(attack: Callable[[Stage], str]) -> Callable[[Stage], Told]:
    """By a socket of the kernel's own, or one that no connect hook sees."""

    def act(stage: Stage) -> str:
        enter()
        return attack(stage)

    return lambda stage: in_child(lambda: act(stage))


def mark_of(stage: Stage) -> Told:
    def act() -> str:
        enter()
        return marked(MARK)(stage)

    return in_child(act)


ROWS = {
    "1 TCP": Row(inside(lambda: attempt(BAD)), "tcp", TCP),
    "3 sendto": Row(inside(datagram), "udp", UDP),
    "9 RxRPC": Row(as_agent(rxrpc), "udp", UNTOLD, port=7001, unseen=BY_A_THREAD, unnamed=True),
    "13 SCTP": Row(as_agent(association), "sctp", SAYS, unseen=True, unnamed=True),
    "14 socket made before entering": Row(made_before_entering, "tcp", TCP, open_on={"nftables": MADE_ELSEWHERE}),
    "14 SCM_RIGHTS": Row(over_unix_socket, "tcp", TCP, open_on={"nftables": MADE_ELSEWHERE}),
    "14 pidfd_getfd": Row(out_of_another_process, "tcp", TCP, open_on={"nftables": MADE_ELSEWHERE}),
    "14 connected elsewhere": Row(
        connected_elsewhere, "tcp", {}, open_on=dict.fromkeys(("ebpf", "nftables"), CONNECTED_ELSEWHERE)
    ),
    "14 handed out": Row(handed_out, "tcp", DROPPED, unseen=True, unnamed=True),
    "16 sub-cgroup": Row(inside(lambda: attempt(BAD), "a/b"), "tcp", TCP),
    "16 leaving with a socket": Row(left_with_a_socket, "tcp", DROPPED, unseen=True, unnamed=True),
    "16 leaving without root": Row(inside(left_without_right), "tcp", TCP),
    "17 container behind a veth": Row(from_container, "tcp", TCP, open_on={"nftables": FORWARDED}),
    "29 the mark of tagged connections": Row(mark_of, "tcp", TCP),
}  # fmt: skip
BYSTANDERS: dict[str, Callable[[Stage], str | Told]] = {
    "TCP": lambda _: attempt(BAD),
    "UDP": lambda _: datagram(),
    "a child in a cgroup of its own": lambda _: in_child(lambda: (elsewhere(), attempt(BAD))[1]),
}


def elsewhere() -> None:
    folder = CGROUP / "elsewhere"
    folder.mkdir(exist_ok=True)
    (folder / "cgroup.procs").write_text(str(os.getpid()))


def everything(layers: tuple[str, ...]) -> tuple[dict[str, Seen], dict[str, Seen], int]:
    stage = Stage(layers, network={"scope": "sessions"})
    stage.kernel.cgroups.begin("mine")
    stage.plan = replace(stage.plan, generation=2, sessions=("mine",))
    stage.kernel.apply(stage.plan)
    # This process' connection is a bystander's, which no sweep may close.
    swept = [record for record in stage.kernel.sweep(stage.plan) if record.pid == os.getpid()]
    stage.early.established.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOTHING_LATER)
    stage.early.established.close()
    stage.settle()
    attacks = {name: stage.mount(row.attack) for name, row in ROWS.items()}
    return attacks, {name: stage.mount(act) for name, act in BYSTANDERS.items()}, len(swept)


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(
    request: pytest.FixtureRequest,
) -> tuple[tuple[str, ...], tuple[dict[str, Seen], dict[str, Seen], int]]:
    return request.param, box.in_box(everything, request.param)


Played = tuple[tuple[str, ...], tuple[dict[str, Seen], dict[str, Seen], int]]


@pytest.mark.parametrize("name", ROWS)
def test_a_sessions_agent_does_not_reach_the_denied_server_and_the_event_names_its_session(
    played: Played, name: str
) -> None:
    layers, (attacks, _, _) = played
    ROWS[name].check_if_here(attacks[name], layers)
    assert {event.session_id for event in attacks[name].events} <= {"mine"}


@pytest.mark.parametrize("name", BYSTANDERS)
def test_who_is_in_no_session_is_neither_refused_nor_told(played: Played, name: str) -> None:
    _, (_, bystanders, swept) = played
    seen = bystanders[name]
    assert (seen.said, seen.events, seen.refused) == ("connected", [], 0)
    assert seen.arrived > 0
    assert swept == 0
