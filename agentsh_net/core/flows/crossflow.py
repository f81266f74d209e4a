"""Session rules over several servers: data read from one and sent to another, flows within a turn, bursts.

A call is judged by the calls of its session that were let through before it, and only the call that would complete a flow is
held against its own server: what a server did is never held against the tools of another. Pure; the caller keeps the history
and the clock. Which server a bare name means is core.verdicts.policy's business, as are the orders that a definition gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agentsh_net.core.configuration.settings import CrossServer
from agentsh_net.core.flows.tool_kind import SINK, Kind, shown
from agentsh_net.core.model import Crossing
from agentsh_net.core.naming.folding import fold, visible

# Of a session that are remembered; with a burst of more than that, the oldest are forgotten first.
MAX_CALLS = 256
MAX_TURN = 600.0  # seconds for which calls of a turn are remembered: a long answer of a model, with calls that take minutes
MAX_RELATED = 8  # calls in an event
MAX_NAME = 100  # characters of a name in a reason


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was let through, or asks to be. `turn` is one answer of the model, empty where it is not known; `at` is in seconds."""

    server_id: str
    tool: str
    kind: Kind
    at: float
    turn: str = ""
    call_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as an event lists it; the time is the caller's clock, so it is left out."""
        names = {"server_id": self.server_id, "tool_name": self.tool, "tool_call_id": self.call_id}
        return {key: visible(name, MAX_NAME) for key, name in names.items()} | {"kind": shown(self.kind)}


@dataclass(frozen=True, slots=True)
class History:
    """The calls of one session that were let through, the oldest first."""

    calls: tuple[Call, ...] = field(default=())

    def after(self, call: Call, settings: CrossServer) -> History:
        """Return the history with a call that is let through; what no rule looks back to is forgotten."""
        horizon = call.at - _memory(settings)
        kept = tuple(past for past in self.calls if past.at >= horizon)
        return History((*kept, call)[-MAX_CALLS:])


def crossing(history: History, call: Call, settings: CrossServer) -> Crossing | None:
    """Return what the rules have against a call, the worst first; None if nothing or if they are off."""
    if not settings.enabled:
        return None
    return (
        _read_then_send(history, call, settings)
        or _flow(history, call, settings)
        or _burst(history, call, settings)
    )


def _read_then_send(history: History, call: Call, settings: CrossServer) -> Crossing | None:
    if not call.kind & Kind.SEND:
        return None
    window = settings.read_then_send_window
    reads = [
        past for past in _elsewhere(history, call) if past.kind & Kind.READ and _ago(past, call) <= window
    ]
    if not reads:
        return None
    last = reads[-1]
    reason = (
        f"{_name(call)} would send out what {_name(last)} read {_ago(last, call):.0f} s before"
        f" (read_then_send_window: {window:g} s)"
    )
    return _crossing("read_then_send", "critical", reason, reads)


def _flow(history: History, call: Call, settings: CrossServer) -> Crossing | None:
    if not call.kind & SINK:
        return None
    reads = [p for p in _elsewhere(history, call) if p.kind & Kind.READ and _flows(p, call, settings)]
    if not reads:
        return None
    severity = "high" if call.kind & (Kind.SEND | Kind.DESTRUCTIVE) else "medium"
    when = "in the same turn" if reads[-1].turn and reads[-1].turn == call.turn else "before"
    reason = f"{_name(call)} would {shown(call.kind & SINK)} what {_name(reads[-1])} read {when}"
    return _crossing("flow", severity, reason.replace("destructive", "destroy by"), reads)


def _burst(history: History, call: Call, settings: CrossServer) -> Crossing | None:
    """Count the calls of one server: another's are no fault of it."""
    burst = settings.burst
    own = [
        p for p in history.calls if fold(p.server_id) == fold(call.server_id) and _ago(p, call) < burst.window
    ]
    if len(own) < burst.calls:
        return None
    server = visible(call.server_id, MAX_NAME)
    reason = f"{len(own) + 1} calls to server {server} within {burst.window:g} s (burst: {burst.calls} calls)"
    return _crossing("burst", "medium", reason, own)


def _elsewhere(history: History, call: Call) -> Iterator[Call]:
    return (past for past in history.calls if fold(past.server_id) != fold(call.server_id))


def _flows(past: Call, call: Call, settings: CrossServer) -> bool:
    """Say whether data may have gone from one call to the other: within a turn, or within the window where any turn counts."""
    if past.turn and past.turn == call.turn:
        return True
    return not settings.same_turn_only and _ago(past, call) <= settings.read_then_send_window


def _ago(past: Call, call: Call) -> float:
    return max(0.0, call.at - past.at)


def _memory(settings: CrossServer) -> float:
    return max(settings.read_then_send_window, settings.burst.window, MAX_TURN)


def _name(call: Call) -> str:
    return f"{visible(call.server_id, MAX_NAME)}/{visible(call.tool, MAX_NAME)}"


def _crossing(rule: str, severity: str, reason: str, related: list[Call]) -> Crossing:
    return Crossing(rule, severity, reason, tuple(past.to_json() for past in related[-MAX_RELATED:]))
