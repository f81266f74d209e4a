"""What an agent does over HTTP is its session's: the kernel says whose a connection is, whatever token its URLs have or lack."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import message, serving, tool_use

from agentsh_net.demo.play import readers_name
from netns.box import SLOWNESS, await_that, in_box, there
from netns.daemon import ROOT, Daemon, mcp_server, running

pytestmark = pytest.mark.kernel

CALC, PORT = "10.99.0.5", 8000
READS, SENDS, ADDS = "mcp__db__query", "mcp__mail__send_email", "mcp__calc__add"
WORKERS = Path("/sys/fs/cgroup/agentsh-net/workers/cgroup.procs")
# Asks a model at each URL for the call that goes with it; prints the tools that it may call.
ASKS = """
import json, sys, urllib.request
for url, tool in json.loads(sys.argv[1]):
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": tool}]}).encode()
    asked = urllib.request.Request(url + "/v1/messages", body, {"Content-Type": "application/json", "x-api-key": "k"})
    answer = json.load(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked))
    print(json.dumps([block.get("name") for block in answer["content"] if block["type"] == "tool_use"]))
"""
# When it is told to, it connects, sends, and is gone: by a reset, and politely.
RUNS_AWAY = """
import socket, struct, sys
print("ready", flush=True)
sys.stdin.readline()
for reset, request in ((True, sys.argv[3]), (False, sys.argv[4])):
    client = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    if reset:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(request.encode())
    client.close()
