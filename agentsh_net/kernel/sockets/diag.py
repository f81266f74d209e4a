"""Asks the kernel about sockets (sock_diag): which are connected, and whose a packet is; and destroys one.

The bytes are core.abi.sock_diag's; whom to look for, and whom to destroy, is the callers' business.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address

from agentsh_net.core.abi import netlink, sock_diag
from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.abi.sock_diag import Socket
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.netlink import Netlink

UNLISTED = KernelError(
    "sockets cannot be swept: this kernel lists no TCP sockets",
    layer="sweep",
    remedy="modprobe tcp_diag udp_diag",
)
_IP_FREEBIND = 15  # linux/in.h


def connected(connection: Netlink, streams: int | None = None) -> Iterator[Socket]:
    """Yield the connected sockets of the connection's namespace, TCP's with what this map keeps in them.

    Raises OSError, and KernelError where it lists no TCP.
    """
    for family in (sock_diag.INET, sock_diag.INET6):
        for protocol in (sock_diag.TCP, sock_diag.UDP, sock_diag.UDPLITE):
            request = sock_diag.listing(family, protocol, streams if protocol == sock_diag.TCP else None)
            try:
                answers = connection.ask(sock_diag.BY_FAMILY, request, flags=netlink.DUMP)
            except OSError as error:
                if error.errno not in {errno.ENOENT, errno.EINVAL, errno.EOPNOTSUPP}:
                    raise
                if (family, protocol) == (sock_diag.INET, sock_diag.TCP):
                    raise UNLISTED from error
                continue  # a protocol that this kernel does not list
            for message in answers:
                found = sock_diag.parse(message, protocol)
                if found is not None and found.destination_port:
                    yield found


def look_up(connection: Netlink, wanted: Packet, interface: int = 0) -> Socket | None:
    """Return the local socket that sent a packet, also where it is bound to this interface, or None."""
    ends = (wanted.source, wanted.source_port, wanted.destination, wanted.destination_port)
    try:
        answers = connection.ask(sock_diag.BY_FAMILY, sock_diag.single(wanted.protocol, *ends, interface))
    except OSError:
        return None
    return next((found for m in answers if (found := sock_diag.parse(m, wanted.protocol))), None)


@contextmanager
def listener() -> Iterator[Packet]:
    """Listen on a port of loopback, and give the ends by which the kernel knows that socket. Raises OSError."""
    with socket.socket() as own:
        # Where there is IPv6 alone, or `lo` is down, nobody has the address.
        own.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        own.bind(("127.0.0.1", 0))
        own.listen(0)
        yield Packet(IPv4Address("127.0.0.1"), IPv4Address(0), sock_diag.TCP, own.getsockname()[1])


def destroy(connection: Netlink, request: bytes) -> bool:
    """Destroy one socket; say whether it was still there. Raises OSError."""
    try:
        connection.ask(sock_diag.DESTROY, request)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ESTALE}:
            return False
        raise
    return True
