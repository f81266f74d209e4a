"""Which call on the wire is which call in a model's answer: the same tool of the same server with the same arguments, once each.

A call that was charged when the model wrote it is not charged again when it arrives. `now` is an argument, in seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from agentsh_net.core.audit.events import DEFAULT_SESSION, ToolCallIntercepted
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.values import canonical

# Calls that models wrote and nobody made yet; an agent makes most of them within a second.
MAX_REMEMBERED = 4096
PATIENCE = 900.0  # seconds a person may take to permit a call

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Intent:
    """A call in a model's answer that was let through."""

    event_id: str
    session_id: str
    tool_call_id: str
    input: Any
    pairs: tuple[Pair, ...]
    at: float


class Intents:
    """The calls that models wrote and that were not seen on the wire yet, the oldest first."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, Intent] = OrderedDict()
        self._by_pair: dict[Pair, dict[str, Intent]] = {}

    def note(self, event: Mapping[str, Any], now: float) -> None:
        """Remember an event (as JSON) if it is a call that was let through."""
        if event.get("type") != ToolCallIntercepted.type or event.get("action") != "allow":
            return
        pairs = tuple((fold(c["server_id"]), c["tool_name"]) for c in event.get("candidates") or ())
        if not pairs:
            return
        intent = Intent(
            str(event["id"]), event["session_id"], event["tool_call_id"], event["input"], pairs, now
        )
        self._waiting[intent.event_id] = intent
        for pair in pairs:
            self._by_pair.setdefault(pair, {})[intent.event_id] = intent
        while len(self._waiting) > MAX_REMEMBERED or now - next(iter(self._waiting.values())).at > PATIENCE:
            self._forget(next(iter(self._waiting.values())))

    def awaits(self, server_id: str, tool: str) -> bool:
        """Say whether a call of this tool may carry out an intent."""
        return (fold(server_id), tool) in self._by_pair

    def claim(
        self,
        server_id: str,
        tool: str,
        marked: Callable[[], str],
        session_id: str,
        now: float,
        placed: Callable[[], Collection[str]] = tuple,
    ) -> Intent | None:
        """Return and forget the intent that a call with this mark carries out, or None.

        A call of no known session may be of any but those that are `placed`: theirs are known by where they come from.
        """
        waiting = self._by_pair.get((fold(server_id), tool))
        if not waiting:
            return None
        wanted = marked()
        for intent in waiting.values():
            if now - intent.at > PATIENCE or mark(intent.input) != wanted:
                continue
            if intent.session_id == session_id or (
                session_id == DEFAULT_SESSION and intent.session_id not in placed()
            ):
                self._forget(intent)
                return intent
        return None

    def _forget(self, intent: Intent) -> None:
        del self._waiting[intent.event_id]
        for pair in intent.pairs:
            waiting = self._by_pair.get(pair, {})
            waiting.pop(intent.event_id, None)
            if not waiting:
                self._by_pair.pop(pair, None)


def mark(arguments: Any) -> str:
    """Return a digest that equal arguments share; none and an empty object are the same to a tool.

    Events tell of inputs as DLP leaves them: so are those to be given that are seen on the wire.
    """
    try:
        text = canonical.text(arguments or {})
    except (ProtocolError, TypeError):
        text = repr(arguments)
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