print("gone")
"""


def called(asked: Any) -> dict[str, Any]:
    """The call that the request asks for."""
    tool = asked["messages"][-1]["content"]
    return message(tool_use(tool, {"a": 2, "b": 3}, f"toolu_{tool}"))


def policy(provider: str) -> dict[str, Any]:
    servers = [{"id": name, "type": "http", "url": f"http://10.99.0.6/{name}"} for name in ("db", "mail")]
    servers.append({"id": "calc", "type": "http", "url": f"http://{CALC}:{PORT}/mcp"})
    return {
        "sandbox": {"mcp": {"servers": servers, "cross_server": {"enabled": True}}},
        "proxy": {"port": 0, "providers": {"anthropic": {"base_url": provider}}},
        "gateway": {"enabled": True, "port": 0},
        "network": {"mode": "tag", "layers": ["ebpf", "nftables"], "required": True},
    }


def started(daemon: Daemon, session: str, *command: str) -> subprocess.Popen[str]:
    environ = os.environ | {"AGENTSH_NET_SOCKET": str(daemon.folder / "control.sock")}
    words = ["exec", "--session", session, "--as", readers_name(daemon.folder), "--", *command]
    whole = [sys.executable, "-m", "agentsh_net", *words]
    piped = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    return subprocess.Popen(whole, env=environ, cwd=daemon.folder, text=True, **piped)


def execed(daemon: Daemon, session: str, *command: str) -> str:
    agent = started(daemon, session, *command)
    out, _ = agent.communicate(timeout=60 * SLOWNESS)
    assert agent.returncode == 0, daemon.log()
    return out


def asks(*wishes: tuple[str, str]) -> tuple[str, ...]:
    return sys.executable, "-c", ASKS, json.dumps(wishes)


def answers(said: str) -> list[list[str]]:
    return [json.loads(line) for line in said.splitlines()]


def events(daemon: Daemon, kind: str) -> list[dict[str, Any]]:
    return json.loads(daemon.cli("mcp", "events", "--type", kind, "--limit", "1000", "--json"))


def while_the_workers_sleep(daemon: Daemon, session: str, *command: str) -> None:
    """Let an agent do something of which nothing is looked at before it is gone."""
    agent = started(daemon, session, *command)
    assert agent.stdout.readline() == "ready\n"
    pids = [int(pid) for pid in WORKERS.read_text().split()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert agent.communicate("go\n", timeout=60 * SLOWNESS)[0] == "gone\n"
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def played(folder: Path) -> dict[str, Any]:
    net = there()
    with (
        mcp_server(net, CALC, PORT),
        serving(called) as provider,
        running(folder, policy(provider.url)) as daemon,
    ):
        ready = json.loads((folder / "ready").read_text())
        bare, gateway = f"{ready['proxy']}/anthropic", f"{ready['gateway']}/mcp/calc"
        other = json.loads(daemon.cli("session", "new", "--id", "other", "--json"))
        others = f"{ready['proxy']}/s/{other['token']}/anthropic"
        outside = subprocess.run(asks((bare, READS)), capture_output=True, text=True, check=True)
        agent = answers(execed(daemon, "mine", *asks((bare, READS), (bare, SENDS), (others, SENDS))))
        with_a_token = subprocess.run(asks((others, SENDS)), capture_output=True, text=True, check=True)
        execed(daemon, "caller", *asks((bare, ADDS)))
        execed(daemon, "caller", sys.executable, str(ROOT / "tests/netns/mcp_client.py"), gateway)

        def story() -> dict[str, Any] | None:
            told = json.loads(daemon.cli("mcp", "calls", "--show", f"toolu_{ADDS}", "--json"))
            return told if told["executions"] and told["connections"] else None

        return {
            "outside": answers(outside.stdout),
            "agent": agent,
            "outside with a token": answers(with_a_token.stdout),
            "intercepted": events(daemon, "mcp_tool_call_intercepted"),
            "crossed": events(daemon, "mcp_cross_server_blocked"),
            "story": await_that(story),
            "log": daemon.log(),
        }


def adding(host: str, a: int) -> str:
    """Return a POST to the gateway that calls `add`."""
    call = {
        "jsonrpc": "2.0",
        "id": a,
        "method": "tools/call",
        "params": {"name": "add", "arguments": {"a": a}},
    }
    body = json.dumps(call)
    fields = (
        f"Host: {host}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join(("POST /mcp/calc HTTP/1.1", *fields, "", body))


def runs_away(folder: Path) -> list[dict[str, Any]]:
    """Let an agent send calls that nobody looks at before it is gone, then one that it waits for; return what was called."""
    with (
        mcp_server(there(), CALC, PORT),
        serving(called) as provider,
        running(folder, policy(provider.url)) as daemon,
    ):
        gateway = json.loads((folder / "ready").read_text())["gateway"]
        host, port = gateway.removeprefix("http://").split(":")
        run = sys.executable, "-c", RUNS_AWAY, host, port, adding(host, 13), adding(host, 14)
        while_the_workers_sleep(daemon, "mine", *run)
        execed(daemon, "mine", sys.executable, str(ROOT / "tests/netns/mcp_client.py"), f"{gateway}/mcp/calc")

        def told() -> list[dict[str, Any]]:
            found = events(daemon, "mcp_tool_called")
            return found if any(e["input"]["a"] == 2 for e in found) else []

        return await_that(told)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="agentsh-net-sessions-") as made:
        Path(made).chmod(0o711)  # the agent passes through it
        yield Path(made)


def test_whose_a_connection_is_is_the_kernels_to_say_before_any_token(folder: Path) -> None:
    play = in_box(played, folder)
    assert play["outside"] == [[READS]]
    assert play["agent"] == [[READS], [], []], (
        "what it read it may not send, without a token or with another's"
    )
    assert play["outside with a token"] == [[SENDS]], (
        "who is in no session is of the one whose token it shows"
    )
    assert {(e["session_id"], e["rule"].rpartition(".")[2]) for e in play["crossed"]} == {
        ("mine", "read_then_send")
    }
    told = {(e["session_id"], e["tool_name"], e["action"]) for e in play["intercepted"]}
    assert told == {
        ("default", READS, "allow"), ("mine", READS, "allow"), ("mine", SENDS, "block"), ("other", SENDS, "allow"),
        ("caller", ADDS, "allow"),
    }  # fmt: skip
    story = play["story"]
    (execution,) = story["executions"]
    assert execution["intercepted_id"] == story["intent"]["id"]
    stages = [story["intent"], execution, *story["connections"]]
    assert {e["session_id"] for e in stages} == {"caller"}, "one call through every layer, and never a token"
    assert {(e["layer"], e["correlated"]) for e in story["connections"]} == {("proxy", True)}
    assert play["log"].count("session mine shows the token of session other") == 1


def test_a_call_of_an_agent_that_did_not_wait_to_be_known_is_its_sessions_or_is_not_made(
    folder: Path,
) -> None:
    called = in_box(runs_away, folder)
    assert {e["session_id"] for e in called} == {"mine"}
    assert 13 not in [e["input"]["a"] for e in called], (
        "of a socket that was reset nobody can say whose it was"
    )
