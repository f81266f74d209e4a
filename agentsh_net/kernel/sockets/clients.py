"""Who made the socket at the other end of a connection, as a cgroup: by sock_diag, which asks for no privilege.

Which session a cgroup is, is own_cgroups' business.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, ip_address

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.abi.sock_diag import SYN_SENT, TCP
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.addresses import Address
from agentsh_net.kernel.names.own_addresses import is_local
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink
from agentsh_net.kernel.sockets.sweep import look_up

# The index of `lo`, where everybody of this namespace comes in: sockets that are bound to it are found by it alone, unbound ones too.
_LOOPBACK = 1
_IP_FREEBIND = 15  # linux/in.h


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
        shows = _shows_listener(connection, wanted.destination, wanted.destination_port)
    return None if shows and is_local(wanted.source) else 0


def are_shown() -> bool:
    """Say whether this kernel tells of sockets in which cgroup they were made."""
    try:
        with socket.socket() as own, Netlink(SOCK_DIAG) as connection:
            # Where there is IPv6 alone, nobody has the address.
            own.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
            own.bind(("127.0.0.1", 0))
            own.listen(0)
            return _shows_listener(connection, IPv4Address("127.0.0.1"), own.getsockname()[1])
    except (OSError, KernelError):
        return False


def _shows_listener(connection: Netlink, address: Address, port: int) -> bool:
    """Say whether the kernel tells the cgroup of a socket that listens there: then it would tell it of a client too."""
    nobody = ip_address(bytes(len(address.packed)))
    listener = look_up(connection, Packet(address, nobody, TCP, port))
    return listener is not None and listener.cgroup_id != 0
