"""What one shim, or the gateway of one client, sees, as events of the audit trail: calls, requests of the server, changes, and what could not be read.

What is decided is not its business; every text is bounded here, as both sides may write what they like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from agentsh_net.audit.flood import Flood
from agentsh_net.core.audit import events
from agentsh_net.core.audit.event_values import bounded, bounded_input, decided
from agentsh_net.core.audit.events import Event
from agentsh_net.core.audit.joining import Intent
from agentsh_net.core.inspect.findings import Finding, worst
from agentsh_net.core.mcp.gate import Asking, Call
from agentsh_net.core.mcp.glance import CALL, SAMPLING
from agentsh_net.core.mcp.jsonrpc import Id
from agentsh_net.core.model import Verdict
from agentsh_net.core.values import jsontext

MAX_DETAIL: Final = 2000  # characters of a server's request: what a person reads of a prompt
# Events that a server causes by itself in one conversation: at once, and a second for good (some 200 MB a day).
SERVER_BURST: Final = 1000
SERVER_RATE: Final = 5.0
MALFORMED, HOSTILE, TOO_LONG = "malformed", "hostile", "too_long"  # why a message could not be read


class Teller:
    """Tells of what happens between one client and one server."""

    def __init__(
        self,
        emit: Callable[[Event], None],
        server_id: str,
        session_id: str,
        *,
        via: str,
        who: Mapping[str, Any] | None = None,  # pid and uid, where they are known
    ) -> None:
        self._emit = emit
        self._of_server = Flood(
            emit, server_id, layer=via, session_id=session_id, burst=SERVER_BURST, rate=SERVER_RATE
        )
        self._via = via
        self._who = dict(who or {})
        self._server_id = server_id
        self._session_id = session_id

    def called(self, call: Call, verdict: Verdict, intent: Intent | None) -> None:
        """Tell of a tools/call, and of the call in a model's answer that it carries out, where that was seen."""
        self._emit(self._called(call, verdict, intent))
        if verdict.crossing is not None:
            self._emit(
                events.CrossServerBlocked(
                    **decided(verdict),
                    session_id=self._session_id,
                    severity=verdict.crossing.severity,
                    related_calls=[dict(call) for call in verdict.crossing.related],
                )
            )

    def draft(self, call: Call, verdict: Verdict) -> dict[str, Any]:
        """Return what the event of a call has in common with those of other calls under the same verdict, as JSON."""
        return self._called(replace(call, input=None), verdict, None).to_json()

    def _called(self, call: Call, verdict: Verdict, intent: Intent | None) -> events.ToolCalled:
        return events.ToolCalled(
            **decided(verdict),
            session_id=intent.session_id if intent else self._session_id,
            server_id=self._server_id,
            tool_name=bounded(call.tool),
            jsonrpc_id=call.id,
            input=bounded_input(call.input),
            via=self._via,
            tool_hash=verdict.candidates[0].tool_hash if verdict.candidates else "",
            tool_call_id=intent.tool_call_id if intent else "",
            intercepted_id=intent.event_id if intent else "",
            **self._who,
        )

    def result(
        self,
        named: str,
        id_: Id | None,
        found: Sequence[Finding],
        size: int,
        verdict: Verdict,
        method: str = CALL,
    ) -> None:
        """Tell of a result that went through the detectors; of what no tool gave only where something was found."""
        called = method == CALL
        if not called and not found:
            return
        tell = self._emit if id_ is not None else self._of_server.tell
        tell(
            events.ToolResultInspected(
                **decided(verdict),
                session_id=self._session_id,
                server_id=self._server_id,
                tool_name=bounded(named) if called else "",
                method="" if called else method,
                subject="" if called else bounded(named),
                jsonrpc_id=id_,
                detections=[finding.to_json() for finding in found],
                max_severity=worst(found),
                content_length=size,
                via=self._via,
                pid=self._who.get("pid", 0),
            )
        )

    def asked(self, asking: Asking, verdict: Verdict, found: Sequence[Finding] = ()) -> None:
        """Tell of something that the server wants of the client."""
        kind = events.SamplingRequest if asking.method == SAMPLING else events.ElicitationRequest
        detail = bounded(jsontext.dumps(asking.params).decode(), MAX_DETAIL)
        self._of_server.tell(
            kind(
                **decided(verdict),
                session_id=self._session_id,
                server_id=self._server_id,
                jsonrpc_id=asking.id,
                detail=detail,
                detections=[finding.to_json() for finding in found],
                max_severity=worst(found),
            )
        )

    def list_changed(self) -> None:
        """Tell that the server says its tools are others."""
        self._of_server.tell(events.ToolsListChanged(session_id=self._session_id, server_id=self._server_id))

    def uninspected(
        self, sender: str, cause: str, size: int, verdict: Verdict, found: Sequence[Finding] = ()
    ) -> None:
        """Tell of a message that could not be read for certain, what it seems to hold, and what was done with it."""
        tell = self._of_server.tell if sender == "server" else self._emit
        tell(
            events.MessageUninspected(
                **decided(verdict),
                session_id=self._session_id,
                server_id=self._server_id,
                via=self._via,
                sender=sender,
                cause=cause,
                size=size,
                detections=[finding.to_json() for finding in found],
                max_severity=worst(found),
                **self._who,
            )
        )

    def refused(self, method: str, denied: Verdict) -> None:
        """Tell of a request to a server that policy denies; calls are told of as such."""
        self._emit(
            events.ServerRefused(
                **decided(denied),
                session_id=self._session_id,
                server_id=self._server_id,
                via=self._via,
                method=bounded(method),
                **self._who,
            )
        )

    def stopped(self, denied: Verdict, *, sessions: int, requests: int) -> None:
        """Tell of a server that was in use when policy came to deny it."""
        self._emit(
            events.ServerStopped(
                **decided(denied),
                session_id=self._session_id,
                server_id=self._server_id,
                via=self._via,
                sessions=sessions,
                requests=requests,
                **self._who,
            )
        )
