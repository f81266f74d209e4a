"""The nftables plane: loads the plan's table by libnftables and asks the kernel, by netlink, whether it stands.

The one door to libnftables (python3-nftables). It writes by transactions only; it never lists, because libnftables would
fetch every element of every table on the machine for that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from agentsh_net.core import nft_dump, nft_ruleset, nft_sets, nft_text
from agentsh_net.core.errors import KernelError
from agentsh_net.core.kernel_plan import Diff
from agentsh_net.core.nft_sockets import Sockets
from agentsh_net.core.plane import LayerStatus, Plan
from agentsh_net.kernel.netlink import NETFILTER, Netlink
from agentsh_net.kernel.nft_table import Commits, Contents, Table
from agentsh_net.kernel.packet_fence import PacketFence
from agentsh_net.kernel.readers import wait_for_readers

LAYER = "nftables"
REMEDY = "sudo apt install python3-nftables"
_MAX_COMPLAINT = 2000

Transaction = dict[str, Any]


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
        sockets: Sockets = nft_ruleset.NOWHERE,
        present: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda _: (),
    ) -> None:
        """Open libnftables. `sockets`: where our cgroups are; `present`: which sessions of some have one. Raises KernelError where binding, kernel support or privilege is missing; changes nothing."""
        self._library = _library()
        self._group = nflog_group
        self._sockets = sockets
        self._present = present
        self._netlink = Netlink(NETFILTER)
        self._table = Table(self._netlink, nft_dump.INET, nft_ruleset.TABLE)
        try:
            self._commits = Commits(self._table)
        except OSError as error:
            self._netlink.close()
            raise KernelError(
                f"the kernel refuses nftables: {error.strerror}", layer=LAYER, remedy=_remedy(error)
            ) from error
        self._used: tuple[Plan | None, frozenset[str]] = (None, frozenset())  # what the last plan used
        self._contents = Contents(self._table, self._commits, nft_sets.keys)
        self._fence = PacketFence(self._netlink, self._commits, self._run, nflog_group)

    @property
    def knows_workers(self) -> bool:
        """Say whether the proxy's own packets can be told from others'."""
        return self._sockets.knows_workers

    def start(self, plan: Plan) -> None:
        """Make the tables exactly `plan`, and let no packet slip through while a predecessor's go. Raises KernelError."""
        named = self._named(plan)
        with _answered(), self._contents.made():
            replaces = self._table.found() is not None
            if replaces:
                self._run(nft_ruleset.bridge(named, nflog_group=self._group, sockets=self._sockets))
                wait_for_readers()
            self._run(nft_ruleset.replace(named, nflog_group=self._group, sockets=self._sockets))
            if replaces:
                wait_for_readers()
            self._run(nft_ruleset.remove(nft_ruleset.BRIDGE))
        self._used = (plan, nft_sets.used(named.rules))
        with _answered():
            self._fence.start(plan)

    def widen(self, old: Plan, new: Plan, step: Diff) -> Narrowing | None:
        """Add what only `new` has; return what `narrow` has to do, if anything. Raises KernelError.

        A table that is not `old` any more, because somebody changed it, is replaced by `new` whole.
        """
        named = self._named(new)
        before = self._used[1] if self._used[0] is old else None
        change = nft_ruleset.change(
            old, named, step, nflog_group=self._group, sockets=self._sockets, before=before
        )
        self._used = (new, change.used)
        try:
            with _answered(), self._contents.rules_changed():
                self._run(change.widen)
        except KernelError:
            self.start(new)
            return None
        with _answered():
            fence = self._fence.widen(old, new, step)
        return Narrowing(change.narrow, fence) if change.narrow or fence else None

    def narrow(self, due: Narrowing) -> None:
        """Delete what only the old plan had, when nobody is judged by it any more. Raises KernelError."""
        with _answered():
            if due.table:
                with self._contents.rules_changed():
                    self._run(due.table)
            if due.fence:
                self._run(due.fence)

    def follow(self, plan: Plan) -> None:
        """Take in what came to the machine since, as devices. Raises KernelError."""
        with _answered():
            self._fence.start(plan)

    def status(self, plan: Plan) -> LayerStatus:
        """Ask the kernel for the tables, what is in them, and their counters."""
        try:
            reason = self._contents.why_not(plan) or self._fence.why_not(plan)
            counters, fence = self._table.counters(), self._fence.denied()
            details = (self._detail(), self._fence.detail(plan))
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
                    self._run(nft_ruleset.remove())
                    self._fence.remove()
        finally:
            self._netlink.close()

    def _named(self, plan: Plan) -> Plan:
        """Return the plan without sessions whose cgroup somebody removed: libnftables takes no path that is not there."""
        return replace(plan, sessions=self._present(plan.sessions))

    def _detail(self) -> str:
        table, age = self._table.found(), self._contents.age()
        if table is None:
            return ""
        where = f"table {self._table.name} handle {table.handle}, hooks {', '.join(nft_ruleset.HOOKS)}"
        return where if age is None else f"{where}; others commit often: elements confirmed {age:.0f} s ago"

    def _run(self, transaction: Transaction | str) -> None:
        """Commit. Raises KernelError with nothing changed."""
        with self._commits.ours():
            if not isinstance(transaction, str) and nft_text.needed(transaction):
                transaction = nft_text.render(transaction)
            if isinstance(transaction, str):
                code, _output, complaint = self._library.cmd(transaction)
            else:
                code, _output, complaint = self._library.json_cmd(transaction)
            if code != 0:
                text = " ".join(str(complaint).split())[:_MAX_COMPLAINT]
                raise KernelError(
                    f"nftables refused the ruleset: {text}", layer=LAYER, remedy="agentsh-net doctor"
                )


def tables() -> list[str]:
    """Return family and name of our tables that are there now, whoever made them. Raises KernelError."""
    with Netlink(NETFILTER) as connection, _answered():
        ours = [
            Table(connection, family, name)
            for family in (nft_dump.INET, nft_dump.NETDEV)
            for name in (nft_ruleset.TABLE, nft_ruleset.BRIDGE)
        ]
        return [table.name for table in ours if table.found() is not None]


def remove_tables() -> None:
    """Delete every table of ours, whoever made it. Raises KernelError."""
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


def _library() -> Any:
    try:
        import nftables
    except ImportError as error:
        raise KernelError("python3-nftables is not installed", layer=LAYER, remedy=REMEDY) from error
    try:
        library = nftables.Nftables()
    except OSError as error:
        raise KernelError(f"libnftables cannot be loaded: {error}", layer=LAYER, remedy=REMEDY) from error
    library.set_json_output(True)
    return library


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "run as root, or with CAP_NET_ADMIN"
    return "a kernel with nf_tables (CONFIG_NF_TABLES_INET): sudo modprobe nf_tables"
