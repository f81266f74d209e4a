"""Rows 29, 35: an agent does not reach the LLM provider around the proxy, whatever it pretends to be; the proxy does."""

from __future__ import annotations

import os
import select
import socket
import struct
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import pytest
from attacks.net.test_processes import SO_MARK, in_child
from netns import box, tls
from netns.scene import MARK, attempt, listening, outcome
from netns.stage import BOTH, EBPF, NFT, PLANES

from agentsh_net.core.audit.events import Event, LlmDirectConnection
from agentsh_net.core.configuration import config as configuration
from agentsh_net.core.network import attribution, kernel_plan, llm_plan
from agentsh_net.core.network.plane import ConnectRecord
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins
from agentsh_net.kernel.host import Host, open_kernel

pytestmark = pytest.mark.kernel

PROVIDER, PROVIDER6, PORT, ELSEWHERE = "10.99.0.5", "fd00:99::5", 8443, 9443
CGROUP = Path("/sys/fs/cgroup")
NOBODY = 65534


def policy(direct: str, layers: tuple[str, ...], scope: str = "host") -> Snapshot:
    mapping = {
        "version": 1,
        "proxy": {"providers": {"corp": {"dialect": "openai", "base_url": f"https://llm.test:{PORT}/v1"}}},
        "network": {
            "mode": "tag",
            "llm_direct": direct,
            "layers": list(layers),
            "required": True,
            "scope": scope,
        },
    }
    config = configuration.parse(mapping)
    return Snapshot(1, "d", config, Registry(()), Pins(), mapping)


@dataclass(frozen=True, slots=True)
class Met:
    """What came of it: what was said, and the events."""

    said: str
    events: list[LlmDirectConnection] = field(default_factory=list)


class Place:
    """A provider that listens, and the planes."""

    def __init__(self, direct: str, layers: tuple[str, ...], scope: str = "host") -> None:
        there = box.there()
        self.servers = [listening(there, a, p) for a in (PROVIDER, PROVIDER6) for p in (PORT, ELSEWHERE)]
        self.snapshot = policy(direct, layers, scope)
        known = {llm_plan.key("corp"): [ip_address(PROVIDER), ip_address(PROVIDER6)]}
        self.old = socket.create_connection((PROVIDER, PORT), 5)
        self.kernel: Host = open_kernel(self.snapshot.config.network)
        self.kernel.cgroups.begin("mine")
        self.plan = kernel_plan.build(self.snapshot, known, sessions=["mine"])
        self.kernel.apply(self.plan)
        self.swept = self.attributed(self.kernel.sweep(self.plan))

    def attributed(self, records: list[ConnectRecord]) -> list[LlmDirectConnection]:
        return [attribution.attribute(self.snapshot, record, self.plan) for record in records]

    def counted(self) -> int:
        return sum(s.denied + s.tagged for s in self.kernel.status() if s.wanted)

    def meet(self, action: Callable[[], str], *, events: bool = True) -> Met:
        """Do it, wait for its event where one is due, and return both."""
        told = in_child(action)
        records: list[ConnectRecord] = []
        if events:
            box.await_that(lambda: records.extend(self.kernel.records()) or records)
        return Met(told.said, self.attributed([*records, *self.kernel.records()]))


def enter(path: str) -> None:
    (CGROUP / "agentsh-net" / path / "cgroup.procs").write_text(str(os.getpid()))


def as_worker() -> str:
    enter("workers")
    return attempt(PROVIDER, PORT)


def as_workers_user() -> str:
    """The user that the proxy's workers are, outside of their cgroup."""
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    assert outcome(lambda: enter("workers")) == "EACCES"
    return attempt(PROVIDER, PORT)


def marked(mark: int) -> Callable[[], str]:
    def act() -> str:
        with socket.socket() as client:
            client.settimeout(2)
            client.setsockopt(socket.SOL_SOCKET, SO_MARK, struct.pack("=I", mark))
            return outcome(lambda: client.connect((PROVIDER, PORT)))

    return act


def of_session(action: Callable[[], str]) -> Callable[[], str]:
    def act() -> str:
        enter("sessions/mine.session")
        return action()

    return act


def quic() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        return outcome(lambda: client.sendto(b"\xc0\0\0\0\1", (PROVIDER, PORT)))


