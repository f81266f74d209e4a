"""Two daemons never fight: the second is refused by name, or keeps its hands off what the first one enforces; containers are their own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from agentsh_net.control.client import Client
from netns.box import SLOWNESS, in_box, there
from netns.daemon import Daemon, running
from netns.scene import attempt, listening
from netns.stage import BOTH, EBPF, NFT

pytestmark = pytest.mark.kernel

AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
EVIL, OTHER, PORT = "10.99.0.2", "10.99.0.3", 8200


def policy(evil: str, *layers: str, **network: Any) -> dict[str, Any]:
    mcp = {
        "servers": [{"id": "evil", "type": "http", "url": f"http://{evil}:{PORT}/mcp"}],
        "denied_servers": [{"id": "evil"}],
    }
    enforced = {"mode": "enforce", "layers": list(layers), "required": False, **network}
    quiet = {"proxy": {"mode": "disabled"}, "gateway": {"enabled": False}, "metrics": {"port": 0}}
    return {"sandbox": {"mcp": mcp}, "network": enforced, **quiet}


def refused(folder: Path, wanted: dict[str, Any]) -> tuple[int, str]:
    """Start a daemon that does not come up; return its status and what it said."""
    folder.mkdir()
    daemon = Daemon(folder)
    daemon.write(wanted)
    command = [sys.executable, "-m", "agentsh_net", "run", "--config", str(daemon.file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * SLOWNESS)
    return done.returncode, done.stderr


def states(daemon: Daemon) -> list[str]:
    """Return what its layers went through, if anything."""
    client = Client(daemon.folder / "control.sock")
    rows = client.call("query", kind="events", filters={"type": "layer_state_changed"})["rows"]
    return [f"{row['layer']} {row['state']}" for row in rows]


def layers(daemon: Daemon, *, code: int = 0) -> dict[str, tuple[bool, str]]:
    told = json.loads(daemon.cli("status", "--json", code=code))["layers"]
    return {layer["layer"]: (layer["in_force"], layer["reason"]) for layer in told}


def second(folder: Path) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    with listening(there(), EVIL, PORT), running(folder, policy(EVIL, *BOTH)) as first:
        seen["pid"] = first.process.pid
        for name, wanted in (("both", BOTH), ("ebpf", EBPF), ("nftables", NFT)):
            seen[name] = refused(folder / name, policy(OTHER, *wanted))
        shared = {"store": {"path": str(folder / "events.db")}}
        seen["store"] = refused(folder / "store", policy(OTHER, *BOTH, mode="off") | shared)
        (folder / "off").mkdir()
        with running(folder / "off", policy(OTHER, *BOTH, mode="off")) as off:
            seen["off"] = layers(off)
            assert off.stop() == 0
        with tempfile.TemporaryDirectory() as home:  # pytest's own folders are root's alone
            Path(home).chmod(0o777)
            with running(Path(home), policy(OTHER, *BOTH), AS_NOBODY) as users:
                seen["user"] = layers(users, code=1)
                assert users.stop() == 0
        seen["states"], seen["first"] = states(first), layers(first)
        seen["said"] = attempt(EVIL, PORT)
        seen["direct"] = first.cli(
            "mcp", "events", "--direct-db", "--db", str(folder / "events.db"), "--json"
        )
        first.crash()
        with running(folder / "both", policy(EVIL, *BOTH)) as heir:
            seen["heir"] = layers(heir)
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return in_box(second, tmp_path_factory.mktemp("neighbours"))


@pytest.mark.parametrize("name", ["both", "ebpf", "nftables"])
def test_a_second_daemon_is_refused_whichever_layers_it_asks_for_and_told_of_the_first(
    seen: dict[str, Any], name: str
) -> None:
    code, said = seen[name]
    assert code == 3
    assert f"another agentsh-net, process {seen['pid']}, enforces in" in said
    assert f"sudo kill {seen['pid']}" in said


def test_a_store_is_one_daemons_and_everybodys_to_read(seen: dict[str, Any]) -> None:
    code, said = seen["store"]
    assert code == 3
    assert f"another agentsh-net, process {seen['pid']}, writes" in said
    assert "store.path" in said
    assert json.loads(seen["direct"])


def test_one_that_enforces_nothing_runs_beside_it_and_says_whose_the_layers_are(seen: dict[str, Any]) -> None:
    for in_force, reason in seen["off"].values():
        assert not in_force
        assert f"another agentsh-net, process {seen['pid']}, enforces there" in reason


def test_a_users_own_daemon_that_can_enforce_nothing_is_not_refused(seen: dict[str, Any]) -> None:
    assert {layer: in_force for layer, (in_force, _) in seen["user"].items()} == dict.fromkeys(BOTH, False)
    assert all("ermitted" in reason for _, reason in seen["user"].values())


def test_the_first_never_notices(seen: dict[str, Any]) -> None:
    assert seen["states"] == []
    assert seen["said"] == "EPERM"
    assert {in_force for in_force, _ in seen["first"].values()} == {True}


def test_after_sigkill_the_next_one_takes_over(seen: dict[str, Any]) -> None:
    assert {in_force for in_force, _ in seen["heir"].values()} == {True}


# As a container is started: a cgroup of its own, which is all that it sees, and a network of its own.
ENTER = "mkdir /sys/fs/cgroup/container; echo $$ > /sys/fs/cgroup/container/cgroup.procs"
COVER = "umount -l /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup && ip link set lo up"
CONTAINED = ("sh", "-c", f'{ENTER}; exec unshare -n -m -C sh -c \'{COVER} && exec "$@"\' sh "$@"', "sh")
OWN_NETWORK = ("unshare", "-n")


def containers(folder: Path) -> list[dict[str, tuple[bool, str]]]:
    found = []
    with running(folder, policy(EVIL, *BOTH)) as first:
        for name, under, wanted in (("network", OWN_NETWORK, NFT), ("container", CONTAINED, BOTH)):
            (folder / name).mkdir()
            with running(folder / name, policy(OTHER, *wanted), under) as other:
                found.append(layers(other))
                assert other.stop() == 0
        assert states(first) == []
        found.append(layers(first))
    return found


def test_containers_and_other_networks_have_daemons_of_their_own_and_nobody_disturbs_the_other(
    tmp_path: Path,
) -> None:
    network, container, first = in_box(containers, tmp_path)
    assert network["nftables"] == (True, "")
    assert [container[layer] for layer in BOTH] == [(True, "")] * 2
    assert [first[layer] for layer in BOTH] == [(True, "")] * 2
