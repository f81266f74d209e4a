"""What the shim costs: calls a second and CPU a call, interleaved with the same server without it; medians and ratios.

Beside it what looks at nothing: `cat` on both sides of the server, and a relay in Python that only reads and writes. What
those lose is lost to any process between client and server. No two calls and no two results are alike. `mixed` are calls
of many kinds: paths, prose, escapes, other alphabets, nested arguments.

`./dev bench shim [--rounds N] [--seconds S] [--in-flight N] [--one-cpu]`. Servers: server-everything (node) and
a Python one that does nothing, so that the shim's own cost shows. With `--one-cpu` client, server and what is between them take
turns on one processor, the daemon has the others: then CPU alone counts, not where the kernel puts whom.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "proxy"), str(ROOT / "tests")]

from mcp_peers.everything import everything

BARE = """
import sys
out = sys.stdout.buffer
for line in sys.stdin.buffer:
    at = line.find(b'"id":')
    if at >= 0:
        number = line[at + 5 : line.find(b",", at)]
        out.write(b'{"jsonrpc":"2.0","id":' + number + b',"result":{"content":[{"type":"text","text":"Echo: hi ' + number + b'"}]}}\\n')
        out.flush()
"""

COPYING = """
import os, select, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
onward = {0: server.stdin.fileno(), server.stdout.fileno(): 1}
ready = select.poll()
for fd in onward:
    ready.register(fd, select.POLLIN)
while True:
    for fd, _ in ready.poll():
        data = os.read(fd, 1 << 16)
        if not data:
            sys.exit()
        os.write(onward[fd], data)
"""
BETWEEN = {"cat": ["sh", "-c", 'cat | "$@" | cat', "sh"], "copying": [sys.executable, "-S", "-c", COPYING]}


def cpu_of(pid: int) -> float:
    """CPU seconds that the threads of a process had so far (the kernel counts them in nanoseconds)."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@contextmanager
def daemon(folder: Path, cpus: set[int]):
    policy = {
        "version": 1,
        "sandbox": {"mcp": {"servers": [{"id": "s", "type": "stdio", "command": "x"}], "denied_tools": [{"server": "s", "tool": "rm"}]}},
        "proxy": {"mode": "disabled"},
        "network": {"mode": "off"},
        "store": {"path": str(folder / "events.db")},
        "control": {"socket": str(folder / "control.sock")},
    }  # fmt: skip
    (folder / "policy.yaml").write_text(json.dumps(policy))
    command = [sys.executable, "-m", "agentsh_net", "run", "--config", str(folder / "policy.yaml")]
    command += ["--ready-file", str(folder / "ready")]
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)  # it inherits them
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        os.sched_setaffinity(0, ours)
        try:
            while not (folder / "ready").exists():
                assert process.poll() is None, "the daemon did not start"
                time.sleep(0.05)
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
        # Another server's pins would block the next one.
        for left in (folder / "ready", *folder.glob("events.db*")):
            left.unlink(missing_ok=True)


def handshake(process: subprocess.Popen[bytes]) -> None:
    for message in (
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": -1, "method": "tools/list"},
    ):  # fmt: skip
        process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        while "id" in message and b'"id":%d' % message["id"] not in line(process.stdout.fileno()):
            pass


def line(fd: int) -> bytes:
    """Read a line and not a byte more."""
    read = b""
    while not read.endswith(b"\n"):
        byte = os.read(fd, 1)
        assert byte, "the server ended"
        read += byte
    return read


# `@` is the number of the call: no two calls are alike.
ECHO = b'{"name":"echo","arguments":{"message":"hi @"}}'
ADD = b'{"name":"add","arguments":{"a":@}}'
MIXED = (
    ECHO,
    b'{"name":"echo","arguments":{"message":"/home/user/projects/agent/src/module_@/reader.py","limit":@}}',
    b'{"name":"echo","arguments":{"message":"SELECT name, total FROM orders WHERE customer = @ ORDER BY total DESC"}}',
    b'{"name":"echo","arguments":{"message":"Please summarise the notes of meeting @ and list what is left to do, for the team.\\nThanks"}}',
    b'{"name":"echo","arguments":{"message":"def f@(x):\\n    \\"\\"\\"Return x.\\"\\"\\"\\n    return x\\n"},"_meta":{"progressToken":@}}',
    '{"name":"echo","arguments":{"message":"Grüße Nr. @, 日本語"}}'.encode(),
    b'{"name":"echo","arguments":{"message":"https://example.com/docs?page=@","headers":{"accept":["text/html"]}}}',
)
# Calls of a measurement at most: past 100,000 of one user the daemon lets 2,000 a second pass.
MOST = 90_000


def calls(numbers: range, params: tuple[bytes, ...]) -> bytes:
    return b"".join(
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}\n'
        % (n, params[n % len(params)].replace(b"@", b"%d" % n))
        for n in numbers
    )


