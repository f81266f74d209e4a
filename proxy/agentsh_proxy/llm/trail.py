"""What an exchange leaves behind: its charge against the provider's limits, settled by what it cost, and its record in the archive.

Only where something asks for it; an exchange without a trail pays nothing. What an answer becomes is not its business.
"""

from __future__ import annotations

import math
import re

from agentsh_net.core.limits.usage import Usage
from agentsh_net.core.web.http_head import ResponseHead, forwarded_response
from agentsh_net.core.web.http_redaction import target
from agentsh_proxy.llm.admission import RefusalError
from agentsh_proxy.llm.asked import Asked
from agentsh_proxy.llm.service import Service
from agentsh_proxy.recorder import Recording

BYTES_A_TOKEN = 4  # of English and of code, about
# An image is a fraction of its bytes in tokens, so that an estimate by bytes ends where few texts go on; the answer settles it.
MAX_ESTIMATE = 50_000
_MODEL = re.compile(rb'"model"[ \t\r\n]*:[ \t\r\n]*"([^"\\]{1,200})"')
_MODEL_IN_PATH = re.compile(rb"/models?/([^/:?]{1,200})")


class Trail:
    """One exchange's."""

    __slots__ = ("_charged", "_ended", "_estimate", "_provider", "_recording", "_request_id", "_service", "_size", "_status", "_usage")  # fmt: skip

    def __init__(
        self, service: Service, provider: str, estimate: int, recording: Recording | None, *, charged: bool
    ) -> None:
        self._service = service
        self._provider = provider
        self._estimate = estimate
        self._recording = recording
        self._charged = charged
        self._usage = Usage()
        self._status = 0
        self._request_id = ""
        self._size = 0
        self._ended = False

    def head(self, head: ResponseHead) -> None:
        """Take the answer's head."""
        self._status = head.status
        self._request_id = head.request_id
        if self._recording is not None:
            self._recording.answer_head(head.line + forwarded_response(head, rewritten=False))

    def data(self, data: bytes) -> None:
        """Take bytes of the answer as the upstream sent them."""
        self._size += len(data)
        self._usage.feed(data)
        if self._recording is not None:
            self._recording.answer(data)

    def end(self, outcome: str) -> None:
        """Settle and record: there is no more to come. `outcome` is empty for an answer that came whole."""
        if self._ended:
            return
        self._ended = True
        usage = self._usage
        if self._charged:
            self._service.charges.settle(self._provider, self._cost() - self._estimate)
        if self._recording is not None:
            words = {"status": self._status, "request_id": self._request_id, "outcome": outcome or "answered"}
            known = {"input_tokens": usage.input, "output_tokens": usage.output} if usage.known else {}
            self._recording.end({**words, **known})

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
    if admitted.inspected is None:
        return None
    charged = admitted.provider.limited and asked.head.method == "POST"
    if not charged and not asked.view.stores:
        return None
    estimate = min(len(body) // BYTES_A_TOKEN, MAX_ESTIMATE)
    wait = service.charges.admit(admitted.provider.name, estimate) if charged else 0
    if wait:
        _refuse(service, asked, wait)
    recording = _record(service, asked, body) if asked.view.stores else None
    return Trail(service, admitted.provider.name, estimate, recording, charged=charged)


def _record(service: Service, asked: Asked, body: bytes) -> Recording | None:
    admitted = asked.admitted
    model = _MODEL.search(body) or _MODEL_IN_PATH.search(admitted.target)
    # The operator's own path came from the policy file, and may be a secret there (`${...}`).
    below = admitted.target.removeprefix(admitted.provider.base_path.rstrip(b"/"))
    words = {
        "session_id": admitted.session_id,
        "provider": admitted.provider.name,
        "dialect": admitted.dialect.name,
        "model": model[1].decode("utf-8", "replace") if model else "",
        "method": asked.head.method,
        "path": target(below).decode("ascii", "replace"),
    }
    recording = service.recorder.begin(words) if service.recorder is not None else None
    if recording is None:
        service.counts.unrecorded += 1
    else:
        recording.request(asked.opening.replace(admitted.target, below, 1), body)
    return recording


def _refuse(service: Service, asked: Asked, wait: float) -> None:
    seconds = max(1, math.ceil(wait))
    provider = asked.admitted.provider
    dialect = asked.admitted.dialect
    service.counts.rate_limited += 1
    service.reporter.limited(provider.name, seconds, asked.admitted.session_id, dialect.name)
    raise RefusalError(
        429,
        f"the limit of requests or tokens a minute for {provider.name!r} is used up; try again in {seconds} s",
        dialect=dialect,
        fields=b"Retry-After: %d\r\n" % seconds,
        told=True,
    )
