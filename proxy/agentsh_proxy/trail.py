"""What an exchange leaves behind: its charge against the provider's limits, settled when the answer told its cost.

Only where something asks for it; an exchange without a trail pays nothing. What an answer becomes is not its business.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from agentsh_net.core.http_head import ResponseHead
from agentsh_net.core.usage import Usage
from agentsh_proxy.admission import RefusalError

if TYPE_CHECKING:
    from agentsh_proxy.asked import Asked
    from agentsh_proxy.service import Service

BYTES_A_TOKEN = 4  # of English and of code, about
# An image is a fraction of its bytes in tokens, so that an estimate by bytes ends where few texts go on; the answer settles it.
MAX_ESTIMATE = 50_000


class Trail:
    """One exchange's."""

    __slots__ = ("_ended", "_estimate", "_limited", "_provider", "_service", "_size", "_status", "_usage")

    def __init__(self, service: Service, provider: str, estimate: int, *, limited: bool) -> None:
        self._service = service
        self._provider = provider
        self._estimate = estimate
        self._limited = limited
        self._usage = Usage()
        self._status = 0
        self._size = 0
        self._ended = False

    def head(self, head: ResponseHead) -> None:
        """Take the answer's head."""
        self._status = head.status

    def data(self, data: bytes) -> None:
        """Take bytes of the answer as the upstream sent them."""
        self._size += len(data)
        self._usage.feed(data)

    def end(self) -> None:
        """Settle: there is no more to come."""
        if self._ended:
            return
        self._ended = True
        if self._limited:
            self._service.charges.settle(self._provider, self._cost() - self._estimate)

    def _cost(self) -> int:
        """Return the tokens of request and answer; without a word of the provider's about them, an estimate."""
        if not 200 <= self._status < 300:
            return 0
        usage = self._usage
        if usage.known:
            return (usage.input or self._estimate) + usage.output
        return self._estimate + (usage.events or self._size // BYTES_A_TOKEN)


def begin(service: Service, asked: Asked, body: bytes) -> Trail | None:
    """Return the trail of a request, None where nothing wants one. Raises RefusalError 429 where a limit is used up."""
    admitted = asked.admitted
    limited = admitted.inspected is not None and asked.head.method == "POST" and admitted.provider.limited
    if not limited:
        return None
    estimate = min(len(body) // BYTES_A_TOKEN, MAX_ESTIMATE)
    wait = service.charges.admit(admitted.provider.name, estimate)
    if wait:
        _refuse(service, asked, wait)
    return Trail(service, admitted.provider.name, estimate, limited=True)


def _refuse(service: Service, asked: Asked, wait: float) -> None:
    seconds = max(1, math.ceil(wait))
    provider = asked.admitted.provider
    dialect = asked.admitted.inspected or provider.dialect
    service.counts.rate_limited += 1
    service.reporter.limited(provider.name, seconds, asked.admitted.session_id, dialect.name)
    raise RefusalError(
        429,
        f"the limit of requests or tokens a minute for {provider.name!r} is used up; try again in {seconds} s",
        dialect=dialect,
        fields=b"Retry-After: %d\r\n" % seconds,
    )