ATTACKS: dict[str, Callable[[], str]] = {
    "35 TCP": lambda: attempt(PROVIDER, PORT),
    "35 TCP v6": lambda: attempt(PROVIDER6, PORT),
    "35 mapped": lambda: attempt(f"::ffff:{PROVIDER}", PORT),
    "35 HTTP/3": quic,
    "35 a session's agent": of_session(lambda: attempt(PROVIDER, PORT)),
    "29 the mark of tagged connections": marked(MARK),
    "29 every mark": marked(0xFFFFFFFF),
    "35 the workers' user": as_workers_user,
}


def refused(layers: tuple[str, ...]) -> tuple[dict[str, Met], Met, Met, list[LlmDirectConnection]]:
    place = Place("refuse", layers)
    attacks = {name: place.meet(action) for name, action in ATTACKS.items()}
    neighbour = place.meet(lambda: attempt(PROVIDER, ELSEWHERE), events=False)
    return attacks, place.meet(as_worker, events=False), neighbour, place.swept


Refused = tuple[tuple[str, ...], tuple[dict[str, Met], Met, Met, list[LlmDirectConnection]]]


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(request: pytest.FixtureRequest) -> Refused:
    return request.param, box.in_box(refused, request.param)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_provider_is_not_reached_around_the_proxy_and_the_event_says_by_whom(
    played: Refused, name: str
) -> None:
    layers, (attacks, _, _, _) = played
    met = attacks[name]
    assert met.said == ("EPERM" if layers != NFT or name == "35 HTTP/3" else "ECONNREFUSED")
    assert {(e.type, e.action, e.provider, e.layer) for e in met.events} == {
        ("llm_direct_connection", "block", "corp", layers[0])
    }
    if name == "35 a session's agent":
        assert {e.session_id for e in met.events} == {"mine"}
    if layers != NFT:
        assert all(e.pid for e in met.events)


def test_the_proxy_reaches_it_and_is_told_of_by_nobody(played: Refused) -> None:
    _, (_, worker, neighbour, _) = played
    assert worker == Met("connected")
    assert neighbour == Met("connected")


def test_a_direct_connection_that_stood_before_is_closed(played: Refused) -> None:
    _, (_, _, _, swept) = played
    assert [(e.type, e.layer, e.action) for e in swept] == [("llm_direct_connection", "sweep", "block")]


class Shared:
    """The provider and an MCP server live at one endpoint, and names decide there."""

    def __init__(self, layers: tuple[str, ...], server: str, direct: str, **rules: object) -> None:
        there = box.there()
        pem = tls.authority(Path(tempfile.mkdtemp()), "llm.test", f"{server}.test")
        tls.TlsServer([listening(there, PROVIDER, 443)], pem)
        self.trust = tls.context(pem)
        declared = [{"id": server, "type": "http", "url": f"https://{server}.test/mcp"}]
        mapping = {
            "version": 1,
            "sandbox": {"mcp": {"servers": declared, **rules}},
            "proxy": {"providers": {"corp": {"dialect": "openai", "base_url": "https://llm.test/v1"}}},
            "network": {"mode": "enforce", "llm_direct": direct, "layers": list(layers), "required": True}
            | {"on_shared_address": "sni", "on_unknown_sni": "tag"},
        }
        config = configuration.parse(mapping)
        self.snapshot = Snapshot(1, "d", config, Registry(config.sandbox.mcp.servers), Pins(), mapping)
        known = {key: [ip_address(PROVIDER)] for key in (llm_plan.key("corp"), server)}
        self.kernel = open_kernel(config.network)
        self.plan = kernel_plan.build(self.snapshot, known)
        self.kernel.apply(self.plan)
        self.records: list[ConnectRecord] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """Read what the kernel tells, as the daemon does, which ends what was refused by its name."""
        while select.select(self.kernel.filenos(), [], [])[0]:
            self.records += self.kernel.records()

    def visit(self, name: str, *, as_proxy: bool = False) -> str:
        return in_child(
            lambda: (as_proxy and enter("workers"), tls.visit(self.trust, name, PROVIDER))[1]
        ).said

    def event(self, name: str) -> Event:
        """Return what is told of the first connection that said a name, once it is."""
        found = box.await_that(lambda: [r for r in self.records if r.sni == name])
        return attribution.attribute(self.snapshot, found[0], self.plan)


def by_name(layers: tuple[str, ...]) -> dict[str, str]:
    place = Shared(layers, "good", "refuse")
    said = {name: place.visit(name) for name in ("good.test", "llm.test")}
    said["event"] = place.event("llm.test").type
    said["proxy"] = place.visit("llm.test", as_proxy=True)
    return said


