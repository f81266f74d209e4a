"""What a valid policy says and its author probably does not mean: told where the policy is checked and where it is in force.

Not its business: what is no policy at all (`config`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Any

from agentsh_net.core.configuration.settings import Config, Mcp, ServerRule, ToolRule
from agentsh_net.core.model import Candidate
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.network.addresses import unmapped
from agentsh_net.core.verdicts.rules import Rules
from agentsh_net.core.verdicts.steps import Outcome, server_step

MAX_NAMED = 3  # servers in a note: a policy may declare thousands
_PATTERN = frozenset("*?[")


def oversights(config: Config, mapping: Mapping[str, Any]) -> tuple[str, ...]:
    """Return them, each with the YAML path that it is about. `mapping` is what the file says, without its defaults."""
    mcp = config.sandbox.mcp
    network = mapping.get("network")
    chosen = isinstance(network, Mapping) and "mode" in network
    unrefused = () if chosen else _unrefused(config)
    return (*_slips(mcp), *_lines(mcp), *_closed(mcp), *_unheard(config), *unrefused, *_open(config))


def _slips(mcp: Mcp) -> Iterator[str]:
    """Yield rules for a server that nobody declared, where a declared one is called nearly so: a slip leaves that one without its rule."""
    declared = {fold(server.id): server.id for server in mcp.servers}
    rules: tuple[ServerRule | ToolRule, ...] = (
        *mcp.allowed_servers,
        *mcp.denied_servers,
        *mcp.allowed_tools,
        *mcp.denied_tools,
    )
    for rule in rules:
        name = rule.id if isinstance(rule, ServerRule) else rule.server
        if _PATTERN & set(name) or fold(name) in declared:
            continue
        if near := get_close_matches(fold(name), declared, n=1, cutoff=0.75):
            yield f"{rule.path} is about server {name!r}, which is not declared (did you mean {declared[near[0]]!r}?)"


def _lines(mcp: Mcp) -> Iterator[str]:
    """Yield commands that are a whole command line: nothing of that name can be started. A path may have spaces of its own."""
    for number, server in enumerate(mcp.servers):
        program, *rest = server.command.split(" ")
        path = "/" in program and not any(word.startswith(("-", "/")) for word in rest)
        if rest and not path and not server.args:
            yield f"sandbox.mcp.servers[{number}].command is the program alone: what follows it belongs into `args`"


def _closed(mcp: Mcp) -> Iterator[str]:
    """Yield lists that allow nothing."""
    root = "sandbox.mcp"
    if mcp.server_policy == "allowlist" and not mcp.allowed_servers:
        yield f"{root}.server_policy is allowlist, and allowed_servers is empty: every server is blocked"
    if mcp.tool_policy == "allowlist" and not mcp.allowed_tools:
        yield f"{root}.tool_policy is allowlist, and allowed_tools is empty: every tool is blocked"


def _unheard(config: Config) -> Iterator[str]:
    """Yield what is configured for something that is off."""
    if config.gateway.servers and not config.gateway.enabled:
        yield "gateway.enabled is false: what gateway.servers says is not in force"
    if config.network.mode == "off" and config.network.llm_direct != "off":
        yield f"network.mode is off: llm_direct: {config.network.llm_direct} is not in force"
    yield from _egress(config)
    if config.network.mode != "off" and not config.network.layers:
        yield f"network.layers is empty: mode: {config.network.mode} is in force nowhere"


def _egress(config: Config) -> Iterator[str]:
    """Yield what `network.egress` says and is not so."""
    network, root = config.network, "network.egress"
    egress, mcp = network.egress, config.sandbox.mcp
    if egress.sessions == "open":
        if egress.allow:
            yield f"{root}.sessions is open: what {root}.allow lists is not in force, everything is reached"
        return
    if network.mode == "off":
        yield f"network.mode is off: {root} is not in force"
    elif egress.sessions == "refuse" and (network.mode == "tag" or not mcp.enforce_policy):
        why = "network.mode is tag" if network.mode == "tag" else "policy is audited"
        yield f"{why}: what {root} would refuse is told (would: block), and let pass"
    denied = {s.host: s.id for s in mcp.servers if s.host and _is_denied(config, s.id)}
    for number, entry in enumerate(egress.allow):
        if entry.host in denied:
            yield f"{root}.allow[{number}] is the host of the denied server {denied[entry.host]!r}: it is denied all the same"


def _is_denied(config: Config, server_id: str) -> bool:
    mcp = config.sandbox.mcp
    verdict = server_step(Rules(mcp), mcp.server_policy, Candidate(server_id, ""))
    return verdict.outcome is Outcome.BLOCK


def _unrefused(config: Config) -> Iterator[str]:
    """Yield that connections to denied servers are let through, where the file does not say that they shall be."""
    mcp, rules = config.sandbox.mcp, Rules(config.sandbox.mcp)
    if not mcp.enforce_policy or config.network.mode != "tag":
        return
    denied = [
        server.id
        for server in mcp.servers
        if server.host
        and server_step(rules, mcp.server_policy, Candidate(server.id, "")).outcome is Outcome.BLOCK
    ]
    if denied:
        named = ", ".join(denied[:MAX_NAMED]) + (", ..." if len(denied) > MAX_NAMED else "")
        yield f"network.mode is not set: connections to denied servers ({named}) are told, not refused (network: {{mode: enforce}})"


def _open(config: Config) -> Iterator[str]:
    """Yield what listens for other hosts: it asks nobody who they are."""
    proxy, gateway, resolve = config.proxy, config.gateway, config.network.resolve
    doors = (
        ("proxy.listen", proxy.mode != "disabled", proxy.listen),
        ("gateway.listen", gateway.enabled, gateway.listen),
        ("network.resolve.stub_listen", resolve.stub, resolve.stub_listen),
    )
    for name, on, address in doors:
        if on and address != "localhost" and not unmapped(ip_address(address)).is_loopback:
            but = ", but for servers with a `downstream_security`" if name == "gateway.listen" else ""
            yield f"{name} is {address}: whoever reaches this host by the network may use it{but}"
