"""What shims need of the daemon: the policy in force, and whom to ask and tell.

It does nothing itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentsh_net.control.peer import Peer
from agentsh_net.core.audit.drafts import Sheet
from agentsh_net.core.audit.events import Event
from agentsh_net.core.audit.joining import Intent
from agentsh_net.core.configuration.settings import Mcp
from agentsh_net.core.model import Crossing
from agentsh_net.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What shims need of the daemon."""

    snapshot: Callable[[], Snapshot]
    # A discovery report, as `agentsh_proxy.mcp_client.discovery` makes them.
    take: Callable[[Mapping[str, Any]], Awaitable[None]]
    recognise: Callable[[Mapping[str, Any]], Awaitable[None]]  # one that speaks of the server itself only
    within: Callable[[str, str, str], bool | Crossing]  # charges a call: server, tool, session
    awaits: Callable[[str, str], bool]  # a call in a model's answer may be one of this tool: server, tool
    # Claims the call in a model's answer that a call carries out: server, tool, mark of its arguments, session.
    claim: Callable[[str, str, Callable[[], str], str], Intent | None]
    emit: Callable[[Event], None]
    # Takes mcp_tool_called of one session and server, stamped, as JSON; and the bytes of the longest line they came on.
    record: Callable[[list[dict[str, Any]], int], None]
    record_sheet: Callable[[Sheet], None]  # takes as much, of which little but text is known
    takes_news: Callable[[], bool]  # there is room on record
    warn: Callable[[str], None]
    session: Callable[[str, Peer], str]  # of who shows a token

    @property
    def mcp(self) -> Mcp:
        """Return the policy in force."""
        return self.snapshot().config.sandbox.mcp