@pytest.mark.parametrize("layers", [EBPF, BOTH], ids="+".join)
def test_at_a_shared_endpoint_the_providers_name_is_refused_and_the_proxy_says_it_all_the_same(
    layers: tuple[str, ...],
) -> None:
    said = box.in_box(by_name, layers)
    assert said["good.test"] == "1 bytes for good.test"
    assert said["proxy"] == "1 bytes for llm.test"
    assert "bytes for" not in said["llm.test"]
    assert said["event"] == "llm_direct_connection"


def denied_name(layers: tuple[str, ...]) -> dict[str, object]:
    place = Shared(layers, "evil", "off", denied_servers=[{"id": "evil"}], enforce_policy=True)
    said: dict[str, object] = {name: place.visit(name) for name in ("llm.test", "evil.test")}
    told = place.event("evil.test")
    said["event"] = (told.type, told.action, told.server_id, told.layer, bool(told.pid))
    said["proxy"] = place.visit("llm.test", as_proxy=True)
    said["told"] = {record.sni for record in place.records}
    return said


@pytest.mark.parametrize("layers", [EBPF, BOTH], ids="+".join)
def test_a_denied_name_at_the_providers_endpoint_is_refused_and_the_providers_is_nobodys_business(
    layers: tuple[str, ...],
) -> None:
    said = box.in_box(denied_name, layers)
    assert said["llm.test"] == said["proxy"] == "1 bytes for llm.test"
    assert said["evil.test"] == "ECONNABORTED"
    assert said["event"] == ("mcp_network_connection", "block", "evil", "ebpf", True)
    assert said["told"] == {"evil.test"}


def tagged(layers: tuple[str, ...], scope: str) -> tuple[Met, Met, Met]:
    place = Place("tag", layers, scope)
    outside = place.meet(lambda: attempt(PROVIDER, PORT), events=scope == "host")
    inside = place.meet(of_session(lambda: attempt(PROVIDER, PORT)))
    return outside, inside, place.meet(as_worker, events=False)


@pytest.mark.parametrize("scope", ["host", "sessions"])
@pytest.mark.parametrize("layers", [EBPF, NFT], ids="+".join)
def test_with_tag_it_is_told_and_reached(layers: tuple[str, ...], scope: str) -> None:
    outside, inside, worker = box.in_box(tagged, layers, scope)
    assert {outside.said, inside.said, worker.said} == {"connected"}
    assert [(e.type, e.action, e.session_id) for e in inside.events] == [
        ("llm_direct_connection", "allow", "mine")
    ]
    assert len(outside.events) == (1 if scope == "host" else 0)
    assert worker.events == []


def removed(layers: tuple[str, ...]) -> dict[str, object]:
    """Root moves the proxy's process out of its cgroup, and removes all of ours."""
    place = Place("refuse", layers)
    ours, theirs = socket.socketpair()
    worker = os.fork()
    if worker == 0:
        while ours.close() or theirs.recv(1):
            theirs.sendall(attempt(PROVIDER, PORT).encode())
        os._exit(0)
    theirs.close()

    def proxy() -> str:
        ours.sendall(b"?")
        return ours.recv(64).decode()

    def cgroups() -> bool:
        return next(s.in_force for s in place.kernel.status() if s.layer == "cgroups")

    place.kernel.cgroups.employ(worker)
    said: dict[str, object] = {"before": (proxy(), cgroups())}
    (CGROUP / "cgroup.procs").write_text(str(worker))
    for name in ("sessions/mine.session", "sessions", "workers", ""):
        (CGROUP / "agentsh-net" / name).rmdir()
    said["removed"] = (proxy(), attempt(PROVIDER, PORT), cgroups())
    place.kernel.reassert()
    said["put back"] = (proxy(), attempt(PROVIDER, PORT), cgroups())
    ours.close()
    os.waitpid(worker, 0)
    return said


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_without_its_cgroup_the_proxy_is_as_everybody_until_it_is_put_back(layers: tuple[str, ...]) -> None:
    refusal = "EPERM" if "ebpf" in layers else "ECONNREFUSED"
    assert box.in_box(removed, layers) == {
        "before": ("connected", True),
        "removed": (refusal, refusal, False),
        "put back": ("connected", refusal, True),
    }
