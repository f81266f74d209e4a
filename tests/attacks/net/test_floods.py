"""Rows 30 and 31 of the catalogue: no flood gets anything through, every refusal is told or counted as lost, no rule is evicted."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
from typing import Any

import pytest
from netns import box
from netns.scene import at, attempt, drain, listening, opened, outcome, plan
from netns.stage import BAD, BOTH, EBPF, GOOD, NFT, PLANES, Stage, policy

from agentsh_net.core.abi import wire
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Fate, Plan, Rule
from agentsh_net.core.nft import flows, packet_fence
from agentsh_net.core.nft import sets as nft_sets
from agentsh_net.kernel.bpf import syscall

pytestmark = pytest.mark.kernel

# Each of two processes: more than the ring and the log's buffer hold together.
EACH = 15_000
OTHERS = 4500  # raw sockets


def flood(times: int) -> tuple[int, int]:
    """Start a process that tries to connect so often; return its pid and where it writes what it was told."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        told = {attempt(BAD) for _ in range(times)}
        os.write(writer, " ".join(sorted(told)).encode())
        os._exit(0)
    os.close(writer)
    return child, reader


def flooded(layers: tuple[str, ...], *, reading: bool) -> tuple[set[str], int, int, int, int]:
    stage = Stage(layers)
    stage.settle()
    stage.tap.arrived()
    attackers = [flood(EACH) for _ in range(2)]
    events = 0
    refused = lost = 0
    running = dict(attackers)
    while running:
        if reading:
            told, more, gone = stage.settle(within=0)
            events, refused, lost = events + len(told), refused + more, lost + gone
        for pid in list(running):
            if os.waitpid(pid, os.WNOHANG if reading else 0)[0]:
                running.pop(pid)
    told, more, gone = stage.settle()
    # What the log lost last is known when something comes after it.
    said = {*b" ".join(os.read(reader, 100) for _, reader in attackers).decode().split(), attempt(BAD)}
    last, one, rest = stage.settle()
    assert stage.tap.arrived() == 0
    return (
        said,
        refused + more + one,
        events + len(told) + len(last),
        lost + gone + rest,
        len(attackers) * EACH + 1,
    )


@pytest.mark.parametrize("reading", [True, False], ids=["read meanwhile", "read afterwards"])
@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_flood_is_refused_to_the_last_and_told_or_counted_to_the_last(
    layers: tuple[str, ...], reading: bool
) -> None:
    said, refused, told, lost, attempts = box.in_box(lambda: flooded(layers, reading=reading))
    assert said == {"EPERM" if "ebpf" in layers else "ECONNREFUSED"}
    assert refused == attempts
    assert told + lost == attempts
    if layers != NFT and not reading:
        assert lost > 0


def with_every_map_full() -> tuple[str, list[bool], str, list[tuple[str, int]], int]:
    """Fill the table of rules to the last place, and ask for one more; then make more sockets than anybody has."""
    stage = Stage(EBPF)
    rules = stage.kernel._ebpf._loaded.maps["rules"]
    room = wire.MAX_RULES - len(stage.plan.rules)
    keys = [wire.KEY.pack(struct.pack(">QQ", 0xFD00 << 48, n), bytes(2)) for n in range(room)]
    syscall.update_all(rules, keys, [bytes(4)] * room)
    one_more = stage.plan.rules | {at("10.99.7.7"): Rule(Fate.DENY, ("evil",))}
    try:
        stage.kernel.apply(Plan(2, one_more))
        remedy = ""
    except KernelError as error:
        remedy = error.remedy
    in_force = [s.in_force for s in stage.kernel.status() if s.wanted]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) as raw:
        for _ in range(OTHERS):
            socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()
        said = outcome(lambda: raw.sendto(struct.pack(">BBHHH", 8, 0, 0, 1, 1), (BAD, 0)))
    events, _, _ = stage.settle()
    return remedy, in_force, said, [(event.server_id, event.pid) for event in events], os.getpid()


