"""Row 21 with no gap: a client that asks the holding stub and connects at once never gets through, however the answers change."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import pytest
from attacks.net.test_dns_answers import FIRST, GOOD, REFUSALS, policy, pool
from netns import box
from netns.daemon import running
from netns.name_server import NameServer
from netns.scene import attempt, listening
from netns.stage import PLANES

pytestmark = pytest.mark.kernel

STUB, BEHIND = "127.0.0.55", "127.0.0.1"
ROUNDS = 40


def with_stub(layers: tuple[str, ...], **resolve: Any) -> dict[str, Any]:
    made = policy(layers)
    made["network"]["resolve"] |= {"snoop_dns": False, "stub": True, **resolve}
    return made


def connected_at_once(server: str, names: NameServer, fresh: list[str]) -> list[str]:
    """Ask for a name whose address is another each time, and connect to what the answer says."""
    found = []
    for turn, address in enumerate(fresh):
        names.records["evil.test", "A"] = [address]
        send = dns.query.tcp if turn % 4 == 0 else dns.query.udp
        answer = send(dns.message.make_query("evil.test", "A"), server, timeout=20)
        assert [r.to_text() for r in answer.answer[0]] == [address]
        found.append(attempt(address, 8000))
    return found


def races(folder: Path, layers: tuple[str, ...]) -> dict[str, Any]:
    there = box.there()
    fresh = pool(there, 2 * ROUNDS)
    server = listening(there, "0.0.0.0", 8000)
    names = NameServer()
    names.records = {("evil.test", "A"): [FIRST], ("good.test", "A"): [GOOD]}
    said: dict[str, Any] = {}
    with server, running(folder, with_stub(layers)) as daemon:
        said["past the stub"] = connected_at_once(BEHIND, names, fresh[ROUNDS : ROUNDS + 5])
        said["by the stub"] = connected_at_once(STUB, names, fresh[:ROUNDS])
        names.aliases["www.test"] = "evil.test"
        names.records["evil.test", "A"] = [fresh[-1]]
        dns.query.udp(dns.message.make_query("www.test", "A"), STUB, timeout=60)
        said["by an alias"] = attempt(fresh[-1], 8000)
        dns.query.udp(dns.message.make_query("good.test", "A"), STUB, timeout=60)
        said["neighbour"] = attempt(GOOD, 8000)
        said["status"] = json.loads(daemon.cli("status", "--json"))["stub"]
        said["people are told"] = next(
            line for line in daemon.cli("status").splitlines() if line.startswith("dns")
        )
        daemon.await_connection(remote_addr=f"{fresh[-1]}:8000", action="block", server_id="evil")
        said["told"] = {
            e["remote_addr"]
            for e in daemon.connections()
            if e["action"] == "block" and e["server_id"] == "evil"
        }
        assert daemon.stop() == 0
        said["port is free again"] = bool(socket.create_server((STUB, 53)))
    return {**said, "fresh": fresh}


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_who_asks_the_stub_and_connects_at_once_never_gets_through(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    said = box.in_box(races, tmp_path, layers)
    refusal = REFUSALS[layers[0]]
    # The race is real: without the stub it is lost every time.
    assert said["past the stub"] == ["connected"] * 5
    assert said["by the stub"] == [refusal] * ROUNDS
    assert said["by an alias"] == refusal
    assert said["neighbour"] == "connected"
    assert said["told"] >= {f"{address}:8000" for address in said["fresh"][:ROUNDS]}
    status = said["status"]
    assert (status["in_force"], status["refused"], status["upstream"]) == (True, 0, [BEHIND])
    assert status["held"]["count"] == ROUNDS + 2
    assert f"nameserver {STUB}" in said["people are told"]
    assert said["port is free again"]


def pointed_at_it(folder: Path) -> dict[str, Any]:
    there = box.there()
    (fresh,) = pool(there, 1)
    server = listening(there, "0.0.0.0", 8000)
    names = NameServer()
    names.records = {("evil.test", "A"): [FIRST], ("good.test", "A"): [GOOD]}
    Path("/etc/resolv.conf").write_text(f"nameserver {STUB}\noptions attempts:1\n")  # the box's own
    said: dict[str, Any] = {}
    with server, running(folder, with_stub(("ebpf", "nftables"), upstream=[BEHIND])) as daemon:
        said["known at first"] = attempt(FIRST, 8000)
        said["C library"] = {a[4][0] for a in socket.getaddrinfo("good.test", 8000, socket.AF_INET)}
        names.records["evil.test", "A"] = [fresh]
        said["after a new answer"] = (socket.gethostbyname("evil.test"), attempt(fresh, 8000))
        daemon.cli("reload")
        said["status"] = json.loads(daemon.cli("status", "--json"))["stub"]["in_force"]
        names.failing = True
        try:
            socket.gethostbyname("evil.test")
        except socket.gaierror as error:
            said["a failure is passed on"] = error.errno
        assert daemon.stop() == 0
    return {**said, "fresh": fresh}


def test_a_machine_that_is_pointed_at_the_stub_resolves_and_the_daemon_does_not_ask_itself(
    tmp_path: Path,
) -> None:
    said = box.in_box(pointed_at_it, tmp_path)
    assert said["known at first"] == "EPERM"
    assert said["C library"] == {GOOD}
    assert said["after a new answer"] == (said["fresh"], "EPERM")
    assert said["status"] is True
    assert said["a failure is passed on"] in {socket.EAI_AGAIN, socket.EAI_NONAME}
