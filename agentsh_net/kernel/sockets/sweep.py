"""Closes established sockets whose peer is now denied (SOCK_DESTROY): what connected before the rule, or past it.

Looks at TCP and connected UDP in every network namespace that may be entered. Who is denied is the plan's business; at a
shared endpoint it is told by what the probes read of the connection.
"""

from __future__ import annotations

from collections.abc import Callable

from agentsh_net.core.abi import sock_diag, wire
from agentsh_net.core.abi.sock_diag import Socket
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.addresses import canonical
from agentsh_net.core.network.egress import is_declared
from agentsh_net.core.network.kernel_plan import find
from agentsh_net.core.network.plane import Fate, Name, Plan, Rule
from agentsh_net.kernel import net_namespaces
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink
from agentsh_net.kernel.sockets.diag import connected, destroy

_SWEPT = {Fate.DENY, Fate.SNI, Fate.SNI_OPEN}
REMEDY = "a kernel with CONFIG_INET_DIAG_DESTROY; until then the packet plane refuses what such a socket still sends"


Concerns = Callable[[Rule, Socket], bool]
Judged = Callable[[Socket], bool]


def sweep(
    plan: Plan,
    concerns: Concerns = lambda *_: True,
    streams: int | None = None,
    judged: Judged = lambda _: False,
    *,
    everywhere: bool = True,
) -> list[Socket]:
    """Destroy every socket connected to a denied endpoint, or to an undeclared one; return those. Raises KernelError.

    `concerns` says whether a denial is for a socket, `judged` whether it reaches only what is declared.
    `streams`: the map with what was read of connections to shared endpoints; None where nobody reads them. Without `everywhere`
    other network namespaces are left alone.
    """
    refuses = plan.egress is not None and plan.egress.refuse
    if not refuses and not any(rule.fate in _SWEPT for rule in plan.rules.values()):
        return []

    def here() -> list[Socket]:
        with Netlink(SOCK_DIAG) as connection:
            return _sweep_one(connection, plan, concerns, streams, judged)

    destroyed = here()
    if everywhere:  # of one that may not be entered the forward chain still refuses the packets
        destroyed += net_namespaces.in_each(net_namespaces.others(), here)
    return destroyed


def _condemned(plan: Plan, found: Socket, concerns: Concerns, *, named: bool) -> bool:
    rule = find(plan, canonical(found.destination), found.destination_port)
    if rule is None or not concerns(rule, found):
        return False
    match rule.fate:
        case Fate.DENY:
            return True
        case Fate.SNI | Fate.SNI_OPEN as fate if named and found.protocol == sock_diag.TCP:
            stream = wire.decode_stream(found.storage)
            if stream is None:
                # One that nobody holds any more has lost what was read of it: what it still sends is judged.
                return fate is Fate.SNI and found.inode != 0
            if stream.verdict == wire.REFUSED:
                return True
            names = (Name(stream.name, found.destination_port), Name(stream.name))
            said = next((plan.names[name] for name in names if name in plan.names), None)
            return stream.verdict == wire.PASSED and said is Fate.DENY
        case Fate.SNI:
            return True
        case _:
            return False


def _undeclared(plan: Plan, found: Socket) -> bool:
    return not is_declared(plan, canonical(found.destination), found.destination_port)


def _sweep_one(
    connection: Netlink, plan: Plan, concerns: Concerns, streams: int | None, judged: Judged
) -> list[Socket]:
    named = streams is not None
    try:
        found = connected(connection, streams)
        condemned = [
            s
            for s in found
            if _condemned(plan, s, concerns, named=named) or (judged(s) and _undeclared(plan, s))
        ]
        return [s for s in condemned if destroy(connection, sock_diag.destruction(s))]
    except OSError as error:
        raise KernelError(
            f"sockets cannot be swept: {error.strerror}", layer="sweep", remedy=REMEDY
        ) from error
