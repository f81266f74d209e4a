"""Rows 21-23 and 34 of the catalogue: however a name's addresses move, lie or fail to come, its server stays refused."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import pytest
from netns import box
from netns.box import await_that
from netns.daemon import Daemon, running
from netns.name_server import NameServer
from netns.neighbour import Neighbour
from netns.scene import attempt, listening
from netns.stage import BOTH, PLANES

pytestmark = pytest.mark.kernel

REFUSALS = {"EPERM", "ECONNREFUSED"}
PREFIX = "fd00:64::"
FIRST, SECOND, MOVED, SIX = "10.99.0.2", "10.99.0.3", "10.99.0.4", "fd00:99::2"


def policy(layers: tuple[str, ...], *names: str) -> dict[str, Any]:
    names = names or ("evil", "six", "rebound")
    servers = [{"id": name, "type": "http", "url": f"http://{name}.test:8000/mcp"} for name in names]
    resolve = {"min_ttl": "1s", "max_ttl": "1s", "grace": "1s"}
    return {
        "sandbox": {"mcp": {"servers": servers, "denied_servers": [{"id": "*"}]}},
        "network": {"mode": "enforce", "layers": list(layers), "required": True, "resolve": resolve},
    }


def asked_again(names: NameServer, times: int = 6) -> None:
    """Wait until every question was asked again."""
    before = names.asked
    await_that(lambda: names.asked >= before + times)


def moves(folder: Path, layers: tuple[str, ...]) -> dict[str, Any]:
    there = box.there()
    servers = [listening(there, a, 8000) for a in (FIRST, SECOND, MOVED, SIX)]
    local = socket.create_server(("127.0.0.1", 8000))
    names = NameServer()
    names.records = {
        ("evil.test", "A"): [FIRST, SECOND],
        ("six.test", "AAAA"): [SIX],
        ("rebound.test", "A"): ["127.0.0.1", "10.99.0.1", "169.254.1.1"],
    }
    said: dict[str, Any] = {}
    with running(folder, policy(layers)) as daemon:
        said["both A records"] = {attempt(FIRST, 8000), attempt(SECOND, 8000)}
        said["AAAA alone"] = attempt(SIX, 8000)
        said["not learnt by rebinding"] = [attempt("127.0.0.1", 8000), attempt("10.99.0.4", 8000)]
        names.records["evil.test", "A"] = [MOVED]
        await_that(lambda: attempt(MOVED, 8000) in REFUSALS)
        said["old address in its time of grace"] = attempt(FIRST, 8000)
        await_that(lambda: attempt(FIRST, 8000) == "connected")
        names.records["evil.test", "A"] = ["127.0.0.1"]
        asked_again(names)
        said["rebound to loopback"] = [attempt("127.0.0.1", 8000), attempt(MOVED, 8000)]
        names.failing = True
        asked_again(names)
        said["DNS fails"] = {attempt(MOVED, 8000) for _ in range(20)}
        daemon.cli("reload")
        said["reloaded while DNS fails"] = attempt(MOVED, 8000)
        said["told"] = told(daemon)
        assert daemon.stop() == 0
    assert servers
    assert local
    return said


def told(daemon: Daemon) -> set[tuple[str, str]]:
    return {(e["server_id"], e["remote_addr"]) for e in daemon.connections() if e["action"] == "block"}


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_denied_name_is_refused_at_every_address_that_it_has_and_at_none_that_is_ours(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    said = box.in_box(moves, tmp_path, layers)
    refusal = "EPERM" if "ebpf" in layers else "ECONNREFUSED"
    assert said["both A records"] == {refusal}
    assert said["AAAA alone"] == refusal
    assert said["not learnt by rebinding"] == ["connected", "connected"]
    assert said["old address in its time of grace"] == refusal
    assert said["rebound to loopback"] == ["connected", refusal]
    assert said["DNS fails"] == {refusal}
    assert said["reloaded while DNS fails"] == refusal
    assert said["told"] >= {
        ("evil", f"{FIRST}:8000"), ("evil", f"{SECOND}:8000"), ("evil", f"{MOVED}:8000"), ("six", f"[{SIX}]:8000"),
    }  # fmt: skip


def restarts(folder: Path, layers: tuple[str, ...]) -> list[str]:
    server = listening(box.there(), FIRST, 8000)
    names = NameServer()
    names.records = {("evil.test", "A"): [FIRST]}
    with server, running(folder, policy(layers)) as daemon:
        said = [await_that(lambda: (said := attempt(FIRST, 8000)) in REFUSALS and said)]
        names.failing = True
        daemon.crash()
        said.append(attempt(FIRST, 8000))
        daemon.start()
        said.append(attempt(FIRST, 8000))
        asked_again(names)
        return [*said, attempt(FIRST, 8000)]


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_restart_while_dns_fails_refuses_what_was_refused_before(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    refusal = "EPERM" if "ebpf" in layers else "ECONNREFUSED"
    assert box.in_box(restarts, tmp_path, layers) == [refusal] * 4


def translated(folder: Path, layers: tuple[str, ...]) -> tuple[str, str, set[tuple[str, str]]]:
    """Row 26 once more: a network that translates by a prefix of its own, of which DNS tells (RFC 7050)."""
    far, names = box.there(), NameServer()
    addresses = "; ".join(f"ip addr add {PREFIX}{a}/96 dev there nodad" for a in (FIRST, SECOND))
    far.call(lambda: subprocess.run(["sh", "-ec", addresses], check=True))
    subprocess.run(["ip", "route", "add", f"{PREFIX}/96", "dev", "here"], check=True)
    servers = [listening(far, PREFIX + a, 8000) for a in (FIRST, SECOND)]
    names.records = {
        ("evil.test", "A"): [FIRST],
        ("ipv4only.arpa", "AAAA"): [f"{PREFIX}192.0.0.170", f"{PREFIX}192.0.0.171"],
    }
    with running(folder, policy(layers)) as daemon:
        await_that(lambda: attempt(PREFIX + FIRST, 8000) in REFUSALS)
        said = attempt(PREFIX + FIRST, 8000), attempt(PREFIX + SECOND, 8000)
        found = told(daemon)
        assert daemon.stop() == 0
    assert servers
    return *said, found


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_denied_address_is_refused_as_the_networks_own_translator_spells_it(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    refused, neighbour, found = box.in_box(translated, tmp_path, layers)
    assert refused == ("EPERM" if "ebpf" in layers else "ECONNREFUSED")
    assert neighbour == "connected"
    assert ("evil", f"[{ip_address(PREFIX + FIRST)}]:8000") in found


class Far(NameServer):
    """A name server at the far end, at the very address of a denied server."""

    def __init__(self, far: box.Namespace, address: str) -> None:
        super().__init__()
        Path("/etc/resolv.conf").write_text(f"nameserver {address}\noptions timeout:1 attempts:1\n")
        self._socket.close()
        self._streams.close()
        self._socket = far.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 53))
        threading.Thread(target=self._serve, daemon=True).start()


def at_the_name_server(folder: Path, layers: tuple[str, ...]) -> tuple[str, str, str, str]:
    """The owner of a denied name has it lead to the machine's own name server, or both are one box in the cellar."""
    far = box.there()
    servers = [listening(far, FIRST, port) for port in (8000, 8001)]
    names = Far(far, FIRST)
    names.records = {("evil.test", "A"): [FIRST], ("innocent.test", "A"): [SECOND]}
    with running(folder, policy(layers, "evil")) as daemon:
        said = attempt(FIRST, 8000), attempt(FIRST, 8001)
        asked_again(names, 2)
        answer = dns.query.udp(dns.message.make_query("innocent.test", "A"), FIRST, timeout=60)
        limit = next(x for x in json.loads(daemon.cli("status", "--json"))["limits"] if FIRST in x["cost"])
        assert daemon.stop() == 0
    assert servers
    return *said, answer.answer[0][0].to_text(), limit["missing"]


