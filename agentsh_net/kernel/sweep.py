"""Closes established sockets whose peer is now denied (SOCK_DESTROY): what connected before the rule, or past it.

Looks at TCP and connected UDP in every network namespace that may be entered. Who is denied is the plan's business.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

from agentsh_net.core import netlink, sock_diag
from agentsh_net.core.addresses import canonical
from agentsh_net.core.errors import KernelError
from agentsh_net.core.ip_packet import Packet
from agentsh_net.core.kernel_plan import find
from agentsh_net.core.plane import Fate, Plan, Rule
from agentsh_net.core.sock_diag import Socket
from agentsh_net.kernel import net_namespaces
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink

REMEDY = "a kernel with CONFIG_INET_DIAG_DESTROY; until then the packet plane refuses what such a socket still sends"


def sweep(
    plan: Plan, concerns: Callable[[Rule, Socket], bool] = lambda *_: True, *, everywhere: bool = True
) -> list[Socket]:
    """Destroy every socket connected to a denied endpoint, as far as the rule concerns it; return those. Raises KernelError.

    Without `everywhere` other network namespaces are left alone.
    """
    if not any(rule.fate is Fate.DENY for rule in plan.rules.values()):
        return []
    with Netlink(SOCK_DIAG) as connection:
        destroyed = _sweep_one(connection, plan, concerns)
    for path in net_namespaces.others() if everywhere else ():
        try:
            elsewhere = net_namespaces.within(path, lambda: Netlink(SOCK_DIAG))
        except OSError:
            continue  # gone meanwhile, or CAP_SYS_ADMIN was dropped: the forward chain still refuses its packets
        with elsewhere:
            destroyed += _sweep_one(elsewhere, plan, concerns)
    return destroyed


def connected(connection: Netlink) -> Iterator[Socket]:
    """Yield the connected sockets of the connection's namespace. Raises OSError."""
    for family in (sock_diag.INET, sock_diag.INET6):
        for protocol in (sock_diag.TCP, sock_diag.UDP, sock_diag.UDPLITE):
            try:
                answers = connection.ask(
                    sock_diag.BY_FAMILY, sock_diag.listing(family, protocol), flags=netlink.DUMP
                )
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.EINVAL, errno.EOPNOTSUPP}:
                    continue  # a protocol that this kernel does not list
                raise
            for message in answers:
                found = sock_diag.parse(message, protocol)
                if found is not None and found.destination_port:
                    yield found


def look_up(connection: Netlink, wanted: Packet) -> Socket | None:
    """Return the local socket that sent a packet, or None."""
    ends = (wanted.source, wanted.source_port, wanted.destination, wanted.destination_port)
    try:
        answers = connection.ask(sock_diag.BY_FAMILY, sock_diag.single(wanted.protocol, *ends))
    except OSError:
        return None
    return next((found for m in answers if (found := sock_diag.parse(m, wanted.protocol))), None)


def _sweep_one(connection: Netlink, plan: Plan, concerns: Callable[[Rule, Socket], bool]) -> list[Socket]:
    destroyed = []
    try:
        for found in list(connected(connection)):
            rule = find(plan, canonical(found.destination), found.destination_port)
            if rule is None or rule.fate is not Fate.DENY or not concerns(rule, found):
                continue
            if _destroy(connection, found):
                destroyed.append(found)
    except OSError as error:
        raise KernelError(
            f"sockets cannot be swept: {error.strerror}", layer="sweep", remedy=REMEDY
        ) from error
    return destroyed


def _destroy(connection: Netlink, found: Socket) -> bool:
    """Destroy one socket; say whether it was still there. Raises OSError."""
    try:
        connection.ask(sock_diag.DESTROY, sock_diag.destruction(found))
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ESTALE}:
            return False
        raise
    return True
