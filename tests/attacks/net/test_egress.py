"""Default-deny for sessions (`network.egress: {sessions: refuse}`): an agent reaches what is declared and nothing else.

The attacks are those of the catalogue (`test_sockets.py`, `test_sessions.py`), on a server of which no policy knows.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from dataclasses import replace

import pytest
from attacks.net import test_sessions, test_sockets
from attacks.net.test_sessions import datagram, enter, fresh
from netns import box
from netns.scene import attempt, listening, outcome
from netns.stage import BAD, BAD6, BOTH, EBPF, GOOD, GOOD6, NFT, OTHER, OTHER6, PLANES, Row, Seen, Stage, Told
from netns.stage import policy as policy_of

from agentsh_net.core.audit.events import Event
from agentsh_net.core.network import attribution
from agentsh_net.core.network.plane import ConnectRecord
from agentsh_net.kernel.host import open_kernel

pytestmark = pytest.mark.kernel

SERVERS = {"good": (GOOD, GOOD6)}
PREFIX6 = "fd00:99::4/126"  # OTHER6 is in it
EGRESS = {"sessions": "refuse", "allow": [f"{OTHER}:443", PREFIX6]}
# These reach for the allowed server on the way, at a port that is not its own.
ON_THE_WAY = {"3 sendmmsg behind an allowed one", "4 sendto from a socket connected elsewhere"}
HERE = "10.99.0.1"


class Place(Stage):
    """One allowed server, some declared endpoints, and a session that may reach nothing else."""

    def __init__(
        self, layers: tuple[str, ...], egress: dict[str, object] = EGRESS, mode: str = "enforce"
    ) -> None:
        super().__init__(layers, network={"egress": egress, "mode": mode}, servers=SERVERS)
        self.kernel.cgroups.begin("mine")
        self.put(replace(self.plan, generation=2))
        self.settle()

    def put(self, plan: object) -> None:
        self.plan = replace(plan, sessions=("mine",))
        self.kernel.apply(self.plan)

    def told(self, records: list[ConnectRecord]) -> list[Event]:
        return [attribution.attribute(self.snapshot, record, self.plan) for record in records]


def agent(attack: Callable[[Stage], str | Told]) -> Callable[[Stage], Told]:
    """Do it as the session's agent."""

    def act(stage: Stage) -> Told:
        def inside() -> str:
            enter()
            said = attack(stage)
            return said if isinstance(said, str) else said.said

        return test_sessions.in_child(inside)

    return act


ROWS = {
    name: replace(row, attack=agent(row.attack))
    for name, row in test_sockets.ROWS.items()
    if name not in ON_THE_WAY
} | {name: row for name, row in test_sessions.ROWS.items() if "mark" not in name}


def attacked(layers: tuple[str, ...]) -> dict[str, Seen]:
    place = Place(layers)
    return {name: place.mount(row.attack) for name, row in ROWS.items()}


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], dict[str, Seen]]:
    return request.param, box.in_box(attacked, request.param)


class Undeclared(Row):
    """A row whose server nobody declared."""

    @property
    def blamed(self) -> tuple[object, ...]:
        return "undeclared_connection", "network.egress", "mine"

    def blames(self, event: Event) -> tuple[object, ...]:
        return event.type, event.rule, event.session_id


@pytest.mark.parametrize("name", ROWS)
def test_an_agent_does_not_reach_what_is_not_declared_and_the_event_names_its_session(
    played: tuple[tuple[str, ...], dict[str, Seen]], name: str
) -> None:
    layers, attacks = played
    row = ROWS[name]
    Undeclared(**{f: getattr(row, f) for f in Row.__slots__}).check_if_here(attacks[name], layers)


def to_itself() -> str:
    """By the loopback, and by this host's own address."""
    with socket.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        port = server.getsockname()[1]
        return " ".join(attempt(a, port) for a in ("127.0.0.1", HERE))


REACHED: dict[str, Callable[[], str]] = {
    "an allowed server": lambda: attempt(GOOD),
    "an allowed server, v6": lambda: attempt(GOOD6),
    "an address with a port": lambda: attempt(OTHER),
    "a prefix": lambda: attempt(OTHER6),
    "a prefix, UDP": lambda: test_sockets.datagram(OTHER6),
}
UNREACHED: dict[str, Callable[[], str]] = {
    "another port of the allowed server": lambda: attempt(GOOD, 444),
    "another port of the address": lambda: attempt(OTHER, 444),
    "beside the prefix": lambda: attempt("fd00:99::3", 444),
    "a multicast group": lambda: outcome(lambda: fresh(socket.SOCK_DGRAM).sendto(b"x", ("239.1.2.3", 9))),
}
BYSTANDERS: dict[str, Callable[[], str]] = {
    "TCP": lambda: attempt(BAD),
    "UDP": datagram,
    "v6": lambda: attempt(BAD6),
}


