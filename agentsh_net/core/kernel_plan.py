"""What the planes shall enforce, computed from a snapshot and the known addresses; and what a record means to policy.

One rule above all: either plane reads the same plan, denial wins over a tag, and no narrowing happens that the rule does
not show (`Rule.shared`). How a plan gets into the kernel is not this file's business.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from types import MappingProxyType
from typing import Protocol

from agentsh_net.core import llm_plan, shared_endpoints
from agentsh_net.core.addresses import LOOPBACKS, Address, canonical, home, plain
from agentsh_net.core.claims import Claim, Claims
from agentsh_net.core.events import DEFAULT_SESSION, LlmDirectConnection, NetworkConnection
from agentsh_net.core.model import Action, Server, Transport, Verdict
from agentsh_net.core.plane import ConnectRecord, Endpoint, Fate, Finding, Name, Plan, Rule
from agentsh_net.core.registry import Registry
from agentsh_net.core.settings import Config, Network

_SEVERITY = (Fate.DENY, Fate.SNI, Fate.SNI_OPEN, Fate.TAG)
_FAMILIES = {2: "inet", 10: "inet6"}
_PROTOCOLS = {
    1: "icmp",
    6: "tcp",
    17: "udp",
    33: "dccp",
    58: "ipv6-icmp",
    132: "sctp",
    136: "udplite",
    262: "mptcp",
}


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

    @property
    def empty(self) -> bool:
        """Say whether the plans have the same rules."""
        return not (self.adds or self.deletes or self.names or self.forgotten)


def watched_hosts(config: Config) -> dict[str, str]:
    """Return server id -> host for the servers that are reached over the network, and for providers that are looked after."""
    servers = config.sandbox.mcp.servers
    hosts = {s.id: s.host for s in servers if s.transport is not Transport.STDIO and s.host}
    return hosts | llm_plan.watched(config)


def denied(verdict: Verdict) -> bool:
    """Say whether policy denies, in audit mode too."""
    return verdict.blocked or verdict.would is Action.BLOCK


def build(
    snapshot: Judge,
    addresses: Mapping[str, Sequence[Address]],
    hearsay: Mapping[str, Sequence[Address]] = MappingProxyType({}),
    sessions: Sequence[str] = (),
    claims: Claims | None = None,
) -> Plan:
    """Return the plan for a snapshot. A denied server is refused at its addresses on every port, others are tagged by port.

    Where an address also belongs to a server that is not denied, only the denied server's port is refused; where even the
    port is the same, `network.on_shared_address` decides, by names if it says so (shared_endpoints.py). A server on this host's loopback has everything here for a
    neighbour: it is refused at its port alone, but at both loopback addresses, and the planes know this host's other names.
    `hearsay` (server id -> addresses) only ever refuses, and only at addresses that are nobody else's (core.hearsay).
    `claims` remembers what the last plan was made of: it makes the next one cheaper, never another.
    """
    network = snapshot.config.network
    rules: dict[Endpoint, Rule] = {}
    blocked: set[str] = set()
    if network.mode == "enforce":
        blocked = {s.id for s in snapshot.registry.servers if snapshot.judge_server(s.id).blocked}
    if network.mode != "off":
        made = (claims or Claims()).of(snapshot.registry.servers, addresses, blocked)
        rules = _claimed(made, network)
        rules |= _overheard(snapshot, addresses, hearsay)
        rules = llm_plan.with_providers(rules, snapshot.config, snapshot.registry.servers, addresses)
        _refuse_at_both_loopbacks(rules, {c.server.port for c in made} | llm_plan.ports(snapshot.config))
    return Plan(
        generation=snapshot.generation,
        rules=rules,
        mark=network.mark & network.mark_mask,
        mark_mask=network.mark_mask,
        sessions=tuple(sessions),
        sessions_only=network.scope == "sessions",
        names=llm_plan.names(snapshot.config) | shared_endpoints.names(snapshot.registry.servers, blocked)
        if network.on_shared_address == "sni" and shared_endpoints.any_by_name(rules)
        else {},
    )


def without_providers(plan: Plan) -> Plan:
    """Return the plan for a host that cannot tell our own proxy from others: what would cut it off is left out."""
    if not any(rule.providers for rule in plan.rules.values()):
        return plan
    rules = {e: replace(r, providers=()) for e, r in plan.rules.items() if r.server_ids}
    return replace(plan, rules=rules)


def diff(old: Plan, new: Plan) -> Diff:
    """Return what must change so that `old` becomes `new`."""
    return Diff(
        adds={e: rule for e, rule in new.rules.items() if old.rules.get(e) != rule},
        deletes=tuple(e for e in old.rules if e not in new.rules),
        names={n: fate for n, fate in new.names.items() if old.names.get(n) != fate},
        forgotten=tuple(n for n in old.names if n not in new.names),
    )


def find(plan: Plan, address: IPv6Address, port: int) -> Rule | None:
    """Return the rule that a plane applies at an endpoint, by the order that both planes have: the most severe wins."""
    address = home(address)
    found = [r for e in (Endpoint(address), Endpoint(address, port)) if (r := plan.rules.get(e))]
    return min(found, key=lambda rule: _SEVERITY.index(rule.fate), default=None)


def attribute(snapshot: Judge, record: ConnectRecord, plan: Plan) -> NetworkConnection | LlmDirectConnection:
    """Return the event a record stands for. `timestamp` is left to the shell: it is `record.time_ns`."""
    rule = rule_of(record, plan)
    candidates = list(rule.server_ids) if rule else []
    if record.finding is Finding.NAMED:
        servers = snapshot.registry.servers
        candidates = list(shared_endpoints.spoken_for(servers, record.sni, record.port)) or candidates
    verdicts = {server_id: snapshot.judge_server(server_id) for server_id in candidates}
    blamed = next((s for s in candidates if denied(verdicts[s])), candidates[0] if candidates else "")
    where = remote(record.address, record.port)
    # A provider is blamed where no server is there, or where no server's denial explains the refusal.
    no_denial = not any(map(denied, verdicts.values()))
    if (not blamed or (no_denial and record.fate is Fate.DENY)) and (
        event := llm_plan.direct(snapshot.config, record, rule, remote_addr=where)
    ):
        return event
    server = next((s for s in snapshot.registry.servers if s.id == blamed), None)
    refused = record.fate is Fate.DENY and not record.observed
    return NetworkConnection(
        session_id=record.session_id or DEFAULT_SESSION,
        action=Action.BLOCK if refused else Action.ALLOW,
        would=_would(refused=refused, record=record, verdict=verdicts.get(blamed)),
        reason=_reason(record, rule, verdicts.get(blamed)),
        rule=verdicts[blamed].rule if blamed else "",
        remote_addr=where,
        remote_host=server.host if server else "",
        server_id=blamed,
        server_type=server.transport if server else "",
        candidates=candidates,
        layer=record.layer,
        family=_FAMILIES.get(record.family, str(record.family)),
        protocol=_PROTOCOLS.get(record.protocol, str(record.protocol)),
        pid=record.pid,
        comm=record.comm,
        exe=record.exe,
        cgroup=record.cgroup,
        container_id=record.container_id,
        uid=record.uid,
        sni=record.sni,
    )


def rule_of(record: ConnectRecord, plan: Plan) -> Rule | None:
    """Return the rule that a record speaks of. What was refused and is nobody else's went to an address of this host's own."""
    rule = find(plan, record.address, record.port) or find(plan, canonical(record.address), record.port)
    if rule is None and record.fate is Fate.DENY:
        loopback = LOOPBACKS[0] if record.address.ipv4_mapped else LOOPBACKS[1]
        rule = plan.rules.get(Endpoint(loopback, record.port))
    return rule


def remote(address: IPv6Address, port: int) -> str:
    """Return `host:port` as people write it: IPv4 plain, IPv6 in brackets."""
    shown = plain(address)
    return f"{shown}:{port}" if shown.version == 4 else f"[{shown}]:{port}"


def _would(*, refused: bool, record: ConnectRecord, verdict: Verdict | None) -> str | None:
    if refused:
        return None
    return Action.BLOCK if record.observed or (verdict is not None and denied(verdict)) else None


def _reason(record: ConnectRecord, rule: Rule | None, verdict: Verdict | None) -> str:
    if rule is None or verdict is None:
        return f"rule of policy generation {record.generation}, which is no longer in force"
    if record.fate is Fate.DENY and not denied(verdict):
        return f"refused under policy generation {record.generation}; today's policy says: {verdict.reason}"
    if not rule.shared:
        return verdict.reason
    shared = f"endpoint shared by {', '.join(rule.server_ids)}"
    if rule.fate not in shared_endpoints.BY_NAME or record.finding is Finding.NAMED:
        return f"{verdict.reason} ({shared})"
    what = record.finding or f"{_PROTOCOLS.get(record.protocol, record.protocol)}, which shows no server name"
    said = f"; {verdict.reason}" if denied(verdict) else ""
    return f"{shared}: {what}, and network.on_unknown_sni is {'block' if record.fate is Fate.DENY else 'tag'}{said}"


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


def _refuse_at_both_loopbacks(rules: dict[Endpoint, Rule], ports: Collection[int]) -> None:
    """Refuse what is denied at one loopback address at the other too, unless policy says something else of who is there."""
    for port in sorted(ports):
        here = [r for a in LOOPBACKS if (r := rules.get(Endpoint(a, port))) and r.fate is Fate.DENY]
        for address in LOOPBACKS if here else ():
            rules.setdefault(Endpoint(address, port), here[0])


def _by_address(
    servers: Sequence[Server], addresses: Mapping[str, Sequence[Address]]
) -> dict[IPv6Address, list[Server]]:
    found: dict[IPv6Address, list[Server]] = defaultdict(list)
    for server in servers:
        if server.transport is not Transport.STDIO:
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
    if by_name and any(map(shared_endpoints.named, refused)) and tagged:
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
    snapshot: Judge, addresses: Mapping[str, Sequence[Address]], hearsay: Mapping[str, Sequence[Address]]
) -> dict[Endpoint, Rule]:
    """Return the denials that rest on hearsay: none where our own questions named any server for the address."""
    if snapshot.config.network.mode != "enforce" or not hearsay:
        return {}
    taken = {home(canonical(a)) for known in addresses.values() for a in known}
    blocked = [
        s for s in snapshot.registry.servers if s.id in hearsay and snapshot.judge_server(s.id).blocked
    ]
    found = _by_address(blocked, hearsay)
    return {
        Endpoint(a): Rule(Fate.DENY, _ids(servers))
        for a, servers in found.items()
        if a not in taken and a not in LOOPBACKS
    }


def _whole(network: Network) -> Fate:
    """Return the fate of an endpoint of this host, where servers are told apart by their paths if at all."""
    return Fate.TAG if network.on_shared_address == "tag" else Fate.DENY


def _ids(servers: Sequence[Server]) -> tuple[str, ...]:
    return tuple(sorted({s.id for s in servers}))
