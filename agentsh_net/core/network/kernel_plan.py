"""What the planes shall enforce, computed from a snapshot and the known addresses.

One rule above all: either plane reads the same plan, denial wins over a tag, and no narrowing happens that the rule does
not show (`Rule.shared`). How a plan gets into the kernel is not this file's business; what a record means is `attribution`'s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from types import MappingProxyType
from typing import Protocol

from agentsh_net.core.configuration.settings import Config, Network
from agentsh_net.core.model import Server, Verdict
from agentsh_net.core.network import egress, llm_plan, shared_endpoints, this_host
from agentsh_net.core.network.addresses import LOOPBACKS, Address, canonical, home
from agentsh_net.core.network.claims import Claim, Claims
from agentsh_net.core.network.plane import Endpoint, Fate, Name, Plan, Rule
from agentsh_net.core.registry import Registry

_SEVERITY = (Fate.DENY, Fate.SNI, Fate.SNI_OPEN, Fate.TAG, Fate.ALLOW)


class Judge(Protocol):
    """The part of a snapshot that the network layer needs."""

    @property
    def generation(self) -> int:
        """Count of policies since the daemon started."""
        ...

    @property
    def config(self) -> Config:
        """The policy file."""
        ...

    @property
    def registry(self) -> Registry:
        """The declared servers."""
        ...

    def judge_server(self, server_id: str) -> Verdict:
        """Decide on a server as a whole."""
        ...


@dataclass(frozen=True, slots=True)
class Diff:
    """How one plan becomes another: `adds` (new or changed) go first, then `deletes`."""

    adds: Mapping[Endpoint, Rule]
    deletes: tuple[Endpoint, ...]
    names: Mapping[Name, Fate] = field(default_factory=dict)  # new or changed
    forgotten: tuple[Name, ...] = ()


def watched_hosts(config: Config) -> dict[str, str]:
    """Return server id -> host for the servers that are reached over the network, and for providers and allowed names that are looked after."""
    servers = config.sandbox.mcp.servers
    hosts = {s.id: s.host for s in servers if s.host}
    return hosts | llm_plan.watched(config) | egress.watched(config)


def build(
    snapshot: Judge,
    addresses: Mapping[str, Sequence[Address]],
    hearsay: Mapping[str, Sequence[Address]] = MappingProxyType({}),
    sessions: Sequence[str] = (),
    claims: Claims | None = None,
    own: Collection[IPv6Address] = (),
    name_servers: Collection[IPv6Address] = (),
    aliases: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Plan:
    """Return the plan for a snapshot. A denied server is refused at its addresses on every port, others are tagged by port.

    Where an address also belongs to a server that is not denied, only the denied server's port is refused; where even the
    port is the same, `network.on_shared_address` decides, by names if it says so (shared_endpoints.py). A server at one of this host's addresses (`own`, canonical,
    and the loopback) has everything here for a neighbour: it is refused at its port alone, and by every name (this_host.py).
    One at the address of a name server of this system (`name_servers`, canonical) is refused at its port alone too: whose name is
    denied chooses its addresses, and must not choose whether this machine has DNS.
    `hearsay` (server id -> addresses) only ever refuses, and only at addresses that are nobody else's (core.network.hearsay).
    `aliases` (server id -> names) are by which other names the servers were found: where names decide, a denied one has those too.
    `claims` remembers what the last plan was made of: it makes the next one cheaper, never another.
    """
    network = snapshot.config.network
    rules: dict[Endpoint, Rule] = {}
    blocked = _blocked(snapshot)
    if network.mode != "off":
        made = (claims or Claims()).of(snapshot.registry.servers, addresses, blocked)
        rules = _claimed(made, network)
        for endpoint, rule in _overheard(snapshot, blocked, addresses, hearsay).items():
            rules.setdefault(endpoint, rule)
        rules = llm_plan.with_providers(rules, snapshot.config, snapshot.registry.servers, addresses)
        for address in sorted(name_servers):
            this_host.make_room(rules, address, snapshot.registry.servers)
        ports = {c.server.port for c in made} | llm_plan.ports(snapshot.config)
        this_host.refuse_at_every_address(rules, own, snapshot.registry.servers, ports)
        egress.declare(rules, snapshot.config, addresses, own, name_servers)
    return Plan(
        generation=snapshot.generation,
        rules=rules,
        mark=network.mark & network.mark_mask,
        mark_mask=network.mark_mask,
        sessions=tuple(sessions),
        sessions_only=network.scope == "sessions",
        names=_names(snapshot, rules, blocked, aliases),
        egress=egress.of(snapshot.config),
    )


def _blocked(snapshot: Judge) -> set[str]:
    if snapshot.config.network.mode != "enforce":
        return set()
    return {s.id for s in snapshot.registry.servers if snapshot.judge_server(s.id).blocked}


def _names(
    snapshot: Judge,
    rules: Mapping[Endpoint, Rule],
    blocked: Collection[str],
    aliases: Mapping[str, Collection[str]],
) -> Mapping[Name, Fate]:
    """Return what becomes of connections by the name that they ask for, where the rules leave some to that."""
    deciding = list(shared_endpoints.by_name(rules))
    if not deciding:
        return {}
    # Of the servers there alone: the planes have room for 16,384 names, and each server may have 32 others.
    there = {server_id for rule in deciding for server_id in rule.server_ids}
    aliases = {key: found for key, found in aliases.items() if key not in blocked or key in there}
    spared = watched_hosts(snapshot.config).values()
    declared = shared_endpoints.names(snapshot.registry.servers, blocked, aliases, spared)
    return llm_plan.names(snapshot.config) | declared


def spared(plan: Plan, name_servers: Collection[IPv6Address]) -> dict[IPv6Address, tuple[str, ...]]:
    """Return the name servers' addresses at which servers (sorted ids) are refused at their ports alone."""
    found: dict[IPv6Address, set[str]] = defaultdict(set)
    for endpoint, rule in plan.rules.items() if name_servers else ():
        if rule.fate is Fate.DENY and endpoint.address in name_servers and endpoint.address not in LOOPBACKS:
            found[endpoint.address].update(rule.server_ids)
    return {address: tuple(sorted(ids)) for address, ids in sorted(found.items()) if ids}