def test_a_full_table_of_rules_refuses_the_new_policy_and_no_socket_is_forgotten_for_others() -> None:
    remedy, in_force, raw, told, pid = box.in_box(with_every_map_full)
    assert f"more than {wire.MAX_RULES} endpoints" in remedy
    assert in_force == [True]  # the old policy, whole, and nothing else
    assert (raw, told) == ("EPERM", [("evil", pid)])


def what_packets_can_fill(layers: tuple[str, ...]) -> tuple[str, int, list[dict[str, Any]]]:
    """Send to 500 addresses, be refused at one; return what the packet plane's tables are then."""
    stage = Stage(layers)
    stage.settle()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for n in range(500):
            client.sendto(b"x", ("10.99.0.4", 1024 + n))
    said = attempt(BAD)
    events, _, _ = stage.settle()
    chains = [item["chain"] for item in nft_lists("chains") if "chain" in item]
    whole = ("sets", *("chain {family} {table} {name}".format(**chain) for chain in chains))
    return said, len(events), [item for what in whole for item in nft_lists(what)]


def nft_lists(what: str) -> list[dict[str, Any]]:
    """Return what nft lists. Never tables: nft 1.0.6 reads beyond its names of their flags where it does not know one."""
    done = subprocess.run(["nft", "-j", "list", *what.split()], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["nftables"]


@pytest.mark.parametrize("layers", [NFT, BOTH], ids="+".join)
def test_the_packet_plane_keeps_nothing_that_packets_could_fill(layers: tuple[str, ...]) -> None:
    """Row 31: no packet adds to its sets, so that there is nothing to fill and nobody to evict; a policy that outgrows them has them made anew.

    But those of flows to allowed servers, which decide nothing, and to which nobody else's packets come.
    """
    said, told, listed = box.in_box(what_packets_can_fill, layers)
    assert (said, told) == ("ECONNREFUSED" if layers == NFT else "EPERM", 1)
    sets = [item["set"] for item in listed if "set" in item and item["set"]["name"] not in flows.SETS]
    assert sets
    for each in sets:
        assert not {"timeout", "flags", "gc-interval"} & each.keys(), each
    statements = {
        key
        for item in listed
        if "rule" in item and item["rule"]["chain"] not in {"tag", "tag_routed"}
        for part in item["rule"]["expr"]
        for key in part
    }
    assert not {"set", "map", "ct count", "limit", "quota", "meter", "flow"} & statements, statements
    plan = policy({})[1]
    wanted = [keys for table in (nft_sets, packet_fence) for keys in table.keys(plan).values()]
    elements = [len(item["set"].get("elem", ())) for item in listed if "set" in item]
    assert sum(elements) == sum(map(len, wanted))


NOTRACK = "table inet raw {\n chain o { type filter hook output priority -300; notrack; }\n}\n"


def untracked(layers: tuple[str, ...]) -> tuple[int, int]:
    """Talk to an allowed server where connections are not tracked, and to it by datagrams; count the events."""
    far = box.there()
    server = listening(far, GOOD)
    subprocess.run(["nft", "-f", "-"], input=NOTRACK, text=True, check=True)
    kernel = opened(plan(tag=(at(GOOD, 443),)), *layers)
    with socket.create_connection((GOOD, 443), 5) as client:
        peer, _ = server.accept()
        for _ in range(20):
            client.sendall(b"x")
            peer.recv(1)
    drain(kernel, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for _ in range(20):
            client.sendto(b"x", (GOOD, 443))
    more = drain(kernel, 1 if layers == NFT else 20)  # eBPF tells every sendto
    return len(more), max(s.tagged for s in kernel.status())


@pytest.mark.parametrize("layers", [NFT, BOTH], ids="+".join)
def test_a_connection_that_nobody_tracks_is_one_event_and_not_one_for_each_packet(
    layers: tuple[str, ...],
) -> None:
    more, tagged = box.in_box(untracked, layers)
    assert (more, tagged) == ((1, 2) if layers == NFT else (20, 21))
