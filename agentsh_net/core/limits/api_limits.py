"""Requests and tokens a minute for each LLM provider: buckets of a minute's worth, asked before and settled after. `now` is an argument.

A request whose estimate was wrong is put right when its answer tells what it cost, so a bucket may owe for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentsh_net.core.configuration.settings import ProviderLimits
from agentsh_net.core.limits.token_bucket import Bucket

MINUTE: Final = 60.0
# Of what a bucket may owe: one answer of a model's whole context does not silence a provider for an hour.
MAX_DEBT_MINUTES: Final = 5.0


class ApiLimits:
    """The buckets of all providers. A reload inherits them (`with_limits`)."""

    def __init__(self, limits: Mapping[str, ProviderLimits]) -> None:
        self._limits = limits
        self._buckets: dict[tuple[str, str], Bucket] = {}

    def admit(self, provider: str, tokens: int, now: float) -> float:
        """Charge a request of about so many tokens and return 0, or charge nothing and return the seconds to wait."""
        requests, spent = self._of(provider, "requests", now), self._of(provider, "tokens", now)
        wait = max(requests.wait(now) if requests else 0.0, spent.wait(now, tokens) if spent else 0.0)
        if not wait:
            if requests:
                _charge(requests, 1)
            if spent:
                _charge(spent, tokens)
        return wait

    def settle(self, provider: str, tokens: int, now: float) -> None:
        """Charge what a request cost more than its estimate, or give back what it cost less (negative)."""
        spent = self._of(provider, "tokens", now)
        if spent:
            _charge(spent, tokens)

    def with_limits(self, limits: Mapping[str, ProviderLimits]) -> ApiLimits:
        """Return buckets under new limits; of one whose limit changed, what is used stays used."""
        successor = ApiLimits(limits)
        for (provider, what), old in self._buckets.items():
            new = successor._of(provider, what, old.at)
            if new:
                _charge(new, old.size - old.tokens)
        return successor

    def _of(self, provider: str, what: str, now: float) -> Bucket | None:
        limits = self._limits.get(provider)
        if limits is None:
            return None
        size = limits.requests_per_minute if what == "requests" else limits.tokens_per_minute
        if not size:
            return None
        bucket = self._buckets.get((provider, what))
        if bucket is None:
            bucket = self._buckets[provider, what] = Bucket.full(size, size / MINUTE, now)
        bucket.fill(now)
        return bucket


def _charge(bucket: Bucket, tokens: float) -> None:
    """Take what was used, whether it is there or not; what was not used after all is negative."""
    bucket.tokens = max(min(bucket.size, bucket.tokens - tokens), -MAX_DEBT_MINUTES * bucket.size)
