"""Events that a server or a client causes, and could cause without end: what comes too fast is counted, so that it cannot push out the rest.

The store keeps so many megabytes of events, the newest: whoever fills it wipes it. Verdicts do not depend on what is told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from agentsh_net.core.audit.events import DEFAULT_SESSION, Event, EventsLost
from agentsh_net.core.limits.token_bucket import Bucket
from agentsh_net.core.naming.folding import visible

TOLD_EVERY: Final = 10.0  # seconds between two events that say how many others there were


def _later(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)


class Flood:
    """Lets events of one origin through as long as there are not too many, and says how many it kept back."""

    def __init__(
        self,
        emit: Callable[[Event], None],
        origin: str,
        *,
        layer: str,
        burst: int,
        rate: float,  # events a second, for good
        session_id: str = DEFAULT_SESSION,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], object] = _later,
    ) -> None:
        self._emit = emit
        self._origin = origin
        self._layer = layer
        self._session_id = session_id
        self._clock = clock
        self._later = later
        self._rate = rate
        self._bucket = Bucket.full(burst, rate, clock())
        self._kept = 0  # back, and not told of
        self._waits = False  # until the next count may be told

    def tell(self, event: Event) -> None:
        """Emit an event, or count it."""
        if self._bucket.take(self._clock()):
            self._emit(event)
            return
        self._kept += 1
        if not self._waits:
            self._tell_kept()

    def finish(self) -> None:
        """Tell of what is still kept back: no timer runs any more."""
        if self._kept:
            self._count()

    def _tell_kept(self) -> None:
        """Tell of what was kept back, now and for as long as there is more; the last count needs no other event."""
        self._waits = self._kept > 0
        if self._waits:
            self._later(TOLD_EVERY, self._tell_kept)
            self._count()

    def _count(self) -> None:
        kept, self._kept = self._kept, 0
        reason = f"{visible(self._origin)} causes more than {self._rate:g} events a second: these are counted, not told"
        self._emit(EventsLost(layer=self._layer, lost=kept, session_id=self._session_id, reason=reason))
