"""Whoever connects in a tight loop to a server that every policy denies never gets through: reloads, crashes, an upgrade.

A few of each in CI, with programs held by pinned links; `./dev soak` has 200 reloads, and 20 times SIGKILL and a restart, half of them from another version.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentsh_net.control.client import Client
from agentsh_net.core.abi import bpf_object, wire
from agentsh_net.kernel.bpf import prebuilt, syscall
from agentsh_net.kernel.bpf.ebpf import Ebpf
from agentsh_net.kernel.bpf.loader import Loaded
from agentsh_net.kernel.bpf.probe_source import PROGRAMS
from agentsh_net.kernel.cgroups.cgroup import hierarchy
from agentsh_net.kernel.leftovers import leftovers
from netns import box
from netns.daemon import running
from netns.scene import at, attempt, listening, plan, trying
from netns.stage import BOTH, EBPF, NFT

pytestmark = pytest.mark.kernel

# In CI test_daemon.py goes through the same with both planes.
SOAK = "AGENTSH_NET_SOAK" in os.environ
RELOADS, CRASHES = (200, 20) if SOAK else (3, 2)
# Planes, and how programs are held.
LIVES = [(EBPF, "links"), (NFT, "none"), *([(EBPF, "attach"), (BOTH, "links")] if SOAK else ())]
EVIL, OTHER, PORT = "10.99.0.5", "10.99.0.4", 8000
SOCK_RELEASE = 34  # an attach type that this version does not use
PASS = bytes.fromhex("b700000001000000 9500000000000000")
# What holds the line while a table is replaced, and is left behind where that is broken off; and the table of other layout.
OLD_TABLES = [
    f"""
{gone}
table inet {name} {{
	set denied {{ type ipv4_addr . inet_service; elements = {{ {EVIL} . {PORT} }}; }}
	chain judge {{ ip daddr . tcp dport @denied reject with tcp reset; }}
	chain output {{ type filter hook output priority -5; jump judge; }}
}}
"""
    for name, gone in (
        ("agentsh_net_bridge", ""),
        ("agentsh_net", "delete table inet agentsh_net"),  # which is nobody's since its owner died
    )
]


def policy(turn: int, layers: tuple[str, ...]) -> dict[str, Any]:
    """Return one of four policies, which have in common that `evil` is denied: at every port, at its own, among others."""
    urls = {"evil": f"http://{EVIL}:{PORT}/mcp"}
    match turn % 4:
        case 1:
            urls["neighbour"] = f"http://{EVIL}:9000/mcp"  # narrows the denial to a port
        case 2:
            urls["twin"] = f"http://{EVIL}:{PORT}/other"  # an endpoint that is shared
        case 3:
            urls |= {f"s{n}": f"http://10.77.{n}.1:{PORT}/mcp" for n in range(50)}
    servers = [{"id": name, "type": "http", "url": url} for name, url in urls.items()]
    rules = {"servers": servers, "server_policy": "denylist", "denied_servers": [{"id": "evil"}]}
    network = {"mode": "enforce", "layers": list(layers), "required": True}
    return {"sandbox": {"mcp": rules}, "network": network}


def other_version(layers: tuple[str, ...]) -> None:
    """Put in the place of what a crash left what another version would have left: other maps, programs and tables."""
    if "ebpf" in layers:
        probes = prebuilt.read()
        size = wire.STREAM_SIZE + 8
        wider = {"streams": replace(probes.maps["streams"], value_size=size)}
        fewer = {"names": replace(probes.maps["names"], max_entries=64)}
        other_programs(replace(probes, maps={**probes.maps, **wider, **fewer}))
    if "nftables" in layers:
        for text in OLD_TABLES:
            subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)


def other_programs(probes: bpf_object.BpfObject) -> None:
    def load() -> Loaded:
        programs, maps = prebuilt.load(probes)
        return Loaded(programs, maps, how="by another version")

    root = hierarchy()
    assert root is not None
    theirs = Ebpf(root, load)
    theirs.start(plan(1, deny=(at(EVIL),)))
    theirs.close(remove=False)
    cgroup = os.open(root, os.O_RDONLY)
    alien = syscall.load_program(
        "agentsh_release", syscall.CGROUP_SOCK, SOCK_RELEASE, code=PASS, licence="GPL"
    )
    syscall.attach(cgroup, alien, SOCK_RELEASE)
    os.close(alien)
    os.close(cgroup)


def lives(folder: Path, layers: tuple[str, ...], held: str) -> tuple[Counter[str], list[str], str, str]:
    box.mount_bpffs(held)
    there = box.there()
    servers = [listening(there, address, PORT) for address in (EVIL, OTHER)]
    with running(folder, policy(0, layers)) as daemon, trying(EVIL, PORT) as outcomes:
        for turn in range(RELOADS):
            daemon.write(policy(turn, layers))
            Client(folder / "control.sock", timeout=300).call("reload")  # a flood beside it slows it down
        for turn in range(CRASHES):
            daemon.crash()
            if turn % 2:
                other_version(layers)
            elif SOAK and turn % 4 == 2 and "ebpf" in layers:  # whoever is next holds them the other way
                os.environ["AGENTSH_NET_BPFFS"] = box.BPFFS if turn % 8 == 6 else "none"
            daemon.write(policy(turn, layers))
            daemon.start()
        left, status = leftovers(), daemon.cli("status")
        neighbour = attempt(OTHER, PORT)
        daemon.crash()  # the client still tries, and is still refused
    assert servers
    return outcomes, left, status, neighbour


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("layers", "held"), LIVES, ids=lambda part: part if isinstance(part, str) else "+".join(part)
)
def test_nobody_gets_through_while_policies_change_daemons_die_and_versions_follow_each_other(
    tmp_path: Path, layers: tuple[str, ...], held: str
) -> None:
    outcomes, left, status, neighbour = box.in_box(lives, tmp_path, layers, held, timeout=1700)
    refusals = {"ebpf": "EPERM", "nftables": "ECONNREFUSED"}
    print(f"{'+'.join(layers)}: {dict(outcomes)} in {RELOADS} reloads, {CRASHES} crashes")
    assert outcomes.keys() <= {refusals[layer] for layer in layers}, outcomes
    assert outcomes.total() > 100 * CRASHES
    assert neighbour == "connected"
    programs = [line for line in left if line.startswith("eBPF")]
    assert len(programs) == (len(PROGRAMS) if "ebpf" in layers else 0), left
    assert "not in force" not in status
    assert ("links pinned in" in status) == any(line.startswith("pins") for line in left)
    assert ("links pinned in" in status) == (held == "links") or SOAK
