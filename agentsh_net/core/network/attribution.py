"""What a record of a plane means to policy: which server or provider it was for, and the event that tells of it.

What the planes enforce is `kernel_plan`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address
from typing import Any, Final

from agentsh_net.core.audit.events import (
    DEFAULT_SESSION,
    LlmDirectConnection,
    NetworkConnection,
    UndeclaredConnection,
)
from agentsh_net.core.configuration.settings import Config
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.network import egress, llm_plan, shared_endpoints
from agentsh_net.core.network.addresses import LOOPBACKS, canonical, plain
from agentsh_net.core.network.kernel_plan import Judge, find
from agentsh_net.core.network.plane import ConnectRecord, Endpoint, Fate, Finding, Plan, Rule

_FAMILIES: Final = {2: "inet", 10: "inet6"}
_PROTOCOLS: Final = {
    1: "icmp",
    4: "ipip",
    6: "tcp",
    17: "udp",
    33: "dccp",
    41: "ipv6",
    47: "gre",
    50: "esp",
    58: "ipv6-icmp",
    132: "sctp",
    136: "udplite",
    262: "mptcp",
}


def attribute(
    snapshot: Judge, record: ConnectRecord, plan: Plan
) -> NetworkConnection | LlmDirectConnection | UndeclaredConnection:
    """Return the event a record stands for. `timestamp` is left to the shell: it is `record.time_ns`."""
    rule = find(plan, canonical(record.address), record.port) if record.undeclared else rule_of(record, plan)
    if record.undeclared and (rule is None or rule.fate is not Fate.DENY):
        return _undeclared(snapshot.config, record, rule)
    candidates = list(rule.server_ids) if rule else []
    if record.finding is Finding.NAMED:
        servers = snapshot.registry.servers
        candidates = list(shared_endpoints.spoken_for(servers, record.sni, record.port)) or candidates
    verdicts = {server_id: snapshot.judge_server(server_id) for server_id in candidates}
    # A provider is blamed where no server is there, or where no server's denial explains the refusal.
    explained = any(verdict.denied for verdict in verdicts.values()) or record.fate is not Fate.DENY
    if rule and rule.providers and not (candidates and explained):
        return _direct(snapshot.config, record, rule)
    return _connection(snapshot, record, rule, verdicts)


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


def _connection(
    snapshot: Judge, record: ConnectRecord, rule: Rule | None, verdicts: Mapping[str, Verdict]
) -> NetworkConnection:
    """Return the event of a connection to whichever server is blamed: a denied one before others."""
    blamed = next((s for s, verdict in verdicts.items() if verdict.denied), next(iter(verdicts), ""))
    verdict = verdicts.get(blamed)
    server = next((s for s in snapshot.registry.servers if s.id == blamed), None)
    return NetworkConnection(
        **_seen(record, would=verdict is not None and verdict.denied),
        reason=_reason(record, rule, verdict, snapshot.config.network.on_unknown_sni),
        rule=verdict.rule if verdict else "",
        remote_host=server.host if server else "",
        server_id=blamed,
        server_type=server.transport if server else "",
        candidates=list(verdicts),
        family=_FAMILIES.get(record.family, str(record.family)),
        protocol=_PROTOCOLS.get(record.protocol, str(record.protocol)),
        sni=record.sni,
    )


def _direct(config: Config, record: ConnectRecord, rule: Rule) -> LlmDirectConnection:
    """Return the event of a connection that a provider's rule explains."""
    return LlmDirectConnection(
        **_seen(record, would=config.network.llm_direct == "refuse"),
        reason=f"talks to {', '.join(rule.providers)} around the LLM proxy",
        rule=llm_plan.RULE,
        provider=rule.providers[0],
    )


def _undeclared(
    config: Config, record: ConnectRecord, rule: Rule | None
) -> LlmDirectConnection | UndeclaredConnection:
    """Return the event of a session that connects where nothing is declared."""
    seen = _seen(record, would=config.network.egress.sessions == "refuse")
    what = f"{remote(record.address, record.port)} is neither an allowed server's nor in network.egress.allow"
    if rule is not None and rule.providers:
        what = f"talks to {', '.join(rule.providers)} around the LLM proxy; {what}"
        return LlmDirectConnection(**seen, reason=what, rule=egress.RULE, provider=rule.providers[0])
    family, protocol = _FAMILIES.get(record.family, str(record.family)), record.protocol
    return UndeclaredConnection(
        **seen,
        reason=what,
        rule=egress.RULE,
        family=family,
        protocol=_PROTOCOLS.get(protocol, str(protocol)),
    )


def _seen(record: ConnectRecord, *, would: bool) -> dict[str, Any]:
    """Return what an event of either kind says of a record. `would`: policy is against what was let pass."""
    refused = record.fate is Fate.DENY and not record.observed
    return {
        "session_id": record.session_id or DEFAULT_SESSION,
        "action": Action.BLOCK if refused else Action.ALLOW,
        "would": Action.BLOCK if not refused and (record.observed or would) else None,
        "remote_addr": remote(record.address, record.port),
        "layer": record.layer,
        "pid": record.pid,
        "comm": record.comm,
        "exe": record.exe,
        "cgroup": record.cgroup,
        "container_id": record.container_id,
        "uid": record.uid,
    }


def _reason(record: ConnectRecord, rule: Rule | None, verdict: Verdict | None, unknown: str) -> str:
    if rule is None or verdict is None:
        return f"rule of policy generation {record.generation}, which is no longer in force"
    if record.fate is Fate.DENY and not verdict.denied:
        return f"refused under policy generation {record.generation}; today's policy says: {verdict.reason}"
    if not rule.shared:
        return verdict.reason
    shared = f"endpoint shared by {', '.join(rule.server_ids)}"
    if rule.fate not in shared_endpoints.BY_NAME or record.finding is Finding.NAMED:
        return f"{verdict.reason} ({shared})"
    what = record.finding or f"{_PROTOCOLS.get(record.protocol, record.protocol)}, which shows no server name"
    said = f"; {verdict.reason}" if verdict.denied else ""
    if record.finding is Finding.UNSEEN and rule.fate is Fate.SNI_OPEN:
        return f"{shared}: {what}, and to which no server has answered yet{said}"
    if unknown == "block" and record.fate is not Fate.DENY:
        return f"{shared}: {what}, and no denied server is known at this port{said}"
    return f"{shared}: {what}, and network.on_unknown_sni is {'block' if record.fate is Fate.DENY else 'tag'}{said}"
