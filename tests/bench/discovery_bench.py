"""How soon the daemon knows what its servers offer: 50 of them with 20 tools each, over HTTP, from its start.

`./dev bench discovery`; `./dev bench mcp` runs it last. The servers are one program that does nothing else, so that discovery shows; the time ends when
the last tool stands in the store.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

from mcp_bench import ROOT, cpu, daemon, free, process, tree, verdict

SERVERS, TOOLS = 50, 20


def told(folder: Path) -> int:
    """Return how many tools the store has heard of."""
    try:
        with closing(sqlite3.connect(f"file:{folder / 'events.db'}?mode=ro", uri=True)) as store:
            return int(
                store.execute("SELECT count(*) FROM events WHERE type = 'mcp_tool_seen'").fetchone()[0]
            )
    except sqlite3.OperationalError:
        return 0  # it is not there yet


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError("the servers' tools are not all known within a minute")
        time.sleep(0.01)


def once(port: int) -> tuple[float, float, float]:
    """Return the seconds until the daemon was ready, until all tools were known, and of CPU that it took."""
    servers: list[dict[str, object]] = [
        {"id": f"server{n}", "type": "http", "url": f"http://127.0.0.1:{port}/mcp/{n}"}
        for n in range(SERVERS)
    ]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        began = time.monotonic()
        with daemon(folder, servers) as (pid, _):
            ready = time.monotonic() - began
            until(lambda: told(folder) >= SERVERS * TOOLS)
            return ready, time.monotonic() - began, cpu(tree(pid))


def main(rounds: int = 3) -> None:
    print(f"Discovery of {SERVERS} servers with {TOOLS} tools each, from the start of the daemon")
    with ExitStack() as stack:
        port = free()
        server = [sys.executable, str(ROOT / "tests/bench/mcp_server.py"), str(port), str(TOOLS)]
        stack.enter_context(process(server, port, os.environ.copy()))
        measured = [once(port) for _ in range(rounds)]
    ready, known, spent = (median(figures) for figures in zip(*measured, strict=True))
    print(f"  ready after {ready:.2f} s, {spent:.2f} s of CPU")
    verdict("all tools known, the start of the daemon among it", known, 3, "s")


if __name__ == "__main__":
    main()
