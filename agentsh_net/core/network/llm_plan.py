"""What `network.llm_direct` adds to a plan: rules at the LLM providers' endpoints, from which our own proxy is exempt.

With `off` there are none. But whose name is denied chooses its addresses, and must not choose whether the proxy reaches a provider:
where it is at a provider's address, the provider is its neighbour all the same, and the proxy exempt.

A provider's rule is for its address and port alone: its neighbours at other ports are none of its business. Where a server is
reached at the very endpoint and the two want different things, `network.on_shared_address` decides, as between two servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv6Address

from agentsh_net.core.configuration.settings import Config, Provider
from agentsh_net.core.model import Server
from agentsh_net.core.network import shared_endpoints
from agentsh_net.core.network.addresses import LOOPBACKS, Address, canonical, home, literal
from agentsh_net.core.network.plane import Endpoint, Fate, Name, Rule
from agentsh_net.core.network.this_host import make_room
from agentsh_net.core.web import urls

RULE = "network.llm_direct"
# No server is called so: `*` stands in no id.
_KEY = "*{}"


def watched(config: Config) -> dict[str, str]:
    """Return key -> host of the providers whose addresses are wanted."""
    return {_KEY.format(name): host for name, host, _ in _places(config) or _neighbours(config)}


def ports(config: Config) -> set[int]:
    """Return the ports at which providers are looked after."""
    return {port for _, _, port in _places(config)}


def key(provider: str) -> str:
    """Return what a provider's addresses are kept under."""
    return _KEY.format(provider)


def refuses(config: Config) -> bool:
    """Say whether a direct connection fails: where policy is only audited, it is told as one that would."""
    return config.network.llm_direct == "refuse" and config.sandbox.mcp.enforce_policy


def with_providers(
    rules: Mapping[Endpoint, Rule],
    config: Config,
    servers: Sequence[Server],
    addresses: Mapping[str, Sequence[Address]],
) -> dict[Endpoint, Rule]:
    """Return the rules of the servers and those of the providers together."""
    found = dict(rules)
    fate = Fate.DENY if refuses(config) else Fate.TAG
    looked_after = _places(config)
    for name, _, port in looked_after or _neighbours(config):
        for address in sorted({home(canonical(a)) for a in addresses.get(_KEY.format(name), ())}):
            make_room(found, address, servers)
            endpoint = Endpoint(address, port)
            if not looked_after and _leaves_alone(found.get(endpoint)):
                continue
            shared = _shared(config, name, servers, found.get(endpoint), address)
            found[endpoint] = _joined(found.get(endpoint), fate, name, shared)
    return found


def _places(config: Config) -> list[tuple[str, str, int]]:
    """Return name, host and port of each provider that is looked after."""
    return _all(config) if config.network.llm_direct != "off" and config.network.mode != "off" else []


def _neighbours(config: Config) -> list[tuple[str, str, int]]:
    """Return those of the providers that a denied name could cut off though nobody looks after them."""
    named = any(s.host and literal(s.host) is None for s in config.sandbox.mcp.servers)
    return _all(config) if named and config.network.mode == "enforce" else []


def _all(config: Config) -> list[tuple[str, str, int]]:
    # Read once already: the configuration has no other.
    found = [(p.name, urls.parse(p.base_url)) for p in config.proxy.providers.values()]
    return [(name, url.host, url.port) for name, url in found]


def _leaves_alone(rule: Rule | None) -> bool:
    return rule is None or (rule.fate is not Fate.DENY and rule.fate not in shared_endpoints.BY_NAME)


def beside(rules: Mapping[Endpoint, Rule]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return ids of servers -> names of the providers whose endpoints are refused with theirs, sorted. By name nobody else is."""
    found = {
        rule.server_ids: rule.providers
        for rule in rules.values()
        if rule.providers and rule.server_ids and rule.fate is Fate.DENY
    }
    return dict(sorted(found.items()))


def names(config: Config) -> dict[Name, Fate]:
    """Return what the names of providers mean at endpoints where names decide."""
    if not refuses(config):
        return {}
    places = {name: (host, port) for name, host, port in _places(config)}
    return {Name(*place): Fate.DENY for name, place in places.items() if _named(config.proxy.providers[name])}


def _named(provider: Provider) -> bool:
    """Say whether every client of a provider names it in a ClientHello."""
    url = urls.parse(provider.base_url)
    return url.scheme == "https" and literal(url.host) is None


def _shared(
    config: Config, provider: str, servers: Sequence[Server], there: Rule | None, address: IPv6Address
) -> Fate:
    """Return what becomes of an endpoint at which a server and a provider want different things."""
    network = config.network
    if address in LOOPBACKS:  # they are told apart by their paths if at all
        return Fate.TAG if network.on_shared_address == "tag" else Fate.DENY
    if not refuses(config):
        return shared_endpoints.fate(network, [s for s in servers if there and s.id in there.server_ids])
    fate = shared_endpoints.fate(network, ())
    nameless = not _named(config.proxy.providers[provider])
    return Fate.SNI if fate is Fate.SNI_OPEN and nameless else fate


def _joined(there: Rule | None, fate: Fate, provider: str, shared: Fate) -> Rule:
    """Return the rule of an endpoint at which a provider is reached too."""
    if there is None:
        return Rule(fate, (), providers=(provider,))
    providers = tuple(sorted({*there.providers, provider}))
    if there.fate is fate or there.fate in shared_endpoints.BY_NAME:
        return replace(there, providers=providers)
    return replace(there, fate=shared, shared=True, providers=providers)
