"""Row 21, between refreshes: a denied name's new address is refused within milliseconds of anybody's being told of it, and what
was quicker is closed; and a forged answer can neither allow nor share nor take away anything."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import dns.rrset
import pytest
from netns import box
from netns.box import await_that
from netns.daemon import Daemon, running
from netns.name_server import NameServer
from netns.scene import attempt, listening
from netns.stage import BOTH, PLANES

pytestmark = pytest.mark.kernel

FIRST, SECOND, GOOD, SIX = "10.99.0.2", "10.99.0.3", "10.99.0.5", "fd00:99::2"
REFUSALS = {"ebpf": "EPERM", "nftables": "ECONNREFUSED"}


def policy(layers: tuple[str, ...], **network: Any) -> dict[str, Any]:
    """Our own questions are asked once in an hour: what is known sooner was overheard."""
    servers = [
        {"id": name, "type": "http", "url": f"http://{name}.test:8000/mcp"} for name in ("evil", "good")
    ]
    rules = {"servers": servers, "server_policy": "denylist", "denied_servers": [{"id": "evil"}]}
    resolve = {"min_ttl": "1h", "max_ttl": "1h", "grace": "5m", "snoop_dns": True}
    return {
        "sandbox": {"mcp": rules},
        "network": {
            "mode": "enforce",
            "layers": list(layers),
            "required": True,
            "resolve": resolve,
            **network,
        },
    }


def pool(there: box.Namespace, count: int) -> list[str]:
    """Give the far end more addresses than anybody has heard of."""
    found = [f"10.99.1.{n}" for n in range(1, count + 1)]
    there.call(
        lambda: [subprocess.run(["ip", "addr", "add", f"{a}/32", "dev", "there"], check=True) for a in found]
    )
    subprocess.run(["ip", "route", "add", "10.99.1.0/24", "dev", "here"], check=True)
    return found


def ask(name: str, *, tcp: bool = False, server: str = "127.0.0.1") -> None:
    """Ask as a client does, and wait for the answer."""
    send = dns.query.tcp if tcp else dns.query.udp
    send(dns.message.make_query(name, "A"), server, timeout=20)


class Stranger:
    """A name server that an agent runs for itself, which says what the agent wants."""

    def __init__(self, there: box.Namespace) -> None:
        self.socket = there.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("10.99.0.6", 53))

    def tell(self, name: str, *addresses: str, client: socket.socket | None = None) -> None:
        query = dns.message.make_query(name, "A")
        with client or socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.connect(("10.99.0.6", 53))
            asking.send(query.to_wire())
            data, who = self.socket.recvfrom(4096)
            answer = dns.message.make_response(dns.message.from_wire(data))
            answer.answer.append(dns.rrset.from_text(f"{name}.", 3600, "IN", "A", *addresses))
            self.socket.sendto(answer.to_wire(), who)
            asking.recv(4096)


def refused(address: str, place: Callable[[Callable[[], str]], str] = lambda action: action()) -> str:
    """Wait until an address is refused, by a plane and not by the sweep after a connection was made, and say how."""
    return await_that(lambda: (said := place(lambda: attempt(address, 8000))) in REFUSALS.values() and said)


def snooped(daemon: Daemon) -> dict[str, Any]:
    return json.loads(daemon.cli("status", "--json"))["snoop"]


def hears(folder: Path, layers: tuple[str, ...]) -> dict[str, Any]:
    there = box.there()
    fresh = pool(there, 6)
    servers = [listening(there, "0.0.0.0", 8000), listening(there, SIX, 8000)]
    names = NameServer()
    names.records = {("evil.test", "A"): [FIRST], ("good.test", "A"): [GOOD]}
    stranger = Stranger(there)
    said: dict[str, Any] = {}

    def refused_after(action: Callable[[], None], address: str) -> str:
        assert attempt(address, 8000) == "connected"
        action()
        return refused(address)

    with running(folder, policy(layers)) as daemon:
        names.records["evil.test", "A"] = [fresh[0]]
        said["UDP"] = refused_after(lambda: ask("evil.test"), fresh[0])
        names.records["evil.test", "A"] = [fresh[1]]
        said["TCP"] = refused_after(lambda: ask("evil.test", tcp=True), fresh[1])
        names.aliases["www.test"] = "evil.test"
        names.records["evil.test", "A"] = [fresh[2]]
        said["alias"] = refused_after(lambda: ask("www.test"), fresh[2])
        said["another's name server"] = refused_after(lambda: stranger.tell("evil.test", fresh[3]), fresh[3])
        names.records["evil.test", "AAAA"] = [SIX]
        said["AAAA"] = refused_after(lambda: _ask_six("evil.test"), SIX)
        # What was quicker than the planes.
        early = socket.create_connection((fresh[4], 8000), 5)
        early.settimeout(20)
        names.records["evil.test", "A"] = [fresh[4]]
        ask("evil.test")
        said["what was quicker"] = _end_of(early)
        said["old ones"] = {attempt(a, 8000) for a in (FIRST, *fresh[:4])}
        said["neighbours"] = {attempt(a, 8000) for a in (GOOD, fresh[5])}
        daemon.await_connection(
            remote_addr=f"{fresh[4]}:8000", layer="sweep", action="block", server_id="evil"
        )
        said["told"] = {
            e["remote_addr"]
            for e in daemon.connections()
            if e["action"] == "block" and e["server_id"] == "evil"
        }
        said["snoop"] = snooped(daemon)
        said["names"] = daemon.cli("status")
        assert daemon.stop() == 0
    assert servers
    return {**said, "fresh": fresh}


def _ask_six(name: str) -> None:
    dns.query.udp(dns.message.make_query(name, "AAAA"), "127.0.0.1", timeout=60)


def _end_of(connection: socket.socket) -> str:
    try:
        return "closed" if connection.recv(1) == b"" else "alive"
    except ConnectionError:
        return "closed"
    except TimeoutError:
        return "alive"


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_an_address_that_anybody_is_told_of_is_refused_at_once_and_what_was_quicker_is_closed(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    said = box.in_box(hears, tmp_path, layers)
    refusal = REFUSALS[layers[0]]
    for way in ("UDP", "TCP", "alias", "another's name server", "AAAA"):
        assert said[way] == refusal, way
    assert said["what was quicker"] == "closed"
    assert said["old ones"] == {refusal}  # an answer adds, it never removes
    assert said["neighbours"] == {"connected"}
    assert said["told"] >= {f"{address}:8000" for address in said["fresh"][:5]} | {f"[{SIX}]:8000"}
    snoop = said["snoop"]
    assert (snoop["in_force"], snoop["lost"], snoop["gap"]["count"]) == (True, 0, 6)
    assert 0 < snoop["gap"]["p50"] <= snoop["gap"]["p99"] < 20
    assert f"{said['fresh'][0]} (overheard)" in " ".join(said["names"].split())


def forges(folder: Path, layers: tuple[str, ...], on_shared: str) -> dict[str, Any]:
    there = box.there()
    fresh = pool(there, 40)
    servers = [listening(there, "0.0.0.0", 8000), listening(there, "0.0.0.0", 9000)]
    local = socket.create_server(("127.0.0.1", 8000))
    names = NameServer()
    names.records = {("evil.test", "A"): [FIRST], ("good.test", "A"): [GOOD]}
    stranger = Stranger(there)
    said: dict[str, Any] = {}
    with running(folder, policy(layers, on_shared_address=on_shared)) as daemon:
        stranger.tell("good.test", FIRST)  # to make the denied address a shared one
        stranger.tell("evil.test", GOOD)  # to have an innocent one refused
        stranger.tell("evil.test", "127.0.0.1", "10.99.0.1", "169.254.1.1")
        stranger.tell("evil.test", *fresh)
        await_that(lambda: snooped(daemon)["no_room"] > 0)
        said["told of it"] = daemon.cli("mcp", "events", "--type", "layer_state_changed", "--json")
        said["denied"] = [attempt(FIRST, port) for port in (8000, 9000)]
        said["innocent"] = [attempt(GOOD, port) for port in (8000, 9000)]
        said["loopback"] = attempt("127.0.0.1", 8000)
        said["refused by the lie"] = sum(attempt(a, 8000) != "connected" for a in fresh)
        # The system's own name server is still believed.
        names.records["evil.test", "A"] = ["10.99.0.3"]
        ask("evil.test")
        said["truth after the flood"] = refused("10.99.0.3")
        said["events"] = await_that(
            lambda: {
                (e["server_id"], e["action"])
                for e in daemon.connections()
                if e["remote_addr"].startswith(f"{FIRST}:")
            }
        )
        assert daemon.stop() == 0
    assert servers
    assert local
    return said


@pytest.mark.parametrize(
    ("layers", "on_shared"), [*((layers, "tag") for layers in PLANES), (BOTH, "block")], ids=str
)
def test_a_forged_answer_allows_nothing_and_has_at_most_sixteen_innocents_refused(
    tmp_path: Path, layers: tuple[str, ...], on_shared: str
) -> None:
    said = box.in_box(forges, tmp_path, layers, on_shared)
    refusal = REFUSALS[layers[0]]
    assert said["denied"] == [refusal, refusal]
    assert said["innocent"] == ["connected", "connected"]
    assert said["loopback"] == "connected"
    assert '"out of room"' in said["told of it"]
    assert said["refused by the lie"] == 15  # of 16: the innocent one above is heard of, and left alone
    assert said["truth after the flood"] == refusal
    assert said["events"] == {("evil", "block")}


class Model:
    """An LLM provider that answers whatever comes."""

    def __init__(self, far: box.Namespace, address: str) -> None:
        self._socket = listening(far, address, 8000)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            client, _ = self._socket.accept()
            with client:
                client.recv(1 << 16)
                client.sendall(b"HTTP/1.1 418 A teapot\r\nContent-Length: 0\r\n\r\n")


def leads_to_the_provider(folder: Path, layers: tuple[str, ...]) -> dict[str, Any]:
    """Whoever owns a denied name, or forges an answer for it, has it lead to the LLM provider's address."""
    there = box.there()
    model, others = Model(there, GOOD), [listening(there, GOOD, 9000), listening(there, SECOND, 8000)]
    names, stranger = NameServer(), Stranger(there)
    names.records = {("evil.test", "A"): [FIRST], ("llm.test", "A"): [GOOD]}
    settings = policy(layers, llm_direct="off")
    settings["sandbox"]["mcp"]["servers"].pop()  # nobody allowed is there
    settings["proxy"] = {
        "port": 0,
        "providers": {"corp": {"dialect": "openai", "base_url": "http://llm.test:8000"}},
    }
    said: dict[str, Any] = {}

    def through_the_proxy() -> int:
        url = json.loads((folder / "ready").read_text())["proxy"]
        try:
            urllib.request.urlopen(f"{url}/corp/models", timeout=60)
        except urllib.error.HTTPError as error:
            return error.code
        return 200

    with running(folder, settings) as daemon:
        stranger.tell("evil.test", GOOD, SECOND)
        refused(SECOND)  # it is heard of
        said["forged"] = through_the_proxy(), attempt(GOOD, 8000), attempt(GOOD, 9000)
        names.records["evil.test", "A"] = [GOOD]
        daemon.crash()  # who starts asks
        daemon.start()
        said["owned"] = through_the_proxy(), attempt(GOOD, 8000), attempt(GOOD, 9000)
        said["event"] = daemon.await_connection(remote_addr=f"{GOOD}:8000", action="block")["server_id"]
        said["told"] = [x["cost"] for x in json.loads(daemon.cli("status", "--json"))["limits"]]
        assert daemon.stop() == 0
    assert model
    assert others
    return said


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_denied_name_that_leads_to_the_llm_provider_does_not_cut_off_our_own_proxy(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    said = box.in_box(leads_to_the_provider, tmp_path, layers)
    assert said["forged"] == (418, "connected", "connected")
    assert said["owned"] == (418, REFUSALS[layers[0]], "connected")  # the endpoint is the denied server's too
    assert said["event"] == "evil"
    assert any("lead to the LLM provider corp" in cost for cost in said["told"])


def contained() -> box.Namespace:
    """Return a container's network namespace: this host forwards between it and the far end."""
    inside = box.new_namespace()
    make = [
        "ip",
        "link",
        "add",
        "host0",
        "type",
        "veth",
        "peer",
        "name",
        "cont0",
        "netns",
        f"/proc/self/fd/{inside.fd}",
    ]
    subprocess.run(make, check=True, pass_fds=(inside.fd,))
    for command in ("addr add 10.98.0.1/24 dev host0", "link set host0 up"):
        subprocess.run(["ip", *command.split()], check=True)

    def far_end() -> None:
        for command in (
            "addr add 10.98.0.2/24 dev cont0",
            "link set cont0 up",
            "route add default via 10.98.0.1",
        ):
            subprocess.run(["ip", *command.split()], check=True)

    inside.call(far_end)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    return inside


def hears_for_containers(folder: Path, layers: tuple[str, ...]) -> dict[str, Any]:
    there = box.there()
    (fresh,) = pool(there, 1)
    there.call(lambda: subprocess.run(["ip", "route", "add", "10.98.0.0/24", "via", "10.99.0.1"], check=True))
    server = listening(there, "0.0.0.0", 8000)
    names = NameServer()
    names.records = {("evil.test", "A"): [FIRST], ("good.test", "A"): [GOOD]}
    stranger = Stranger(there)
    inside = contained()
    said: dict[str, Any] = {}
    with server, running(folder, policy(layers)) as daemon:
        said["before"] = inside.call(lambda: attempt(fresh, 8000))
        stranger.tell("evil.test", fresh, client=inside.socket(socket.AF_INET, socket.SOCK_DGRAM))
        said["after"] = refused(fresh, inside.call)
        said["neighbour"] = inside.call(lambda: attempt(GOOD, 8000))
        daemon.await_connection(
            remote_addr=f"{fresh}:8000", action="block", server_id="evil", layer=layers[0]
        )
        assert daemon.stop() == 0
    return said


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_an_answer_to_a_container_is_heard_on_its_way(tmp_path: Path, layers: tuple[str, ...]) -> None:
    said = box.in_box(hears_for_containers, tmp_path, layers)
    assert said == {"before": "connected", "after": REFUSALS[layers[0]], "neighbour": "connected"}


def restarts(folder: Path, layers: tuple[str, ...]) -> list[str]:
    there = box.there()
    (fresh,) = pool(there, 1)
    server = listening(there, "0.0.0.0", 8000)
    names = NameServer()
    names.records = {("evil.test", "A"): [FIRST], ("good.test", "A"): [GOOD]}
    with server, running(folder, policy(layers)) as daemon:
        names.records["evil.test", "A"] = [fresh]
        ask("evil.test")
        said = [refused(fresh)]
        await_that(lambda: fresh in (folder / "events.addresses-overheard.json").read_text())
        names.failing = True
        daemon.crash()
        said.append(attempt(fresh, 8000))
        daemon.start()
        said.append(attempt(fresh, 8000))
        daemon.cli("reload")
        return [*said, attempt(fresh, 8000)]


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_what_was_overheard_outlives_a_crash_and_a_dead_name_server(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    assert box.in_box(restarts, tmp_path, layers) == [REFUSALS[layers[0]]] * 4
