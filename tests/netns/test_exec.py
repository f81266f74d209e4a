"""An agent that `exec` starts is in a session of its own: confined, told apart by both planes, cleared away when it ended."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from netns.box import SLOWNESS, await_that, in_box, there
from netns.daemon import Daemon, running
from netns.scene import attempt, listening
from netns.tampering import nft_as_owner

pytestmark = pytest.mark.kernel

BAD, PORT = "10.99.0.2", 8000
SESSIONS = Path("/sys/fs/cgroup/agentsh-net/sessions")
# Says what a connect comes to, and who it was.
CLIENT = f"""
import errno, json, os, socket, sys
s = socket.socket(); s.settimeout(2)
try:
    s.connect(("{BAD}", {PORT})); said = "connected"
except OSError as e:
    said = errno.errorcode[e.errno]
status = dict(l.split(":\\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\\t" in l)
print(json.dumps({{"said": said, "uid": os.getuid(), "groups": os.getgroups(), "caps": status["CapEff"], "bound": status["CapBnd"],
    "nnp": status["NoNewPrivs"], "cgroup": open("/proc/self/cgroup").read(), "env": dict(os.environ)}}))
"""


def policy(layers: tuple[str, ...] = ("ebpf", "nftables"), scope: str = "host") -> dict[str, Any]:
    rules = {
        "servers": [{"id": "four", "type": "http", "url": f"http://{BAD}:{PORT}/mcp"}],
        "denied_servers": [{"id": "four"}],
    }
    network = {"mode": "enforce", "layers": list(layers), "required": True, "scope": scope}
    return {"sandbox": {"mcp": rules}, "network": network}


def started(
    daemon: Daemon, *command: str, options: tuple[str, ...] = ("--as", "nobody"), **given: Any
) -> subprocess.Popen[str]:
    environ = os.environ | {"AGENTSH_NET_SOCKET": str(daemon.folder / "control.sock")} | given
    whole = [sys.executable, "-m", "agentsh_net", "exec", *options, "--", *command]
    return subprocess.Popen(whole, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ran(daemon: Daemon, *command: str, **given: Any) -> tuple[str, str, int]:
    process = started(daemon, *command, **given)
    out, err = process.communicate(timeout=60 * SLOWNESS)
    return out, err, process.returncode


def agent(daemon: Daemon, **given: Any) -> dict[str, Any]:
    out, err, _ = ran(daemon, "/usr/bin/python3", "-c", CLIENT, **given)
    assert out, err
    return json.loads(out)


def gone(session: str) -> bool:
    return not (SESSIONS / f"{session}.session").exists()


def session_of_an_event(folder: Path, layers: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    server = listening(there(), BAD, PORT)
    with server, running(folder, policy(layers)) as daemon:
        told = agent(daemon, options=("--as", "nobody", "--session", "mine"))
        event = daemon.await_connection(action="block", layer=layers[0])
        await_that(lambda: gone("mine"))
        assert json.loads(daemon.cli("session", "list", "--json")) == []
    return told, event


def after_the_last_session(folder: Path) -> tuple[str, str]:
    """Flush the rules once the daemon has seen a session run, and seen it gone."""

    def seen(row: bool) -> bool:
        rows = json.loads(daemon.cli("status", "--json"))["layers"]
        return ("cgroups" in {r["layer"] for r in rows}) is row

    server = listening(there(), BAD, PORT)
    with server, running(folder, policy(("nftables",))) as daemon:
        agent = started(daemon, "sleep", "60")
        await_that(lambda: seen(True))
        agent.kill()
        agent.wait()
        await_that(lambda: seen(False))
        before = attempt(BAD, PORT)
        nft_as_owner("flush ruleset")

        await_that(lambda: attempt(BAD, PORT) == before)
        return before, attempt(BAD, PORT)


def test_the_rules_are_looked_after_when_the_last_session_has_ended(tmp_path: Path) -> None:
    before, mended = in_box(after_the_last_session, tmp_path)
    assert (before, mended) == ("ECONNREFUSED", "ECONNREFUSED")


@pytest.mark.parametrize("layers", [("ebpf",), ("nftables",)], ids="+".join)
def test_an_agents_refusal_is_its_sessions_event_on_either_plane_and_it_holds_no_privilege(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    told, event = in_box(session_of_an_event, tmp_path, layers)
    assert told["said"] == {"ebpf": "EPERM", "nftables": "ECONNREFUSED"}[layers[0]]
    assert event["session_id"] == "mine"
    nobody = pwd.getpwnam("nobody")
    assert (told["uid"], told["groups"]) == (nobody.pw_uid, [nobody.pw_gid])
    assert int(told["caps"], 16) == int(told["bound"], 16) == 0
    assert told["nnp"] == "1"
    assert "0::/agentsh-net/sessions/mine.session\n" in told["cgroup"]
    env = told["env"]
    assert "/s/" in env["ANTHROPIC_BASE_URL"]
    assert env["ANTHROPIC_BASE_URL"].endswith("/anthropic")
    assert env["OPENAI_BASE_URL"].endswith("/openai/v1")
    assert "127.0.0.1" in env["NO_PROXY"]
    assert env["USER"] == "nobody"


def running_now(daemon: Daemon) -> list[str]:
    rows = json.loads(daemon.cli("session", "list", "--json"))
    return [row["session_id"] for row in rows if row["running"]]


def ends(folder: Path) -> list[Any]:
    """How an agent ends is how exec ends; and what it leaves behind keeps the session."""
    there()
    said: list[Any] = []
    with running(folder, policy()) as daemon:
        said.append(ran(daemon, "sh", "-c", "exit 7")[2])
        said.append(ran(daemon, "sh", "-c", "kill -USR1 $$")[2])
        out, err, code = ran(daemon, "/no/such/agent")
        said.append((out, code, "not found" in err))
        running_one = started(daemon, "sleep", "1000", options=("--as", "nobody", "--session", "one"))
        await_that(lambda: "sleep" in Path(f"/proc/{running_one.pid}/comm").read_text())
        said.append(running_now(daemon))
        out, err, code = ran(daemon, "true", options=("--as", "nobody", "--session", "one"))
        said.append((code, "runs already" in err))
        running_one.send_signal(signal.SIGTERM)
        said.append(running_one.wait(60))
        behind = started(
            daemon,
            "sh",
            "-c",
            "sleep 1000 >&- 2>&- & echo $!",
            options=("--as", "nobody", "--session", "two"),
        )
        left = int(behind.communicate(timeout=60)[0])
        daemon.crash()
        daemon.start()  # it finds the session
        said.append(running_now(daemon))
        os.kill(left, signal.SIGKILL)
        await_that(lambda: not list(SESSIONS.glob("*.session")))
        said.append(json.loads(daemon.cli("session", "list", "--json")))
        assert daemon.stop() == 0
    said.append(Path("/sys/fs/cgroup/agentsh-net").exists())
    return said


def test_status_and_signals_are_the_agents_and_its_session_lasts_as_long_as_anything_runs_in_it(
    tmp_path: Path,
) -> None:
    assert in_box(ends, tmp_path) == [
        7,
        -signal.SIGUSR1,
        ("", 127, True),
        ["one"],
        (3, True),
        -signal.SIGTERM,
        ["two"],
        [],
        False,
    ]


def who(folder: Path) -> list[Any]:
    there()
    with running(folder, policy()) as daemon:
        said: list[Any] = []
        for options, given in (
            ((), {}),
            ((), {"SUDO_UID": "1"}),
            (("--as", "root"), {}),
            (("--as", "no one"), {}),
        ):
            out, err, code = ran(daemon, "id", "-u", options=options, **given)
            said.append((out.strip(), code, "root" in err))
        return said


def test_an_agent_of_roots_is_told_to_be_that_and_by_sudo_it_runs_as_the_caller(tmp_path: Path) -> None:
    nobody_named, by_sudo, root, unknown = in_box(who, tmp_path)
    assert nobody_named == ("0", 0, True)
    assert by_sudo[:2] == ("1", 0)
    assert root == ("0", 0, True)
    assert unknown[1] == 2


def scoped(folder: Path, layers: tuple[str, ...]) -> list[str]:
    """Sessions alone, then everybody, then sessions alone again, by reloads; and through a crash."""
    server = listening(there(), BAD, PORT)
    said: list[str] = []
    with server, running(folder, policy(layers, "sessions")) as daemon:
        for scope in ("sessions", "host", "sessions"):
            daemon.write(policy(layers, scope))
            daemon.cli("reload")
            said.append(f"{scope}: agent {agent(daemon)['said']}, bystander {attempt(BAD, PORT)}")
        waiting = "import time; open(0).readline();" + CLIENT  # speaks when the daemon is dead
        command = ["/usr/bin/python3", "-c", waiting]
        environ = os.environ | {"AGENTSH_NET_SOCKET": str(daemon.folder / "control.sock")}
        orphan = subprocess.Popen(
            [sys.executable, "-m", "agentsh_net", "exec", "--as", "nobody", "--session", "orphan", "--", *command],
            env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        await_that(lambda: Path(f"/proc/{orphan.pid}/cmdline").read_bytes().startswith(b"/usr/bin/python3"))
        daemon.crash()
        out, _ = orphan.communicate("go\n", timeout=60)
        said.append(f"after SIGKILL: agent {json.loads(out)['said']}, bystander {attempt(BAD, PORT)}")
        daemon.start()
        row = next(r for r in json.loads(daemon.cli("status", "--json"))["layers"] if r["layer"] == "cgroups")
        said.append(f"cgroups wanted {row['wanted']}, in force {row['in_force']}")
    return said


@pytest.mark.parametrize("layers", [("ebpf",), ("nftables",)], ids="+".join)
def test_the_scope_follows_the_file_and_outlives_the_daemon(tmp_path: Path, layers: tuple[str, ...]) -> None:
    no = {"ebpf": "EPERM", "nftables": "ECONNREFUSED"}[layers[0]]
    assert in_box(scoped, tmp_path, layers) == [
        f"sessions: agent {no}, bystander connected",
        f"host: agent {no}, bystander {no}",
        f"sessions: agent {no}, bystander connected",
        f"after SIGKILL: agent {no}, bystander connected",
        "cgroups wanted True, in force True",
    ]


ASK = """
import http.client, os, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1] if len(sys.argv) > 1 else os.environ["OPENAI_BASE_URL"])
try:
    c = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    c.request("POST", url.path + "/chat/completions", "{}", {"Content-Type": "application/json"})
    print(c.getresponse().status)
