"""What of a plan is the packet plane's, remembered for the last two plans: it takes a look at every rule to tell.

What a layer that reads no names makes of a plan is shared_endpoints' business.
"""

from __future__ import annotations

from dataclasses import replace

from agentsh_net.core.network.plane import Plan
from agentsh_net.core.network.shared_endpoints import without_names

_REMEMBERED = 2  # the plan in force and the one it becomes


class PacketPart:
    """Asked for the same plan again, it answers with the same object; where nothing is other, with the plan itself."""

    def __init__(self) -> None:
        self._known: list[tuple[Plan, bool, Plan]] = []

    def of(self, plan: Plan, *, elsewhere: bool) -> Plan:
        """Return the packet plane's part of a plan; `elsewhere` says whether another plane sees connections and reads names."""
        for known, then, part in self._known:
            if known is plan and then == elsewhere:
                return part
        part = without_names(plan, read_elsewhere=elsewhere)
        if not elsewhere:
            part = replace(part, alone=True)
        self._known = [(plan, elsewhere, part), *self._known[: _REMEMBERED - 1]]
        return part
