"""Rows 15, 28 and 32 of the catalogue, against the daemon itself: older connections, root's tampering, SIGKILL and restart.

One daemon a set of planes lives through all of it; what it says of each is asserted on its own.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from netns import box, tampering
from netns.daemon import Daemon, running
from netns.scene import at, attempt, listening
from netns.stage import BOTH, EBPF, NFT, PLANES

from agentsh_net.control.client import Client
from agentsh_net.core.abi import wire
from agentsh_net.kernel.bpf import links, syscall
from agentsh_net.kernel.bpf.map_contents import MapContents
from agentsh_net.kernel.cgroups.cgroup import hierarchy
from agentsh_net.kernel.leftovers import leftovers, programs, remove

pytestmark = pytest.mark.kernel

EVIL, PORT = "10.99.0.3", 8200
REFUSED = {EBPF: "EPERM", NFT: "ECONNREFUSED", BOTH: "EPERM"}


def policy(layers: tuple[str, ...], *, denied: bool) -> dict[str, Any]:
    mcp = {
        "servers": [{"id": "evil", "type": "http", "url": f"http://{EVIL}:{PORT}/mcp"}],
        "server_policy": "denylist",
        "denied_servers": [{"id": "evil"}] if denied else [],
    }
    network = {"mode": "enforce", "layers": list(layers), "required": True}
    return {"sandbox": {"mcp": mcp}, "network": network, "proxy": {"mode": "disabled"}}


def nft(command: str) -> Callable[[], list[str]]:
    """Do it as anybody would, and where that is refused by the daemon's own socket; return what was refused."""

    def deed() -> list[str]:
        owned = tampering.owner()
        said = tampering.nft(command)
        if not owned:
            assert not said
            return []
        assert tampering.owner() == owned  # a flush says nothing and passes it by
        tampering.nft_as_owner(command)
        return [said]

    return deed


def detach() -> list[str]:
    remove("ebpf", hierarchy())
    return []


def forget_the_rule() -> list[str]:
    """Delete the denial out of the map, found as any root finds it: by the programs at the cgroup."""
    root = hierarchy()
    assert root is not None
    number, _, _ = syscall.maps_of(programs(root)[0])["rules"]
    descriptor = syscall.map_fd(number)
    rules = MapContents({"rules": descriptor}).rules()
    keys = [key for key in rules if wire.decode_key(key).address == at(EVIL).address]
    syscall.delete_all(descriptor, keys)
    os.close(descriptor)
    return []


def link_pins() -> list[Path]:
    return list(Path(box.BPFFS).glob("agentsh-net/*/*/link_*"))


def remove_the_pins() -> list[str]:
    shutil.rmtree(link_pins()[0].parent)
    return []


def detach_a_link() -> list[str]:
    link = links.pinned(link_pins()[0])
    links.detach(link)
    os.close(link)
    return []


TAMPERING: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "flush ruleset": ("nftables", nft("flush ruleset")),
    "delete table": ("nftables", nft("delete table inet agentsh_net")),
    "delete the table at the devices": ("nftables", nft("delete table netdev agentsh_net")),
    "delete an element": ("nftables", nft(f"delete element inet agentsh_net deny4 {{ {EVIL} }}")),
    "flush a chain": ("nftables", nft("flush chain inet agentsh_net output")),
    "an accept above ours": ("nftables", nft("insert rule inet agentsh_net output accept")),
    "detach": ("ebpf", detach),
    "delete a rule": ("ebpf", forget_the_rule),
}
LINKS = {
    "remove the pins": ("ebpf", remove_the_pins),
    "detach a link": ("ebpf", detach_a_link),
}
# The planes, and how programs are held.
STAGES = [*((planes, "attach") for planes in PLANES), (EBPF, "links")]


def tampering_with(layers: tuple[str, ...], held: str) -> dict[str, tuple[str, Callable[[], list[str]]]]:
    every = TAMPERING | LINKS if held == "links" else TAMPERING
    return {name: (layer, deed) for name, (layer, deed) in every.items() if layer in layers}


@dataclass(frozen=True, slots=True)
class Tampered:
    """What came of tampering: what root was told, a client at once, what the daemon told, and what a client was told then."""

    refused: list[str]
    at_once: str
    told: list[str]
    then: str


