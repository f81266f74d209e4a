"""How long the planes did not know an address that a client knew already: the last few thousand gaps, and their percentiles.

Nearest-rank percentiles. Who measures, and from when to when, is the shells' business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

# 4,096 gaps: at one new address a second the last hour, and p99 rests on 40 of them.
KEPT = 4096


@dataclass(frozen=True, slots=True)
class GapSummary:
    """In seconds; all 0 while nothing was measured. `count` and `total` are of all time, the percentiles of the last KEPT."""

    count: int = 0
    p50: float = 0.0
    p99: float = 0.0
    max: float = 0.0
    total: float = 0.0


class Gaps:
    """Collects gaps."""

    def __init__(self, kept: int = KEPT) -> None:
        self._last: deque[float] = deque(maxlen=kept)
        self._count = 0
        self._total = 0.0

    def add(self, seconds: float) -> None:
        """Take one gap; a clock that was set back in it makes it 0."""
        gap = max(0.0, seconds)
        self._last.append(gap)
        self._count += 1
        self._total += gap

    def summary(self) -> GapSummary:
        """Return what is known by now."""
        if not self._last:
            return GapSummary()
        ordered = sorted(self._last)
        return GapSummary(
            self._count, _rank(ordered, 50), _rank(ordered, 99), ordered[-1], round(self._total, 6)
        )


def _rank(ordered: Sequence[float], percent: int) -> float:
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
