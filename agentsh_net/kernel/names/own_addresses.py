"""Which addresses are this host's, asked by rtnetlink: what a DNS answer must never teach us to refuse, and who comes from here."""

from __future__ import annotations

import socket
import struct
from collections.abc import Set as AbstractSet
from ipaddress import IPv4Address, IPv6Address

from agentsh_net.core.abi import netlink
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.addresses import Address
from agentsh_net.kernel.netlink import Netlink

_ROUTE = 0  # NETLINK_ROUTE
_GET_ADDRESS, _GET_ROUTE = 22, 26  # RTM_GETADDR, RTM_GETROUTE
_IFADDRMSG = struct.Struct("=BBBBI")
_INDEX = 4  # of the interface, in that message
_RTMSG = struct.Struct("=BBBBBBBBI")
_TYPE, _TO = 7, 1  # rtm_type in it, RTA_DST
_RTN_LOCAL = 2
# Where kube-proxy's IPVS keeps every service's address so that the kernel takes it in: what answers there runs anywhere.
_ELSEWHERE = {"kube-ipvs0"}
_ADDRESS, _LOCAL = 1, 2  # IFA_ADDRESS is the peer's on point-to-point links, IFA_LOCAL always ours


def own_addresses() -> frozenset[Address]:
    """Return the addresses of every interface in this network namespace; none where the kernel does not say."""
    try:
        with Netlink(_ROUTE) as connection:
            answers = connection.ask(_GET_ADDRESS, _IFADDRMSG.pack(0, 0, 0, 0, 0), flags=netlink.DUMP)
            bodies = [message.body for message in answers]
        elsewhere = {index for index, name in socket.if_nameindex() if name in _ELSEWHERE}
        return frozenset(a for body in bodies if (a := _address(body, elsewhere)) is not None)
    except (OSError, KernelError):
        return frozenset()


def is_local(address: Address) -> bool:
    """Say whether the kernel takes what is sent to an address for this network namespace itself, whatever interface has it.

    Raises KernelError.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    body = _RTMSG.pack(family, address.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    with Netlink(_ROUTE) as connection:
        try:
            answers = connection.ask(_GET_ROUTE, body + netlink.attribute(_TO, address.packed))
        except OSError:
            return False  # there is no way to it
    return any(_RTMSG.unpack_from(message.body)[_TYPE] == _RTN_LOCAL for message in answers)


def _address(body: bytes, elsewhere: AbstractSet[int]) -> Address | None:
    if _IFADDRMSG.unpack_from(body)[_INDEX] in elsewhere:
        return None
    fields = netlink.attributes(body, _IFADDRMSG.size)
    packed = fields.get(_LOCAL) or fields.get(_ADDRESS) or b""
    match len(packed):
        case 4:
            return IPv4Address(packed)
        case 16:
            return IPv6Address(packed)
        case _:
            return None
