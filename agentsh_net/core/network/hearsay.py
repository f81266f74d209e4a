"""Addresses of watched names that were overheard in answers to others: what such an answer may do, and for how long.

Nobody vouches for such an answer: whoever can ask a name server of his own can make one. So it may add addresses to a name
that policy denies, and do nothing else: no address goes by it, none is allowed or shared by it (core.network.kernel_plan sees to that),
and how many it adds is bounded. Our own questions' answers are core.network.addresses' business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from agentsh_net.core.configuration.settings import Resolve
from agentsh_net.core.network.addresses import Address, by_number


class Source(IntEnum):
    """Whose address an answer came from. It is as easily forged as any source address is, from within the same network."""

    STRANGER = 0  # not a name server of this system: a container's, or an agent's own
    NEIGHBOUR = 1  # whom we asked for a name ending in .local
    RESOLVER = 2  # a name server of this system


# A pool behind one name shows up to some hundred addresses within TTL and grace. Beyond that, our own questions follow.
# Of a stranger: what one answer usually holds. One that lies gets that many innocent addresses refused, for the time of grace.
# Of neighbours: sixteen times what one of them may say.
CAPS: Mapping[Source, int] = {Source.RESOLVER: 256, Source.NEIGHBOUR: 64, Source.STRANGER: 16}


@dataclass(slots=True)
class Hearsay:
    """The book of it. Times are the caller's seconds. `over` counts what found no room."""

    settings: Resolve
    over: int = 0
    _heard: dict[str, dict[Address, tuple[Source, float]]] = field(default_factory=dict)

    def keep(self, names: Iterable[str]) -> None:
        """Forget every name but these."""
        names = set(names)
        self._heard = {name: found for name, found in self._heard.items() if name in names}

    def heard(
        self, name: str, addresses: Iterable[Address], *, ttl: float, source: Source, now: float
    ) -> tuple[Address, ...]:
        """Take the addresses of an answer; return those that are new. What has no room is left out, nothing makes room for it."""
        held = self._heard.setdefault(name, {})
        stay = self.settings.grace
        # Clients keep it that long; a stranger does not choose how long he is believed.
        if source is Source.RESOLVER:
            stay += min(max(ttl, self.settings.min_ttl), self.settings.max_ttl)
        room = CAPS[source] - sum(s is source for s, _ in held.values())
        new: list[Address] = []
        for address in addresses:
            old = held.get(address)
            if old is None and room <= 0:
                self.over += 1
                continue
            best, until = (
                (source, now + stay) if old is None else (max(old[0], source), max(old[1], now + stay))
            )
            held[address] = best, until
            if old is None:
                room -= 1
                new.append(address)
        return tuple(new)

    def expire(self, now: float) -> None:
        """Forget what is older than its time."""
        for held in self._heard.values():
            for address in [a for a, (_, until) in held.items() if until <= now]:
                del held[address]

    def known(self) -> dict[str, dict[Address, Source]]:
        """Return what stands, by name."""
        return {
            name: {address: held[address][0] for address in sorted(held, key=by_number)}
            for name, held in self._heard.items()
            if held
        }