def declared(layers: tuple[str, ...]) -> tuple[dict[str, Seen], str, dict[str, Seen], dict[str, Seen]]:
    place = Place(layers)

    subprocess.run(["ip", "route", "add", "239.0.0.0/8", "dev", "here"], check=True)

    def each(actions: dict[str, Callable[[], str]]) -> dict[str, Seen]:
        return {n: place.mount(agent(lambda _, a=a: a())) for n, a in actions.items()}

    here = place.mount(agent(lambda _: to_itself())).said
    bystanders = {n: place.mount(lambda _, a=a: a()) for n, a in BYSTANDERS.items()}
    return each(REACHED), here, each(UNREACHED), bystanders


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_what_is_declared_is_reached_and_who_is_in_no_session_is_not_concerned(
    layers: tuple[str, ...],
) -> None:
    reached, here, unreached, bystanders = box.in_box(declared, layers)
    assert {name: (seen.said, seen.events) for name, seen in reached.items()} == dict.fromkeys(
        REACHED, ("connected", [])
    )
    assert here == "connected connected"
    for name, seen in unreached.items():
        assert seen.said in {"EPERM", "ECONNREFUSED"}, name
        assert {event.type for event in seen.events} == {"undeclared_connection"}, name
    for name, seen in bystanders.items():
        assert (seen.said, seen.events, seen.refused) == ("connected", [], 0), name


def told_of(layers: tuple[str, ...], egress: dict[str, object], mode: str) -> tuple[str, int, list[Event]]:
    place = Place(layers, egress, mode)
    said = [agent(lambda _, a=a: attempt(a))(place).said for a in (BAD, BAD6)]
    records: list[ConnectRecord] = []
    box.await_that(lambda: records.extend(place.kernel.records()) or len(records) > 1)
    return " ".join(said), place.settle()[1], place.told(records)


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
@pytest.mark.parametrize(
    ("sessions", "mode", "would"), [("tag", "enforce", None), ("refuse", "tag", "block")]
)
def test_what_is_only_told_is_reached_and_told_once(
    layers: tuple[str, ...], sessions: str, mode: str, would: str | None
) -> None:
    said, refused, events = box.in_box(told_of, layers, {"sessions": sessions}, mode)
    assert (said, refused) == ("connected connected", 0)
    assert [(e.type, e.action, e.would, e.session_id, e.remote_addr) for e in events] == [
        ("undeclared_connection", "allow", would, "mine", f"{BAD}:443"),
        ("undeclared_connection", "allow", would, "mine", f"[{BAD6}]:443"),
    ]


def changed(layers: tuple[str, ...]) -> tuple[list[str], list[Event], list[str]]:
    """Open, then refuse, then open: with a connection of the session's and one of a bystander's that stand."""
    place = Place(layers, {"sessions": "open"})
    mine, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        enter()
        with socket.create_connection((BAD, 443), 5) as old, socket.create_connection((GOOD, 443), 5) as good:
            for ask in iter(lambda: theirs.recv(16), b""):
                if ask == b"old":
                    said = [
                        outcome(lambda s=s: (s.send(b"x"), s.settimeout(0.3), s.recv(1))) for s in (old, good)
                    ]
                else:
                    said = [attempt(BAD), attempt(GOOD)]
                theirs.send(" ".join(said).encode())
        os._exit(0)
    bystander = socket.create_connection((BAD, 443), 5)

    def ask(what: bytes) -> str:
        mine.send(what)
        return mine.recv(1024).decode()

    said = [ask(b"new")]
    snapshot, refusing = policy_of({"egress": EGRESS}, 3, servers=SERVERS)
    opened, place.snapshot = place.plan, snapshot
    place.put(refusing)
    swept = place.told(place.kernel.sweep(place.plan))
    said += [ask(b"old"), ask(b"new")]
    place.put(replace(opened, generation=4))
    said.append(ask(b"new"))
    bystander.send(b"x")
    states = [s.reason for s in place.kernel.status() if s.wanted and not s.in_force]
    box.kill(child)
    return said, swept, states


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_change_of_policy_ends_what_stood_and_the_way_back_is_open(layers: tuple[str, ...]) -> None:
    said, swept, states = box.in_box(changed, layers)
    first, old, new, last = said
    assert (first, last) == ("connected connected", "connected connected")
    assert old.split()[0] in {"ECONNABORTED", "ECONNRESET", "EPIPE", "EPERM"}
    assert old.split()[1] == "ETIMEDOUT"  # the allowed server's stands, and has nothing to say
    assert new.split() == ["EPERM" if layers != NFT else "ECONNREFUSED", "connected"]
    assert [(e.type, e.layer, e.session_id, e.remote_addr) for e in swept] == [
        ("undeclared_connection", "sweep", "mine", f"{BAD}:443")
    ]
    assert states == []


