"""The daemon's tasks: those that end, and those that stand. What fails in one is told, and what stands is begun again.

What a task does is its owner's business. They are ended together, when the daemon stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from agentsh_net.core.audit.events import Event, LayerStateChanged

# Seconds before a standing task that failed is begun again: a failure in every turn must not fill the log or a CPU.
PAUSE = 1.0

Work = Coroutine[Any, Any, None]


class Tasks:
    """Runs work in the event loop. Nothing that fails in it is lost, and none of it ends what must go on."""

    def __init__(self, emit: Callable[[Event], None], log: logging.Logger) -> None:
        self._emit = emit
        self._log = log
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Work) -> None:
        """Start work that ends by itself."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    def keep(self, name: str, begin: Callable[[], Work]) -> None:
        """Start work that goes on until the daemon stops. Where it fails, that is an event of the layer `name`."""
        self.spawn(self._kept(name, begin))

    async def end(self) -> None:
        """Cancel everything and wait for it."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def ended(self) -> None:
        """Wait until all of it has ended by itself."""
        while self._running:
            await asyncio.wait(tuple(self._running))

    def failed(self, error: BaseException) -> None:
        """Tell of a failure that nobody expected."""
        self._log.error("a task of the daemon failed, which is a bug", exc_info=error)

    async def _kept(self, name: str, begin: Callable[[], Work]) -> None:
        while True:
            try:
                await begin()
            except Exception as error:  # noqa: BLE001 - a bug here must not end what looks after the layers
                self.failed(error)
                reason = (
                    f"a task of the daemon failed ({type(error).__name__}) and is begun again; the log has it"
                )
                self._emit(LayerStateChanged(layer=name, state="degraded", reason=reason))
                await asyncio.sleep(PAUSE)
            else:
                return

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failed(error)
