"""Tells of each connection whether a tool call explains it, and waits a moment for the call's own news, which may come second.

What explains a connection is `core.audit.causes`' business.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agentsh_net.core.audit.causes import UNEXPLAINED, Causes
from agentsh_net.core.audit.events import Event, NetworkConnection

# The kernel tells of a connection at once; a worker or a shim tells of a call when the call is on its way already, in batches.
PATIENCE = 0.25
# A flood of connections that nothing explains waits no longer than there is room for it.
MAX_WAITING = 1024


class Correlator:
    """Stands between what the kernel saw and the record. All methods belong to one event loop."""

    def __init__(self, put: Callable[[Event], None]) -> None:
        """Know where events go."""
        self._put = put
        self._causes = Causes()
        self._waiting: deque[tuple[float, NetworkConnection]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def note(self, event: Mapping[str, Any]) -> None:
        """Take note of a stamped event."""
        if self._causes.note(event, time.monotonic()) and self._waiting:
            self._tell(lambda _: False)

    def take(self, event: Event) -> None:
        """Put an event on record: a connection that was let through and that nothing explains yet, a moment later."""
        if not isinstance(event, NetworkConnection) or event.layer == "proxy":  # who opened it has said why
            self._put(event)
            return
        if event.action == "block" or self._explained(event):
            self._put(replace(event, correlated=self._explained(event)))
            return
        self._waiting.append((time.monotonic() + PATIENCE, event))
        while len(self._waiting) > MAX_WAITING:
            self._put(_flagged(self._waiting.popleft()[1]))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._due)

    def flush(self) -> None:
        """Put on record whatever waits."""
        self._tell(lambda _: True)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        now = time.monotonic()
        self._tell(lambda until: until <= now + 0.001)
        if self._waiting:
            wait = max(0.001, self._waiting[0][0] - now)
            self._timer = asyncio.get_running_loop().call_later(wait, self._due)

    def _tell(self, over: Callable[[float], bool]) -> None:
        """Put on record what is explained by now, and the rest of what waited long enough."""
        waiting, self._waiting = self._waiting, deque()
        for until, event in waiting:
            if self._explained(event):
                self._put(replace(event, correlated=True))
            elif over(until):
                self._put(_flagged(event))
            else:
                self._waiting.append((until, event))

    def _explained(self, event: NetworkConnection) -> bool:
        servers = (event.server_id, *event.candidates)
        return self._causes.explain(event.session_id, servers, time.monotonic())


def _flagged(event: NetworkConnection) -> NetworkConnection:
    return replace(event, correlated=False, reason="; ".join(filter(None, (event.reason, UNEXPLAINED))))
