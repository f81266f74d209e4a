"""Under a mixed load, with reloads, names that move and workers that die, every call is on record once, nothing denied passes, nothing grows.

Some seconds in CI; `./dev soak` has forty minutes of it, after which memory, descriptors, threads and the kernel's sets are what they were.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from model_server import serving

from agentsh_net.control.client import Client
from netns import box, loads
from netns.daemon import Daemon, running
from netns.loads import Load
from netns.name_server import NameServer
from netns.scene import listening

pytestmark = pytest.mark.kernel

SECONDS = (
    60 * float(os.environ.get("AGENTSH_NET_SOAK_MINUTES", "40")) if "AGENTSH_NET_SOAK" in os.environ else 12
)
# Seconds from one to the next: as long in CI as leaves time for some of each.
RELOAD, MOVE, KILL, LOOK = (10, 5, 60, 20) if SECONDS > 60 else (2, 1, 4, 1)
EVIL, PORT, NAME = "10.99.0.5", 8000, "moving.test"
GRACE = 5
NUMBERS = {"m": "the model's", "g": "the gateway's", "s": "the shim's"}


def policy(turn: int, provider: str, web: str) -> dict[str, Any]:
    """Return one of three policies, which deny `evil`, what moves and `rm` in common."""
    servers = [
        {"id": "web", "type": "http", "url": web},
        {"id": "local", "type": "stdio", "command": "cat"},
        {"id": "evil", "type": "http", "url": f"http://{EVIL}:{PORT}/mcp"},
        {"id": "moves", "type": "http", "url": f"http://{NAME}:{PORT}/mcp"},
        *({"id": f"s{n}", "type": "http", "url": f"http://10.77.{turn % 3}.{n}:{PORT}/mcp"} for n in range(turn % 3 * 50)),
    ]  # fmt: skip
    denied = [{"id": name} for name in ("evil", "moves", "s*")]
    return {
        "sandbox": {
            "mcp": {
                "servers": servers,
                "denied_servers": denied,
                "fail_closed": True,
                "denied_tools": [{"tool": "rm"}],
            }
        },
        "proxy": {"port": 0, "workers": 2, "providers": {"anthropic": {"base_url": provider}}},
        "gateway": {"enabled": True, "port": 0},
        "network": {"mode": "enforce", "required": True, "resolve": {"min_ttl": "1s", "grace": f"{GRACE}s"}},
    }


@dataclass
class Life:
    """What was seen of the daemon: samples of numbers by name, and of each load what it was told."""

    loads: dict[str, Load]
    samples: list[dict[str, float]] = field(default_factory=list)
    reached: Counter[str] = field(default_factory=Counter)
    rows: list[dict[str, Any]] = field(default_factory=list)


def numbers_of(pid: int) -> dict[str, float]:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {
        "kilobytes": float(status["VmRSS"].split()[0]),
        "threads": float(status["Threads"]),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
    }


def elements() -> int:
    """Return how many IPv4 addresses the packet plane's sets hold. (As text: nft's JSON of an element with a counter is none.)"""
    listed = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
    return len(re.findall(r"\b10\.\d+\.\d+\.\d+", listed))


def sample(daemon: Daemon, workers: list[int]) -> dict[str, float]:
    named = {"daemon": daemon.process.pid, "worker": min(workers)}
    found = {f"{who} {what}": n for who, pid in named.items() for what, n in numbers_of(pid).items()}
    log = daemon.folder / "events.db-wal"
    return found | {"megabytes of log": log.stat().st_size / 1e6}


class Clockwork:
    """Does each thing when its time has come."""

    def __init__(self, things: dict[Callable[[int], None], float]) -> None:
        self._things = {thing: [every, time.monotonic() + every, 0] for thing, every in things.items()}

    def run(self, seconds: float) -> None:
        until, pause = time.monotonic() + seconds, threading.Event()
        while (now := time.monotonic()) < until:
            for thing, timing in self._things.items():
                if now >= timing[1]:
                    timing[2] += 1
                    thing(int(timing[2]))
                    timing[1] = time.monotonic() + timing[0]
            pause.wait(0.05)


def lived(folder: Path) -> Life:
    box.mount_bpffs()
    net, names = box.there(), NameServer()
    evil = listening(net, EVIL, PORT)
    life = Life({letter: Load() for letter in (*NUMBERS, "c")})
    with ExitStack() as stack:
        web = stack.enter_context(loads.mcp_over_http())
        provider = stack.enter_context(serving(loads.answer))
        daemon = stack.enter_context(running(folder, policy(0, provider.url, web)))
        client = Client(folder / "control.sock", timeout=300)
        started = time.monotonic()

        def workers() -> list[int]:
            return sorted(worker["pid"] for worker in client.call("status")["proxy"]["workers"])

        def reload(turn: int) -> None:
            daemon.write(policy(turn, provider.url, web))
            client.call("reload")

        def move(turn: int) -> None:
            names.records[NAME, "A"] = [f"10.88.{turn // 200 % 200}.{turn % 200}"]

        def kill(turn: int) -> None:
            """End either worker in the first half, later only the younger: what the elder does for long is to be seen."""
            found = workers()
            if len(found) == 2:
                os.kill(found[turn % 2 if time.monotonic() - started < SECONDS / 2 else 1], signal.SIGKILL)

        def look(_: int) -> None:
            with suppress(FileNotFoundError, KeyError, ValueError):  # one that was killed just now
                life.samples.append(sample(daemon, workers()))
            del provider.asked[:]  # which would grow

        box.await_that(
            lambda: next(s for s in client.call("status")["servers"] if s["server_id"] == "web")["tools"]
        )
        first = elements()
        with ExitStack() as calls:
            ready = json.loads((folder / "ready").read_text())
            for letter, call in {
                "m": loads.of_model(life.loads["m"], ready["proxy"]),
                "g": loads.of_gateway(life.loads["g"], ready["gateway"]),
                "s": loads.of_shim(life.loads["s"], folder / "control.sock", calls),
                "c": loads.of_denied(life.loads["c"], EVIL, PORT),
            }.items():
                calls.enter_context(loads.calling(letter, life.loads[letter], call))
            Clockwork({reload: RELOAD, move: MOVE, kill: KILL, look: LOOK}).run(SECONDS)
        reload(0)
        box.await_that(lambda: elements() <= first + 2)  # and the last address, in a rule and as a shared one
        assert daemon.stop() == 0
        evil.close()
        life.reached = loads.McpServer.reached
    with closing(sqlite3.connect(folder / "events.db")) as store:
        life.rows = [json.loads(row) for (row,) in store.execute("SELECT json FROM events")]
    return life


def on_record(life: Life) -> Counter[tuple[str, str]]:
    """Return how often each call is on record, and whether as refused."""
    found: Counter[tuple[str, str]] = Counter()
    for row in life.rows:
        match row["type"]:
            case "mcp_tool_call_intercepted":
                found[row["tool_call_id"], row["action"]] += 1
            case "mcp_tool_called":
                found[row["input"]["number"], row["action"]] += 1
    return found


def growth(life: Life, name: str) -> float:
    """Return by how much a number grew from the second quarter of the time to the last, by medians."""
    values = [each[name] for each in life.samples]
    quarter = len(values) // 4
    return statistics.median(values[-quarter:]) - statistics.median(values[quarter : 2 * quarter])


@pytest.mark.slow
@pytest.mark.timeout(int(SECONDS) + 600)
def test_every_call_is_on_record_once_nothing_denied_passes_and_nothing_grows(tmp_path: Path) -> None:
    life = box.in_box(lived, tmp_path, timeout=SECONDS + 500)
    recorded = on_record(life)
    for letter, load in life.loads.items():
        print(
            f"{letter}: {len(load.answered)} answered, {len(load.refused)} refused, broken {dict(load.broken)}"
        )
        assert load.leaks == []
        assert len(load.refused) > SECONDS / 4
    for letter in NUMBERS:
        load = life.loads[letter]
        wrong = [n for n in load.answered if recorded[n, "allow"] != 1] + [
            n for n in load.refused if recorded[n, "block"] != 1
        ]
        assert wrong == [], letter
    assert max(recorded.values()) == 1, recorded.most_common(5)
    assert [n for n, times in life.reached.items() if (times, recorded[n, "allow"]) != (1, 1)] == []
    refused = [
        r
        for r in life.rows
        if r["type"] == "mcp_network_connection"
        and r["remote_addr"].startswith(EVIL)
        and r["action"] == "block"
    ]
    assert len(refused) == len(life.loads["c"].refused)
    told = Counter(row["type"] for row in life.rows)
    print(
        dict(told),
        {
            name: (values := [each[name] for each in life.samples])[0:1] + values[-1:]
            for name in life.samples[0]
        },
    )
    assert told["policy_reloaded"] and told["worker_exited"]
    if SECONDS > 60:
        grown = {name: growth(life, name) for name in life.samples[0]}
        print("grown:", grown)
        bounds = {"kilobytes": 3_000, "threads": 2, "descriptors": 4, "log": 4}
        assert {n: by for n, by in grown.items() if by > bounds[n.split()[-1]]} == {}
