"""The sets in which the packet plane remembers whose first datagram to a tagged server it has told: the only ones that packets add to.

They decide nothing, and hold what goes to tagged servers alone. TCP needs none (`verdicts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Seconds without a datagram, after which the next one begins another flow: as long as Linux's own tracking takes a flow that
# is answered for one (nf_conntrack_udp_timeout_stream).
QUIET = 120
# New flows of two minutes on a busy host; 2 MB of the kernel's. What finds no room is logged with every packet.
SIZE = 16384
_COLLECTED = 30  # seconds between two looks of the kernel for what can be forgotten

_ADDRESSES = {"flows4": ("ip", "ipv4_addr"), "flows6": ("ip6", "ipv6_addr")}
KEYS: Mapping[str, dict[str, Any]] = {
    name: {
        "concat": [
            {"payload": {"protocol": protocol, "field": "saddr"}},
            {"payload": {"protocol": protocol, "field": "daddr"}},
            {"meta": {"key": "l4proto"}},
            {"payload": {"protocol": "th", "field": "sport"}},
            {"payload": {"protocol": "th", "field": "dport"}},
        ]
    }
    for name, (protocol, _) in _ADDRESSES.items()
}
SETS: Mapping[str, dict[str, Any]] = {
    name: {
        "type": [kind, kind, "inet_proto", "inet_service", "inet_service"],
        "size": SIZE,
        "flags": ["dynamic", "timeout"],
        "timeout": QUIET,
        "gc-interval": _COLLECTED,
    }
    for name, (_, kind) in _ADDRESSES.items()
}