def test_a_denied_server_at_the_name_servers_address_is_refused_at_its_port_and_nobody_loses_dns(
    tmp_path: Path,
) -> None:
    refused, beside, answered, told = box.in_box(at_the_name_server, tmp_path, BOTH)
    assert (refused, beside, answered) == ("EPERM", "connected", SECOND)
    assert told == "an address of their own for evil"


def under_a_vpn(folder: Path, layers: tuple[str, ...]) -> tuple[str, str]:
    """Another network's name servers know the name by another address; the old answer holds for an hour."""
    far, names = box.there(), NameServer()
    servers = [listening(far, a, 8000) for a in (FIRST, MOVED)]
    names.records = {("evil.test", "A"): [FIRST]}
    rules = policy(layers, "evil")
    rules["network"]["resolve"] = {"min_ttl": "1h", "max_ttl": "1h", "snoop_dns": False}
    with running(folder, rules) as daemon:
        before = attempt(MOVED, 8000)
        names.records = {("evil.test", "A"): [MOVED]}
        Path("/etc/resolv.conf").write_text("nameserver 127.0.0.1\nnameserver 127.0.0.2\n")
        after = await_that(lambda: (said := attempt(MOVED, 8000)) in REFUSALS and said)
        assert daemon.stop() == 0
    assert servers
    return before, after


def test_where_other_name_servers_say_otherwise_it_is_refused_there_within_seconds(tmp_path: Path) -> None:
    assert box.in_box(under_a_vpn, tmp_path, BOTH) == ("connected", "EPERM")


def neighbourly(folder: Path, layers: tuple[str, ...]) -> dict[str, Any]:
    """Two servers of the house: name servers know neither, clients ask the neighbours. And the agent is a neighbour too."""
    far, names = box.there(), NameServer()
    servers = [listening(far, a, 8000) for a in (FIRST, SECOND, MOVED)]
    neighbour = Neighbour(far, "10.99.0.6")
    neighbour.records = {("evil.local", "A"): [FIRST], ("good.local", "A"): [FIRST, SECOND]}
    rules = {
        "servers": [
            {"id": name, "type": "http", "url": f"http://{name}.local:8000/mcp"} for name in ("evil", "good")
        ],
        "server_policy": "denylist",
        "denied_servers": [{"id": "evil"}],
    }
    network = {"mode": "enforce", "layers": list(layers), "required": True, "on_shared_address": "tag"}
    with running(folder, {"sandbox": {"mcp": rules}, "network": network}) as daemon:
        said = {a: attempt(a, 8000) for a in (FIRST, SECOND, MOVED)}
        known = json.loads(daemon.cli("status", "--json"))["resolver"]
        found = told(daemon)
        assert daemon.stop() == 0
    assert (servers, names.records) == (servers, {})
    # Nobody here knows the providers.
    unknown = [name for name in known["problems"] if name.endswith(".local")]
    return {"said": said, "problems": unknown, "told": found}


def test_a_name_that_only_neighbours_know_is_refused_and_what_they_say_allows_nothing(tmp_path: Path) -> None:
    seen = box.in_box(neighbourly, tmp_path, BOTH)
    assert seen["said"] == {FIRST: "EPERM", SECOND: "connected", MOVED: "connected"}
    assert seen["problems"] == []
    assert seen["told"] == {("evil", f"{FIRST}:8000")}
