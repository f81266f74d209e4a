"""Whole tables made and deleted by one nf_tables batch, as bytes (include/uapi/linux/netfilter/nf_tables.h, nfnetlink.h).

For what libnftables cannot say: a table that belongs to the socket which made it, and outlives it. Who sends is
kernel/nft/writer.py's business; what stands in a table is libnftables'.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable

from agentsh_net.core.abi import netlink
from agentsh_net.core.nft.dump import SUBSYSTEM, request

# NFT_TABLE_F_OWNER (Linux 5.12): only the socket that made the table may change it. NFT_TABLE_F_PERSIST (Linux 6.9): the
# table stays when that socket is closed, and is nobody's then. Without the second a crash would end enforcement.
OWNER, PERSIST = 0x2, 0x4
OWNED = OWNER | PERSIST

_BEGIN, _END = 16, 17  # NFNL_MSG_BATCH_*
_NEW_TABLE, _DELETE_TABLE = SUBSYSTEM | 0, SUBSYSTEM | 2
_CREATE = 0x400  # NLM_F_CREATE
_FLAGS = 2  # NFTA_TABLE_FLAGS
_GENMSG = struct.Struct(">BBH")


def anew(family: int, name: str, *, flags: int, replaces: bool) -> bytes:
    """Return the batch after which the table is there and empty, made with these flags; `replaces`: it is there now."""
    made = request(family, table=name) + netlink.attribute(_FLAGS, flags.to_bytes(4, "big"))
    gone = [(_DELETE_TABLE, 0, request(family, table=name))] if replaces else []
    return _batch([*gone, (_NEW_TABLE, _CREATE, made)])


def gone(family: int, name: str) -> bytes:
    """Return the batch that deletes the table."""
    return _batch([(_DELETE_TABLE, 0, request(family, table=name))])


def trial(family: int, name: str) -> bytes:
    """Return a batch that changes nothing: `refusal` of its answers is ENOENT where a table could be owned.

    Its second message deletes what is not there, so that the kernel takes the first one back.
    """
    owned = request(family, table=name) + netlink.attribute(_FLAGS, OWNED.to_bytes(4, "big"))
    nothing = request(family, table=f"{name}_that_is_not_there")
    return _batch([(_NEW_TABLE, _CREATE, owned), (_DELETE_TABLE, 0, nothing)])


def refusal(answers: Iterable[bytes]) -> int:
    """Return the error number of the first message that was refused, 0 where none was. Silence is EPROTO."""
    numbers = [m.errno for data in answers for m in netlink.messages(data) if m.errno is not None]
    return next(filter(None, numbers), 0) if numbers else errno.EPROTO


def _batch(messages: list[tuple[int, int, bytes]]) -> bytes:
    """Return the messages (kind, flags, body) as one transaction, each to be acknowledged."""
    edge = _GENMSG.pack(0, 0, SUBSYSTEM >> 8)
    flags = netlink.REQUEST | netlink.ACK
    inner = (netlink.message(kind, flags | more, n, body) for n, (kind, more, body) in enumerate(messages, 1))
    return (
        netlink.message(_BEGIN, netlink.REQUEST, 0, edge)
        + b"".join(inner)
        + netlink.message(_END, netlink.REQUEST, len(messages) + 1, edge)
    )
