"""Default-deny for sessions (`network.egress`): what a plan declares, and whether an endpoint is among it.

Declared are the allowed servers at their ports, what `allow` lists, this host, and port 53 of its name servers. A denial is
one whatever is declared. A provider is not declared: sessions go by our proxy. How planes enforce it is theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network

from agentsh_net.core.configuration.settings import Config, Destination
from agentsh_net.core.network.addresses import LOOPBACKS, Address, canonical, home, literal
from agentsh_net.core.network.plane import Egress, Endpoint, Fate, Plan, Prefix, Rule

RULE = "network.egress"
_DNS = 53
# No server and no provider is called so.
_KEY = "*>{}"


def of(config: Config) -> Egress | None:
    """Return what holds for sessions besides the rules, None where nothing does."""
    network = config.network
    if network.mode == "off" or network.egress.sessions == "open":
        return None
    prefixes = (Prefix(_canonical(d.network), d.port) for d in network.egress.allow if d.network is not None)
    return Egress(refuses(config), tuple(sorted(prefixes)), everybody=network.scope == "netns")


def refuses(config: Config) -> bool:
    """Say whether what is not declared fails: where policy is only audited, it is told as something that would."""
    network = config.network
    enforced = network.mode == "enforce" and config.sandbox.mcp.enforce_policy
    return network.egress.sessions == "refuse" and enforced


def watched(config: Config) -> dict[str, str]:
    """Return key -> host of the allowed names."""
    if of(config) is None:
        return {}
    return {_key(d): d.host for d in config.network.egress.allow if d.network is None and not literal(d.host)}


def is_key(key: str) -> bool:
    """Say whether addresses that are kept under a key are an allowed name's."""
    return key.startswith(_KEY.format(""))


def addresses_of(destination: Destination, addresses: Mapping[str, Sequence[Address]]) -> Sequence[Address]:
    """Return the addresses of an entry of `allow`; a prefix has none of its own."""
    if destination.network is not None:
        return ()
    spelt = literal(destination.host)
    return (spelt,) if spelt is not None else addresses.get(_key(destination), ())


def declare(
    rules: dict[Endpoint, Rule],
    config: Config,
    addresses: Mapping[str, Sequence[Address]],
    own: Collection[IPv6Address],
    name_servers: Collection[IPv6Address],
) -> None:
    """Mark in `rules`, which are otherwise complete, what is declared, and add what has none."""
    if of(config) is None:
        return
    for endpoint, rule in rules.items():
        if endpoint.port and rule.server_ids and rule.fate is not Fate.DENY:
            rules[endpoint] = replace(rule, declared=True)
    for endpoint in _endpoints(config, addresses, own, name_servers):
        there = rules.get(endpoint, Rule(Fate.ALLOW, ()))
        if there.fate is not Fate.DENY:
            rules[endpoint] = replace(there, declared=True)


def is_declared(plan: Plan, address: IPv6Address, port: int) -> bool:
    """Say whether sessions may come to an endpoint, as far as it is not denied."""
    address = home(canonical(address))
    found = (plan.rules.get(e) for e in (Endpoint(address), Endpoint(address, port)))
    if any(rule is not None and rule.declared for rule in found):
        return True
    prefixes = plan.egress.prefixes if plan.egress is not None else ()
    return any(p.port in {0, port} and address in p.network for p in prefixes)


def _endpoints(
    config: Config,
    addresses: Mapping[str, Sequence[Address]],
    own: Collection[IPv6Address],
    name_servers: Collection[IPv6Address],
) -> Iterator[Endpoint]:
    for destination in config.network.egress.allow:
        for address in addresses_of(destination, addresses):
            yield Endpoint(home(canonical(address)), destination.port)
    yield from map(Endpoint, sorted({*own, *LOOPBACKS}))
    yield from (Endpoint(home(address), _DNS) for address in sorted(name_servers))


def _key(destination: Destination) -> str:
    return _KEY.format(destination.host)


def _canonical(network: IPv4Network | IPv6Network) -> IPv6Network:
    extra = 96 if network.version == 4 else 0
    return IPv6Network((int(canonical(network.network_address)), network.prefixlen + extra))
