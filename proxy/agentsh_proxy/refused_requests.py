"""Requests that are refused for what they are: whose each was and what it asked for, told within bounds.

Why a request is refused, and what its client is answered, is the business of who refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from agentsh_net.audit.flood import Flood
from agentsh_net.core.audit.event_values import bounded
from agentsh_net.core.audit.events import DEFAULT_SESSION, Event
from agentsh_net.core.audit.refusals import Refused
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web import http_redaction
from agentsh_net.core.web.http_head import RequestHead
from agentsh_proxy.callers import caller

# Told of at once, and a second for good, by a worker: nobody has to show anything to be refused.
REFUSALS: Final = 1000
REFUSALS_A_SECOND: Final = 5.0
_TOKEN: Final = re.compile(rb"(?<=/s/)[^/]*")  # another one than those that are known opens nothing


class RefusedRequest(NamedTuple):
    """Whose a refused request was, and what it asked for, as far as that is known."""

    session_id: str
    method: str = ""
    path: str = ""  # without its query and its token


def refused_request(head: RequestHead | None, sessions: Mapping[str, str], here: str) -> RefusedRequest:
    """Return what is told of a request that has this head, None where it came not so far.

    `here` is the session in which its client's socket was made, empty for none.
    """
    if head is None:
        return RefusedRequest(here or DEFAULT_SESSION)
    path = http_redaction.target(head.target.partition(b"?")[0])
    token = _TOKEN.search(path)
    try:
        session_id = caller(here, token[0].decode() if token else "", sessions).session_id
    except (ProtocolError, UnicodeError):
        session_id = DEFAULT_SESSION
    written = _TOKEN.sub(http_redaction.REDACTED, path).decode("ascii", "replace")
    return RefusedRequest(session_id, head.method, written)


class Refusals:
    """Tells of refused requests; of a flood of them, which anyone can cause, how many there were.

    `rules` name the rule by the status of the answer; without one it is the protocol's.
    """

    def __init__(
        self, emit: Callable[[Event], None], kind: type[Refused], layer: str, rules: Mapping[int, str]
    ) -> None:
        self._kind = kind
        self._rules = rules
        who = f"who is refused by the {layer}"
        self._flood = Flood(emit, who, layer=layer, burst=REFUSALS, rate=REFUSALS_A_SECOND)

    def finish(self) -> None:
        """Tell how many were not told of: no more come."""
        self._flood.finish()

    def tell(self, asked: RefusedRequest, status: int, reason: str, **more: Any) -> None:
        """Tell of one; `more` are fields of its kind of event."""
        self._flood.tell(
            self._kind(
                session_id=asked.session_id,
                action="block",
                reason=bounded(reason),
                rule=self._rules.get(status, "protocol"),
                method=bounded(asked.method),
                path=bounded(asked.path),
                status=status,
                **more,
            )
        )
