"""MCP servers that a request asks the provider to call by itself: whether one is the declared server it claims to be.

A label is whatever the request's author wrote; the URL is what the provider will call, so the URL decides who it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentsh_net.core.configuration.settings import Mcp
from agentsh_net.core.model import Action, Candidate, Server, ToolCall, Verdict
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.core.registry import Registry
from agentsh_net.core.verdicts.rules import ROOT, Rules
from agentsh_net.core.verdicts.steps import MAX_NAME, Outcome, Step
from agentsh_net.core.web import urls


def connector_step(
    registry: Registry, mcp: Mcp, server_step: Callable[[str], Step], server_id: str, url: str
) -> Step:
    """Judge a connector by its URL and by its id; blocked if either is denied.

    `url` is whatever addresses the server, a provider's own `connector_id` too. Where it is empty the id alone tells.
    """
    exact, neighbours = _servers_of(registry, url)
    claimed = registry.server(server_id)
    ids = [s.id for s in exact or neighbours]
    if claimed is not None or not exact:
        # a label beside a declared URL says nothing, unless it is another server's id
        ids.append(server_id or _host(url))
    taken = [server_step(i) for i in dict.fromkeys(ids)]
    blocked = next((step for step in taken if step.outcome is Outcome.BLOCK), None)
    if blocked is not None:
        return blocked
    if exact or (claimed is not None and not url):
        return taken[0]
    return _undeclared(mcp, server_id, url, claimed)


@dataclass(frozen=True, slots=True)
class Reach:
    """Which tools of a connector's server may be called. `confined`: not all; `known` are those it was seen to offer, with what is allowed.

    `by_arguments`: for some it depends on the arguments, which nobody sees before the provider runs the call.
    """

    confined: bool = False
    known: bool = False
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    by_arguments: bool = False


def reach(
    registry: Registry,
    mcp: Mcp,
    rules: Rules,
    offered: Callable[[ToolCall], Verdict],
    server_id: str,
    url: str,
) -> Reach:
    """Return what a connector may reach, whether that is enforced or not. `offered` judges the offer of a tool."""
    exact, _ = _servers_of(registry, url)
    declared = exact[0] if exact else registry.server(server_id)
    name = declared.id if declared is not None else server_id or _host(url)
    tools = registry.tools_of(name) if declared is not None else ()
    offers = {t.name: offered(ToolCall(t.name, server_name=name)) for t in tools}
    verdicts = {tool: Action.BLOCK in (offer.action, offer.would) for tool, offer in offers.items()}
    by_rule, by_arguments = rules.confine(fold(name))
    default = mcp.tool_policy == "allowlist" or rules.other_tools is not None
    return Reach(
        confined=by_rule or default or any(verdicts.values()),
        known=bool(tools),
        allowed=tuple(tool for tool, blocked in verdicts.items() if not blocked),
        denied=tuple(tool for tool, blocked in verdicts.items() if blocked),
        by_arguments=by_arguments,
    )


def _servers_of(registry: Registry, url: str) -> tuple[list[Server], list[Server]]:
    """Return the servers declared under this URL, and those of the same host and port with another path."""
    try:
        parsed = urls.parse(url)
    except urls.UrlError:
        return [], []
    exact: list[Server] = []
    neighbours: list[Server] = []
    for server in registry.servers_at(parsed.host, parsed.port):
        declared = urls.parse(server.url)
        same = (declared.scheme, _path(declared)) == (parsed.scheme, _path(parsed))
        (exact if same else neighbours).append(server)
    return exact, ([] if exact else neighbours)


def _host(url: str) -> str:
    """Return what stands for a server that has only a URL; the rest of the URL may be a secret."""
    try:
        return urls.parse(url).host
    except urls.UrlError:
        return "without a name"


def _path(url: urls.HttpUrl) -> str:
    return url.path.rstrip("/")


def _undeclared(mcp: Mcp, server_id: str, url: str, claimed: Server | None) -> Step:
    about = Candidate(server_id, "")
    name = f"connector {visible(server_id, MAX_NAME)!r}" if server_id else "a connector without a name"
    reason = f"{name} is no declared server"
    if claimed is not None:
        reason = f"{name} has the name of a declared server, but not its URL"
    elif url:
        reason = f"{name} has a URL of no declared server"
    everyone = any(rule.id.strip() == "*" for rule in mcp.allowed_servers)
    if mcp.server_policy == "allowlist" and not everyone:
        rule = f"{ROOT}.server_policy"
        return Step("server", Outcome.BLOCK, f"{reason} (server_policy: allowlist)", rule, about)
    if mcp.fail_closed:
        return Step("fail_closed", Outcome.BLOCK, f"{reason} (fail_closed)", f"{ROOT}.fail_closed", about)
    reason += "; let through because fail_closed is false"
    return Step("fail_closed", Outcome.ALERT, reason, f"{ROOT}.fail_closed", about)
