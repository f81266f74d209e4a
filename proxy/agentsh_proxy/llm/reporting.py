"""What the proxy tells the audit: events made of judged calls, faults and connectors, bounded, in batches.

It sends to whoever took `send`; ids are the supervisor's business, timestamps are taken here, where things were seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import orjson

from agentsh_net.audit.flood import Flood
from agentsh_net.clock import now_rfc3339
from agentsh_net.core.audit.event_values import bounded, bounded_input, decided
from agentsh_net.core.audit.events import (
    ConnectorRequest,
    CrossServerBlocked,
    Event,
    EventsLost,
    RequestLimited,
    RequestRedacted,
    ResponseUninspected,
    ToolCallIntercepted,
)
from agentsh_net.core.audit.refusals import RequestRefused
from agentsh_net.core.dialects.base import Dialect, Fault, Judged, Step
from agentsh_net.core.links import link
from agentsh_net.core.model import Server, Transport, Verdict
from agentsh_net.core.verdicts.steps import PROTOCOL
from agentsh_proxy.refused_requests import REFUSALS, REFUSALS_A_SECOND, Refusals, RefusedRequest

# Waiting for the supervisor to read: some hundred full-size events. Beyond it events are counted as lost, never awaited.
MAX_WAITING = 16 << 20
_MAX_BATCH = 1 << 20  # one message: a dozen full-size events, so that the supervisor reads in small bites
# What may carry a credential in a URL: user information, query and fragment. The URL is a client's, and may be none.
_SECRETS = re.compile(r"(?<=[/\\]{2})[^/\\?#]*@|[?#].*", re.DOTALL)
# That refuse a request, by the status of the answer.
_RULES = {413: "proxy.max_request", 426: "proxy.websockets"}
_MAX_CANDIDATES = 64  # of one name; more than any real registry gives


class Subject(NamedTuple):
    """What an event is about: whose request, in which dialect."""

    session_id: str
    request_id: str
    dialect: str


class Reporter:
    """Collects events until `call_soon` calls back, or something was refused, and hands them on in one batch."""

    __slots__ = ("_call_soon", "_encoded", "_faults", "_lost", "_refusals", "_size", "_waiting", "_write")

    def __init__(
        self,
        write: Callable[[bytes], None],
        waiting: Callable[[], int],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._write = write
        self._waiting = waiting
        self._call_soon = call_soon
        self._encoded: list[bytes] = []
        self._size = 0
        self._lost = 0
        self._refusals = Refusals(self.emit, RequestRefused, "proxy", _RULES)
        # One answer can have as many as it has lines.
        self._faults = Flood(
            self.emit, "what cannot be read", layer="proxy", burst=REFUSALS, rate=REFUSALS_A_SECOND
        )

    def step(self, step: Step, subject: Subject, servers: Mapping[str, Server]) -> None:
        """Tell of everything in a step."""
        for judged in step.judged:
            self.judged(judged, subject, servers)
        for fault in step.faults:
            self.fault(fault, subject)

    def judged(self, judged: Judged, subject: Subject, servers: Mapping[str, Server]) -> None:
        """Tell of a tool call and its verdict."""
        call, verdict = judged.call, judged.verdict
        family = call.namespace or call.toolset
        first = verdict.candidates[0] if verdict.candidates else None
        server = servers.get(first.server_id) if first else None
        self.emit(
            ToolCallIntercepted(
                session_id=subject.session_id,
                **decided(verdict),
                request_id=subject.request_id,
                dialect=call.dialect or subject.dialect,
                tool_name=bounded(f"{family}.{call.name}" if family else call.name),
                tool_call_id=bounded(call.call_id),
                input=bounded_input(call.input),
                server_id=bounded(first.server_id if first else call.server_name),
                server_type=server.transport.value if server else "",
                server_addr=_address(server),
                tool_hash=first.tool_hash if first else "",
                candidates=[
                    # A pair may be made of the model's own words: a server nobody declared, a tool nobody saw.
                    {
                        "server_id": bounded(c.server_id),
                        "tool_name": bounded(c.tool),
                        "tool_hash": c.tool_hash,
                    }
                    for c in verdict.candidates[:_MAX_CANDIDATES]
                ],
            )
        )

        if verdict.crossing is not None:
            self.emit(
                CrossServerBlocked(
                    session_id=subject.session_id,
                    **decided(verdict),
                    severity=verdict.crossing.severity,
                    related_calls=[dict(call) for call in verdict.crossing.related],
                )
            )

    def fault(self, fault: Fault, subject: Subject) -> None:
        """Tell of something that could not be read; of a flood of that, how much there was."""
        self._faults.tell(
            ResponseUninspected(
                session_id=subject.session_id,
                action="block" if fault.cut else "allow",
                would="block" if fault.would else None,
                reason=bounded(fault.detail),
                rule=PROTOCOL if fault.always else "sandbox.mcp.fail_closed",
                request_id=subject.request_id,
                dialect=subject.dialect,
                cause=fault.cause,
                detail=bounded(fault.detail),
            )
        )

    def connector(self, server_id: str, url: str, verdict: Verdict, subject: Subject) -> None:
        """Tell of an MCP server that the provider was asked to call."""
        self.emit(
            ConnectorRequest(
                session_id=subject.session_id,
                **decided(verdict),
                dialect=subject.dialect,
                server_url=bounded(_SECRETS.sub("", url)),
                server_id=bounded(server_id),
            )
        )

    def redacted(self, mode: str, counts: Mapping[str, int], subject: Subject) -> None:
        """Tell what was taken out of a request, by kind."""
        self.emit(
            RequestRedacted(
                session_id=subject.session_id,
                rule="dlp",
                dialect=subject.dialect,
                mode=mode,
                counts=dict(counts),
            )
        )

    def limited(self, provider: str, retry_after: int, session_id: str, dialect: str) -> None:
        """Tell of a request that a provider's limits refused."""
        self.emit(
            RequestLimited(
                session_id=session_id,
                action="block",
                reason=f"the limit of {provider} is used up",
                rule=bounded(f"proxy.providers.{provider}.limits"),
                provider=bounded(provider),
                dialect=dialect,
                retry_after=retry_after,
            )
        )

    def refused(self, asked: RefusedRequest, status: int, reason: str, dialect: Dialect | None) -> None:
        """Tell of a request that was refused for what it is."""
        self._refusals.tell(asked, status, reason, dialect=dialect.name if dialect is not None else "")

    def emit(self, event: Event) -> None:
        """Hand on an event. Never waits: where the supervisor does not read, events are counted as lost."""
        data = _written(event)
        if self._waiting() + self._size + len(data) > MAX_WAITING or len(data) > _MAX_BATCH:
            self._lost += 1
            return
        self._encoded.append(data)
        self._size += len(data) + 1
        if event.action == "block":
            self.flush()  # it lies in the kernel, where it outlives this worker, before the client hears of it
        elif len(self._encoded) == 1:
            self._call_soon(self.flush)

    def finish(self) -> None:
        """Tell what was counted instead of told: no more comes."""
        self._refusals.finish()
        self._faults.finish()
        self.flush()

    def flush(self) -> None:
        """Write what was collected, in messages that keep the link's bounds."""
        if self._lost:
            lost, self._lost = self._lost, 0
            note = EventsLost(layer="proxy", lost=lost, reason="the supervisor did not read in time")
            self._encoded.append(_written(note))
        batch: list[bytes] = []
        size = 0
        for data in self._encoded:
            if batch and (size + len(data) > _MAX_BATCH or len(batch) == link.MAX_EVENTS):
                self._write(_message(batch))
                batch, size = [], 0
            batch.append(data)
            size += len(data) + 1
        if batch:
            self._write(_message(batch))
        self._encoded = []
        self._size = 0


def _address(server: Server | None) -> str:
    if server is None or server.transport is Transport.STDIO or not server.host:
        return ""
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{host}:{server.port}"


def _written(event: Event) -> bytes:
    """Return an event as it was seen just now."""
    return orjson.dumps({**event.to_json(), "timestamp": now_rfc3339()})


def _message(batch: list[bytes]) -> bytes:
    return link.frame(b'{"kind":"events","events":[' + b",".join(batch) + b"]}")
