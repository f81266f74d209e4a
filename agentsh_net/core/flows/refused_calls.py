"""What is to be told of refused calls that a provider keeps, by the place from which a conversation goes on there.

It is kept where all workers can ask for it (the supervisor's arbiter). What a place and what is told mean is theirs alone.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from agentsh_net.core.values.recent import remember

# A refused call has two or three places; most are of some hundred bytes, those with a whole file in their arguments of kilobytes.
MAX_PLACES: Final = 8192
MAX_BYTES: Final = 8 << 20
MAX_CALLS: Final = 64  # of one place: models send a handful


class RefusedCalls:
    """Those of all sessions, the ones noted last."""

    __slots__ = ("_by_place", "_size")

    def __init__(self) -> None:
        self._by_place: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._size = 0

    def note(self, place: str, told: str) -> None:
        """Remember what is told of one more call of a place."""
        known = self._by_place.get(place, ())
        if len(known) >= MAX_CALLS or told in known:
            return
        remember(self._by_place, place, (*known, told), MAX_PLACES + 1)
        self._size += len(told)
        while len(self._by_place) > MAX_PLACES or self._size > MAX_BYTES:
            self._size -= sum(map(len, self._by_place.popitem(last=False)[1]))

    def told(self, place: str, number: int) -> str | None:
        """Return what is told of a place's call, counted from 0; None where there is none."""
        known = self._by_place.get(place, ())
        return known[number] if number < len(known) else None

    def forget(self, place: str, count: int) -> None:
        """Forget the first so many calls of a place: its provider has been told."""
        known = self._by_place.pop(place, ())
        self._size -= sum(map(len, known[:count]))
        if known[count:]:
            self._by_place[place] = known[count:]
