"""Which tool calls may have caused a connection: those of the same session to the same server, a while before it.

A connection that no call explains is one that no model asked for in the proxy's or the shim's sight. `now` is an argument, in
seconds. Which call on the wire is which in an answer is `joining`'s business.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from agentsh_net.core.audit.events import DEFAULT_SESSION, ToolCalled, ToolCallIntercepted
from agentsh_net.core.audit.joining import PATIENCE
from agentsh_net.core.naming.folding import fold

# From the call in the model's answer to the connection lies the person who permits it.
WINDOW = PATIENCE
# Pairs of session and server: hundreds of agents with a dozen servers each. What is forgotten is told as unexplained.
MAX_REMEMBERED = 4096
UNEXPLAINED = f"no tool call of this session to this server in the {WINDOW / 60:.0f} minutes before"


class Causes:
    """The last call that was let through, by session and server."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str], float] = OrderedDict()

    def note(self, event: Mapping[str, Any], now: float) -> bool:
        """Remember an event (as JSON) if it is a call that was let through; say whether it was one."""
        if (
            event.get("type") not in {ToolCallIntercepted.type, ToolCalled.type}
            or event.get("action") != "allow"
        ):
            return False
        servers = {event.get("server_id"), *(c.get("server_id") for c in event.get("candidates") or ())}
        session = str(event.get("session_id") or DEFAULT_SESSION)
        for server_id in servers:
            if not isinstance(server_id, str) or not server_id:
                continue
            folded = fold(server_id)
            for key in ((session, folded), ("", folded)):  # "": anybody's
                self._last[key] = now
                self._last.move_to_end(key)
        while len(self._last) > MAX_REMEMBERED:
            self._last.popitem(last=False)
        return True

    def explain(self, session_id: str, server_ids: Iterable[str], now: float) -> bool:
        """Say whether a call may have caused a connection to one of these. One of no known session may be any session's."""
        session = "" if session_id == DEFAULT_SESSION else session_id
        return any(now - self._last.get((session, fold(s)), float("-inf")) <= WINDOW for s in server_ids)
