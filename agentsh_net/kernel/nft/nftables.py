"""The nftables plane: writes the plan's tables (writer.py) and asks the kernel, by netlink, whether they stand.

What stands in them is `core.nft.ruleset`'s business.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.kernel_plan import Diff
from agentsh_net.core.network.plane import LayerStatus, Plan
from agentsh_net.core.nft import dump as nft_dump
from agentsh_net.core.nft import ruleset as nft_ruleset
from agentsh_net.core.nft import sets as nft_sets
from agentsh_net.core.nft.sockets import NOWHERE, Sockets
from agentsh_net.kernel.netlink import NETFILTER, Netlink
from agentsh_net.kernel.nft.library import LAYER, Library, Transaction
from agentsh_net.kernel.nft.packet_fence import PacketFence
from agentsh_net.kernel.nft.table import Commits, Contents, Table
from agentsh_net.kernel.nft.table_owner import process_of
from agentsh_net.kernel.nft.writer import Writer

__all__ = ["LAYER", "Nftables", "owners", "remove_tables", "tables"]

OWNED = "owned: nobody but this daemon can change it"


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What is left to delete when nobody is judged by the old plan any more: in the table, at the devices."""

    table: Transaction | None
    fence: str


class Nftables:
    """Our tables in the network namespace in which this object was made."""

    def __init__(
        self,
        nflog_group: int,
        sockets: Sockets = NOWHERE,
        present: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda _: (),
    ) -> None:
        """Open libnftables. `sockets`: where our cgroups are; `present`: which sessions of some have one. Raises KernelError where binding, kernel support or privilege is missing; changes nothing."""
        library = Library()
        self._group = nflog_group
        self._sockets = sockets
        self._present = present
        self._netlink = Netlink(NETFILTER)
        self._table = Table(self._netlink, nft_dump.INET, nft_ruleset.TABLE)
        self._bridge = Table(self._netlink, nft_dump.INET, nft_ruleset.BRIDGE)
        try:
            commits = Commits(self._table)
        except OSError as error:
            self._netlink.close()
            raise KernelError(
                f"the kernel refuses nftables: {error.strerror}", layer=LAYER, remedy=_remedy(error)
            ) from error
        self._room: tuple[Plan | None, nft_sets.Room] = (None, nft_sets.room({}))  # of the last plan
        self._writer = Writer(library, commits)
        self._contents = Contents(self._table, commits, nft_sets.keys)
        self._fence = PacketFence(self._netlink, commits, self._writer, nflog_group)

    @property
    def knows_workers(self) -> bool:
        """Say whether the proxy's own packets can be told from others'."""
        return self._sockets.knows_workers

    def rang(self) -> bool:
        """Say whether a device came, went or changed since the last call."""
        return self._fence.rang()

    def start(self, plan: Plan) -> None:
        """Make the tables exactly `plan`, and let no packet slip through while a predecessor's go. Raises KernelError."""
        named = self._named(plan)

        def fill(table: str) -> Transaction:
            return nft_ruleset.fill(named, nflog_group=self._group, sockets=self._sockets, table=table)

        with _answered(), self._contents.made():
            self._writer.replace(self._table, self._bridge, fill)
        self._room = (plan, nft_sets.room(named.rules))
        with _answered():
            self._fence.start(plan)

    def widen(self, old: Plan, new: Plan, step: Diff) -> Narrowing | None:
        """Add what only `new` has; return what `narrow` has to do, if anything. Raises KernelError.

        A table that is not `old` any more, because somebody changed it, is replaced by `new` whole; so is one that gets or loses
        a chain on a hook.
        """
        if (old.egress is None) is not (new.egress is None):
            self.start(new)
            return None
        named = self._named(new)
        room = self._room[1] if self._room[0] is old else None
        change = nft_ruleset.change(
            old, named, step, nflog_group=self._group, sockets=self._sockets, room=room
        )
        self._room = (new, change.room)
        try:
            with _answered(), self._contents.rules_changed():
                self._writer.run(change.widen)
        except KernelError:
            self.start(new)
            return None
        with _answered():
            fence = self._fence.widen(old, new, step)
        return Narrowing(change.narrow, fence) if change.narrow or fence else None

    def narrow(self, due: Narrowing) -> None:
        """Delete what only the old plan had, when nobody is judged by it any more. Raises KernelError."""
        with _answered():
            if due.fence:  # first: what the table lets pass again comes to the devices next
                self._writer.run(due.fence)
            if due.table:
                with self._contents.rules_changed():
                    self._writer.run(due.table)

    def follow(self, plan: Plan) -> None:
        """Take in what came to the machine since, as devices. Raises KernelError."""
        with _answered():
            self._fence.follow(plan)

    def status(self, plan: Plan) -> LayerStatus:
        """Ask the kernel for the tables, what is in them, and their counters."""
        try:
            reason = self._contents.why_not(plan) or self._fence.why_not(plan)
            counters, fence = self._table.counters(), self._fence.denied()
            details = (self._detail(plan), self._fence.detail(plan))
            behind = self._fence.behind(plan)
        except (OSError, KernelError) as error:
            reason = f"the kernel does not answer: {error}"
            counters, fence, details, behind = {}, 0, ("", ""), ""
        return LayerStatus(
            LAYER,
            wanted=True,
            in_force=not reason,
            detail="; ".join(filter(None, details)),
            reason=reason,
            remedy="restart agentsh-net" if reason else "",
            denied=counters.get("denied", 0) + fence,
            tagged=counters.get("tagged", 0),
            behind=behind,
        )

    def close(self, *, remove: bool) -> None:
        """Let go; with `remove` the tables are deleted first."""
        try:
            if remove:
                with _answered():
                    for table in (self._table, self._bridge):
                        self._writer.remove(table)
                    self._fence.remove()
        finally:
            self._writer.close()
            self._fence.close()
            self._netlink.close()

    def why_plain(self) -> str:
        """Ask the kernel, without changing anything, why our tables could not be owned; empty where they can."""
        with _answered():
            return self._writer.why_plain()

    def _named(self, plan: Plan) -> Plan:
        """Return the plan without sessions whose cgroup somebody removed: libnftables takes no path that is not there."""
        return replace(plan, sessions=self._present(plan.sessions))

    def _detail(self, plan: Plan) -> str:
        table, age = self._table.found(), self._contents.age()
        if table is None:
            return ""
        where = f"table {self._table.name} handle {table.handle}, hooks {', '.join(dict.fromkeys(base.hook for base in nft_ruleset.bases(plan)))}"
        whose = OWNED if self._writer.owns(table) else f"not owned: {self._writer.plain}"
        looked = "" if age is None else f"others commit often: elements confirmed {age:.0f} s ago"
        return "; ".join(filter(None, (f"{where}; {whose}", looked)))


