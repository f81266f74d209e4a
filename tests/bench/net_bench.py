"""Measure the network layer in private namespaces: what it costs a connect, how fast it refuses, how fast a policy takes effect.

usage: net_bench.py --client NET_CLIENT [--only connect,refusal,policy,flood,start] [--reps N]
Ratios are of medians of interleaved runs. Needs root; nothing outside of the boxes is attached to, filtered or sent to.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "proxy"), str(ROOT / "tests")]

import connect_bench
from connect_bench import Client
from netns.box import await_that, in_box, there
from netns.daemon import Daemon, running
from netns.scene import at, attempt, listening, opened, plan

DENIED, PORT = "10.99.0.2", connect_bench.PORT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", required=True, help="net_client, built of net_client.c")
    parser.add_argument("--only", default=",".join(MEASURES))
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    missed = 0
    for name in options.only.split(","):
        for what, value, bound, met in MEASURES[name](options):
            missed += met is False
            verdict = "" if met is None else "met" if met else "NOT MET"
            print(f"{what:68s} {value:>16s}   {bound:14s} {verdict}", flush=True)
    sys.exit(1 if missed else 0)


Row = tuple[str, str, str, bool | None]


def ratio(what: str, value: float, bound: float) -> Row:
    return what, f"{value:.3f}", f"at most {bound:g}", value <= bound


def duration(what: str, seconds: float, bound: float | None = None) -> Row:
    shown = f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
    if bound is None:
        return what, shown, "", None
    return what, shown, f"at most {bound * 1e3:g} ms", seconds <= bound


# Connects.


def connect(options: argparse.Namespace) -> Iterator[Row]:
    cost = connect_bench.measure(options.client, options.reps * connect_bench.ROUNDS)
    yield duration("socket+connect+close to an unlisted address, no planes", cost.none)
    whole = cost.ratios["both planes"]
    for name, found in cost.ratios.items():
        match name:
            case "both planes":
                yield ratio("  with both planes, 10 denied addresses, to none", found, 1.05)
            case "both planes, 100,000 addresses":
                yield ratio("  with 100,000 denied addresses, to 10", found / whole, 1.1)
            case _:
                yield f"  with {name}, to none", f"{found:.3f}", "", None


# Nanoseconds, more than lie between two refusals on a CPU (AGENTSH_PACE_NS).
APART = 50_000


def refusal(options: argparse.Namespace) -> Iterator[Row]:
    def inside(layer: str, pause: int) -> float:
        there()
        host = opened(plan(1, deny=(at(DENIED),)), layer)
        client = Client(options.client, DENIED, pause=pause)
        client.run(1000)
        found = [client.run(5000) for _ in range(options.reps)]
        host.close(remove=True)
        return statistics.median(median for _, median in found)

    for layer, problem, bound in (("ebpf", "EPERM", 50e-6), ("nftables", "reset", 1e-3)):
        for how, pause in (("by itself", APART), ("one upon the other", 0)):
            median = in_box(lambda layer=layer, pause=pause: inside(layer, pause), timeout=120)
            yield duration(f"refusal by {layer} alone ({problem}), median, {how}", median, bound)


def before_others() -> None:
    """Let this process and what it starts run before the machine's other work, which is not what is measured."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


# Policies.


def policy(addresses: int, *more: str) -> dict[str, Any]:
    """A policy of so many literal addresses, all denied."""
    servers = [
        {
            "id": f"s{n}",
            "type": "http",
            "url": f"http://10.{110 + (n >> 16)}.{n >> 8 & 255}.{n & 255}:443/mcp",
        }
        for n in range(addresses)
    ]
    servers += [{"id": f"more{n}", "type": "http", "url": f"http://{a}:443/mcp"} for n, a in enumerate(more)]
    return _enforced(servers)


