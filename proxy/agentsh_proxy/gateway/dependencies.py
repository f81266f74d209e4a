"""What those who judge a client's conversation with a server need of their worker: the policy in force, and whom to ask and tell.

It does nothing itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.audit.events import Event
from agentsh_net.core.audit.joining import Intent
from agentsh_net.core.configuration.settings import Mcp
from agentsh_net.core.inspect.custom import Custom
from agentsh_net.core.model import Crossing, Verdict
from agentsh_net.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a review needs of its worker."""

    snapshot: Callable[[], Snapshot]
    charge: Callable[[str, str, str], bool | Crossing]  # server, tool, session
    # The call in a model's answer that a call carries out: server, tool, mark of its arguments, session.
    claim: Callable[[str, str, Callable[[], str], str], Intent | None]
    unanswered: Callable[[], bool]  # whether the last charge was made up here, because nobody answered
    emit: Callable[[Event], None]
    report: Callable[[dict[str, Any]], None]  # as `discovery` reports
    changed: Callable[[], Awaitable[None]]  # waits until another snapshot is in force
    customs: Callable[[], tuple[Custom, ...]]
    counted: Callable[[Verdict], None]
    # Runs what can follow, before anything else comes of a peer.
    soon: Callable[[Callable[[], object]], object]

    @property
    def mcp(self) -> Mcp:
        """Return the policy in force."""
        return self.snapshot().config.sandbox.mcp
