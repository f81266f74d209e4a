"""Who made the socket at the other end of a connection, as a cgroup: by sock_diag, which asks for no privilege.

Which session a cgroup is, is own_cgroups' business.
"""

from __future__ import annotations

from ipaddress import ip_address

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.abi.sock_diag import SYN_SENT, TCP
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.names.own_addresses import is_local
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink
from agentsh_net.kernel.sockets.diag import listener, look_up

# The index of `lo`, where everybody of this namespace comes in: sockets that are bound to it are found by it alone, unbound ones too.
_LOOPBACK = 1


def cgroup_of(wanted: Packet) -> int | None:
    """Return the cgroup in which the local socket that sends such packets was made.

    0 where its sender is not of this network namespace, or this kernel does not tell; None where a sender of this namespace is
    gone, or cannot be seen (it is bound to a device, or behind a translation of addresses). Raises KernelError.
    """
    with Netlink(SOCK_DIAG) as connection:
        found = look_up(connection, wanted, _LOOPBACK)
        # One that still asks for a connection is not that of the connection we have.
        if found is not None and found.cgroup_id and found.destination_port and found.state != SYN_SENT:
            return found.cgroup_id
        nobody = ip_address(bytes(len(wanted.destination.packed)))
        shows = _shows_cgroup(connection, Packet(wanted.destination, nobody, TCP, wanted.destination_port))
    return None if shows and is_local(wanted.source) else 0


def are_shown() -> bool:
    """Say whether this kernel tells of sockets in which cgroup they were made."""
    try:
        with listener() as ends, Netlink(SOCK_DIAG) as connection:
            return _shows_cgroup(connection, ends)
    except (OSError, KernelError):
        return False


def _shows_cgroup(connection: Netlink, listening: Packet) -> bool:
    """Say whether the kernel tells the cgroup of the socket that listens there: then it would tell it of a client too."""
    found = look_up(connection, listening)
    return found is not None and found.cgroup_id != 0
