"""Makes one event of what is seen several times of a tagged connection: by both planes, and as a packet that is sent again.

Where both planes see it the event is eBPF's, which knows the process. Denials are never paired: what the packet plane refuses
has got past eBPF, and that is news.
"""

from __future__ import annotations

from collections import OrderedDict
from ipaddress import IPv6Address

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.network.addresses import canonical, home
from agentsh_net.core.values.recent import remember

# From connect() to the first packet: at once for TCP; a UDP socket may wait, and then makes two events.
WINDOW_NS = 5_000_000_000
# From one packet that begins a connection to the next that begins the same: TCP sends its SYN again after 32 seconds at most
# (tcp_syn_retries), and a datagram comes again at once where the kernel had no room to remember its flow; one that is quiet for
# `flows.QUIET` is another.
AGAIN_NS = 100_000_000_000
# Tagged connects of five seconds on a busy host; what falls out makes a second event, not a missing one.
_LIMIT = 4096
_MPTCP, _TCP = 262, 6  # MPTCP is TCP on the wire


class Sightings:
    """What eBPF saw and the packet plane will see, and what that saw. Times are the caller's, in nanoseconds."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[tuple[IPv6Address, int, int], list[int]] = OrderedDict()
        self._count = 0
        self._begun: OrderedDict[Packet, int] = OrderedDict()  # the one that was seen last stands last

    def connected(self, address: IPv6Address, port: int, protocol: int, now: int) -> None:
        """Remember a connect that eBPF recorded."""
        self._waiting.setdefault((address, port, _wire(protocol)), []).append(now)
        self._count += 1
        while self._count > _LIMIT:
            _, oldest = self._waiting.popitem(last=False)
            self._count -= len(oldest)

    def is_news(self, packet: Packet, now: int) -> bool:
        """Say whether a packet that begins a connection tells of one that nobody has told of."""
        seen = self._begun.get(packet)
        remember(self._begun, packet, now, _LIMIT)
        return (seen is None or now - seen > AGAIN_NS) and not self._is_echo(packet, now)

    def _is_echo(self, packet: Packet, now: int) -> bool:
        """Say whether it belongs to a remembered connect, and forget that one."""
        key = (home(canonical(packet.destination)), packet.destination_port, packet.protocol)
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
