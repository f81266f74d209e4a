"""What `run` says when it is ready: what is in force, what is not and what mends it, where the proxy listens, what to export.

Pure: facts in, lines out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentsh_net.core.agent_environment import base_urls
from agentsh_net.core.configuration.settings import Config
from agentsh_net.core.model import Server
from agentsh_net.core.naming.folding import visible
from agentsh_net.core.network import kernel_plan, llm_plan
from agentsh_net.core.network.plane import LayerStatus
from agentsh_net.core.snapshot import Snapshot

_ROLE = {"ebpf": "connect() to a denied server fails", "nftables": "its packets are reset"}


def brief(
    snapshot: Snapshot,
    source: str,
    layers: Sequence[LayerStatus],
    url: str,
    notes: Iterable[str],
    limits: Iterable[object] = (),
    *,
    gateway: str = "",
) -> list[str]:
    """Return all of it."""
    config = snapshot.config
    return [
        policy_line(snapshot, source),
        *server_lines(config.sandbox.mcp.servers, notes),
        *layer_lines(layers, config),
        *(f"limit: {limit}" for limit in limits),
        *storage_lines(config),
        *proxy_lines(url, config.proxy.providers),
        *([f"MCP gateway: {gateway}/mcp/<server-id>"] if gateway else []),
    ]


def policy_line(snapshot: Snapshot, source: str) -> str:
    """Say which policy is in force."""
    mcp = snapshot.config.sandbox.mcp
    mode = "enforce" if mcp.enforce_policy else "audit (judges everything, blocks nothing)"
    digest = snapshot.digest.removeprefix("sha256:")[:12]
    servers = f"{len(mcp.servers)} MCP server{'s' if len(mcp.servers) != 1 else ''}"
    return f"policy {digest} (generation {snapshot.generation}) from {source}: {mode}, {servers}"


def storage_lines(config: Config) -> list[str]:
    """Say what of requests is kept or changed, if anything."""
    forced = " (proxy.mode is mcp-only)" if config.proxy.mode == "mcp-only" else ""
    lines = [f"DLP: {config.dlp.mode}s what it finds in requests"] if config.dlp.mode != "disabled" else []
    if config.llm_storage.store_bodies and config.proxy.mode != "disabled":
        how = "as DLP lets them leave" if lines else f"as they are, DLP is off{forced}"
        lines.append(f"requests and answers are stored beside {config.store.path}: {how}")
    return lines


def layer_lines(layers: Iterable[LayerStatus], config: Config) -> list[str]:
    """Say of each layer whether it is in force."""
    return [_layer_line(layer, config) for layer in layers]


def _layer_line(layer: LayerStatus, config: Config) -> str:
    if layer.in_force and layer.layer not in _ROLE:
        return f"{layer.layer}: {layer.detail}"
    if layer.in_force:
        enforcing = config.network.mode == "enforce" and config.sandbox.mcp.enforce_policy
        does = _ROLE[layer.layer] if enforcing else "connections are recorded, none is refused"
        told = "; ".join(filter(None, (layer.detail, layer.attachment)))
        return f"{layer.layer}: in force: {does} ({told})"
    if not layer.wanted:
        return f"{layer.layer}: off ({layer.reason})"
    remedy = f" (fix: {layer.remedy})" if layer.remedy else ""
    return f"{layer.layer}: NOT IN FORCE: {layer.reason}{remedy}"


def unknown_lines(snapshot: Snapshot, problems: Mapping[str, str]) -> list[str]:
    """Say which hosts shall be refused and have no address that could be. `problems`: name -> why none is known."""
    config = snapshot.config
    servers = {server.id for server in config.sandbox.mcp.servers}
    refused = {
        host
        for key, host in kernel_plan.watched_hosts(config).items()
        if host in problems and (_is_refused(key, snapshot) if key in servers else llm_plan.refuses(config))
    }
    return [
        f"{host}: NOT IN FORCE: no address is known that could be refused, until DNS or the hosts file has one: {problems[host]}"
        for host in sorted(refused)
    ]


def _is_refused(server_id: str, snapshot: Snapshot) -> bool:
    return snapshot.config.network.mode == "enforce" and snapshot.judge_server(server_id).denied


def proxy_lines(url: str, providers: Iterable[str]) -> list[str]:
    """Say where the proxy listens and what agents need in their environment."""
    if not url:
        return ["LLM proxy: off (proxy.mode is disabled)"]
    return [
        f"LLM proxy: {url}; point agents at it:",
        *(f"  export {n}={v}" for n, v in base_urls(url, providers).items()),
    ]


def server_lines(servers: Iterable[Server], notes: Iterable[str]) -> list[str]:
    """Say which servers came from a client's configuration, and which files could not be read."""
    found = [f"found MCP server {visible(s.id)} in {visible(s.source)}" for s in servers if s.source]
    return found + [f"warning: {visible(note)}" for note in notes]
