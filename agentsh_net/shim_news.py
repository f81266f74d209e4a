"""Calls that passed by a standing verdict, put on record after the fact: many at a time, at the least price a call.

What a verdict that stands is, is policy's business; what an event looks like `call_events`'. The server has the calls by then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import orjson
from agentsh_proxy.reporting import bounded_input

from agentsh_net.call_events import MALFORMED, Teller
from agentsh_net.clock import new_id, now_rfc3339
from agentsh_net.core.joining import Intent, mark
from agentsh_net.core.link import MAX_TEXT
from agentsh_net.core.mcp_gate import Call
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.shim_link import LinkError
from agentsh_net.core.snapshot import Snapshot

if TYPE_CHECKING:
    from agentsh_net.shim_desk import Surroundings

# The verdict on a call that may carry out an intent, and whether it holds for every call of its tool.
Rule = Callable[[Call, Intent | None], tuple[Verdict, bool]]

MAX_DRAFTS: Final = 1_000  # tools of one shim whose events are drawn up in advance; a busy one uses dozens


@dataclass(frozen=True, slots=True)
class _Draft:
    """What the events of a tool's calls have in common."""

    verdict: Verdict
    event: dict[str, Any]


class News:
    """What one shim tells of its calls."""

    def __init__(self, around: Surroundings, server_id: str, session_id: str, tell: Teller) -> None:
        self._around = around
        self._server_id = server_id
        self._session_id = session_id
        self._tell = tell
        self._snapshot: Snapshot | None = None  # that the drafts are of
        self._drafts: dict[str, _Draft] = {}

    def forget(self) -> None:
        """Draw up events anew: what the verdicts rest on may be another."""
        self._drafts.clear()

    def claim(self, call: Call) -> Intent | None:
        """Return the call in a model's answer that a call carries out, where that was seen."""
        masked = self._around.snapshot().masked
        return self._around.claim(
            self._server_id, call.tool, lambda: mark(masked(call.input)), self._session_id
        )

    def take(self, lines: bytes, rule: Rule) -> None:
        """Put calls on record, a line each. Raises LinkError for what is none."""
        snapshot = self._around.snapshot()
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._drafts.clear()
        now = now_rfc3339()
        events: list[dict[str, Any]] = []
        try:
            for line in lines.split(b"\n"):
                call = self._read(line)
                if call is None:
                    continue
                intent = self.claim(call)
                draft = self._drafts.get(call.tool)
                if intent is None and draft is not None:
                    own = {"jsonrpc_id": call.id, "input": bounded_input(call.input)}
                    events.append(draft.event | {"id": new_id(), "timestamp": now} | own)
                else:
                    self._record(events)
                    self._take_one(call, intent, rule)
        finally:
            self._record(events)

    def _read(self, line: bytes) -> Call | None:
        """Return the call on a line; which tool it is was certain to the shim, the rest is for the record."""
        try:
            match orjson.loads(line):
                case {"id": int() | str() as id_, "params": {"name": str(tool)} as params}:
                    return Call(id_, tool, params.get("arguments"))
        except orjson.JSONDecodeError as error:
            self._tell.uninspected("client", MALFORMED, len(line), Verdict(Action.ALLOW, str(error)))
            return None
        raise LinkError("a call that passed and is none")

    def _take_one(self, call: Call, intent: Intent | None, rule: Rule) -> None:
        """Tell of a call by itself, and draw up the events of those that follow."""
        verdict, stands = rule(call, intent)
        if verdict.blocked:  # the policy changed between the call and now
            verdict = replace(verdict, action=Action.ALLOW, would=Action.BLOCK)
        self._tell.called(call, verdict, intent)
        drafted = len(self._drafts) < MAX_DRAFTS and len(call.tool) <= MAX_TEXT
        if stands and drafted and verdict.crossing is None:
            self._drafts[call.tool] = _Draft(verdict, self._tell.draft(call, verdict))

    def _record(self, events: list[dict[str, Any]]) -> None:
        """Hand on what was gathered, so that the record keeps the order of the calls."""
        if events:
            self._around.record(list(events))
            events.clear()
