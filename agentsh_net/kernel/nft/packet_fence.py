"""The part of the nftables plane that stands at the devices by which packets leave, and stops packet sockets among others.

Best effort where the kernel is old (egress hooks came with Linux 5.16): then `detail` says that it is not there, and the rest
of the plane stands. Once it was there, its loss is as loud as that of any other table.
"""

from __future__ import annotations

import socket

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.kernel_plan import Diff
from agentsh_net.core.network.plane import Plan
from agentsh_net.core.nft import dump as nft_dump
from agentsh_net.core.nft import packet_fence
from agentsh_net.core.nft.ruleset import BRIDGE, TABLE
from agentsh_net.kernel.netlink import Netlink
from agentsh_net.kernel.nft.table import Commits, Contents, Table
from agentsh_net.kernel.nft.writer import Writer

_NEEDS = "Linux 5.16 or newer with CONFIG_NETFILTER_EGRESS, and nftables 1.0"


class PacketFence:
    """The table, in the namespace of the connection. `writer` commits; it raises KernelError with nothing changed."""

    def __init__(self, connection: Netlink, commits: Commits, writer: Writer, group: int) -> None:
        self._table = Table(connection, nft_dump.NETDEV, TABLE)
        self._bridge = Table(connection, nft_dump.NETDEV, BRIDGE)
        self._contents = Contents(self._table, commits, packet_fence.keys)
        self._writer = writer
        self._group = group
        self._devices: tuple[str, ...] = ()
        self._routed = True
        self._off = ""  # why it is not there

    def start(self, plan: Plan) -> None:
        """Make the table exactly `plan`; where that cannot be had, `detail` says why. Raises OSError."""
        self._off, self._devices = "", devices()
        if not packet_fence.wanted(plan) or not self._devices:
            self._remove_quietly()
            return
        for self._routed in (True, False):  # False: a kernel without CONFIG_IP_ROUTE_CLASSID
            try:
                self._replace(plan)
            except KernelError as error:
                self._off = self._off or str(error)
            else:
                self._off = ""
                return

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
            return ""
        reason = self._contents.why_not(plan)
        unhooked = () if reason else sorted({*self._devices} & {*devices()} - self._hooked())
        return reason or (f"taken away from {', '.join(unhooked)}" if unhooked else "")

    def behind(self, plan: Plan) -> str:
        """Say which devices came or went since the table was made."""
        if self._off or not packet_fence.wanted(plan):
            return ""
        came, went = {*devices()} - {*self._devices}, {*self._devices} - {*devices()}
        changed = [f"+{name}" for name in sorted(came)] + [f"-{name}" for name in sorted(went)]
        return f"devices {', '.join(changed)}" if changed else ""

    def detail(self, plan: Plan) -> str:
        """Say whether packet sockets are stopped, and where."""
        if self._off:
            return f"packet sockets are not stopped: {self._off} (needs {_NEEDS})"
        if not packet_fence.wanted(plan):
            return ""
        return f"packet sockets stopped at {', '.join(self._devices) or 'no device'}"

    def denied(self) -> int:
        """Return how many packets were refused. Raises OSError."""
        return 0 if self._table.found() is None else self._table.counters().get(packet_fence.COUNTER, 0)

    def _stands(self, plan: Plan) -> bool:
        return not self._off and bool(self._devices) and packet_fence.wanted(plan)

    def _hooked(self) -> set[str]:
        chains = self._table.chains()
        return {name for chain in chains if chain.name == packet_fence.CHAIN for name in chain.devices}

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


def devices() -> tuple[str, ...]:
    """Return the devices of this namespace on which the table hangs."""
    return packet_fence.devices(socket.if_nameindex())
