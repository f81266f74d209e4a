"""What `status` tells: what is in force, as the kernel, the workers and the store say it now.

What of it is well or not, and how it is shown, is the command's business.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from agentsh_net import __version__
from agentsh_net.core.configuration.settings import Provider
from agentsh_net.core.network import egress, llm_plan
from agentsh_net.current import Current
from agentsh_net.daemon_state import DaemonState


async def told(daemon: DaemonState) -> dict[str, Any]:
    """Return what is in force: the kernel is asked now."""
    current = daemon.current
    mcp = current.snapshot.config.sandbox.mcp
    return {
        "version": __version__,
        "pid": os.getpid(),
        "started": daemon.started,
        "policy": {
            "generation": current.snapshot.generation,
            "digest": current.snapshot.digest,
            "path": str(current.loaded.path.absolute()) if current.loaded.path else None,
            "mode": "enforce" if mcp.enforce_policy else "audit",
            "fail_closed": mcp.fail_closed,
            "pending": list(current.pending),
            "refused": list(daemon.reloading.refused),
        },
        "layers": [asdict(status) for status in await daemon.layers.ask()],
        "limits": [asdict(limit) for limit in current.limits()],
        "proxy": _proxy(daemon),
        "store": asdict(daemon.writer.status()),
        "metrics": {"listen": daemon.page.url if daemon.page is not None else ""},
        "egress": _egress(daemon.current),
        "servers": _servers(daemon),
        **daemon.names.status(),
        "sessions": daemon.sessions.ids(),
        "running": [row["session_id"] for row in daemon.agents.describe() if row["running"]],
        "shims": daemon.shims.describe(),
        "notes": list(current.loaded.notes),
    }


def _proxy(daemon: DaemonState) -> dict[str, Any]:
    pool, config = daemon.pool, daemon.current.loaded.config.proxy
    if pool is None:
        nothing: dict[str, Any] = {
            "mode": config.mode,
            "listen": "",
            "gateway": "",
            "workers": [],
            "counters": {},
        }
        return nothing | {"direct": _direct(daemon.current)}
    return {
        "mode": config.mode,
        "listen": daemon.proxy_url,
        "gateway": daemon.gateway_url,
        "dlp": daemon.current.snapshot.config.dlp.mode,
        "stores": daemon.current.snapshot.config.llm_storage.store_bodies,
        "workers": [{"pid": pid} for pid in pool.pids],
        "counters": pool.counters(),
        "providers": {
            p.name: {"dialect": p.dialect, "base_url": _base_url(p, daemon.current)}
            for p in config.providers.values()
        },
        "direct": _direct(daemon.current),
        "trouble": pool.trouble,
        "remedy": "others take their places, with growing patience; see the log" if pool.trouble else "",
    }


def _base_url(provider: Provider, current: Current) -> str:
    """Return where a provider is; a path that came from the environment or a file may hold a secret."""
    if f"proxy.providers.{provider.name}.base_url" not in current.loaded.referred:
        return provider.base_url
    parts = urlsplit(provider.base_url)
    return f"{parts.scheme}://{parts.netloc}{'/...' if parts.path.strip('/') else ''}"


def _direct(current: Current) -> list[dict[str, Any]]:
    """Return the providers that agents shall not talk to directly, and where they are."""
    config = current.snapshot.config
    hosts = llm_plan.watched(config) if config.network.llm_direct != "off" else {}
    keys = {name: llm_plan.key(name) for name in config.proxy.providers}
    return [
        {"provider": name, "host": hosts[key], "refused": llm_plan.refuses(config)}
        | {"addresses": [str(a) for a in current.addresses.get(key, ())]}
        for name, key in keys.items()
        if key in hosts
    ]


def _egress(current: Current) -> dict[str, Any]:
    """Return what sessions may reach besides allowed servers, where that is not everything."""
    config = current.snapshot.config
    if egress.of(config) is None:
        return {"sessions": "open", "refused": False, "allow": []}
    allow = [
        {"host": d.host, "port": d.port or None}
        | {"addresses": [str(a) for a in egress.addresses_of(d, current.addresses)]}
        for d in config.network.egress.allow
    ]
    chosen = config.network.egress.sessions
    return {"sessions": chosen, "refused": egress.refuses(config), "allow": allow}


def _servers(daemon: DaemonState) -> list[dict[str, Any]]:
    current = daemon.current
    rows = []
    for server in current.snapshot.registry.servers:
        verdict = current.snapshot.judge_server(server.id)
        rows.append(
            {
                "server_id": server.id,
                "type": server.transport,
                "host": server.host,
                "port": server.port or None,
                "source": server.source,
                "addresses": [str(address) for address in current.addresses.get(server.id, ())],
                "action": verdict.action,
                "would": verdict.would,
                "denied": verdict.denied,
                "reason": verdict.reason,
                "rule": verdict.rule,
                "tools": len(current.snapshot.registry.tools_of(server.id)),
                "discovery": daemon.reports.last.get(server.id),
            }
        )
    return rows