def named(names: int, *more: str) -> dict[str, Any]:
    """A policy of so many names, all denied."""
    servers = [{"id": f"s{n}", "type": "http", "url": f"http://n{n}.test:443/mcp"} for n in range(names)]
    servers += [{"id": f"more{n}", "type": "http", "url": f"http://{a}:443/mcp"} for n, a in enumerate(more)]
    return _enforced(servers)


def _enforced(servers: list[dict[str, Any]]) -> dict[str, Any]:
    mcp = {"enforce_policy": True, "servers": servers, "denied_servers": [{"id": "*"}]}
    return {"sandbox": {"mcp": mcp}, "network": {"mode": "enforce"}, "proxy": {"mode": "disabled"}}


def until_enforced(daemon: Daemon, wanted: dict[str, Any]) -> float:
    """Save the policy; return the seconds until it is in force in both planes, which its event tells."""
    before = len(reloads(daemon))
    daemon.write(wanted)
    saved = time.time()
    await_that(lambda: len(reloads(daemon)) > before, within=60)
    return reloads(daemon)[0] - saved


def reloads(daemon: Daemon) -> list[float]:
    """When policies were taken up, newest first."""
    told = json.loads(daemon.cli("mcp", "events", "--type", "policy_reloaded", "--json"))
    stamps = sorted((event["timestamp"] for event in told), reverse=True)
    return [_seconds(stamp) for stamp in stamps]


def _seconds(stamp: str) -> float:
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    return (
        float(time.strftime("%s", time.strptime(whole + " UTC", "%Y-%m-%dT%H:%M:%S %Z")))
        + float(f"0.{fraction}")
        - (time.timezone if not time.daylight else 0)
    )


def policies(options: argparse.Namespace) -> Iterator[Row]:
    def in_turn(folder: Path, after: dict[str, Any]) -> list[float]:
        with running(folder, policy(1)) as daemon:
            taken = []
            for _ in range(options.reps):
                taken.append(until_enforced(daemon, after))
                assert attempt(DENIED) == "EPERM"
                until_enforced(daemon, policy(1))
            return taken

    def ten_thousand(folder: Path) -> list[float]:
        there()
        before_others()
        return in_turn(folder, policy(10_000, DENIED))

    def few_names(folder: Path) -> list[float]:
        there()
        before_others()
        hosts(folder, 10, 1000)
        return in_turn(folder, named(10, DENIED))

    def one_change(folder: Path) -> list[float]:
        there()
        before_others()
        hosts(folder, 50, 1000)
        with running(folder, named(50)) as daemon:
            taken = []
            for n in range(options.reps):
                taken.append(until_enforced(daemon, named(50, DENIED, *["10.99.0.3"] * (n % 2))))
                assert attempt(DENIED) == "EPERM"
                until_enforced(daemon, named(50))
            sets = subprocess.run(["nft", "list", "sets"], capture_output=True, text=True, check=True).stdout
            assert len(re.findall(r"10\.1[0-9][0-9]\.", sets)) >= 50_000
            return taken

    with tempfile.TemporaryDirectory() as scratch:
        found = in_box(lambda: ten_thousand(Path(scratch)), timeout=600)
    yield duration(
        "file save to both planes, 10,000 servers of an address each", statistics.median(found), 1.0
    )
    with tempfile.TemporaryDirectory() as scratch:
        found = in_box(lambda: few_names(Path(scratch)), timeout=600)
    yield duration(
        "file save, until the event, 10 names of 1,000 addresses each", statistics.median(found), 1.0
    )
    with tempfile.TemporaryDirectory() as scratch:
        found = in_box(lambda: one_change(Path(scratch)), timeout=600)
    yield duration(
        "file save to both planes, one server more, 50,000 addresses", statistics.median(found), 0.1
    )


def hosts(folder: Path, names: int, each: int) -> None:
    """Give this box a hosts file in which every name has so many addresses."""
    rows = [f"10.{110 + (k >> 16)}.{k >> 8 & 255}.{k & 255} n{k // each}.test" for k in range(names * each)]
    file = folder / "hosts"
    file.write_text("127.0.0.1 localhost\n" + "\n".join(rows) + "\n")
    subprocess.run(["mount", "--bind", str(file), "/etc/hosts"], check=True)


