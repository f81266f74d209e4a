"""What the MCP gateway costs, beside the bare server and other proxies that install here: medians of interleaved rounds.

`./dev bench gateway [--rounds N] [--calls N] [--scenarios http,stdio,sse,sessions,churn]`. CPU is that of the processes between
client and server, with one call in flight; p50 and p99 are with eight, of eight sessions and of one. A figure that the project has
set is printed with whether it is met.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import uvloop
from mcp_client import Session, address, bare_calls, calls
from mcp_proxies import PAIRS, Proxy, before_http, before_stdio

ROOT = Path(__file__).parent.parent.parent
HZ = os.sysconf("SC_CLK_TCK")
PEERS = ROOT / "tests" / "mcp_peers"
# CPython looks at all objects of the SDK's servers every 500 calls or so (its full collection), for 50 ms: with eight in flight that was
# the p99 of whoever asked them then, and of nobody else. They go without, whoever stands before them; younger objects are collected.
COLLECT = "import gc, runpy, sys; gc.set_threshold(700, 10, 1 << 30); del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
PYTHON = [sys.executable, "-c", COLLECT]
STDIO = [*PYTHON, str(PEERS / "sdk_stdio.py")]
KEY = "bench"

Calls = Callable[..., Coroutine[Any, Any, list[float]]]  # of mcp_client


def free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(command: list[str], port: int = 0, env: dict[str, str] | None = None) -> Iterator[int]:
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as it:
        try:
            deadline = time.monotonic() + 60
            while port:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if time.monotonic() > deadline or it.poll() is not None:
                        raise
                    time.sleep(0.1)
            yield it.pid
        finally:
            it.terminate()


def tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def cpu(pids: list[int]) -> float:
    total = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / HZ
    return total


def between(pid: int) -> list[int]:
    """Return a proxy's processes without the servers that it runs; one that has ended has no command line."""
    return [p for p in tree(pid) if p == pid or ((words := command_line(p)) and b"sdk_stdio.py" not in words)]


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


