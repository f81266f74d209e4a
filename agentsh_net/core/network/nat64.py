"""The IPv6 spellings that a network's own translator gives IPv4 addresses: its prefixes out of DNS (RFC 7050), addresses by them (RFC 6052).

Whoever answers may lie: a prefix only ever adds spellings of addresses that are known anyway, and there are few. The
well-known prefix is not among them: the planes derive it by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from agentsh_net.core.network.addresses import Address

# RFC 7050, 2.2: has no AAAA record but where DNS64 makes one, of these.
NAME = "ipv4only.arpa"
_PROBES = (IPv4Address("192.0.0.170").packed, IPv4Address("192.0.0.171").packed)
# RFC 6052, 2.2, by the length of the prefix in bits: where the four bytes stand. Byte 8 is always zero.
_PLACES = {
    32: (4, 5, 6, 7),
    40: (5, 6, 7, 9),
    48: (6, 7, 9, 10),
    56: (7, 9, 10, 11),
    64: (9, 10, 11, 12),
    96: (12, 13, 14, 15),
}
_WELL_KNOWN = IPv6Address("64:ff9b::").packed[:12]
_MAPPED = bytes(10) + b"\xff\xff"
# A network has one, or two while it moves from one to the other; each makes one address more of every IPv4 one.
MAX_PREFIXES = 4


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first bytes of a translator's addresses."""

    packed: bytes

    def spelling(self, address: IPv4Address) -> IPv6Address:
        """Return the address as this translator's clients write it."""
        whole = bytearray(self.packed.ljust(16, b"\0"))
        for place, value in zip(_PLACES[len(self.packed) * 8], address.packed, strict=True):
            whole[place] = value
        return IPv6Address(bytes(whole))

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{IPv6Address(self.packed.ljust(16, bytes(1)))}/{len(self.packed) * 8}"


def prefixes(answer: Iterable[Address]) -> tuple[Prefix, ...]:
    """Return the prefixes that an answer for NAME tells of, sorted."""
    found = {prefix for a in answer if isinstance(a, IPv6Address) for prefix in _within(a.packed)}
    return tuple(sorted(found, key=lambda prefix: prefix.packed)[:MAX_PREFIXES])


def spelled_out(addresses: Sequence[Address], known: Sequence[Prefix]) -> tuple[Address, ...]:
    """Return the addresses, and behind them the IPv4 ones by each prefix."""
    more = [p.spelling(a) for p in known for a in addresses if isinstance(a, IPv4Address)]
    return (*addresses, *(a for a in more if a not in addresses))


def _within(packed: bytes) -> Iterator[Prefix]:
    for bits, places in _PLACES.items():
        prefix = Prefix(packed[: bits // 8])
        if prefix.packed in (_WELL_KNOWN, _MAPPED) or not any(prefix.packed):
            continue
        probe = bytes(packed[place] for place in places)
        if probe in _PROBES and prefix.spelling(IPv4Address(probe)).packed == packed:
            yield prefix
