"""A server on this host is the same server at each of this host's addresses: what is denied at one is denied at all of them.

By its port alone, since everything else here is its neighbour. Which addresses are this host's, kernel/ knows and the caller says.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from ipaddress import IPv6Address

from agentsh_net.core.model import Server
from agentsh_net.core.network.addresses import LOOPBACKS
from agentsh_net.core.network.plane import Endpoint, Fate, Rule

# A host with more addresses than this is refused at its loopback and where it was declared: the planes know the others, though
# eBPF drops what goes there instead of failing the connect. Every address times every port must not fill the planes' maps.
MOST = 256


def make_room(rules: dict[Endpoint, Rule], address: IPv6Address, servers: Sequence[Server]) -> None:
    """Narrow what is denied at an address on every port to the denied servers' own ports: somebody else is there too."""
    rule = rules.get(Endpoint(address))
    if rule is None or rule.fate is not Fate.DENY:  # where names decide, there is room already
        return
    del rules[Endpoint(address)]
    for port in {s.port for s in servers if s.id in rule.server_ids}:
        ids = tuple(sorted(s.id for s in servers if s.id in rule.server_ids and s.port == port))
        rules[Endpoint(address, port)] = replace(rule, server_ids=ids)


def refuse_at_every_address(
    rules: dict[Endpoint, Rule],
    own: Collection[IPv6Address],
    servers: Sequence[Server],
    ports: Collection[int],
) -> None:
    """Deny what is denied at one of this host's addresses at all of them, the loopback among them.

    Not where policy allows a server at the same port of another one: then what listens there is not one for all addresses.
    """
    for address in sorted(own):
        make_room(rules, address, servers)
    everywhere: Sequence[IPv6Address] = sorted({*own, *LOOPBACKS})
    for port in sorted(ports):
        here = [rule for address in everywhere if (rule := rules.get(Endpoint(address, port)))]
        denied = [rule for rule in here if rule.fate is Fate.DENY]
        if not denied:
            continue
        # The planes know this host's other addresses by themselves once its loopback is denied: so not that one either.
        places = everywhere if len(everywhere) <= MOST else LOOPBACKS
        if len(denied) != len(here):
            places = _loopbacks_of_their_own(rules, port)
        for address in places:
            rules.setdefault(Endpoint(address, port), denied[0])


def _loopbacks_of_their_own(rules: dict[Endpoint, Rule], port: int) -> Sequence[IPv6Address]:
    """Return both loopback addresses where one of them is denied itself."""
    found = [rules.get(Endpoint(address, port)) for address in LOOPBACKS]
    return LOOPBACKS if any(rule is not None and rule.fate is Fate.DENY for rule in found) else ()
