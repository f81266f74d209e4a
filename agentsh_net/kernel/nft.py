"""The nftables plane: loads the plan's table by libnftables and asks the kernel, by netlink, whether it stands.

The one door to libnftables (python3-nftables). It writes by transactions only; it never lists, because libnftables would
fetch every element of every table on the machine for that.
"""

from __future__ import annotations

import struct
from typing import Any

from agentsh_net.core import netlink, nft_ruleset
from agentsh_net.core.errors import KernelError
from agentsh_net.core.kernel_plan import Diff
from agentsh_net.core.plane import LayerStatus, Plan
from agentsh_net.kernel.netlink import NETFILTER, Netlink, missing
from agentsh_net.kernel.readers import wait_for_readers

LAYER = "nftables"
REMEDY = "sudo apt install python3-nftables"
_SUBSYSTEM = 10 << 8  # NFNL_SUBSYS_NFTABLES
_GET_TABLE, _GET_CHAIN, _GET_RULE, _GET_OBJECT = (_SUBSYSTEM | n for n in (1, 4, 7, 19))
_INET = struct.pack(">BBH", 1, 0, 0)  # nfgenmsg for NFPROTO_INET
_MAX_COMPLAINT = 2000


Transaction = dict[str, Any]


class Nftables:
    """Our table in the network namespace in which this object was made."""

    def __init__(self, nflog_group: int) -> None:
        """Open libnftables. Raises KernelError where binding, kernel support or privilege is missing; changes nothing."""
        self._library = _library()
        self._group = nflog_group
        self._netlink = Netlink(NETFILTER)
        try:
            self._table()
        except OSError as error:
            self._netlink.close()
            raise KernelError(
                f"the kernel refuses nftables: {error.strerror}", layer=LAYER, remedy=_remedy(error)
            ) from error

    def start(self, plan: Plan) -> None:
        """Make the table exactly `plan`, and let no packet slip through while a predecessor's goes. Raises KernelError."""
        try:
            replaces = self._table() is not None
        except OSError as error:
            raise KernelError(
                f"the kernel does not answer: {error.strerror}", layer=LAYER, remedy=_remedy(error)
            ) from error
        if replaces:
            self._run(nft_ruleset.bridge(plan, nflog_group=self._group))
            wait_for_readers()
        self._run(nft_ruleset.replace(plan, nflog_group=self._group))
        if replaces:
            wait_for_readers()
        self._run(nft_ruleset.remove(nft_ruleset.BRIDGE))

    def widen(self, old: Plan, new: Plan, step: Diff) -> Transaction | None:
        """Add what only `new` has; return what `narrow` has to do, if anything. Raises KernelError.

        A table that is not `old` any more, because somebody changed it, is replaced by `new` whole.
        """
        change = nft_ruleset.change(old, new, step, nflog_group=self._group)
        try:
            self._run(change.widen)
        except KernelError:
            self.start(new)
            return None
        return change.narrow

    def narrow(self, transaction: Transaction) -> None:
        """Delete what only the old plan had, when nobody is judged by it any more. Raises KernelError."""
        self._run(transaction)

    def status(self, plan: Plan) -> LayerStatus:
        """Ask the kernel for the table, its chains and its counters."""
        try:
            table = self._table()
            if table is None:
                return _off(f"table {nft_ruleset.FAMILY} {nft_ruleset.TABLE} is not there")
            chains, counters = self._chains(), self._counters()
        except (OSError, KernelError) as error:
            return _off(f"the kernel does not answer: {error}")
        wanted = nft_ruleset.rule_counts(plan)
        reason = "; ".join(
            f"chain {name}: {chains[name]} rules, expected {count}"
            if name in chains
            else f"chain {name} is missing"
            for name, count in wanted.items()
            if chains.get(name) != count
        )
        return LayerStatus(
            LAYER,
            wanted=True,
            in_force=not reason,
            detail=f"table {nft_ruleset.FAMILY} {nft_ruleset.TABLE} handle {table}, hooks {', '.join(nft_ruleset.HOOKS)}",
            reason=reason,
            remedy="restart agentsh-net" if reason else "",
            denied=counters.get("denied", 0),
            tagged=counters.get("tagged", 0),
        )

    def close(self, *, remove: bool) -> None:
        """Let go; with `remove` the table is deleted first."""
        try:
            if remove:
                self._run(nft_ruleset.remove())
        finally:
            self._netlink.close()

    def _run(self, transaction: Transaction) -> None:
        code, _output, complaint = self._library.json_cmd(transaction)
        if code != 0:
            text = " ".join(str(complaint).split())[:_MAX_COMPLAINT]
            raise KernelError(
                f"nftables refused the ruleset: {text}", layer=LAYER, remedy="agentsh-net doctor"
            )

    def _table(self) -> int | None:
        """Return the handle of our table, None where it is not there. Raises OSError."""
        return table_handle(self._netlink)

    def _chains(self) -> dict[str, int]:
        """Return how many rules each chain of our table has; a base chain that hangs on no hook is left out."""
        found = {}
        for fields in self._dump(_GET_CHAIN):
            name = netlink.text(fields.get(3, b""))
            if name not in nft_ruleset.HOOKS or 4 in fields:
                found[name] = 0
        for fields in self._dump(_GET_RULE):
            name = netlink.text(fields.get(2, b""))
            if name in found:
                found[name] += 1
        return found

    def _counters(self) -> dict[str, int]:
        """Return the packets of our named counters."""
        return {
            netlink.text(fields.get(2, b"")): netlink.number(
                netlink.attributes(fields.get(4, b"")).get(2, b"")
            )
            for fields in self._dump(_GET_OBJECT)
        }

    def _dump(self, kind: int) -> list[dict[int, bytes]]:
        """Return the attributes of every object of a kind in our table; the table's name is attribute 1 of each."""
        request = _INET + netlink.attribute(1, netlink.string(nft_ruleset.TABLE))
        answers = self._netlink.ask(kind, request, flags=netlink.DUMP)
        every = (netlink.attributes(message.body, len(_INET)) for message in answers)
        return [fields for fields in every if netlink.text(fields.get(1, b"")) == nft_ruleset.TABLE]


def table_handle(connection: Netlink, name: str = nft_ruleset.TABLE) -> int | None:
    """Return the handle of a table of ours in the connection's namespace, None where there is none. Raises OSError."""
    request = _INET + netlink.attribute(1, netlink.string(name))
    try:
        answers = connection.ask(_GET_TABLE, request)
    except OSError as error:
        if missing(error):
            return None
        raise
    return netlink.number(netlink.attributes(answers[0].body, len(_INET)).get(4, b"")) if answers else None


def tables() -> list[str]:
    """Return the names of our tables that are there now, whoever made them. Raises KernelError."""
    with Netlink(NETFILTER) as connection:
        try:
            return [
                n for n in (nft_ruleset.TABLE, nft_ruleset.BRIDGE) if table_handle(connection, n) is not None
            ]
        except OSError as error:
            raise KernelError(
                f"the kernel refuses nftables: {error.strerror}", layer=LAYER, remedy=_remedy(error)
            ) from error


def remove_tables() -> None:
    """Delete every table of ours, whoever made it. Raises KernelError."""
    if tables():
        Nftables(0).close(remove=True)


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


def _off(reason: str) -> LayerStatus:
    return LayerStatus(LAYER, wanted=True, in_force=False, reason=reason, remedy="restart agentsh-net")


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "run as root, or with CAP_NET_ADMIN"
    return "a kernel with nf_tables (CONFIG_NF_TABLES_INET): sudo modprobe nf_tables"
