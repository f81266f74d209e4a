"""A worker pool with a scripted upstream on a thread of its own, for tests whose clients block."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Self

from agentsh_net.core.audit.events import Event
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.workers.arbiter import Arbiter
from agentsh_net.workers.pool import Pool
from loopback.upstream import Script, Upstream


class RunningPool:
    """Enter it to have `base`, the URL of a running proxy, and `events`, what its workers told."""

    def __init__(self, script: Script, policy: Callable[[int], Snapshot]) -> None:
        self._script = script
        self._policy = policy
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.events: list[Event] = []
        self.base = ""
        self.pool: Pool

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def wait_for_events(self, count: int) -> list[Event]:
        """Return the events once there are so many, and no more soon after."""
        until = time.monotonic() + 10
        while len(self.events) < count and time.monotonic() < until:
            time.sleep(0.005)
        return list(self.events)

    async def _start(self) -> None:
        self._upstream = await Upstream(self._script).__aenter__()
        snapshot = self._policy(self._upstream.port)
        self._arbiter = Arbiter(Buckets(snapshot.config.sandbox.mcp.rate_limits), time.monotonic)
        self._arbiter.start()
        self.pool = Pool(
            snapshot.config.proxy,
            on_event=self.events.append,
            on_report=lambda _: None,
            arbiter=self._arbiter,
        )
        await self.pool.start(snapshot)
        self.base = self.pool.url

    async def _stop(self) -> None:
        await self.pool.stop(1)
        self._arbiter.stop()
        await self._upstream.__aexit__()

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)
