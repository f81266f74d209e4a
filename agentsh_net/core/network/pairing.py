"""Pairs the two planes' sightings of one tagged connection, so that it is one event: eBPF's, which knows the process.

Denials are never paired: what the packet plane refuses has got past eBPF, and that is news.
"""

from __future__ import annotations

from collections import OrderedDict
from ipaddress import IPv6Address

# From connect() to the first packet: at once for TCP; a UDP socket may wait, and then makes two events.
WINDOW_NS = 5_000_000_000
# Tagged connects of five seconds on a busy host; what falls out makes a second event, not a missing one.
_LIMIT = 4096
_MPTCP, _TCP = 262, 6  # MPTCP is TCP on the wire


class Sightings:
    """What eBPF saw and the packet plane will see. Times are the caller's, in nanoseconds."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[tuple[IPv6Address, int, int], list[int]] = OrderedDict()
        self._count = 0

    def connected(self, address: IPv6Address, port: int, protocol: int, now: int) -> None:
        """Remember a connect that eBPF recorded."""
        self._waiting.setdefault((address, port, _wire(protocol)), []).append(now)
        self._count += 1
        while self._count > _LIMIT:
            _, oldest = self._waiting.popitem(last=False)
            self._count -= len(oldest)

    def is_echo(self, address: IPv6Address, port: int, protocol: int, now: int) -> bool:
        """Say whether a first packet belongs to a remembered connect, and forget that one."""
        key = (address, port, _wire(protocol))
        times = self._waiting.get(key, [])
        while times:
            self._count -= 1
            seen = times.pop(0)
            if not times:
                del self._waiting[key]
            if now - seen <= WINDOW_NS:
                return True
        return False


def _wire(protocol: int) -> int:
    return _TCP if protocol == _MPTCP else protocol