def unswept(layers: tuple[str, ...]) -> Seen:
    """A connection of the session's that stood before, and that no sweep has closed."""
    place = Place(layers, {"sessions": "open"})
    mine, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        enter()
        with socket.create_connection((BAD, 443), 5) as old:
            theirs.send(b"ready")
            theirs.recv(1)
            theirs.send(outcome(lambda: old.send(b"x")).encode())
            theirs.recv(1)
        os._exit(0)
    mine.recv(16)
    snapshot, refusing = policy_of({"egress": EGRESS}, 3, servers=SERVERS)
    place.snapshot = snapshot
    place.put(refusing)
    place.settle()

    def attack(_: Stage) -> str:
        mine.send(b"x")
        return mine.recv(64).decode()

    try:
        return place.mount(attack)
    finally:
        box.kill(child)


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_connection_that_stood_before_carries_nothing_more_even_unswept(layers: tuple[str, ...]) -> None:
    seen = box.in_box(unswept, layers)
    assert seen.arrived == 0
    assert {(e.type, e.session_id) for e in seen.events} == {("undeclared_connection", "mine")}


def both_refused(layers: tuple[str, ...]) -> tuple[Seen, Seen]:
    """A denied server that `allow` lists too."""
    network = {"egress": {"sessions": "refuse", "allow": [BAD, f"{BAD6}", "10.99.0.0/24"]}}
    stage = Stage(layers, network=network)
    stage.kernel.cgroups.begin("mine")
    stage.plan = replace(stage.plan, generation=2, sessions=("mine",))
    stage.kernel.apply(stage.plan)
    stage.settle()
    return stage.mount(agent(lambda _: attempt(BAD))), stage.mount(agent(lambda _: attempt(BAD6)))


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_denial_is_one_whatever_is_allowed_and_the_event_names_the_denied_server(
    layers: tuple[str, ...],
) -> None:
    for seen in box.in_box(both_refused, layers):
        assert seen.arrived == 0
        assert {(e.type, e.action, e.server_id) for e in seen.events} == {
            ("mcp_network_connection", "block", "evil")
        }


def translated(layers: tuple[str, ...]) -> tuple[str, str]:
    """Root has a declared address lead to another one (a published port), and an undeclared one to a declared one."""
    place = Place(layers)
    place.servers.append(listening(place.there, "10.99.0.5", 444))
    rules = f"add table ip nat1; add chain ip nat1 out {{ type nat hook output priority -100; }}; \
        add rule ip nat1 out ip daddr {OTHER} tcp dport 443 dnat to 10.99.0.5:444; \
        add rule ip nat1 out ip daddr {BAD} tcp dport 443 dnat to {GOOD}:443"
    subprocess.run(["nft", rules], check=True)
    one, other = (agent(lambda _, a=a: attempt(a))(place).said for a in (OTHER, BAD))
    return one, other


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_what_counts_is_the_address_that_the_agent_asked_for(layers: tuple[str, ...]) -> None:
    one, other = box.in_box(translated, layers)
    assert (one, other) == ("connected", "ECONNREFUSED" if layers == NFT else "EPERM")
    assert layers in (EBPF, NFT, BOTH)


def as_worker() -> str:
    def inside() -> str:
        (test_sessions.CGROUP / "agentsh-net/workers/cgroup.procs").write_text(str(os.getpid()))
        return attempt(BAD)

    return test_sessions.in_child(inside).said


def sidecar() -> tuple[list[str], str, list[Event], list[Event]]:
    there = box.there()
    servers = [listening(there, a) for a in (BAD, BAD6, GOOD, GOOD6)]
    old = socket.create_connection((BAD, 443), 5)
    snapshot, plan = policy_of({"egress": EGRESS, "scope": "netns"}, servers=SERVERS)
    kernel = open_kernel(snapshot.config.network)
    kernel.apply(plan)
    swept = kernel.sweep(plan)
    said = [attempt(a) for a in (BAD, BAD6, GOOD, GOOD6)]
    worker = as_worker()
    records = box.await_that(kernel.records)
    assert len(servers) == 4
    old.close()
    events = [[attribution.attribute(snapshot, r, plan) for r in found] for found in (swept, records)]
    return said, worker, events[0], events[1]


def test_in_a_sidecar_everybody_but_the_proxy_reaches_only_what_is_declared() -> None:
    said, worker, swept, events = box.in_box(sidecar)
    assert said == ["ECONNREFUSED", "ECONNREFUSED", "connected", "connected"]
    assert worker == "connected"
    assert [(e.type, e.layer, e.remote_addr) for e in swept] == [
        ("undeclared_connection", "sweep", f"{BAD}:443")
    ]
    refused = {(e.type, e.remote_addr) for e in events if e.action == "block"}
    assert {kind for kind, _ in refused} == {"undeclared_connection"}
    assert f"{BAD}:443" in {address for _, address in refused}
