"""Builds what policy tests speak about: declared servers, the tools they offer, a policy over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentsh_net.core.configuration.settings import Config, Mcp, Sandbox, ServerRule, ToolRule
from agentsh_net.core.model import Server, ToolCall, Transport, Verdict
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins, tool_of


def server(server_id: str, url: str = "", *, host: str = "", port: int = 0) -> Server:
    transport = Transport.HTTP if url else Transport.STDIO
    return Server(server_id, transport, url=url, host=host, port=port)


def servers(*ids: str) -> tuple[Server, ...]:
    return tuple(map(server, ids))


def registry(declared: Iterable[Server], offers: Mapping[str, Iterable[Any]] | None = None) -> Registry:
    """`offers`: server id -> tool names or whole definitions."""
    result = Registry(tuple(declared))
    for server_id, offered in (offers or {}).items():
        definitions = [{"name": o} if isinstance(o, str) else o for o in offered]
        result, _ = result.register(server_id, [tool_of(server_id, d) for d in definitions])
    return result


def situation(
    ids: Iterable[str] = (),
    offers: Mapping[str, Iterable[Any]] | None = None,
    *,
    pins: Pins | None = None,
    **mcp: Any,
) -> Snapshot:
    """A snapshot of these servers and tools under `sandbox.mcp` as given; rules may be plain ids, pairs or mappings."""
    for key in ("allowed_servers", "denied_servers"):
        mcp[key] = tuple(ServerRule(r) if isinstance(r, str) else r for r in mcp.get(key, ()))
    for key in ("allowed_tools", "denied_tools"):
        mcp[key] = tuple(map(tool_rule, mcp.get(key, ())))
    declared = servers(*ids)
    config = Config(sandbox=Sandbox(Mcp(servers=declared, **mcp)))
    return Snapshot(1, "digest", config, registry(declared, offers), pins or Pins())


def tool_rule(rule: Any) -> ToolRule:
    match rule:
        case ToolRule():
            return rule
        case str():
            return ToolRule(tool=rule)
        case (server_id, tool):
            return ToolRule(server_id, tool)
        case _:
            return ToolRule(**rule)


def unlimited(*_: str) -> bool:
    return True


def verdict(snapshot: Snapshot, call: str | ToolCall) -> Verdict:
    call = ToolCall(call) if isinstance(call, str) else call
    return snapshot.judge(call, session_id="default", charge=unlimited)


def pairs(judged: Verdict) -> set[tuple[str, str]]:
    return {(c.server_id, c.tool) for c in judged.candidates}
