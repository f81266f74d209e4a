"""Totals a worker keeps for `status` and metrics: plain integers, so that counting costs nothing on the hot path.

What they are called and how they are shown is `metrics`' business.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, fields

from agentsh_net.core.links.link import LATENCY_BOUNDS


@dataclass(slots=True)
class Latency:
    """A histogram: `counts[n]` are those at most `LATENCY_BOUNDS[n]` seconds and above the bound before, the last all others."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS) + 1))
    seconds: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(LATENCY_BOUNDS, seconds)] += 1
        self.seconds += seconds

    def with_those_of(self, other: Latency) -> Latency:
        """Return the histogram of both."""
        counts = [mine + others for mine, others in zip(self.counts, other.counts, strict=True)]
        return Latency(counts, self.seconds + other.seconds)


@dataclass(slots=True)
class Counts:
    """Since the worker started; `open_*` are what is open now."""

    connections: int = 0
    open_connections: int = 0
    requests: int = 0
    refused: int = 0
    rate_limited: int = 0
    unrecorded: int = 0  # of which no record was made, because the archive did not keep up
    calls_judged: int = 0
    calls_blocked: int = 0
    upstream_opened: int = 0
    upstream_reused: int = 0
    upstream_failed: int = 0
    landlock: int = 0  # the ABI in force, 0 where the kernel has none
    head: Latency = field(default_factory=Latency)  # from a request to its answer's head
    answer: Latency = field(default_factory=Latency)  # ... to its answer's end
    # Of answers whose end came with their head: told as both.
    at_once: Latency = field(default_factory=Latency)
    uninspected: Counter[str] = field(default_factory=Counter)  # answers that passed unread, by the reason

    def totals(self) -> dict[str, int]:
        """Return the totals by name: `head.3` is a place of a histogram, `uninspected.x` a reason."""
        told: dict[str, int] = {}
        for name in (f.name for f in fields(self) if f.name != "at_once"):
            match getattr(self, name):
                case Latency() as latency:
                    both = latency.with_those_of(self.at_once)
                    counts, seconds = both.counts, both.seconds
                    told |= {f"{name}.{n}": count for n, count in enumerate(counts)}
                    told[f"{name}.ms"] = int(seconds * 1000)
                case Counter() as counter:
                    told |= {f"{name}.{key}": count for key, count in counter.items()}
                case value:
                    told[name] = value
        return told
