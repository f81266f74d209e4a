"""What each server's addresses mean where nobody else is at them, kept from plan to plan: most servers never change.

Pure: what is remembered is only what the same arguments gave before. Addresses that several servers claim are
`kernel_plan`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address

from agentsh_net.core.model import Server
from agentsh_net.core.network.addresses import LOOPBACKS, Address, canonical, home
from agentsh_net.core.network.plane import Endpoint, Fate, Rule


@dataclass(frozen=True, slots=True)
class Claim:
    """A server's canonical addresses, and their rules as if it were alone there; this host's loopback has none here."""

    server: Server
    blocked: bool
    addresses: tuple[Address, ...]
    homes: frozenset[IPv6Address]
    rules: Mapping[Endpoint, Rule]

    def endpoint(self, address: IPv6Address) -> Endpoint:
        """Return where the rule of an address stands."""
        return _endpoint(self.server, address, blocked=self.blocked)

    def is_of(self, server: Server, addresses: tuple[Address, ...], *, blocked: bool) -> bool:
        """Say whether these are the arguments that it was made of."""
        return self.blocked is blocked and self.addresses == addresses and self.server == server


class Claims:
    """The claims of the last plan. A change of one server costs that server's addresses, not everybody's."""

    def __init__(self) -> None:
        self._known: dict[str, Claim] = {}

    def of(
        self, servers: Sequence[Server], addresses: Mapping[str, Sequence[Address]], blocked: set[str]
    ) -> list[Claim]:
        """Return the claims of the servers that are reached over the network and have addresses."""
        known, self._known = self._known, {}
        for server in servers:
            given = tuple(addresses.get(server.id, ()))
            if not given or not server.host:
                continue
            before, refused = known.get(server.id), server.id in blocked
            if before is None or not before.is_of(server, given, blocked=refused):
                before = _claim(server, given, blocked=refused)
            self._known[server.id] = before
        return list(self._known.values())


def _claim(server: Server, addresses: tuple[Address, ...], *, blocked: bool) -> Claim:
    homes = frozenset(home(canonical(address)) for address in addresses)
    rule = Rule(Fate.DENY if blocked else Fate.TAG, (server.id,))
    alone = sorted(homes.difference(LOOPBACKS))
    rules = {_endpoint(server, address, blocked=blocked): rule for address in alone}
    return Claim(server, blocked, addresses, homes, rules)


def _endpoint(server: Server, address: IPv6Address, *, blocked: bool) -> Endpoint:
    """Return where a rule stands: a denied server is refused on every port of what is its own."""
    return Endpoint(address, 0 if blocked else server.port)
