"""One call as all layers saw it, in one story: what the model asked for, what was called, what connected, what came back.

The rows are events as JSON; which of them may belong to it is `store.stories`' business. Here they are told apart and put in
their order, and the verdict is read off them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.audit.events import (
    DEFAULT_SESSION,
    CrossServerBlocked,
    NetworkConnection,
    ToolCalled,
    ToolCallIntercepted,
    ToolResultInspected,
)

Event = Mapping[str, Any]

STAGES = {
    ToolCallIntercepted.type: "intent",
    ToolCalled.type: "execution",
    NetworkConnection.type: "connection",
    ToolResultInspected.type: "result",
    CrossServerBlocked.type: "session",
}


@dataclass(frozen=True, slots=True)
class Story:
    """The events of one call, each list in the order of time."""

    intent: Event | None = None
    executions: tuple[Event, ...] = ()
    connections: tuple[Event, ...] = ()
    results: tuple[Event, ...] = ()
    session: tuple[Event, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """Return all of them in the order of time."""
        own = (self.intent,) if self.intent else ()
        found = (*own, *self.executions, *self.connections, *self.results, *self.session)
        return tuple(sorted(found, key=lambda event: (str(event["timestamp"]), str(event["id"]))))

    def to_json(self) -> dict[str, Any]:
        """Return it as `mcp calls --show ID --json` prints it."""
        action, decided_by = verdict(self)
        return {
            "verdict": action,
            "decided_by": decided_by,
            "intent": self.intent,
            "executions": list(self.executions),
            "connections": [{**event, "joined_by": joined_by(event)} for event in self.connections],
            "results": list(self.results),
            "session": list(self.session),
        }


def verdict(story: Story) -> tuple[str, str]:
    """Return what became of the call (block, would block or allow) and the stage that decided first."""
    for wanted, said in (("block", "block"), ("would", "would block")):
        for event in story.events:
            held = event.get("action") == "block" if wanted == "block" else event.get("would") == "block"
            if held and event["type"] != CrossServerBlocked.type:
                return said, STAGES[event["type"]]
    return "allow", ""


def joined_by(connection: Event) -> str:
    """Say why a connection is thought to belong to a call: its session was known, or only server and time fit."""
    # A worker's own connection is nobody's session.
    known = connection.get("session_id") not in {None, DEFAULT_SESSION}
    return "session" if known and connection.get("correlated") else "server and time"


def tell(intent: Event | None, executions: Iterable[Event], others: Iterable[Event]) -> Story:
    """Return the story of these events; `others` are what happened meanwhile, of which only what belongs is kept."""
    executed = tuple(executions)
    meanwhile = tuple(others)
    return Story(
        intent,
        executed,
        tuple(e for e in meanwhile if e["type"] == NetworkConnection.type and _connects(e, intent, executed)),
        tuple(r for call in executed if (r := _result_of(call, meanwhile)) is not None),
        tuple(e for e in meanwhile if e["type"] == CrossServerBlocked.type and _told_of(e, intent, executed)),
    )


def servers_of(intent: Event | None, executions: Sequence[Event]) -> frozenset[str]:
    """Return the servers that a call may have reached, casefolded: where it was seen to arrive, else its candidates."""
    if executions:
        return frozenset(_folded(event.get("server_id")) for event in executions)
    if intent is None:
        return frozenset()
    named = {_folded(c.get("server_id")) for c in intent.get("candidates") or () if isinstance(c, Mapping)}
    return frozenset(named | {_folded(intent.get("server_id"))}) - {""}


def _connects(event: Event, intent: Event | None, executions: Sequence[Event]) -> bool:
    """Say whether a connection goes to the call's server, and is of no other session, where its session is known."""
    servers = servers_of(intent, executions)
    candidates = {_folded(event.get("server_id")), *map(_folded, event.get("candidates") or ())}
    session = (executions[0] if executions else intent or {}).get("session_id")
    return bool(servers & candidates) and event.get("session_id") in {DEFAULT_SESSION, session}


def _result_of(call: Event, events: Iterable[Event]) -> Event | None:
    """Return the first result under the call's id on its own connection. Ids are typed: 1 is not "1"."""
    return next((e for e in events if e["type"] == ToolResultInspected.type and answers(e, call)), None)


def answers(result: Event, call: Event) -> bool:
    """Say whether a result may be that of a call."""
    same = all(
        result.get(key) == call.get(key) for key in ("server_id", "session_id", "jsonrpc_id", "tool_name")
    )
    typed = type(result.get("jsonrpc_id")) is type(call.get("jsonrpc_id"))
    pids = {result.get("pid") or 0, call.get("pid") or 0} - {0}
    return same and typed and len(pids) < 2 and str(result["id"]) > str(call["id"])


def _told_of(event: Event, intent: Event | None, executions: Sequence[Event]) -> bool:
    calls = [call for call in (intent, *executions) if call]
    return any(
        event.get("reason") == call.get("reason") and event.get("session_id") == call.get("session_id")
        for call in calls
    )


def _folded(name: Any) -> str:
    return str(name or "").casefold()