def measure(
    command: list[str], seconds: float, in_flight: int, watched: dict[str, int], params: tuple[bytes, ...]
) -> dict[str, float]:
    """Return calls a second, the wall ms of a read, and CPU ms a call of the process started, of its child and of each one watched."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0, cwd=ROOT)  # fmt: skip
    handshake(process)
    fd_in, fd_out = process.stdin.fileno(), process.stdout.fileno()
    pids = {"process": process.pid, **watched}
    if watched:
        pids["server"] = child_of(process.pid)
    warm, waited = None, []
    number, done, buffer = in_flight, 0, b""
    start = sent = time.perf_counter()
    os.write(fd_in, calls(range(1, in_flight + 1), params))
    while True:
        buffer += os.read(fd_out, 1 << 16)
        count = buffer.count(b"\n")
        if not count:
            continue
        answered = buffer[: buffer.rindex(b"\n")].split(b"\n")
        buffer = buffer[buffer.rindex(b"\n") + 1 :]
        assert b'"error":' not in b"".join(answered), answered[0]
        count = sum(b'"result":{' in line and b'"content":' in line for line in answered)
        done += count
        now = time.perf_counter()
        if warm is None and (now - start > seconds / 4 or number > MOST / 4):
            warm, done, start, waited = {n: cpu_of(p) for n, p in pids.items()}, 0, now, []
        elif warm is not None and (now - start > seconds or number > MOST):
            break
        if in_flight == 1:
            waited.append(now - sent)
        following = calls(range(number + 1, number + count + 1), params)
        sent = time.perf_counter()
        os.write(fd_in, following)
        number += count
    spent = {n: (cpu_of(p) - warm[n]) * 1000 / done for n, p in pids.items()}
    rss = next(
        int(row.split()[1])
        for row in Path(f"/proc/{process.pid}/status").read_text().splitlines()
        if row.startswith("VmHWM")
    )
    process.stdin.close()
    process.kill()
    process.wait()
    waited = sorted(waited) or [0.0]
    p50, p99 = (waited[int(len(waited) * part)] * 1000 for part in (0.5, 0.99))
    return {
        "rate": done / (now - start),
        "rss_kib": rss,
        "p50": p50,
        "p99": p99,
        **{f"cpu_ms_{n}": v for n, v in spent.items()},
    }


def start_up(command: list[str], times: int = 9) -> dict[str, float]:
    """Return the milliseconds until a line has come back through `command`, the CPU of it, and its memory."""
    taken, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
    rss = 0
    for _ in range(times):
        begun = time.perf_counter()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT) as process:  # fmt: skip
            process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            process.stdin.flush()
            process.stdout.readline()
            taken.append(time.perf_counter() - begun)
            rss = max(rss, *(int(l.split()[1]) for l in Path(f"/proc/{process.pid}/status").read_text().splitlines() if l.startswith("VmRSS")))  # noqa: E741  # fmt: skip
            process.stdin.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"ms": median(taken) * 1000, "cpu_ms": spent / times * 1000, "rss_kib": rss}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--one-cpu", action="store_true")
    given = parser.parse_args()
    first, *others = sorted(os.sched_getaffinity(0))
    if given.one_cpu:
        os.sched_setaffinity(0, {first})
    cpus = {*others} if given.one_cpu and others else {first, *others}  # the daemon's
    node, why = everything()
    sdk = [sys.executable, str(ROOT / "tests" / "mcp_peers" / "sdk_stdio.py")]
    servers = {"bare python": ([sys.executable, "-S", "-c", BARE], (ECHO,)), "Python SDK": (sdk, (ADD,))}
    if node:
        servers |= {"server-everything": (node, (ECHO,)), "server-everything, mixed": (node, MIXED)}
    else:
        print(f"without server-everything: {why}")
    with tempfile.TemporaryDirectory() as name:
        shim = [
            sys.executable,
            "-m",
            "agentsh_net",
            "--socket",
            f"{name}/control.sock",
            "shim",
            "--server",
            "s",
            "--",
        ]
        for label, (server, params) in servers.items():
            direct, through = [], []
            between: dict[str, list[float]] = {what: [] for what in BETWEEN}
            for _ in range(given.rounds):
                direct.append(measure(server, given.seconds, given.in_flight, {}, params))
                for what, command in BETWEEN.items():
                    rate = measure([*command, *server], given.seconds, given.in_flight, {}, params)["rate"]
                    between[what].append(rate / direct[-1]["rate"])
                # A daemon of its own: what one has let pass counts (see MOST).
                with daemon(Path(name), cpus) as pid:
                    through.append(
                        measure([*shim, *server], given.seconds, given.in_flight, {"daemon": pid}, params)
                    )
            own = "".join(
                f", {who} {median(t[f'cpu_ms_{who}'] for t in through):.4f}" for who in ("daemon", "server")
            )
            rates = median(d["rate"] for d in direct), median(t["rate"] for t in through)
            ratio = median(t["rate"] / d["rate"] for d, t in zip(direct, through, strict=True))
            bare = ", ".join(f"{what} {median(ratios):.3f}" for what, ratios in between.items())
            print(
                f"{label}: direct {rates[0]:.0f}/s, shim {rates[1]:.0f}/s, ratio {ratio:.3f} (only {bare}); CPU ms a call (two messages):"
                f" shim {median(t['cpu_ms_process'] for t in through):.4f}{own} ({median(d['cpu_ms_process'] for d in direct):.4f} without);"
                f" shim's peak {max(t['rss_kib'] for t in through)} KiB"
            )
            if given.in_flight == 1:
                for part in ("p50", "p99"):
                    print(
                        f"  {part}: direct {median(d[part] for d in direct):.3f} ms, shim {median(t[part] for t in through):.3f} ms"
                    )
        with daemon(Path(name), cpus):
            started_with(name)


def started_with(name: str) -> None:
    """Print what a start costs."""
    script = str(Path(sys.executable).with_name("agentsh-net"))
    started = start_up([script, "--socket", f"{name}/control.sock", "shim", "--server", "s", "--", "cat"])
    bare = start_up(["cat"])
    print(f"start: {started['ms']:.1f} ms to the first answer (cat alone {bare['ms']:.1f}), CPU {started['cpu_ms']:.1f} ms, {started['rss_kib']} KiB")  # fmt: skip


if __name__ == "__main__":
    main()
