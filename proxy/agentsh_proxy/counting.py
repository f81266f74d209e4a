"""Totals a worker keeps for `status` and metrics: plain integers, so that counting costs nothing on the hot path."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Counts:
    """Since the worker started; `open_*` are what is open now."""

    connections: int = 0
    open_connections: int = 0
    requests: int = 0
    refused: int = 0
    rate_limited: int = 0
    calls_judged: int = 0
    calls_blocked: int = 0
    upstream_opened: int = 0
    upstream_reused: int = 0
    upstream_failed: int = 0
    landlock: int = 0  # the ABI in force, 0 where the kernel has none

    def totals(self) -> dict[str, int]:
        """Return the totals by name."""
        return asdict(self)
