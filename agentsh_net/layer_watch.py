"""Looks after the kernel's layers: asks the kernel what is in force, tells what changed, puts back what somebody took away.

How a layer is asked and put back is the kernel's business.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from agentsh_net.core.audit import events
from agentsh_net.core.audit.events import Event
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Kernel, LayerStatus

# How soon (seconds) anything that is not as it should be is noticed, as elements of a map.
LOOK_EVERY = 1.0
# How soon it is noticed that somebody touched a table or took a program away: costs some 30 us each time.
ASK_EVERY = 0.1
# Looking takes at most one part in so many of the time, however often somebody touches something.
_SHARE = 10
_HEARD = "its events are told from now on"


class LayerWatch:
    """What the kernel said last of each layer. Waits for nothing but the kernel: a reload may be waiting for names meanwhile."""

    def __init__(self, kernel: Kernel, emit: Callable[[Event], None], log: logging.Logger) -> None:
        self._kernel = kernel
        self._emit = emit
        self._log = log
        self._layers: dict[str, LayerStatus] = {}
        self._took = 0.0
        self._trouble = ""  # why the last try to put something back failed
        self._lost: set[str] = set()  # layers that were in force and are not

    @property
    def layers(self) -> list[LayerStatus]:
        """What the kernel said at the last look."""
        return list(self._layers.values())

    def states(self) -> dict[str, str]:
        """Return in a word how each layer stands, as starts are told of."""
        return {s.layer: "in force" if s.in_force else "off" for s in self._layers.values()}

    async def ask(self) -> list[LayerStatus]:
        """Return what the kernel says now."""
        return await asyncio.to_thread(self._kernel.status)

    async def wait(self) -> None:
        """Return when it is time for the next look."""
        began = time.monotonic()
        disturbed = False
        while (passed := time.monotonic() - began) < LOOK_EVERY:
            await asyncio.sleep(ASK_EVERY)
            disturbed = disturbed or self._kernel.disturbed()
            if disturbed and passed >= self._took * _SHARE:
                return

    async def look(self) -> None:
        """Ask the kernel, tell what is new, and put back what was lost of the plan in force."""
        began = time.monotonic()
        if (gone := await self._look()) and await self._put_back(gone):
            await self._look()  # it is told at once that it is back
        self._took = time.monotonic() - began

    async def _look(self) -> str:
        """Return the layers that have to be seen to."""
        before = self._layers
        self._layers = {s.layer: s for s in await self.ask()}
        for status in self._layers.values():
            self._compare(before.get(status.layer), status)
        had = self._lost | {name for name, old in before.items() if old.in_force}
        # A layer that is not told of any more is not wanted any more: sessions' cgroups, after the last session.
        self._lost = {name for name in had & self._layers.keys() if not self._layers[name].in_force}
        gone = sorted(self._lost)  # tried again at every look until it is back
        behind = [s.layer for s in self._layers.values() if s.behind]
        return ", ".join(gone or behind)

    async def _put_back(self, layers: str) -> bool:
        try:
            await asyncio.to_thread(self._kernel.reassert)
        except KernelError as error:
            if str(error) != self._trouble:  # every further try fails the same way
                self._log.error("%s could not be put back: %s (%s)", layers, error, error.remedy)
            self._trouble = str(error)
            return False
        self._trouble = ""
        return True

    def _compare(self, old: LayerStatus | None, new: LayerStatus) -> None:
        lost = new.lost - (old.lost if old else 0)
        if lost > 0:
            reason = "more came than could be read in time; what they tell of was decided all the same"
            self._emit(events.EventsLost(layer=new.layer, lost=lost, reason=reason))
        if old is None:
            if new.wanted and not new.in_force:
                self._changed(new)  # `run` says it in its first lines
        elif old.in_force != new.in_force:
            level = logging.INFO if new.in_force else logging.ERROR
            self._log.log(level, "%s: %s: %s", new.layer, _state(new), new.reason or new.detail)
            self._changed(new)
        elif old.silent and not new.silent:
            self._log.info("%s: %s", new.layer, _HEARD)
        if new.silent != (old.silent if old else ""):
            self._changed(replace(new, reason=new.silent or _HEARD))

    def _changed(self, status: LayerStatus) -> None:
        self._emit(
            events.LayerStateChanged(
                layer=status.layer,
                state=_state(status),
                reason=status.reason or status.detail,
                remedy=status.remedy,
            )
        )


def _state(status: LayerStatus) -> str:
    return "in force" if status.in_force else "not in force"
