"""The daemon refuses a real MCP connection: official SDK on both sides, either plane alone, and the event says who it was."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsh_net.core.configuration.settings import Network
from agentsh_net.kernel.cgroups.cgroup import hierarchy
from agentsh_net.kernel.leftovers import remove
from agentsh_net.kernel.nft.nflog import Nflog
from netns.box import await_that, in_box, there
from netns.daemon import mcp_client, mcp_server, running
from netns.scene import attempt, listening
from netns.tampering import nft_as_owner

pytestmark = pytest.mark.kernel

URLS = {
    "v4": ("10.99.0.2", "http://10.99.0.2:8000/mcp"),
    "v6": ("fd00:99::2", "http://[fd00:99::2]:8000/mcp"),
}


def policy(*denied: str, layers: tuple[str, ...] = ("ebpf", "nftables"), **network: Any) -> dict[str, Any]:
    servers = [
        {"id": "four", "type": "http", "url": URLS["v4"][1]},
        {"id": "six", "type": "http", "url": URLS["v6"][1]},
    ]
    rules = {"servers": servers, "denied_servers": [{"id": sid} for sid in denied]}
    settings = {"mode": "enforce", "layers": list(layers), "required": True, **network}
    return {"sandbox": {"mcp": rules}, "network": settings}


def reach(
    folder: Path, family: str, layers: tuple[str, ...], denied: tuple[str, ...]
) -> tuple[Any, dict[str, Any]]:
    namespace = there()
    address, url = URLS[family]
    with mcp_server(namespace, address), running(folder, policy(*denied, layers=layers)) as daemon:
        outcome = mcp_client(url)
        action = "block" if denied else "allow"
        remote = f"{f'[{address}]' if ':' in address else address}:8000"
        event = daemon.await_connection(action=action, remote_addr=remote, layer=layers[0])
        assert daemon.stop() == 0
    return outcome, event


@pytest.mark.slow
@pytest.mark.parametrize("family", ["v4", "v6"])
def test_an_allowed_server_is_reached_and_tagged(tmp_path: Path, family: str) -> None:
    outcome, event = in_box(reach, tmp_path, family, ("ebpf", "nftables"), ())
    assert outcome == {"tools": ["add"], "result": "5"}
    assert (event["server_id"], event["layer"]) == ("four" if family == "v4" else "six", "ebpf")
    assert event["pid"] > 0
    assert event["comm"].startswith("python")


@pytest.mark.slow
@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize(("layer", "error"), [("ebpf", "EPERM"), ("nftables", "ECONNREFUSED")])
def test_a_denied_server_is_refused_by_either_plane_alone(
    tmp_path: Path, family: str, layer: str, error: str
) -> None:
    outcome, event = in_box(reach, tmp_path, family, (layer,), ("four", "six"))
    assert (
        error in outcome["errors"]
        or "refused" in outcome["says"].lower()
        or "permitted" in outcome["says"].lower()
    )
    assert "tools" not in outcome
    assert (event["layer"], event["server_id"]) == (layer, "four" if family == "v4" else "six")
    assert event["rule"] == f"sandbox.mcp.denied_servers[{0 if family == 'v4' else 1}]"
    assert event["uid"] == 0
    if layer == "ebpf":  # a packet names no process; the packet plane alone knows the user only
        assert event["pid"] > 0
        assert event["comm"].startswith("python")


def mapped(folder: Path, layer: str) -> dict[str, Any]:
    there()
    with running(folder, policy("four", layers=(layer,))) as daemon:
        said = attempt("::ffff:10.99.0.2", 8000, socket.AF_INET6)
        event = daemon.await_connection(action="block", remote_addr="10.99.0.2:8000")
        return event | {"said": said}


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "error"), [("ebpf", "EPERM"), ("nftables", "ECONNREFUSED")])
def test_a_mapped_address_is_the_same_server(tmp_path: Path, layer: str, error: str) -> None:
    event = in_box(mapped, tmp_path, layer)
    assert event["said"] == error
    assert event["server_id"] == "four"


def life(folder: Path) -> list[str]:
    """Crash, restart, reload and stop, with an attempt after each."""
    server = listening(there(), "10.99.0.2", 8000)
    seen = []
    with server, running(folder, policy("four")) as daemon:
        seen.append(f"denied: {attempt('10.99.0.2', 8000)}")
        daemon.crash()
        seen.append(f"after SIGKILL: {attempt('10.99.0.2', 8000)}")
        daemon.start()
        seen.append(f"after restart: {attempt('10.99.0.2', 8000)}")
        daemon.write(policy())
        daemon.cli("reload")
        seen.append(f"after allowing it: {attempt('10.99.0.2', 8000)}")
        daemon.write({"sandbox": 7})
        daemon.cli("reload", code=2)
        seen.append(f"after a broken file: {attempt('10.99.0.2', 8000)}")
        daemon.write(policy("four"))
        await_that(lambda: attempt("10.99.0.2", 8000) == "EPERM")
        seen.append("after an edit without a word: EPERM")
        assert daemon.stop() == 0
        seen.append(f"after SIGTERM: {attempt('10.99.0.2', 8000)}")
        rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
        seen.append(f"rules left: {rules!r}")
    return seen


def test_enforcement_outlives_a_crash_follows_the_file_and_ends_with_the_daemon(tmp_path: Path) -> None:
    assert in_box(life, tmp_path) == [
        "denied: EPERM",
        "after SIGKILL: EPERM",
        "after restart: EPERM",
        "after allowing it: connected",
        "after a broken file: connected",
        "after an edit without a word: EPERM",
        "after SIGTERM: connected",
        "rules left: ''",
    ]


def loop(folder: Path) -> tuple[int, int]:
    """Connect in a tight loop through reloads and a crash; return how many attempts there were and how many got through."""
    server = listening(there(), "10.99.0.2", 8000)
    outcomes: list[str] = []
    done = threading.Event()

    def client() -> None:
        while not done.is_set():
            outcomes.append(attempt("10.99.0.2", 8000))

    with server, running(folder, policy("four")) as daemon:
        agent = threading.Thread(target=client)
        agent.start()
        for turn in range(10):
            daemon.write(policy("four", "six") if turn % 2 else policy("four"))
            daemon.cli("reload")
        for _ in range(2):
            daemon.crash()
            daemon.start()
        done.set()
        agent.join()
    return len(outcomes), sum(o == "connected" for o in outcomes)


def test_nobody_gets_through_while_policies_reload_and_the_daemon_is_replaced(tmp_path: Path) -> None:
    attempts, through = in_box(loop, tmp_path)
    assert attempts > 1000
    assert through == 0


def down(folder: Path) -> list[str]:
    there()
    with running(folder, policy("four")) as daemon:
        daemon.crash()
        said = [attempt("10.99.0.2", 8000)]
        said += daemon.cli("down", "--force").splitlines()
        said.append(
            subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
        )
        return said


def test_down_with_force_removes_what_a_crash_left(tmp_path: Path) -> None:
    refused, *removed, rules = in_box(down, tmp_path)
    assert refused == "EPERM"
    assert any("eBPF" in line for line in removed)
    assert any("nftables" in line for line in removed)
    assert rules == ""


def flush() -> None:
    nft_as_owner("flush ruleset")


def delete() -> None:
    nft_as_owner("delete table inet agentsh_net")


def detach() -> None:
    remove("ebpf", hierarchy())


def tamper(folder: Path, layer: str, deed: Callable[[], None]) -> list[str]:
    server = listening(there(), "10.99.0.2", 8000)
    with running(folder, policy("four", layers=(layer,))) as daemon:
        said = [attempt("10.99.0.2", 8000)]
        deed()
        # It may be back before anybody can try. Who tries while only the packets are refused again waits for 5 s.
        await_that(lambda: attempt("10.99.0.2", 8000) == said[0])

        def states() -> list[str]:
            told = daemon.cli("mcp", "events", "--type", "layer_state_changed", "--json")
            return [event["state"] for event in json.loads(told) if event["layer"] == layer]

        await_that(lambda: len(states()) > 1)
        server.close()
        return said + states()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "deed", "refusal"),
    [
        ("nftables", flush, "ECONNREFUSED"),
        ("nftables", delete, "ECONNREFUSED"),
        ("ebpf", detach, "EPERM"),
    ],
    ids=["flushed", "deleted", "detached"],
)
def test_what_root_takes_away_is_put_back_and_told(
    tmp_path: Path, layer: str, deed: Callable[[], None], refusal: str
) -> None:
    assert in_box(tamper, tmp_path, layer, deed) == [refusal, "not in force", "in force"]


def established(folder: Path) -> tuple[str, dict[str, Any]]:
    # A port of its own: daemons sweep every namespace, and those of other tests deny the usual one.
    server = listening(there(), "10.99.0.2", 8017)
    client = socket.create_connection(("10.99.0.2", 8017), timeout=10)
    settings = policy("four")
    settings["sandbox"]["mcp"]["servers"][0]["url"] = "http://10.99.0.2:8017/mcp"
    with server, running(folder, settings) as daemon:
        try:
            ended = "closed" if client.recv(1) == b"" else "alive"
        except OSError as error:
            ended = type(error).__name__
        return ended, daemon.await_connection(layer="sweep")


def test_a_connection_older_than_the_daemon_is_ended_and_told(tmp_path: Path) -> None:
    ended, event = in_box(established, tmp_path)
    assert ended in {"ConnectionAbortedError", "ConnectionResetError", "closed"}
    assert (event["server_id"], event["action"]) == ("four", "block")


def unheard(folder: Path) -> tuple[str, list[str], dict[str, Any]]:
    """Let somebody else have the log group while the daemon starts, and let it go then."""
    server = listening(there(), "10.99.0.2", 8000)
    other = Nflog(Network().nflog_group)
    other.listen()
    with server, running(folder, policy("four", layers=("nftables",))) as daemon:
        status = daemon.cli("status")
        other.close()

        def states() -> list[str]:
            told = daemon.cli("mcp", "events", "--type", "layer_state_changed", "--json")
            return [f"{event['state']}: {event['reason']}" for event in json.loads(told)]

        await_that(lambda: len(states()) > 1)
        attempt("10.99.0.2", 8000)
        return status, states(), daemon.await_connection(layer="nftables")


@pytest.mark.slow
def test_refusals_are_told_as_soon_as_nobody_else_reads_their_log_group(tmp_path: Path) -> None:
    status, (silent, heard), event = in_box(unheard, tmp_path)
    assert "no events from this layer: no log group 4848" in status
    assert silent.startswith("in force: no events from this layer: no log group 4848")
    assert heard == "in force: its events are told from now on"
    assert (event["server_id"], event["action"]) == ("four", "block")
