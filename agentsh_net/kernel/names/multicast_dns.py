"""Asks the neighbours on every network for a name that ends in .local (RFC 6762): no name server knows it, and clients ask so.

Any of them may answer. What such an answer may do is core.network.hearsay's business.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address, ip_address
from itertools import islice

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.network.addresses import Address, Kind
from agentsh_net.core.network.dns_message import Ascribed, ascribe, parse, wire_name

_GROUP = ("224.0.0.251", 5353)
_TYPES: dict[Kind, int] = {"A": 1, "AAAA": 28}
# Responders wait up to 120 ms (RFC 6762, 6); a device that sleeps takes longer to hear at all.
PATIENCE = 1.0
_NETWORKS = 16  # a machine full of containers has more bridges than neighbours
# Of each neighbour, and of so many of them: nobody fills alone what is kept of a name (core.network.hearsay).
_ADDRESSES, _NEIGHBOURS = 4, 16
_DATAGRAMS = 256  # that are read in all, answers or not
_SIZE = 9000  # RFC 6762, 17


def is_local(name: str) -> bool:
    """Say whether a name is one that neighbours are asked for."""
    return name.rstrip(".").lower().endswith(".local")


def ask(name: str, kind: Kind, own: Collection[Address], patience: float = PATIENCE) -> list[Ascribed]:
    """Ask by each of our own addresses, and return what each neighbour answered within `patience` seconds.

    What comes from this host itself is no neighbour's answer: an agent may listen here, and answer first.
    """
    wire = wire_name(name)
    query = struct.pack(">2s5H", os.urandom(2), 0, 1, 0, 0, 0) + wire + struct.pack(">2H", _TYPES[kind], 1)
    found: dict[str, Ascribed] = {}
    with ExitStack() as stack:
        asked = {s.fileno(): stack.enter_context(s) for s in map(_socket, _sources(own)) if _sent(s, query)}
        waiting = select.poll()
        for descriptor in asked:
            waiting.register(descriptor, select.POLLIN)
        deadline = time.monotonic() + patience
        for _ in range(_DATAGRAMS if asked else 0):
            ready = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                break
            sender, said = _read(asked[ready[0][0]], query[:2], wire)
            if said is not None and len(found) < _NEIGHBOURS and ip_address(sender) not in own:
                found.setdefault(sender, replace(said, addresses=said.addresses[:_ADDRESSES]))
    return list(found.values())


def _sources(own: Collection[Address]) -> Iterable[IPv4Address]:
    """Return addresses of ours to ask by: what is sent by one goes out where it is (IPv6 neighbours are asked by IPv4 too)."""
    v4 = sorted(a for a in own if isinstance(a, IPv4Address) and not a.is_loopback)
    return islice(v4, _NETWORKS)


def _socket(source: IPv4Address) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, source.packed)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)  # this host knows its own name
    return made


def _sent(asking: socket.socket, query: bytes) -> bool:
    try:
        asking.sendto(query, _GROUP)
    except OSError:  # a network without multicast, or one that is down
        asking.close()
        return False
    return True


def _read(ready: socket.socket, identity: bytes, wire: bytes) -> tuple[str, Ascribed | None]:
    try:
        data, (sender, _) = ready.recvfrom(_SIZE)
        return sender, ascribe(parse(data), {wire}).get(wire) if data[:2] == identity else None
    except (OSError, ProtocolError):
        return "", None
