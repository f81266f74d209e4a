"""Serve the proxy for a measurement: the real pool with one worker, the policy of the Go reference (one tool denied).

usage: serve.py PORT UPSTREAM_PORT
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time

from agentsh_net.arbiter import Arbiter
from agentsh_net.core import config
from agentsh_net.core.model import Tool
from agentsh_net.core.pins import Pins
from agentsh_net.core.ratelimit import Buckets
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.workers import Pool

TOOLS = ("get_weather", "delete_files")


def policy(port: int, upstream: int) -> Snapshot:
    """The policy that is measured: enforced, one server, two tools, one of them denied."""
    base = f"http://127.0.0.1:{upstream}"
    mapping = {
        "version": 1,
        "sandbox": {
            "mcp": {
                "servers": [{"id": "tools", "type": "stdio", "command": "tools"}],
                "tool_policy": "denylist",
                "denied_tools": [{"server": "tools", "tool": "delete_*"}],
            }
        },
        "proxy": {
            "port": port,
            "providers": {"anthropic": {"base_url": base}, "openai": {"base_url": f"{base}/v1"}},
        },
    }
    parsed = config.parse(mapping)
    registry, _ = Registry(parsed.sandbox.mcp.servers).register(
        "tools", [Tool("tools", name, f"sha256:{name}") for name in TOOLS]
    )
    return Snapshot(1, config.digest(mapping), parsed, registry, Pins(), mapping)


async def main(port: int, upstream: int) -> None:
    """Serve until SIGTERM."""
    snapshot = policy(port, upstream)
    arbiter = Arbiter(Buckets(snapshot.config.sandbox.mcp.rate_limits), time.monotonic)
    arbiter.start()
    pool = Pool(snapshot.config.proxy, on_event=lambda _: None, on_report=lambda _: None, arbiter=arbiter)
    await pool.start(snapshot)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await pool.stop(0.2)
    arbiter.stop()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