def without_providers(plan: Plan) -> Plan:
    """Return the plan for a host that cannot tell our own proxy from others: what would cut it off is left out."""
    if not any(rule.providers for rule in plan.rules.values()):
        return plan
    rules = {e: replace(r, providers=()) for e, r in plan.rules.items() if r.server_ids}
    allowed = {
        e: Rule(Fate.ALLOW, (), declared=True)
        for e, r in plan.rules.items()
        if r.declared and not r.server_ids
    }
    return replace(plan, rules=rules | allowed)


def diff(old: Plan, new: Plan) -> Diff:
    """Return what must change so that `old` becomes `new`."""
    return Diff(
        # Most rules are the very same: to compare two takes three times as long as to find them.
        adds={e: r for e, r in new.rules.items() if (was := old.rules.get(e)) is not r and was != r},
        deletes=tuple(e for e in old.rules if e not in new.rules),
        names={n: fate for n, fate in new.names.items() if old.names.get(n) != fate},
        forgotten=tuple(n for n in old.names if n not in new.names),
    )


def find(plan: Plan, address: IPv6Address, port: int) -> Rule | None:
    """Return the rule that a plane applies at an endpoint, by the order that both planes have: the most severe wins."""
    address = home(address)
    found = [r for e in (Endpoint(address), Endpoint(address, port)) if (r := plan.rules.get(e))]
    return min(found, key=lambda rule: _SEVERITY.index(rule.fate), default=None)


