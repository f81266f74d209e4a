"""Serve the proxy for a measurement: the real pool, the policy of the figures (1,000 tools, 1,000 rules), events in a store.

usage: serve.py PORT UPSTREAM [WORKERS]    (UPSTREAM is a port of 127.0.0.1, or a URL)
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from pathlib import Path

from agentsh_net.clock import new_id, now_rfc3339
from agentsh_net.core.audit.events import Event
from agentsh_net.core.configuration import config
from agentsh_net.core.configuration.settings import Retention
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.core.model import Tool
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins
from agentsh_net.store.writer import Writer
from agentsh_net.workers.arbiter import Arbiter
from agentsh_net.workers.pool import Pool

SERVERS = 20
RULES = 1000


def policy(port: int, upstream: int | str, *, workers: int = 1, tools: int = 1000) -> Snapshot:
    """The policy that is measured: enforced, twenty servers of so many tools, as many rules, one tool called and denied."""
    base = f"http://127.0.0.1:{upstream}" if isinstance(upstream, int) else upstream
    rules = [{"server": f"server{n % SERVERS}", "tool": f"drop_{n}_*"} for n in range(RULES - 1)]
    names = [f"server{n}" for n in range(SERVERS)]
    mapping = {
        "version": 1,
        "sandbox": {
            "mcp": {
                "servers": [{"id": name, "type": "stdio", "command": name} for name in names],
                "tool_policy": "denylist",
                "denied_tools": [*rules, {"server": "server0", "tool": "delete_*"}],
            }
        },
        "proxy": {
            "port": port,
            "workers": workers,
            "providers": {"anthropic": {"base_url": base}, "openai": {"base_url": f"{base}/v1"}},
        },
    }
    parsed = config.parse(mapping)
    registry = Registry(parsed.sandbox.mcp.servers)
    for at, server in enumerate(names):
        called = ["get_weather", "delete_files"] if not at else []
        offered = [*called, *(f"tool_{n}" for n in range(at, tools - 2, SERVERS))]
        registry, _ = registry.register(server, [Tool(server, n, f"sha256:{n}") for n in offered])
    return Snapshot(1, config.digest(mapping), parsed, registry, Pins(), mapping)


async def main(port: int, upstream: int | str, workers: int) -> None:
    """Serve until SIGTERM."""
    snapshot = policy(port, upstream, workers=workers)
    arbiter = Arbiter(Buckets(snapshot.config.sandbox.mcp.rate_limits), time.monotonic)
    arbiter.start()
    with tempfile.TemporaryDirectory(prefix="agentsh-bench-") as scratch:
        writer = Writer(Path(scratch) / "events.db", Retention(), lambda _: None)

        def emit(event: Event) -> None:
            writer.put([event.to_stamped_json(id=new_id(), timestamp=now_rfc3339())])

        pool = Pool(snapshot.config.proxy, on_event=emit, on_report=lambda _: None, arbiter=arbiter)
        await pool.start(snapshot)
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()
        await pool.stop(0.2)
        arbiter.stop()
        writer.close()


if __name__ == "__main__":
    where = sys.argv[2]
    asyncio.run(
        main(
            int(sys.argv[1]),
            int(where) if where.isdigit() else where,
            int(sys.argv[3]) if sys.argv[3:] else 1,
        )
    )
