"""What the LLM proxy, the gateway, the shim and the kernel each saw of a call is one story, with times, reasons and a verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from model_server import message, serving, tool_use

from agentsh_net.demo.play import readers_name
from netns.box import SLOWNESS, in_box, there
from netns.daemon import ROOT, Daemon, mcp_server, running
from netns.scene import listening

pytestmark = pytest.mark.kernel

CALC, DIRECT, ALONE, PORT = "10.99.0.5", "10.99.0.4", "10.99.0.6", 8000
NOTES = [sys.executable, str(ROOT / "tests/mcp_peers/sdk_stdio.py")]
SHIM = [sys.executable, "-m", "agentsh_net", "shim", "--server", "notes", "--", *NOTES]
WISHES = [
    {"call": ["calc", "add", {"a": 2, "b": 3}], "model": True},
    {"call": ["notes", "add", {"a": 20, "b": 30}], "model": True},
    {"call": ["direct", "add", {"a": 200, "b": 300}], "model": True},
    {"call": ["notes", "rm", {"path": "/x"}], "model": True},  # denied
    {"call": ["notes", "rm", {"path": "/x"}], "model": False},  # the agent's own code tries it all the same
    {"call": ["calc", "add", {"a": 13, "b": 1}], "model": False},  # denied by its arguments
]


def called(asked: Any) -> dict[str, Any]:
    """The call that the request asks for."""
    server, tool, arguments = json.loads(asked["messages"][-1]["content"])
    return message(tool_use(f"mcp__{server}__{tool}", arguments, f"toolu_{server}_{tool}"))


def policy(provider: str) -> dict[str, Any]:
    mcp = {
        "servers": [
            {"id": "calc", "type": "http", "url": f"http://{CALC}:{PORT}/mcp"},
            {"id": "direct", "type": "http", "url": f"http://{DIRECT}:{PORT}/mcp"},
            {"id": "alone", "type": "http", "url": f"http://{ALONE}:{PORT}/mcp"},
            {"id": "notes", "type": "stdio", "command": NOTES[0], "args": NOTES[1:]},
        ],
        "output_inspection": {"enabled": True},
        "denied_tools": [
            {"server": "notes", "tool": "rm"},
            {"server": "calc", "tool": "add", "args": {"a": {"equals": 13}}},
        ],
    }
    return {
        "sandbox": {"mcp": mcp},
        "proxy": {"port": 0, "providers": {"anthropic": {"base_url": provider}}},
        "gateway": {"enabled": True, "port": 0},
        "network": {"mode": "tag", "layers": ["ebpf", "nftables"], "required": True},
    }


def told(daemon: Daemon, call: str) -> dict[str, Any]:
    return json.loads(daemon.cli("mcp", "calls", "--show", call, "--json"))


def played(folder: Path) -> dict[str, Any]:
    """Let an agent play, and return what it said and the stories of its calls."""
    net = there()
    silent = listening(net, ALONE, PORT)
    servers = mcp_server(net, CALC, PORT), mcp_server(net, DIRECT, PORT)
    with (
        silent,
        servers[0],
        servers[1],
        serving(called) as provider,
        running(folder, policy(provider.url)) as daemon,
    ):
        environ = os.environ | {"AGENTSH_NET_SOCKET": str(folder / "control.sock")}
        words = ["exec", "--session", "mine", "--as", readers_name(folder), "--"]
        agent = [
            sys.executable,
            str(ROOT / "tests/netns/agent.py"),
            f"http://{DIRECT}:{PORT}/mcp",
            f"{ALONE}:{PORT}",
            *SHIM,
        ]
        done = subprocess.run(
            [sys.executable, "-m", "agentsh_net", *words, *agent], env=environ, cwd=folder, text=True, capture_output=True,
            input="".join(json.dumps(wish) + "\n" for wish in WISHES), timeout=180 * SLOWNESS,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + daemon.log()
        alone = daemon.await_connection(server_id="alone", session_id="mine")
        calls = json.loads(daemon.cli("mcp", "calls", "--session", "mine", "--json"))
        own = [c["id"] for c in calls if c["type"] == "mcp_tool_called" and not c.get("intercepted_id")]
        return {
            "said": [json.loads(line) for line in done.stdout.splitlines()],
            "errors": done.stderr,
            "alone": alone,
            "gateway": told(daemon, "toolu_calc_add"),
            "lines": daemon.cli("mcp", "calls", "--show", "toolu_calc_add"),
            "shim": told(daemon, "toolu_notes_add"),
            "refused": told(daemon, "toolu_notes_rm"),
            "direct": told(daemon, "toolu_direct_add"),
            "own": [told(daemon, call) for call in own],
        }


@pytest.fixture(scope="module")
def play() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="agentsh-net-story-") as made:
        Path(made).chmod(0o711)  # the agent passes through it to the shim's socket
        yield in_box(played, Path(made))


def times(story: dict[str, Any], *stages: str) -> list[datetime]:
    first = [story[s] if s == "intent" else story[s][0] for s in stages]
    return [datetime.fromisoformat(event["timestamp"]) for event in first]


def test_the_agent_did_what_the_model_said_and_was_refused_what_policy_denies(play: dict[str, Any]) -> None:
    gateway, shim, direct, text, rm, thirteen = play["said"]
    assert (gateway["said"], shim["said"], direct["said"]) == (["5"], ["50"], ["500"])
    assert text["ids"] == [] and "'mcp__notes__rm' blocked by policy" in text["texts"][0]
    assert "denied_tools" in rm["said"][0] and "denied_tools" in thirteen["said"][0]
    assert "REMOVED" not in play["errors"]


def test_a_call_through_proxy_gateway_and_kernel_is_one_story(play: dict[str, Any]) -> None:
    story = play["gateway"]
    assert (story["verdict"], story["decided_by"]) == ("allow", "")
    intent, (execution,), (result,) = story["intent"], story["executions"], story["results"]
    assert (intent["tool_name"], intent["input"], intent["session_id"]) == (
        "mcp__calc__add",
        {"a": 2, "b": 3},
        "mine",
    )
    assert (execution["via"], execution["session_id"], execution["input"]) == (
        "gateway",
        "mine",
        {"a": 2, "b": 3},
    )
    assert execution["intercepted_id"] == intent["id"]
    assert (result["jsonrpc_id"], result["content_length"] > 0) == (execution["jsonrpc_id"], True)
    assert times(story, "intent", "executions", "results") == sorted(
        times(story, "intent", "executions", "results")
    )
    assert story["connections"]
    for connection in story["connections"]:
        assert (connection["remote_addr"], connection["server_id"]) == (f"{CALC}:{PORT}", "calc")
        assert (connection["action"], connection["layer"], connection["session_id"]) == (
            "allow",
            "proxy",
            "mine",
        )
        assert (connection["correlated"], connection["joined_by"]) == (True, "session")


def test_a_call_that_goes_around_the_gateway_is_joined_with_the_kernels_record_of_its_connection(
    play: dict[str, Any],
) -> None:
    story = play["direct"]
    assert (story["verdict"], story["intent"]["tool_name"], story["executions"]) == (
        "allow",
        "mcp__direct__add",
        [],
    )
    assert story["connections"]
    for connection in story["connections"]:
        assert (connection["remote_addr"], connection["server_id"]) == (f"{DIRECT}:{PORT}", "direct")
        assert (connection["layer"], connection["pid"] > 0, connection["comm"]) == ("ebpf", True, "python")
        assert (connection["session_id"], connection["correlated"], connection["joined_by"]) == (
            "mine",
            True,
            "session",
        )


def test_people_read_the_same_story_in_lines(play: dict[str, Any]) -> None:
    lines = play["lines"].splitlines()
    assert lines[0].startswith("call        calc/add  session mine")
    stages = [line[29:39].strip() for line in lines[2:-1]]
    assert {"intent", "execution", "connection", "result"} == set(stages)
    assert lines[-1].split() == ["verdict", "allow"]


def test_a_call_under_the_shim_is_one_story_and_has_no_connection(play: dict[str, Any]) -> None:
    story = play["shim"]
    assert story["verdict"] == "allow"
    assert [e["via"] for e in story["executions"]] == ["shim"]
    assert story["executions"][0]["session_id"] == story["intent"]["session_id"] == "mine"
    assert len(story["results"]) == 1
    assert story["connections"] == []


def test_a_denied_call_ends_at_the_intent(play: dict[str, Any]) -> None:
    story = play["refused"]
    assert (story["verdict"], story["decided_by"]) == ("block", "intent")
    assert story["intent"]["rule"] == "sandbox.mcp.denied_tools[0]"
    assert story["executions"] == story["results"] == []


def test_a_denied_call_that_no_model_asked_for_ends_at_the_shim_and_at_the_gateway(
    play: dict[str, Any],
) -> None:
    ended = {}
    for story in play["own"]:
        assert (story["verdict"], story["decided_by"], story["intent"]) == ("block", "execution", None)
        (execution,) = story["executions"]
        ended[execution["via"]] = execution["rule"]
        assert story["results"] == []
    assert ended == {"shim": "sandbox.mcp.denied_tools[0]", "gateway": "sandbox.mcp.denied_tools[1]"}


def test_a_connection_without_any_call_is_flagged(play: dict[str, Any]) -> None:
    alone = play["alone"]
    assert (alone["action"], alone["correlated"]) == ("allow", False)
    assert "no tool call of this session" in alone["reason"]
