"""Reads what the kernel recorded whenever there is something, and rests after each batch, so that a flood costs a share of the time.

What is not read in time the kernel counts as lost, exactly; what the records mean is `current`'s business.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import ConnectRecord, Kernel

# A batch is followed by a rest of so many times what it took: reloads, the control socket and other threads get the rest.
REST = 3
# The shortest rest (seconds): a buffer that is readable and cannot be read now must not be asked without end.
SHORTEST = 0.001


class RecordReader:
    """Between the descriptors of the kernel and `tell`. All methods belong to one event loop."""

    def __init__(
        self,
        kernel: Kernel,
        tell: Callable[[Sequence[ConnectRecord]], None],
        log: logging.Logger,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Know whom to ask and whom to tell."""
        self._kernel = kernel
        self._tell = tell
        self._log = log
        self._monotonic = monotonic
        self._watched: list[int] = []
        self._rest: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to read."""
        self._loop = loop
        self._take()

    def stop(self) -> None:
        """Read no more."""
        self._unwatch()
        if self._rest is not None:
            self._rest.cancel()
        self._loop = None

    def _watch(self) -> None:
        assert self._loop is not None  # noqa: S101 - stop() cancels the timer that leads here
        self._rest = None
        self._watched = self._kernel.filenos()
        for descriptor in self._watched:
            self._loop.add_reader(descriptor, self._take)

    def _unwatch(self) -> None:
        if self._loop is not None:
            for descriptor in self._watched:
                self._loop.remove_reader(descriptor)
        self._watched = []

    def _take(self) -> None:
        if self._loop is None or self._rest is not None:
            return  # both descriptors were readable: the first call took what both had
        self._unwatch()
        began = self._monotonic()
        try:
            self._tell(self._kernel.records())
        except KernelError as error:
            self._log.error("%s (%s)", error, error.remedy)
        took = self._monotonic() - began
        self._rest = self._loop.call_later(max(SHORTEST, took * REST), self._watch)
