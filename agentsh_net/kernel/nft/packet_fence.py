"""The part of the nftables plane that stands at the devices by which packets leave, and stops packet sockets among others.

Best effort where the kernel is old (egress hooks came with Linux 5.16): then `detail` says that it is not there, and the rest
of the plane stands. Once it was there, its loss is as loud as that of any other table.
"""

from __future__ import annotations

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.kernel_plan import Diff
from agentsh_net.core.network.plane import Plan
from agentsh_net.core.nft import dump as nft_dump
from agentsh_net.core.nft import packet_fence
from agentsh_net.core.nft.ruleset import BRIDGE, TABLE
from agentsh_net.kernel.netlink import Netlink
from agentsh_net.kernel.nft.devices import Devices
from agentsh_net.kernel.nft.table import Commits, Contents, Table
from agentsh_net.kernel.nft.writer import Writer
from agentsh_net.kernel.readers import wait_for_readers

# A device may go between a look and the commit that names it; they do not come and go more often.
_TRIES = 5
_NAMED = 16  # of the devices, in what people read
_NEEDS = "Linux 5.16 or newer with CONFIG_NETFILTER_EGRESS, and nftables 1.0"


class PacketFence:
    """The table, in the namespace of the connection. `writer` commits; it raises KernelError with nothing changed."""

    def __init__(self, connection: Netlink, commits: Commits, writer: Writer, group: int) -> None:
        self._table = Table(connection, nft_dump.NETDEV, TABLE)
        self._bridge = Table(connection, nft_dump.NETDEV, BRIDGE)
        self._contents = Contents(self._table, commits, packet_fence.keys)
        self._writer = writer
        self._group = group
        self._present = Devices()
        self._devices: tuple[str, ...] = ()  # on which it hangs
        self._routed = True
        self._stood = False  # ever
        self._off = ""  # why it is not there

    def rang(self) -> bool:
        """Say whether a device came, went or changed since the last call."""
        return self._present.rang()

    def close(self) -> None:
        """Let go; what stands stays."""
        self._present.close()

    def start(self, plan: Plan) -> None:
        """Make the table exactly `plan`; where that cannot be had, `detail` says why. Raises OSError."""
        for _ in range(_TRIES):
            self._off, self._devices = "", self._present.names()
            if not packet_fence.wanted(plan) or not self._devices:
                self._remove_quietly()
                return
            if self._made(plan) or self._present.names() == self._devices:
                return

    def follow(self, plan: Plan) -> None:
        """Hang on the devices that are there now; what is in the table stays as it is. Raises OSError."""
        names = self._present.names()
        try:
            if names and self._stands(plan):
                self._hang(plan, names)
                return
        except KernelError:
            pass  # what is left of it is replaced
        self.start(plan)

    def widen(self, old: Plan, new: Plan, step: Diff) -> str:
        """Add what `new` has; return what `narrow` has to do. Raises OSError."""
        if self._off:
            return ""
        if not packet_fence.wanted(old) or not packet_fence.wanted(new) or not self._devices:
            self.start(new)
            return ""
        try:
            if text := packet_fence.widen(step):
                self._writer.run(text)
        except KernelError:
            self.start(new)
            return ""
        return packet_fence.narrow(old, new, step)

    def remove(self) -> None:
        """Take the table away. Raises KernelError, OSError."""
        for table in (self._table, self._bridge):
            self._writer.remove(table)

    def why_not(self, plan: Plan) -> str:
        """Say what is not as it was made. Raises OSError, KernelError."""
        if not self._stands(plan):
            return self._off if self._stood else ""
        reason = self._contents.why_not(plan)
        unhooked = () if reason else sorted({*self._devices} & {*self._present.names()} - self._hooked())
        return reason or (f"taken away from {', '.join(unhooked)}" if unhooked else "")

    def behind(self, plan: Plan) -> str:
        """Say which devices came or went since the table was made."""
        if self._off or not packet_fence.wanted(plan):
            return ""
        present = {*self._present.names()}
        came, went = present - {*self._devices}, {*self._devices} - present
        changed = [f"+{name}" for name in sorted(came)] + [f"-{name}" for name in sorted(went)]
        return f"devices {', '.join(changed)}" if changed else ""

    def detail(self, plan: Plan) -> str:
        """Say whether packet sockets are stopped, and where."""
        if self._off:
            return f"packet sockets are not stopped: {self._off} (needs {_NEEDS})"
        if not packet_fence.wanted(plan):
            return ""
        where, more = ", ".join(self._devices[:_NAMED]) or "no device", len(self._devices) - _NAMED
        return f"packet sockets stopped at {where}{f' and {more} devices more' if more > 0 else ''}"

    def denied(self) -> int:
        """Return how many packets were refused. Raises OSError."""
        return 0 if self._table.found() is None else self._table.counters().get(packet_fence.COUNTER, 0)

    def _stands(self, plan: Plan) -> bool:
        return not self._off and bool(self._devices) and packet_fence.wanted(plan)

    def _hooked(self) -> set[str]:
        chains = self._table.chains()
        return {name for chain in chains for name in chain.devices}

    def _hang(self, plan: Plan, names: tuple[str, ...]) -> None:
        """Hang on other devices, and be let go of the old ones when no packet is judged there any more."""
        old = [chain.name for chain in self._table.chains() if chain.name.startswith(packet_fence.CHAIN)]
        with self._contents.rules_changed():
            self._writer.run(packet_fence.hang(plan, names, routed=self._routed, beside=old))
            wait_for_readers()
            self._writer.run(packet_fence.take_down(old))
        self._devices = names

    def _made(self, plan: Plan) -> bool:
        """Make it, and say whether that could be done; else `_off` says why not."""
        for self._routed in (True, False):  # False: a kernel without CONFIG_IP_ROUTE_CLASSID
            try:
                self._replace(plan)
            except KernelError as error:
                self._off = self._off or str(error)
            else:
                self._off, self._stood = "", True
                return True
        return False

    def _replace(self, plan: Plan) -> None:
        def fill(table: str) -> str:
            return packet_fence.fill(
                plan, self._devices, nflog_group=self._group, routed=self._routed, table=table
            )

        with self._contents.made():
            self._writer.replace(self._table, self._bridge, fill)

    def _remove_quietly(self) -> None:
        try:
            if self._table.found() is not None:
                self.remove()
        except KernelError as error:
            self._off = str(error)