# Floods.

# Idle, the control and the flood follow each other so often, so long (seconds) each: what else the machine does meets all three.
ROUNDS, ROUND_SECONDS = 5, 2.0
# Until whoever shall be in the way is.
WARM_SECONDS = 0.2


def flood(_: argparse.Namespace) -> Iterator[Row]:
    def inside(folder: Path) -> dict[str, Any]:
        server = listening(there(), DENIED, PORT)
        wanted = policy(0, DENIED) | {"proxy": {"port": 0, "providers": {"p": {"dialect": "anthropic", "base_url": "http://127.0.0.1:1"}}}}  # fmt: skip
        with running(folder, wanted) as daemon:
            url = json.loads(daemon.cli("status", "--json"))["proxy"]["listen"]
            tries, waits = 0, {"idle": [], "control": [], "flood": []}
            for _ in range(ROUNDS):
                waits["idle"].append(p99(url, ROUND_SECONDS))
                waits["control"].append(beside(maker, url)[0])
                taken, made = beside(attacker, url)
                waits["flood"].append(taken)
                tries += made
                # What was recorded is read by then: the next round is idle again.
                found = counted(daemon, tries)
            server.setblocking(False)
            try:
                server.accept()
                through = 1
            except BlockingIOError:
                through = 0
            return waits | {"tries": tries, "through": through} | found

    with tempfile.TemporaryDirectory() as scratch:
        seen = in_box(lambda: inside(Path(scratch)), timeout=600)
    seconds = ROUNDS * (ROUND_SECONDS + 2 * WARM_SECONDS)
    yield f"refused connects in {seconds:g} s by 2 processes", f"{seen['tries']}", "", None
    yield "  that got through", str(seen["through"]), "0", seen["through"] == 0
    total = seen["told"] + seen["lost"] + seen["unstored"]
    parts = f"{seen['told']} + {seen['lost']} in the ring, {seen['unstored']} before the store"
    yield (
        f"  events + lost ({parts})",
        f"{total}",
        f"{seen['tries']}",
        total == seen["tries"] == seen["denied"],
    )
    idle, control, flooded = (statistics.median(seen[name]) for name in ("idle", "control", "flood"))
    for name in ("idle", "control", "flood"):
        print(f"    p99 by round, {name}: {', '.join(f'{taken * 1e6:.0f}' for taken in seen[name])} us")
    yield duration("proxy p99 idle", idle)
    yield "  beside 2 processes that make and close sockets, to idle", f"{control / idle:.3f}", "", None
    yield "  p99 in the flood, to beside those two", f"{flooded / control:.3f}", "", None
    yield ratio("  p99 in the flood, to idle", flooded / idle, 2)


def beside(other: Callable[[float], tuple[int, int]], url: str) -> tuple[float, int]:
    """Return the proxy's p99 beside two processes of a kind, and how often they did what they do."""
    others = [other(ROUND_SECONDS + 2 * WARM_SECONDS) for _ in range(2)]
    time.sleep(WARM_SECONDS)
    taken = p99(url, ROUND_SECONDS)
    made = sum(int(os.read(reader, 100)) for _, reader in others)
    for pid, reader in others:
        os.waitpid(pid, 0)
        os.close(reader)
    return taken, made


def attacker(seconds: float) -> tuple[int, int]:
    """Start a process that connects to DENIED as fast as it can; return its pid and where it writes how often."""
    return repeating(lambda client: client.connect_ex((DENIED, PORT)), seconds)


def maker(seconds: float) -> tuple[int, int]:
    """Start one that makes sockets and closes them: what any flood costs the machine, whoever refuses it."""
    return repeating(lambda _: 0, seconds)