def tables() -> list[str]:
    """Return family and name of our tables that are there now, whoever made them. Raises KernelError."""
    with Netlink(NETFILTER) as connection, _answered():
        return [table.name for table in _ours(connection) if table.found() is not None]


def owners() -> list[int]:
    """Return the processes to which tables of ours belong now, 0 for one that cannot be seen. Raises KernelError."""
    with Netlink(NETFILTER) as connection, _answered():
        found = [table.found() for table in _ours(connection)]
        return sorted({process_of(table.owner) for table in found if table is not None and table.owner})


def _ours(connection: Netlink) -> list[Table]:
    return [
        Table(connection, family, name)
        for family in (nft_dump.INET, nft_dump.NETDEV)
        for name in (nft_ruleset.TABLE, nft_ruleset.BRIDGE)
    ]


def remove_tables() -> None:
    """Delete every table of ours, whoever made it; one that belongs to a process that lives is refused. Raises KernelError."""
    if tables():
        Nftables(0).close(remove=True)


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """Make what netlink says a KernelError."""
    try:
        yield
    except OSError as error:
        raise KernelError(
            f"the kernel refuses nftables: {error.strerror}", layer=LAYER, remedy=_remedy(error)
        ) from error


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "run as root, or with CAP_NET_ADMIN"
    return "a kernel with nf_tables (CONFIG_NF_TABLES_INET): sudo modprobe nf_tables"
