"""sock_diag: how sockets are listed and destroyed, and what a listed one says (include/uapi/linux/inet_diag.h).

Bytes only; the socket is kernel/sockets/diag.py's.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from agentsh_net.core.abi import netlink
from agentsh_net.core.abi.netlink import Message
from agentsh_net.core.errors import KernelError

BY_FAMILY, DESTROY = 20, 21
INET, INET6 = 2, 10
TCP, UDP, UDPLITE = 6, 17, 136
SYN_SENT = 2  # a TCP state
# Every TCP state but LISTEN (10), CLOSE (7) and TIME_WAIT (6); a connected datagram socket is ESTABLISHED (1).
_STATES = 0xFFFFFFFF & ~(1 << 10) & ~(1 << 7) & ~(1 << 6)

_REQUEST = struct.Struct("=BBBxI48s")  # inet_diag_req_v2
_MESSAGE = struct.Struct("=BBBB48sIIIII")  # inet_diag_msg
_ID = struct.Struct(">HH16s16s")  # the part of inet_diag_sockid in network byte order
_INTERFACE = struct.Struct("=I")
_DESCRIPTOR = struct.Struct("=i")
_COOKIE = struct.Struct("=II")
_STORAGES, _CGROUP_ID = 20, 21  # INET_DIAG_SK_BPF_STORAGES, INET_DIAG_CGROUP_ID
# INET_DIAG_REQ_SK_BPF_STORAGES, and in it SK_DIAG_BPF_STORAGE_REQ_MAP_FD; in answers SK_DIAG_BPF_STORAGE and its value.
_ASK_STORAGES, _OF_MAP = 2, 1
_STORAGE, _VALUE = 1, 3
_NO_COOKIE = b"\xff" * 8  # INET_DIAG_NOCOOKIE, twice


@dataclass(frozen=True, slots=True)
class Socket:
    """One listed socket. `identity` is the kernel's own id of it, cookie included: what DESTROY takes."""

    family: int
    protocol: int
    source: IPv4Address | IPv6Address
    source_port: int
    destination: IPv4Address | IPv6Address
    destination_port: int
    uid: int
    inode: int
    identity: bytes
    state: int = 0
    cgroup_id: int = 0  # of whoever made it; 0 where the kernel does not say (before Linux 5.9)
    storage: bytes = b""  # what the map that was asked for keeps in it

    @property
    def cookie(self) -> int:
        """The kernel's number of this socket, which it gives to no other."""
        low, high = _COOKIE.unpack_from(self.identity, 40)
        return int(low | high << 32)


def listing(family: int, protocol: int, storage: int | None = None) -> bytes:
    """Return the body of a request for every connected socket of a family and protocol, with what a map keeps in them.

    `storage` is a descriptor of that map, of the process that asks (which needs CAP_BPF then).
    """
    request = _REQUEST.pack(family, protocol, 0, _STATES, bytes(48))
    if storage is None:
        return request
    return request + netlink.attribute(_ASK_STORAGES, netlink.attribute(_OF_MAP, _DESCRIPTOR.pack(storage)))


def single(
    protocol: int,
    source: IPv4Address | IPv6Address,
    source_port: int,
    destination: IPv4Address | IPv6Address,
    destination_port: int,
    interface: int = 0,
) -> bytes:
    """Return the body of a request for the one socket with these ends, also where it is bound to this interface."""
    family = INET if source.version == 4 else INET6
    ends = _ID.pack(source_port, destination_port, _padded(source), _padded(destination))
    return _REQUEST.pack(family, protocol, 0, _STATES, ends + _INTERFACE.pack(interface) + _NO_COOKIE)


def connection(
    source: IPv6Address, source_port: int, destination: IPv6Address, destination_port: int, cookie: int
) -> bytes:
    """Return the body of a request for the one TCP socket with these canonical ends and this cookie."""
    ends = [source.ipv4_mapped or source, destination.ipv4_mapped or destination]
    family = INET if isinstance(ends[0], IPv4Address) else INET6
    identity = _ID.pack(source_port, destination_port, _padded(ends[0]), _padded(ends[1]))
    identity += bytes(4) + _COOKIE.pack(cookie & 0xFFFFFFFF, cookie >> 32)
    return _REQUEST.pack(family, TCP, 0, _STATES, identity)


def destruction(socket: Socket) -> bytes:
    """Return the body of a DESTROY request for a listed socket."""
    return _REQUEST.pack(socket.family, socket.protocol, 0, _STATES, socket.identity)


def parse(message: Message, protocol: int) -> Socket | None:
    """Return the socket that a listing tells of, None for another message."""
    if message.type != BY_FAMILY or len(message.body) < _MESSAGE.size:
        return None
    family, state, _timer, _retrans, identity, _expires, _rqueue, _wqueue, uid, inode = _MESSAGE.unpack_from(
        message.body
    )
    source_port, destination_port, source, destination = _ID.unpack_from(identity)
    try:
        attributes = netlink.attributes(message.body, _MESSAGE.size)
        storage = _stored(attributes.get(_STORAGES, b""))
    except KernelError:
        attributes, storage = {}, b""
    return Socket(
        family=family,
        protocol=protocol,
        source=_address(family, source),
        source_port=source_port,
        destination=_address(family, destination),
        destination_port=destination_port,
        uid=uid,
        inode=inode,
        identity=identity,
        state=state,
        cgroup_id=int.from_bytes(attributes.get(_CGROUP_ID, b""), sys.byteorder),
        storage=storage,
    )


def _stored(storages: bytes) -> bytes:
    """Return the value of the one map that was asked for. Raises KernelError."""
    one = netlink.attributes(storages).get(_STORAGE, b"")
    return netlink.attributes(one).get(_VALUE, b"")


def _address(family: int, packed: bytes) -> IPv4Address | IPv6Address:
    return IPv4Address(packed[:4]) if family == INET else IPv6Address(packed)


def _padded(address: IPv4Address | IPv6Address) -> bytes:
    return address.packed.ljust(16, b"\0")
