"""What the MCP gateway costs, beside the bare server and other proxies that install here: medians of interleaved rounds.

`./dev bench gateway [--rounds N] [--calls N] [--scenarios http,stdio,sse,sessions,churn]`. CPU is that of the processes between
client and server; a figure that the project has set is printed with whether it is met.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles

import uvloop
from mcp_client import Session, address, calls

ROOT = Path(__file__).parent.parent.parent
HZ = os.sysconf("SC_CLK_TCK")
PEERS = ROOT / "tests" / "mcp_peers"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentsh-net-tests" / "mcp-proxies"
STDIO = [sys.executable, str(PEERS / "sdk_stdio.py")]
KEY = "bench"


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
    """Return a proxy's processes without the server that it runs."""
    return [
        p for p in tree(pid) if b"sdk_stdio.py" not in Path(f"/proc/{p}/cmdline").read_bytes() or p == pid
    ]


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


class Target:
    """Something to be called: where, and the processes that stand between."""

    def __init__(self, name: str, url: str, pids: Callable[[], list[int]]) -> None:
        self.name, self.url, self.pids = name, url, pids
        self.cpu: list[float] = []
        self.p50: list[float] = []
        self.p99: list[float] = []

    def measure(self, count: int) -> None:
        uvloop.run(calls(self.url, 50, 1))
        pids = self.pids()
        before = cpu(pids)
        uvloop.run(calls(self.url, count, 1))
        self.cpu.append((cpu(pids) - before) / count * 1000)
        cut = quantiles(uvloop.run(calls(self.url, count, 8)), n=100)
        self.p50.append(cut[49] * 1000)
        self.p99.append(cut[98] * 1000)

    def line(self) -> str:
        return f"  {self.name:24s} CPU {median(self.cpu):6.3f} ms/call, at 8 in flight p50 {median(self.p50):7.2f} ms, p99 {median(self.p99):7.2f} ms"


def compare(targets: list[Target], rounds: int, count: int) -> None:
    for _ in range(rounds):
        for target in targets:
            target.measure(count)
    for target in targets:
        print(target.line())


def verdict(what: str, value: float, bound: float, unit: str) -> None:
    print(f"  -> {what}: {value:.2f} {unit} (at most {bound:g}: {'met' if value <= bound else 'NOT met'})")


def over_http(options: argparse.Namespace) -> None:
    print("Streamable HTTP on both sides: the SDK's server, and one that does nothing")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        sdk, bare = free(), free()
        stack.enter_context(process([sys.executable, str(PEERS / "sdk_server.py"), "http", str(sdk)], sdk))
        stack.enter_context(
            process([sys.executable, str(ROOT / "tests/bench/mcp_server.py"), str(bare)], bare)
        )
        servers = [
            {"id": n, "type": "http", "url": f"http://127.0.0.1:{p}/mcp"}
            for n, p in (("sdk", sdk), ("bare", bare))
        ]
        pid, url = stack.enter_context(daemon(folder, servers))
        targets = [
            Target("sdk, direct", f"http://127.0.0.1:{sdk}/mcp", list),
            Target("sdk, gateway", f"{url}/mcp/sdk", lambda: tree(pid)),
            Target("bare, direct", f"http://127.0.0.1:{bare}/mcp", list),
            Target("bare, gateway", f"{url}/mcp/bare", lambda: tree(pid)),
        ]
        compare(targets, options.rounds, options.calls)
        verdict("CPU added a call", median(targets[1].cpu), 1.0, "ms")


def over_stdio(options: argparse.Namespace) -> None:
    print("Streamable HTTP in front of a stdio server, beside other proxies")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        io = {"id": "io", "type": "stdio", "command": STDIO[0], "args": STDIO[1:]}
        pid, url = stack.enter_context(daemon(folder, [io]))
        key = f"?k={KEY}" if os.geteuid() == 0 else ""
        targets = [Target("gateway", f"{url}/mcp/io{key}", lambda: between(pid))]
        for name, command, port in proxies():
            try:
                peer = stack.enter_context(process(command, port))
            except OSError as error:
                print(f"  {name} is left out: it does not start ({error})")
                continue
            targets.append(Target(name, f"http://127.0.0.1:{port}/mcp", lambda peer=peer: between(peer)))
        measured = []
        for target in targets:
            try:
                uvloop.run(calls(target.url, 8, 8))
            except (AssertionError, OSError, asyncio.IncompleteReadError) as error:
                print(f"  {target.name} is left out: {str(error)[:100]!r}")
            else:
                measured.append(target)
        compare(measured, options.rounds, options.calls)
        others = [median(target.p99) for target in measured[1:]]
        if others:
            verdict("p99 against the best peer", median(measured[0].p99) / min(others), 1.0, "times")


def proxies() -> Iterator[tuple[str, list[str], int]]:
    """Yield the proxies that can be had here: name, command, port."""
    venv = CACHE / "venv"
    if not (venv / "bin" / "mcp-proxy").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=False, capture_output=True)
        subprocess.run([venv / "bin" / "pip", "install", "-q", "mcp-proxy"], check=False, capture_output=True)
    if (venv / "bin" / "mcp-proxy").exists():
        port = free()
        yield "PyPI mcp-proxy", [str(venv / "bin" / "mcp-proxy"), "--port", str(port), "--", *STDIO], port
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm and node and not (CACHE / "node_modules").exists():
        asked = [
            npm,
            "install",
            "--prefix",
            str(CACHE),
            "--no-audit",
            "--no-fund",
            "mcp-proxy",
            "supergateway",
        ]
        subprocess.run(asked, check=False, capture_output=True)
    bins = CACHE / "node_modules" / ".bin"
    if node and (bins / "mcp-proxy").exists():
        port = free()
        yield "npm mcp-proxy", [str(bins / "mcp-proxy"), "--port", str(port), "--", *STDIO], port
    if node and (bins / "supergateway").exists():
        port = free()
        command = [
            str(bins / "supergateway"),
            "--stdio",
            " ".join(STDIO),
            "--outputTransport",
            "streamableHttp",
            "--stateful",
            "--port",
            str(port),
        ]
        yield "supergateway", command, port


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
            ours.append(median(uvloop.run(calls(f"{url}/mcp/s", options.calls, 1))))
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
        uvloop.run(calls(f"{url}/mcp/s", 500, 8))
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
