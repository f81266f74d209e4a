"""NFLOG: how a log group is asked for, and what its messages say (include/uapi/linux/netfilter/nfnetlink_log.h).

Bytes only; the socket is kernel/nft/nflog.py. Sequence numbers tell exactly how many records the kernel could not deliver.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from agentsh_net.core.abi import netlink
from agentsh_net.core.abi.ip_packet import Packet, read, read_frame
from agentsh_net.core.network.plane import Fate
from agentsh_net.core.nft.verdicts import SNAPLEN, is_undeclared, parse_prefix

SUBSYSTEM = 4  # NFNL_SUBSYS_ULOG
PACKET = SUBSYSTEM << 8  # NFULNL_MSG_PACKET
CONFIG = SUBSYSTEM << 8 | 1  # NFULNL_MSG_CONFIG

_NFGEN = struct.Struct(">BBH")  # family, version, group
_CMD, _MODE, _BUFFER, _TIMEOUT, _THRESHOLD, _FLAGS = 1, 2, 3, 4, 5, 6  # NFULA_CFG_*
_TIMESTAMP, _PAYLOAD, _PREFIX, _UID, _SEQUENCE = 3, 9, 10, 11, 12  # NFULA_*
_NETDEV = 5  # NFPROTO_*
_VERSIONS = {2: 4, 10: 6}
_BIND, _COPY_PACKET, _WITH_SEQUENCE = 1, 2, 1

# One netlink datagram of the kernel: records of about 250 bytes, LOG_BATCH of them.
BUFFER = 1 << 14
# A record waits at most this long for others (hundredths of a second).
TIMEOUT = 2


@dataclass(frozen=True, slots=True)
class Logged:
    """One logged packet. `time_ns` is wall-clock, 0 where the kernel did not stamp the packet."""

    fate: Fate
    generation: int
    packet: Packet
    uid: int | None
    time_ns: int
    session_id: str = ""
    undeclared: bool = False


def bind(group: int) -> bytes:
    """Return the body of the CONFIG message that binds a group; one message, so that no group is bound and not set up."""
    settings = (
        netlink.attribute(_CMD, bytes([_BIND])),
        netlink.attribute(_MODE, struct.pack(">IBB", SNAPLEN, _COPY_PACKET, 0)),
        netlink.attribute(_BUFFER, struct.pack(">I", BUFFER)),
        netlink.attribute(_TIMEOUT, struct.pack(">I", TIMEOUT)),
        netlink.attribute(_FLAGS, struct.pack(">H", _WITH_SEQUENCE)),
    )
    return _NFGEN.pack(0, 0, group) + b"".join(settings)


def parse(message: netlink.Message) -> Logged | None:
    """Return what a PACKET message tells, None for one that is not ours or has no readable packet. Raises KernelError."""
    if message.type != PACKET:
        return None
    fields = netlink.attributes(message.body, _NFGEN.size)
    prefix = netlink.text(fields.get(_PREFIX, b""))
    ours = parse_prefix(prefix)
    # The kernel's word on what it is: IPv4, IPv6, or a frame with its link header (NFPROTO_NETDEV).
    family = message.body[0] if message.body else 0
    payload = fields.get(_PAYLOAD, b"")
    packet = read_frame(payload) if family == _NETDEV else read(payload, _VERSIONS.get(family, 0))
    if ours is None or packet is None:
        return None
    stamp = fields.get(_TIMESTAMP, b"")
    seconds, micros = struct.unpack(">QQ", stamp) if len(stamp) == 16 else (0, 0)
    uid = fields.get(_UID)
    return Logged(
        fate=ours[0],
        generation=ours[1],
        packet=packet,
        uid=None if uid is None else netlink.number(uid),
        time_ns=seconds * 1_000_000_000 + micros * 1000,
        session_id=ours[2],
        undeclared=is_undeclared(prefix),
    )


def sequence(message: netlink.Message) -> int | None:
    """Return the sequence number of any PACKET message, ours or not: gaps in it are lost records."""
    value = netlink.attributes(message.body, _NFGEN.size).get(_SEQUENCE)
    return None if message.type != PACKET or value is None else netlink.number(value)
