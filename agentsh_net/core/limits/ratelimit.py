"""The calls of each server: how many a minute, how many at once. `now` is an argument.

Who may call is policy's business; the supervisor asks here last, so that a denied call costs nothing.
"""

from __future__ import annotations

from collections import OrderedDict

from agentsh_net.core.configuration.settings import RateLimit, RateLimits
from agentsh_net.core.limits.token_bucket import Bucket
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.values.recent import remember

# Ids of judged calls: a thousand streams of a few dozen calls each. The oldest go first, and cost a token if seen again.
MAX_REMEMBERED = 65_536


def limit_of(limits: RateLimits, server_id: str) -> RateLimit:
    """Return the limit that holds for a server."""
    wanted = fold(server_id)
    for name, limit in limits.per_server.items():
        if fold(name) == wanted:
            return limit
    return RateLimit(limits.default_rpm, limits.default_burst)


class Buckets:
    """The state of all limits. A reload inherits it (`with_limits`); servers are those of the registry, so it stays small."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self._buckets: dict[str, Bucket] = {}
        self._answers: OrderedDict[tuple[str, str], bool] = OrderedDict()

    def take(self, server_id: str, call_key: str, now: float) -> bool:
        """Charge a server's bucket once per call; True is within the rate. `now` is monotonic, in seconds.

        `call_key` names one call of one answer (session, request and tool-call id: ids alone repeat across answers);
        asked again it gets the same answer and costs nothing. An empty key is a call of its own each time.
        """
        if not self._limits.enabled:
            return True
        server = fold(server_id)
        if not call_key:
            return self._bucket(server, now).take(now)
        known = self._answers.get((server, call_key))
        if known is not None:
            return known
        answer = self._bucket(server, now).take(now)
        remember(self._answers, (server, call_key), answer, MAX_REMEMBERED)
        return answer

    def with_limits(self, limits: RateLimits) -> Buckets:
        """Return buckets under new limits that keep what was used; a server whose limit changed keeps at most its new burst."""
        successor = Buckets(limits)
        successor._answers = self._answers.copy()
        for server, old in self._buckets.items():
            new = successor._bucket(server, old.at)
            new.tokens = min(old.tokens, new.size)
        return successor

    def _bucket(self, server: str, now: float) -> Bucket:
        bucket = self._buckets.get(server)
        if bucket is None:
            limit = limit_of(self._limits, server)
            rate = limit.calls_per_minute / 60
            bucket = self._buckets[server] = Bucket.full(limit.burst, rate, now)
        return bucket