def rss(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@contextmanager
def daemon(folder: Path, servers: list[dict[str, object]]) -> Iterator[tuple[int, str]]:
    user = (
        {"io": {"user": "nobody", "downstream_security": "none"}}
        if os.geteuid() == 0 and servers[0]["id"] == "io"
        else {}
    )
    scheme = [{"id": "none", "type": "apiKey", "in": "query", "name": "k", "credential": KEY}]
    policy = {
        "version": 1,
        "sandbox": {"mcp": {"servers": servers, "denied_tools": [{"tool": "rm"}]}},
        "proxy": {"mode": "disabled"}, "network": {"mode": "off"},
        "gateway": {"enabled": True, "port": 0, "security_schemes": scheme, "servers": user},
        "store": {"path": str(folder / "events.db")}, "control": {"socket": str(folder / "control.sock")},
    }  # fmt: skip
    (folder / "policy.yaml").write_text(json.dumps(policy))
    ready = folder / "ready"
    command = [
        sys.executable,
        "-m",
        "agentsh_net",
        "run",
        "--config",
        str(folder / "policy.yaml"),
        "--ready-file",
        str(ready),
    ]
    with process(command, env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'proxy'}"}) as pid:
        deadline = time.monotonic() + 60
        while not ready.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("the daemon does not start")
            time.sleep(0.05)
        yield pid, json.loads(ready.read_text())["gateway"]


SLOW = {"fastmcp": 10}  # takes 35 ms of CPU a call: it gets a tenth of the calls
WAYS = {"8 sessions": {"sessions": 8}, "8 calls of one": {"each": 8}}  # to have eight calls in flight


class Target:
    """Something to be called: how, and the processes that stand between."""

    def __init__(self, name: str, calls: Calls, pids: Callable[[], list[int]]) -> None:
        self.name, self.calls, self.pids = name, calls, pids
        self.cpu: list[float] = []
        self.p50: dict[str, list[float]] = {way: [] for way in WAYS}
        self.p99: dict[str, list[float]] = {way: [] for way in WAYS}

    def measure(self, count: int) -> None:
        count //= SLOW.get(self.name, 1)
        uvloop.run(self.calls(50))
        pids = self.pids()
        before = cpu(pids)
        uvloop.run(self.calls(count))
        self.cpu.append((cpu(pids) - before) / count * 1000)
        for way, options in WAYS.items():
            cut = quantiles(uvloop.run(self.calls(count, **options)), n=100)
            self.p50[way].append(cut[49] * 1000)
            self.p99[way].append(cut[98] * 1000)

    def line(self) -> str:
        cells = (
            f"{way}: p50 {median(self.p50[way]):6.2f} p99 {median(self.p99[way]):6.2f} ms" for way in WAYS
        )
        cost = f"{median(self.cpu):6.3f}" if any(self.cpu) else "     -"
        return f"  {self.name:24s} CPU {cost} ms/call; {'; '.join(cells)}"


def compare(targets: list[Target], rounds: int, count: int) -> None:
    """Measure what answers at all, in turn, and print it."""
    for target in tuple(targets):
        try:
            uvloop.run(target.calls(16, sessions=8))
            uvloop.run(target.calls(16, each=8))
        except (AssertionError, OSError, asyncio.IncompleteReadError) as error:
            print(f"  {target.name} is left out: {str(error)[:100]!r}")
            targets.remove(target)
    for _ in range(rounds):
        for target in targets:
            target.measure(count)
    for target in targets:
        print(target.line())


def verdict(what: str, value: float, bound: float, unit: str) -> None:
    print(f"  -> {what}: {value:.2f} {unit} (at most {bound:g}: {'met' if value <= bound else 'NOT met'})")


def judge_tails(targets: list[Target], gateway: Target, peers: list[Target]) -> None:
    """Hold the gateway's p99 against that of the best peer."""
    for way in WAYS:
        others = [(median(peer.p99[way]), peer.name) for peer in peers if peer in targets]
        if others and gateway in targets:
            best, name = min(others)
            verdict(f"p99, {way}, against {name}", median(gateway.p99[way]) / best, 1.0, "times")


def started(stack: ExitStack, proxies: Iterable[Proxy]) -> list[Target]:
    """Start other proxies."""
    peers = []
    for name, command in proxies:
        port = free()
        try:
            pid = stack.enter_context(process(command(port), port))
        except OSError as error:
            print(f"  {name} is left out: it does not start ({error})")
            continue
        url = f"http://127.0.0.1:{port}/mcp"
        # A pair has a process for each session, which ends with it: what those take cannot be told afterwards.
        pids = list if name in PAIRS else partial(between, pid)
        peers.append(Target(name, partial(calls, url), pids))
    return peers


def over_http(options: argparse.Namespace) -> None:
    print("Streamable HTTP on both sides: the SDK's server, and one that does nothing")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        sdk, bare = free(), free()
        stack.enter_context(process([*PYTHON, str(PEERS / "sdk_server.py"), "http", str(sdk)], sdk))
        stack.enter_context(
            process([sys.executable, str(ROOT / "tests/bench/mcp_server.py"), str(bare)], bare)
        )
        servers = [
            {"id": n, "type": "http", "url": f"http://127.0.0.1:{p}/mcp"}
            for n, p in (("sdk", sdk), ("bare", bare))
        ]
        pid, url = stack.enter_context(daemon(folder, servers))
        ours = [
            Target(f"{name}, gateway", partial(calls, f"{url}/mcp/{name}"), lambda: tree(pid))
            for name in ("sdk", "bare")
        ]
        direct = [
            Target(f"{name}, direct", partial(calls, f"http://127.0.0.1:{port}/mcp"), list)
            for name, port in (("sdk", sdk), ("bare", bare))
        ]
        peers = started(stack, before_http(f"http://127.0.0.1:{sdk}/mcp"))
        targets = [direct[0], ours[0], *peers, direct[1], ours[1]]
        compare(targets, options.rounds, options.calls)
        verdict("CPU added a call", median(ours[0].cpu), 1.0, "ms")
        judge_tails(targets, ours[0], peers)


def over_stdio(options: argparse.Namespace) -> None:
    print("Streamable HTTP in front of a stdio server, beside other proxies")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        io = {"id": "io", "type": "stdio", "command": STDIO[0], "args": STDIO[1:]}
        pid, url = stack.enter_context(daemon(folder, [io]))
        key = f"?k={KEY}" if os.geteuid() == 0 else ""
        bare = Target("bare", partial(bare_calls, STDIO), list)
        ours = Target("gateway", partial(calls, f"{url}/mcp/io{key}"), lambda: between(pid))
        peers = started(stack, before_stdio(STDIO))
        targets = [bare, ours, *peers]
        compare(targets, options.rounds, options.calls)
        judge_tails(targets, ours, peers)


def over_sse(options: argparse.Namespace) -> None:
    print("An HTTP+SSE server behind the gateway, one warm session")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        port = free()
        stack.enter_context(process([sys.executable, str(PEERS / "sdk_server.py"), "sse", str(port)], port))
        _, url = stack.enter_context(
            daemon(folder, [{"id": "s", "type": "sse", "url": f"http://127.0.0.1:{port}/sse"}])
        )
        direct, ours = [], []
        for _ in range(options.rounds):
            direct.append(uvloop.run(sse_calls(port, options.calls)))
            ours.append(median(uvloop.run(calls(f"{url}/mcp/s", options.calls))))
        print(f"  direct {median(direct) * 1000:.2f} ms, gateway {median(ours) * 1000:.2f} ms a call")
        verdict("gateway against direct", median(ours) / median(direct), 1.2, "times")


async def sse_calls(port: int, count: int) -> float:
    """Return the median seconds of a call over HTTP+SSE itself."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n".encode())
    while not (line := await reader.readline()).startswith(b"data: "):
        pass
    post = Session("127.0.0.1", port, line[6:].strip().decode())
    post.reader, post.writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(message: dict[str, object]) -> None:
        await post.post(message)
        while "id" in message and not (await reader.readline()).startswith(b"data: "):
            pass

    init = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
    await ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": init})
    await ask({"jsonrpc": "2.0", "method": "notifications/initialized"})
    taken = []
    for number in range(1, count + 1):
        began = time.perf_counter()
        await ask(
            {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {"name": "add", "arguments": {"a": 1, "b": 10 ** (number % 9)}},
            }
        )
        taken.append(time.perf_counter() - began)
    writer.close()
    post.close()
    return median(taken)


@contextmanager
def in_front_of_nothing() -> Iterator[tuple[int, str]]:
    """A gateway in front of the server that does nothing; yields the worker's process id and the URL."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        port = free()
        stack.enter_context(
            process([sys.executable, str(ROOT / "tests/bench/mcp_server.py"), str(port)], port)
        )
        pid, url = stack.enter_context(
            daemon(folder, [{"id": "s", "type": "http", "url": f"http://127.0.0.1:{port}/mcp"}])
        )
        workers = [p for p in tree(pid) if b"agentsh_proxy" in Path(f"/proc/{p}/cmdline").read_bytes()]
        uvloop.run(calls(f"{url}/mcp/s", 500, sessions=8))
        yield workers[0], f"{url}/mcp/s"


def sessions(_: argparse.Namespace) -> None:
    print("1,000 open sessions, each with its stream, to one server")

    async def hold(url: str, worker: int) -> int:
        before = rss(worker)
        held = [Session(*address(url)) for _ in range(1000)]
        for session in held:
            await session.open()
            await session.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            await session.listen()
        await asyncio.sleep(1)
        return rss(worker) - before

    with in_front_of_nothing() as (worker, url):
        verdict("memory a session", uvloop.run(hold(url, worker)) / 1000 / 1024, 30, "KiB")


def churn(_: argparse.Namespace) -> None:
    print("10,000 sessions opened and closed")

    async def turn(url: str, count: int) -> None:
        async def one() -> None:
            for _ in range(count // 8):
                session = Session(*address(url))
                await session.open()
                await session.call()
                await session.delete()
                session.close()

        await asyncio.gather(*(one() for _ in range(8)))

    with in_front_of_nothing() as (worker, url):
        uvloop.run(turn(url, 2000))
        before = rss(worker)
        uvloop.run(turn(url, 10_000))
        verdict("memory grown by", (rss(worker) - before) / 1024, 2048, "KiB")


SCENARIOS = {"http": over_http, "stdio": over_stdio, "sse": over_sse, "sessions": sessions, "churn": churn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended
    for name in options.scenarios.split(","):
        SCENARIOS[name](options)


if __name__ == "__main__":
    main()