def repeating(action: Callable[[socket.socket], int], seconds: float) -> tuple[int, int]:
    """Start a process that does it with a new socket each time; return its pid and where it writes how often."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        until, count = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            with socket.socket() as client:
                action(client)
            count += 1
        os.write(writer, str(count).encode())
        os._exit(0)
    os.close(writer)
    return child, reader


def p99(url: str, seconds: float) -> float:
    """Return the 99th percentile of the proxy's own answers (its health page), in seconds.

    Who asks runs before all others: it is the proxy that is measured.
    """
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))
    host, port = url.removeprefix("http://").split(":")
    taken = []
    until = time.monotonic() + seconds
    with socket.create_connection((host, int(port))) as client:
        while time.monotonic() < until:
            began = time.perf_counter()
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: " + f"{host}:{port}".encode() + b"\r\n\r\n")
            assert client.recv(65536)
            taken.append(time.perf_counter() - began)
            time.sleep(0.001)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return sorted(taken)[len(taken) * 99 // 100]


def told(folder: Path) -> int:
    """Count the refusals in the audit trail."""
    import sqlite3

    with sqlite3.connect(f"file:{folder}/events.db?mode=ro", uri=True) as store:
        (count,) = store.execute(
            "select count(*) from events where type = 'mcp_network_connection' and action = 'block'"
        ).fetchone()
    return int(count)


def counted(daemon: Daemon, tries: int) -> dict[str, int]:
    """Return what the daemon makes of so many tries, once it accounts for all of them or 60 s have passed."""
    until = time.monotonic() + 60
    while True:
        status = json.loads(daemon.cli("status", "--json"))
        ebpf = next(row for row in status["layers"] if row["layer"] == "ebpf")
        found = {"told": told(daemon.folder), "lost": ebpf["lost"], "unstored": status["store"]["lost"],
                 "denied": ebpf["denied"]}  # fmt: skip
        if sum(found.values()) - found["denied"] >= tries or time.monotonic() > until:
            return found
        time.sleep(0.5)


# Starts.


def start(options: argparse.Namespace) -> Iterator[Row]:
    def inside(folder: Path, loader: str) -> tuple[float, float, float, float]:
        there()
        before_others()
        wanted = policy(0, DENIED)
        wanted["network"]["bpf_loader"] = loader
        taken, ready, resident = [], [], []
        daemon = Daemon(folder)
        daemon.write(wanted)
        for _ in range(options.reps):
            first: list[float] = []
            watcher = threading.Thread(target=await_refusal, args=(first,))
            began = time.monotonic()
            watcher.start()
            daemon.start()
            ready.append(time.monotonic() - began)
            watcher.join()
            taken.append(first[0] - began)
            status = Path(f"/proc/{daemon.process.pid}/status").read_text()
            resident.append(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024)
            daemon.stop()
        return statistics.median(taken), statistics.median(ready), statistics.median(resident), interpreter()

    for loader, bound, most in (("prebuilt", 0.5, 60), ("bcc", 5.0, None)):
        with tempfile.TemporaryDirectory() as scratch:
            taken, ready, resident, bare = in_box(lambda s=scratch, w=loader: inside(Path(s), w), timeout=300)
        yield duration(
            f"exec to enforcing, {loader}, less {bare * 1e3:.0f} ms of the bare interpreter",
            taken - bare,
            bound,
        )
        yield duration(f"  to ready (everything), {loader}", ready - bare)
        yield f"  resident memory of the supervisor, {loader}", f"{resident:.1f} MB", f"under {most} MB" if most else "", resident < most if most else None  # fmt: skip


def await_refusal(first: list[float]) -> None:
    """Append when a connect to DENIED was refused by policy first."""
    while attempt(DENIED) != "EPERM":
        time.sleep(0.001)
    first.append(time.monotonic())


def interpreter() -> float:
    """Return the seconds that this interpreter takes to start and end."""
    taken = []
    for _ in range(5):
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        taken.append(time.monotonic() - began)
    return statistics.median(taken)


MEASURES: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "connect": connect,
    "refusal": refusal,
    "policy": policies,
    "flood": flood,
    "start": start,
}

if __name__ == "__main__":
    main()