except OSError as e:
    print(type(e).__name__)
"""
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
)


def through_or_around(folder: Path, layers: tuple[str, ...]) -> tuple[list[str], dict[str, Any], str]:
    server = listening(there(), BAD, PORT)

    def provider() -> None:
        while True:
            client, _ = server.accept()
            with client:
                client.recv(65536)
                client.sendall(ANSWER)

    threading.Thread(target=provider, daemon=True).start()
    base = f"http://{BAD}:{PORT}/v1"
    network = {"mode": "tag", "layers": list(layers), "required": True, "llm_direct": "refuse"}
    providers = {"anthropic": {"base_url": f"{base}/x"}, "openai": {"base_url": base}}
    providers |= {name: {"base_url": f"{base}/{name}"} for name in ("gemini", "ollama")}
    with running(folder, {"proxy": {"port": 0, "providers": providers}, "network": network}) as daemon:
        out, err, _ = ran(daemon, "/usr/bin/python3", "-c", ASK)
        around, _, _ = ran(daemon, "/usr/bin/python3", "-c", ASK, base)

        def told() -> list[dict[str, Any]]:
            return json.loads(daemon.cli("mcp", "events", "--type", "llm_direct_connection", "--json"))

        event = await_that(told)[0]
        status = daemon.cli("status")
    return [out.strip() or err, around.strip()], event, status


@pytest.mark.parametrize("layers", [("ebpf",), ("nftables",)], ids="+".join)
def test_an_agent_reaches_its_provider_through_the_proxy_and_not_around_it(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    (through, around), event, status = in_box(through_or_around, tmp_path, layers)
    assert through == "200"
    assert around == {"ebpf": "PermissionError", "nftables": "ConnectionRefusedError"}[layers[0]]
    assert (event["action"], event["provider"], event["remote_addr"]) == (
        "block",
        "anthropic",
        f"{BAD}:{PORT}",
    )
    assert event["session_id"].startswith("s-")
    assert "the proxy exempt as /sys/fs/cgroup/agentsh-net/workers" in status
