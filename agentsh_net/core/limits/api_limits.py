"""Requests and tokens a minute for each LLM provider: buckets of a minute's worth, asked before and settled after. `now` is an argument.

A request whose estimate was wrong is put right when its answer tells what it cost, so a bucket may owe for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agentsh_net.core.configuration.settings import ProviderLimits

MINUTE: Final = 60.0
# Of what a bucket may owe: one answer of a model's whole context does not silence a provider for an hour.
MAX_DEBT_MINUTES: Final = 5.0


@dataclass(slots=True)
class _Bucket:
    """`left` of `size` could be used at `at`; it fills once a minute."""

    size: float
    left: float
    at: float

    def fill(self, now: float) -> None:
        self.left = min(self.size, self.left + max(0.0, now - self.at) * self.size / MINUTE)
        self.at = max(self.at, now)

    def wait(self, wanted: float) -> float:
        """Return the seconds until `wanted` can be had; more than a bucket holds can be had from a full one."""
        missing = min(wanted, self.size) - self.left
        return missing * MINUTE / self.size if missing > 1e-9 else 0.0

    def take(self, wanted: float) -> None:
        self.left = max(min(self.size, self.left - wanted), -MAX_DEBT_MINUTES * self.size)


class ApiLimits:
    """The buckets of all providers. A reload inherits them (`with_limits`)."""

    def __init__(self, limits: Mapping[str, ProviderLimits]) -> None:
        self._limits = limits
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def admit(self, provider: str, tokens: int, now: float) -> float:
        """Charge a request of about so many tokens and return 0, or charge nothing and return the seconds to wait."""
        requests, spent = self._of(provider, "requests", now), self._of(provider, "tokens", now)
        wait = max(requests.wait(1) if requests else 0.0, spent.wait(tokens) if spent else 0.0)
        if not wait:
            if requests:
                requests.take(1)
            if spent:
                spent.take(tokens)
        return wait

    def settle(self, provider: str, tokens: int, now: float) -> None:
        """Charge what a request cost more than its estimate, or give back what it cost less (negative)."""
        spent = self._of(provider, "tokens", now)
        if spent:
            spent.take(tokens)

    def with_limits(self, limits: Mapping[str, ProviderLimits]) -> ApiLimits:
        """Return buckets under new limits; of one whose limit changed, what is used stays used."""
        successor = ApiLimits(limits)
        for (provider, what), old in self._buckets.items():
            new = successor._of(provider, what, old.at)
            if new:
                new.take(old.size - old.left)
        return successor

    def _of(self, provider: str, what: str, now: float) -> _Bucket | None:
        limits = self._limits.get(provider)
        if limits is None:
            return None
        size = limits.requests_per_minute if what == "requests" else limits.tokens_per_minute
        if not size:
            return None
        bucket = self._buckets.get((provider, what))
        if bucket is None:
            bucket = self._buckets[provider, what] = _Bucket(size, size, now)
        bucket.fill(now)
        return bucket
