"""How a server, as it showed itself to one client, stands to its pins: another client may be shown another server.

The board holds what counts for everybody; here the very process behind one shim is judged, whatever the board has heard.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentsh_net.core.mcp.listing import refused
from agentsh_net.core.model import Candidate, PinState, Verdict
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust import identity
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.verdicts import steps
from agentsh_net.core.verdicts.rules import ROOT


class Standing:
    """One server behind one shim."""

    def __init__(self, server_id: str) -> None:
        self._server_id = server_id

    def verdict(self, snapshot: Snapshot, seen: Mapping[Aspect, identity.Value | None]) -> Verdict | None:
        """Return the block of a server that is not as trusted; None where nothing is against it.

        An aspect that should have been seen and was not (None) is a program that was started while the daemon was away.
        """
        mcp = snapshot.config.sandbox.mcp
        for aspect, value in seen.items():
            known = snapshot.pins.identity(self._server_id, aspect)
            if value is None:
                if mcp.version_pinning.enabled:
                    unseen = (
                        f"nobody saw which {steps.ASPECTS[aspect]} server {self._server_id} is:"
                        " the gateway started it, or a shim did while the daemon was away, or it cannot be read (start it again under a shim)"
                    )
                    return refused(mcp, unseen, f"{ROOT}.version_pinning")
            elif known is not None and known.pinned and not identity.same(aspect, known.pinned, value):
                changed = Identity(self._server_id, aspect, PinState.CHANGED, known.pinned, value)
                step = steps.identity_step([changed], mcp.version_pinning, Candidate(self._server_id, ""))
                if step is not None and step.outcome is steps.Outcome.BLOCK:
                    return refused(mcp, step.reason, step.rule)
        return None
