"""Brings what names resolve to into the planes: one change at a time, and what came in the meantime all at once with the next.

Which addresses a name has is the resolver's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from agentsh_net.current import Current
from agentsh_net.kernel.names.resolver import Resolver


class Readdressing:
    """Knows who waits for the planes to have what the resolver knows."""

    def __init__(
        self, current: Current, resolver: Resolver, spawn: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._current, self._resolver, self._spawn = current, resolver, spawn
        self._waiting: asyncio.Future[bool] | None = None

    def soon(self) -> asyncio.Future[bool]:
        """Have it done; the result says whether the planes confirmed all that the resolver knows by now."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_future()
            self._spawn(self._run())
        return self._waiting

    async def _run(self) -> None:
        async with self._current.lock:
            waiting, self._waiting = self._waiting, None
            assert waiting is not None  # noqa: S101 - soon() sets it before it starts this

            def confirmed() -> None:
                if not waiting.done():
                    waiting.set_result(True)

            try:
                await self._current.readdress(
                    self._resolver.addresses(), self._resolver.hearsay(), confirmed=confirmed
                )
            finally:
                if not waiting.done():
                    waiting.set_result(False)
