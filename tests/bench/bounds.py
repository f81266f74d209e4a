"""What is no ratio: the worker's memory, idle and with streams open, streams held for a minute, and the time of a verdict.

usage: bounds.py --scratch DIR [--streams N]    (called by `run` after the comparison; prints a line a figure)
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from compare import HERE, LOAD_CPU, PROXY_CPU, await_port, end, family, megabytes, pinned
from serve import RULES, policy

from agentsh_net.core.model import ToolCall

IDLE_MB, STREAM_KB, VERDICT_US = 45.0, 200.0, 20.0
PACE = 1.0  # seconds between two events of a held stream
EVENTS = 60  # of a held stream: a minute


def say(what: str, value: float, unit: str, bound: float, *, met: bool) -> None:
    """Print a figure beside its bound."""
    print(
        f"{what:66s} {value:10.2f} {unit:6s} (at most {bound:g}: {'met' if met else 'NOT met'})", flush=True
    )


def _within(server: str, tool: str, call: str, session: str) -> bool:
    return True


def verdicts(tools: int = 10_000) -> None:
    """Time the judge: names, registry and policy. Verdicts are remembered by name: names of which each is new, then again."""
    snapshot = policy(1, 2, tools=tools)
    snapshot.prepare()  # as a worker does when a policy comes, before it freezes it
    gc.collect()
    gc.freeze()
    spelled = ("tool_{}", "mcp__server7__tool_{}", "server3-tool_{}", "drop_{}_x", "unheard_of_{}")
    for spelling in spelled:
        calls = [
            ToolCall(spelling.format(n), "toolu_1", {"location": "Berlin"}, dialect="anthropic")
            for n in range(tools)
        ]
        for when, some in (("first", calls), ("again", calls[-1000:])):
            began = time.process_time()
            for call in some:
                snapshot.judge(call, session_id="bench", charge=_within)
            spent = (time.process_time() - began) / len(some) * 1e6
            say(f"verdict on {spelling}, {when} ({RULES} rules, {tools} tools)", spent, "us", VERDICT_US, met=spent < VERDICT_US)  # fmt: skip


def memory(scratch: Path, port: int, streams: int) -> None:
    """Measure the worker idle and with streams open, and hold them to their end."""
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (16384, max(16384, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    )
    with ExitStack() as opened:
        commands = (
            ([scratch / "mock", port], LOAD_CPU),
            ([HERE / "targets" / "agentsh", port + 1, port, scratch], PROXY_CPU),
        )
        started = []
        for command, cpus in commands:
            process = subprocess.Popen([str(c) for c in command], start_new_session=True, stdout=subprocess.DEVNULL, **pinned(cpus))  # fmt: skip
            opened.callback(end, process)
            started.append(process)
        if not await_port(port + 1):
            raise SystemExit("bench: the proxy did not listen")
        time.sleep(2)
        worker = family(started[1].pid)[-1:]  # the worker is the supervisor's child
        idle = megabytes(worker)
        say("the worker idle (PSS, 1,000 tools and rules)", idle, "MB", IDLE_MB, met=idle < IDLE_MB)
        path = f"/v1/messages?n={EVENTS - 5}&pace={int(PACE * 1e6)}&tool=none"
        window = EVENTS + 15
        load = subprocess.Popen(
            [str(c) for c in (scratch / "loadgen", "-p", port + 1, "-c", streams, "-d", window, "-w", 0.2, "-m", "sse", "-u", path)],
            stdout=subprocess.PIPE, text=True, **pinned(LOAD_CPU),
        )  # fmt: skip
        time.sleep(EVENTS / 2)
        each = (megabytes(worker) - idle) * 1024 / streams
        say(f"each of {streams} open streams (PSS)", each, "KB", STREAM_KB, met=each < STREAM_KB)
        load.stdout.readline()
        told = json.loads(load.stdout.readline())
        load.wait()
        lost = told["errs"] + told["incomplete"] + told["non200"] + max(0, streams - told["reqs"])
        say(f"streams lost of {streams} held for a minute", lost, "", 0, met=lost == 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--port", type=int, default=9580)
    parser.add_argument("--streams", type=int, default=2000)
    options = parser.parse_args()
    print("\nbounds")
    verdicts()
    memory(options.scratch, options.port, options.streams)
    sys.stdout.flush()


main()