@dataclass(frozen=True, slots=True)
class Life:
    """What came of a daemon's life."""

    swept: tuple[str, dict[str, Any]]
    tampered: dict[str, Tampered]
    killed: list[str]
    told_after_restart: dict[str, Any]
    left: list[int]


def states(daemon: Daemon, layer: str) -> list[str]:
    client = Client(daemon.folder / "control.sock")
    wanted = {"type": "layer_state_changed", "limit": 1000}
    rows = client.call("query", kind="events", filters=wanted)["rows"]
    return [row["state"] for row in rows if row["layer"] == layer]


def tampered(daemon: Daemon, layer: str, deed: Callable[[], list[str]]) -> Tampered:
    before = len(states(daemon, layer))
    refused = deed()
    at_once = attempt(EVIL, PORT)
    box.await_that(lambda: len(states(daemon, layer)) >= before + 2)
    return Tampered(refused, at_once, states(daemon, layer)[before:], attempt(EVIL, PORT))


def ended(client: socket.socket) -> str:
    client.settimeout(60 * box.SLOWNESS)
    try:
        return "closed" if client.recv(1) == b"" else "alive"
    except OSError as error:
        return type(error).__name__


def life(folder: Path, layers: tuple[str, ...], held: str) -> Life:
    box.mount_bpffs(held)
    server = listening(box.there(), EVIL, PORT)
    with server, running(folder, policy(layers, denied=False)) as daemon:
        client = socket.create_connection((EVIL, PORT), 5)
        daemon.write(policy(layers, denied=True))
        swept = ended(client), daemon.await_connection(layer="sweep", action="block")
        seen = {
            name: tampered(daemon, layer, deed)
            for name, (layer, deed) in tampering_with(layers, held).items()
        }
        stood = len(leftovers())
        daemon.crash()
        killed, alone = [attempt(EVIL, PORT)], len(leftovers())
        daemon.start()
        before = {event["id"] for event in daemon.connections()}
        killed.append(attempt(EVIL, PORT))
        box.await_that(lambda: [e for e in daemon.connections() if e["id"] not in before])
        told = next(e for e in daemon.connections() if e["id"] not in before)
        left = [stood, alone, len(leftovers())]
        assert daemon.stop() == 0
        return Life(swept, seen, killed, told, [*left, len(leftovers())])


@pytest.fixture(scope="module", params=STAGES, ids=lambda stage: f"{'+'.join(stage[0])} {stage[1]}")
def lived(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[tuple[str, ...], str, Life]:
    return *request.param, box.in_box(life, tmp_path_factory.mktemp("life"), *request.param)


def test_a_connection_that_an_older_policy_allowed_is_ended_and_told(
    lived: tuple[tuple[str, ...], str, Life],
) -> None:
    said, event = lived[2].swept
    assert said in {"ConnectionAbortedError", "ConnectionResetError", "closed"}
    assert (event["server_id"], event["remote_addr"]) == ("evil", f"{EVIL}:{PORT}")


def test_what_root_takes_away_is_put_back_and_told_and_the_other_plane_holds_meanwhile(
    lived: tuple[tuple[str, ...], str, Life],
) -> None:
    layers, held, life = lived
    assert life.tampered.keys() == tampering_with(layers, held).keys()
    for name, seen in life.tampered.items():
        assert (name, seen.told, seen.then) == (name, ["not in force", "in force"], REFUSED[layers])
        for said in seen.refused:  # Linux 6.9: it takes the daemon's own socket to do it at all
            assert "Operation not permitted" in said or (name, said) == ("flush ruleset", "")
        if layers == BOTH:
            assert (name, seen.at_once) in {(name, said) for said in REFUSED.values()}


def test_after_sigkill_it_is_still_refused_and_a_restart_adopts_what_stands_and_tells(
    lived: tuple[tuple[str, ...], str, Life],
) -> None:
    layers, _, life = lived
    assert life.killed == [REFUSED[layers]] * 2
    told = life.told_after_restart
    assert (told["action"], told["server_id"], told["layer"]) == ("block", "evil", layers[0])
    stood, alone, adopted, after = life.left
    assert stood == alone == adopted  # neither missing nor twice
    assert after == 0