def _claimed(claims: Sequence[Claim], network: Network) -> dict[Endpoint, Rule]:
    """Return the rules of all claims. What only one server claims is as it stands there; the rest is decided together."""
    rules: dict[Endpoint, Rule] = {}
    seen: set[IPv6Address] = set()
    contested: set[IPv6Address] = set()
    for claim in claims:
        contested |= claim.homes & seen
        seen |= claim.homes
        rules |= claim.rules
    contested |= seen.intersection(LOOPBACKS)
    there: dict[IPv6Address, list[Claim]] = defaultdict(list)
    for claim in claims if contested else ():
        for address in claim.homes & contested:
            there[address].append(claim)
            rules.pop(claim.endpoint(address), None)
    for address, rivals in sorted(there.items()):
        refused = [c.server for c in rivals if c.blocked]
        rules |= _at(address, refused, [c.server for c in rivals if not c.blocked], network)
    return rules


def _by_address(
    servers: Sequence[Server], addresses: Mapping[str, Sequence[Address]]
) -> dict[IPv6Address, list[Server]]:
    found: dict[IPv6Address, list[Server]] = defaultdict(list)
    for server in servers:
        for address in {home(canonical(a)) for a in addresses.get(server.id, ())}:
            found[address].append(server)
    return found


def _at(
    address: IPv6Address, refused: list[Server], tagged: list[Server], network: Network
) -> dict[Endpoint, Rule]:
    """Return the rules of one address."""
    if not tagged and address not in LOOPBACKS:
        return {Endpoint(address): Rule(Fate.DENY, _ids(refused))}
    rules: dict[Endpoint, Rule] = {}
    by_name = network.on_shared_address == "sni" and address not in LOOPBACKS
    if by_name and any(map(shared_endpoints.named, refused)):
        # Its name is refused at its neighbours' address whatever the port; what has no name there is none of ours.
        rules[Endpoint(address)] = Rule(Fate.SNI_OPEN, _ids([*refused, *tagged]), shared=True)
    for port in {s.port for s in (*refused, *tagged)}:
        here, innocent = [s for s in refused if s.port == port], [s for s in tagged if s.port == port]
        if here and innocent:
            fate = shared_endpoints.fate(network, here) if address not in LOOPBACKS else _whole(network)
            rules[Endpoint(address, port)] = Rule(fate, _ids([*here, *innocent]), shared=True)
        else:
            rules[Endpoint(address, port)] = Rule(Fate.DENY if here else Fate.TAG, _ids([*here, *innocent]))
    return rules


def _overheard(
    snapshot: Judge,
    blocked: Collection[str],
    addresses: Mapping[str, Sequence[Address]],
    hearsay: Mapping[str, Sequence[Address]],
) -> dict[Endpoint, Rule]:
    """Return the denials that rest on hearsay: none where our own questions named any server or provider for the address.

    There the name alone is refused, where names are read: whoever else is there loses nothing by it.
    """
    network = snapshot.config.network
    if not hearsay:
        return {}
    taken: dict[IPv6Address, list[str]] = defaultdict(list)
    for key, known in addresses.items():
        for a in known if not egress.is_key(key) else ():  # a denial is one whatever is allowed
            taken[home(canonical(a))].append(key)
    refused = [s for s in snapshot.registry.servers if s.id in blocked]
    rules = {}
    for a, servers in _by_address(refused, hearsay).items():
        if a in LOOPBACKS:
            continue
        there = [s for s in snapshot.registry.servers if s.id in taken.get(a, ())]
        if a not in taken:
            rules[Endpoint(a)] = Rule(Fate.DENY, _ids(servers))
        elif (
            network.on_shared_address == "sni"
            and any(map(shared_endpoints.named, servers))
            # Whoever talks to a provider is told of by what is refused there already, or by its tag.
            and (there or network.llm_direct == "off")
        ):
            rules[Endpoint(a)] = Rule(Fate.SNI_OPEN, _ids([*servers, *there]), shared=True)
    return rules


def _whole(network: Network) -> Fate:
    """Return the fate of an endpoint of this host, where servers are told apart by their paths if at all."""
    return Fate.TAG if network.on_shared_address == "tag" else Fate.DENY


def _ids(servers: Sequence[Server]) -> tuple[str, ...]:
    return tuple(sorted({s.id for s in servers}))
