"""What of a plan is the packet plane's, remembered for the last two plans: it takes a look at every rule to tell.

What a layer that reads no names makes of a plan is shared_endpoints' business.
"""

from __future__ import annotations

from agentsh_net.core.network.plane import Plan
from agentsh_net.core.network.shared_endpoints import without_names

_REMEMBERED = 2  # the plan in force and the one it becomes


class PacketPart:
    """Asked for the same plan again, it answers with the same object; where nothing is left out, with the plan itself."""

    def __init__(self) -> None:
        self._known: list[tuple[Plan, bool, Plan]] = []

    def of(self, plan: Plan, *, read_elsewhere: bool) -> Plan:
        """Return the packet plane's part of a plan; `read_elsewhere` says whether another plane reads names."""
        for known, elsewhere, part in self._known:
            if known is plan and elsewhere == read_elsewhere:
                return part
        part = without_names(plan, read_elsewhere=read_elsewhere)
        self._known = [(plan, read_elsewhere, part), *self._known[: _REMEMBERED - 1]]
        return part
