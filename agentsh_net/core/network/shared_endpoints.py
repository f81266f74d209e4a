"""Endpoints where a denied server and an allowed one live: what becomes of them, and which names decide there.

A name counts where a client must say it and cannot take it back: in the ClientHello of https. For everything else at such an
endpoint (no name, an encrypted one, plain HTTP, QUIC) `network.on_unknown_sni` speaks. Reading names is the eBPF plane's part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.model import Server
from agentsh_net.core.network.addresses import literal
from agentsh_net.core.network.plane import Endpoint, Fate, Name, Plan, Rule

BY_NAME = frozenset({Fate.SNI, Fate.SNI_OPEN})


def named(server: Server) -> bool:
    """Say whether every client of a server names it in a ClientHello (RFC 6066: an address is no name)."""
    return server.url.lower().startswith("https://") and literal(server.host) is None


def fate(network: Network, refused: Iterable[Server]) -> Fate:
    """Return what becomes of an endpoint that these denied servers share with others."""
    match network.on_shared_address:
        case "tag":  # only this word lets a denied server through
            return Fate.TAG
        case "sni" if network.on_unknown_sni == "tag" and all(map(named, refused)):
            return Fate.SNI_OPEN
        case "sni":  # a denied server without a name is one of the unknown
            return Fate.SNI
        case _:
            return Fate.DENY


def names(
    servers: Sequence[Server],
    refused: Collection[str],
    aliases: Mapping[str, Collection[str]] = MappingProxyType({}),
    spared: Collection[str] = (),
) -> dict[Name, Fate]:
    """Return what the names of declared servers mean, `refused` being ids. What several servers have in common is denied.

    So are the names that a refused server was found by (`aliases`, id -> names), unless others are known by them (`spared`,
    hosts) or were found by them: whoever is denied chooses where his own name leads.
    """
    by_host: dict[str, list[Server]] = defaultdict(list)
    for server in filter(named, servers):
        by_host[server.host].append(server)
    found = {}
    for host, here in by_host.items():
        denied = {s.port for s in here if s.id in refused}
        ports = {s.port for s in here} if denied and any(s.id not in refused for s in here) else {0}
        for port in ports:
            found[Name(host, port)] = Fate.DENY if port in denied or (denied and not port) else Fate.TAG
    others = {alias for key, found_by in aliases.items() if key not in refused for alias in found_by}
    for server in filter(named, servers):
        for alias in aliases.get(server.id, ()) if server.id in refused else ():
            if alias not in by_host and alias not in others and alias not in spared:
                found[Name(alias)] = Fate.DENY
    return dict(sorted(found.items()))


def by_name(rules: Mapping[Endpoint, Rule]) -> Iterator[Rule]:
    """Yield the rules by which names decide."""
    # By identity: a plan has tens of thousands of rules, and enums are slow to hash.
    return (rule for rule in rules.values() if rule.fate is Fate.SNI or rule.fate is Fate.SNI_OPEN)


def decided_by_name(plan: Plan) -> bool:
    """Say whether names decide anywhere."""
    return any(by_name(plan.rules))


def told_of(plan: Plan, *, read_elsewhere: bool) -> str:
    """Say what a layer that reads no names makes of them; empty where there is nothing to read."""
    if not decided_by_name(plan):
        return ""
    fates = [rule.fate for e, rule in plan.rules.items() if rule.fate in BY_NAME and e.port]
    if not fates:
        return ""
    if read_elsewhere:
        return f"{len(fates)} shared endpoints are left to the ebpf layer, which reads server names"
    whole = fates.count(Fate.SNI)
    parts = [
        f"{n} {what}" for n, what in ((whole, "refused whole"), (len(fates) - whole, "only tagged")) if n
    ]
    return f"server names cannot be read by this layer: of the shared endpoints {', '.join(parts)}"


def without_names(plan: Plan, *, read_elsewhere: bool) -> Plan:
    """Return the plan of a layer that reads no names.

    Where another layer reads them, shared endpoints are left to it. Where none does, every name is unknown.
    """
    if not decided_by_name(plan):
        return plan
    rules: dict[Endpoint, Rule] = {}
    for endpoint, rule in plan.rules.items():
        if rule.fate not in BY_NAME:
            rules[endpoint] = rule
        elif not read_elsewhere and endpoint.port:  # at its other ports nothing is known of an address
            rules[endpoint] = replace(rule, fate=Fate.DENY if rule.fate is Fate.SNI else Fate.TAG)
        elif rule.declared:
            rules[endpoint] = replace(rule, fate=Fate.ALLOW)
    return replace(plan, rules=rules, names={})


def spoken_for(servers: Sequence[Server], name: str, port: int) -> tuple[str, ...]:
    """Return the ids of the declared servers that a ClientHello to this port may mean."""
    found = [s for s in servers if named(s) and s.host == name]
    return tuple(sorted({s.id for s in found if s.port == port} or {s.id for s in found}))
