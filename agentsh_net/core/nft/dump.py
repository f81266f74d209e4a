"""What nf_tables answers when it is asked for a table, its chains, rules, sets and elements (include/uapi/linux/netfilter/nf_tables.h).

Bytes in, values out; kernel/nft/table.py asks. Handles are counted up within a table and never used twice: whoever puts
something in the place of ours leaves another handle.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from agentsh_net.core.abi import netlink

SUBSYSTEM = 10 << 8  # NFNL_SUBSYS_NFTABLES
GET_TABLE, GET_CHAIN, GET_RULE, GET_SET, GET_ELEMENT, GET_GENERATION, GET_OBJECT = (
    SUBSYSTEM | n for n in (1, 4, 7, 10, 13, 16, 19)
)
INET, NETDEV = 1, 5  # NFPROTO_*
DORMANT = 1  # NFT_TABLE_F_DORMANT: the table is there and does nothing

# enum nft_*_attributes: the names of these attributes, without NFTA_
_GEN_ID = 1
_TABLE_FLAGS, _TABLE_HANDLE, _TABLE_OWNER = 2, 4, 7
_CHAIN_HANDLE, _CHAIN_NAME, _CHAIN_HOOK, _HOOK_DEVS = 2, 3, 4, 4
_RULE_CHAIN, _RULE_HANDLE = 2, 3
_SET_NAME, _SET_HANDLE = 2, 16
_SET_ELEM_LIST_ELEMENTS, _SET_ELEM_KEY = 3, 1
_OBJ_NAME, _OBJ_DATA, _COUNTER_PACKETS = 2, 4, 2

_GENMSG = struct.Struct(">BBH")
_ATTRIBUTE = struct.Struct("=HH")
_TYPE = 0x3FFF


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `owner`: the port of the netlink socket that it belongs to, 0 for nobody's."""

    handle: int
    flags: int
    owner: int = 0


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain. `hooked`: packets come to it by themselves; `devices`: of which devices, sorted, in the netdev family."""

    name: str
    handle: int
    hooked: bool
    devices: tuple[str, ...] = ()


def request(family: int, **names: str) -> bytes:
    """Return the body of a request: table, then chain, set or nothing; each family of messages counts them 1, 2."""
    body = _GENMSG.pack(family, 0, 0)
    return body + b"".join(
        netlink.attribute(n, netlink.string(name)) for n, name in enumerate(names.values(), 1)
    )


def fields(body: bytes) -> dict[int, bytes]:
    """Return the attributes of an answer."""
    return netlink.attributes(body, _GENMSG.size)


def generation(body: bytes) -> int:
    """Return the count of commits in a network namespace, whoever made them."""
    return netlink.number(fields(body).get(_GEN_ID, b""))


def table(body: bytes) -> Table:
    """Return a table."""
    found = fields(body)
    kinds = (_TABLE_HANDLE, _TABLE_FLAGS, _TABLE_OWNER)
    return Table(*(netlink.number(found.get(kind, b"")) for kind in kinds))


def chain(body: bytes) -> Chain:
    """Return a chain."""
    found = fields(body)
    hook = netlink.attributes(found.get(_CHAIN_HOOK, b""))
    devices = [netlink.text(value) for _, value in _entries(hook.get(_HOOK_DEVS, b""))]
    return Chain(
        name=netlink.text(found.get(_CHAIN_NAME, b"")),
        handle=netlink.number(found.get(_CHAIN_HANDLE, b"")),
        hooked=_CHAIN_HOOK in found,
        devices=tuple(sorted(devices)),
    )


def rule(body: bytes) -> tuple[str, int]:
    """Return the chain and the handle of a rule."""
    found = fields(body)
    return netlink.text(found.get(_RULE_CHAIN, b"")), netlink.number(found.get(_RULE_HANDLE, b""))


def name_of_set(body: bytes) -> tuple[str, int]:
    """Return the name and the handle of a set."""
    found = fields(body)
    return netlink.text(found.get(_SET_NAME, b"")), netlink.number(found.get(_SET_HANDLE, b""))


def counter(body: bytes) -> tuple[str, int]:
    """Return the name and the packets of a named counter."""
    found = fields(body)
    packets = netlink.attributes(found.get(_OBJ_DATA, b"")).get(_COUNTER_PACKETS, b"")
    return netlink.text(found.get(_OBJ_NAME, b"")), netlink.number(packets)


def keys(body: bytes) -> Iterator[bytes]:
    """Yield the keys of a message of elements. Quick, because there may be hundreds of thousands: a key comes first in its element."""
    for kind, elements in _entries(body[_GENMSG.size :]):
        if kind != _SET_ELEM_LIST_ELEMENTS:
            continue
        for _, element in _entries(elements):
            length, nested = _ATTRIBUTE.unpack_from(element)
            if nested & _TYPE == _SET_ELEM_KEY and length <= len(element):
                yield element[8:length]  # behind its own header and that of NFTA_DATA_VALUE


def _entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (type, value) of every attribute of one level, those of one type too; a broken length ends it."""
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size or offset + length > len(data):
            return
        yield kind & _TYPE, data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
