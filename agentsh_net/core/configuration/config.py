"""A mapping becomes a Config, or every problem of it is told at once, each with its YAML path.

The tables are the schema: one row per key, in the order of the settings. Reading the file, expanding variables and
watching it are the shell's business (`agentsh_net.config`); the leaves are in `core.configuration.scalars`, MCP's tables in `core.configuration.mcp`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import combinations
from typing import Any

from agentsh_net.core.configuration import egress, settings
from agentsh_net.core.configuration.gateway import GATEWAY
from agentsh_net.core.configuration.mcp import CUSTOM_PATTERNS, MCP
from agentsh_net.core.configuration.providers import providers
from agentsh_net.core.configuration.scalars import (
    MAX_BUFFER,
    absolute_path,
    duration,
    flag,
    integer,
    listen,
    one_of,
    port,
    positive,
    size,
    socket_path,
)
from agentsh_net.core.configuration.schema import At, Refused, checked, items, section, table
from agentsh_net.core.dlp.shapes import BUILT_IN
from agentsh_net.core.errors import ConfigError, Problem
from agentsh_net.core.model import Transport
from agentsh_net.core.naming.folding import fold

# More workers than a big machine has cores is a slip; each costs tens of megabytes.
MAX_WORKERS = 256

# They take the port of every address.
ANY_ADDRESS = {"0.0.0.0", "::"}  # noqa: S104  compared with, not bound

PROXY = section(
    settings.Proxy,
    {
        "mode": one_of("embedded", "mcp-only", "disabled"),
        "listen": listen,
        "port": port,
        "workers": integer(1, MAX_WORKERS),
        "max_frame": size(256, MAX_BUFFER),
        "max_request": size(1 << 10, MAX_BUFFER),
        "max_body": size(1 << 10, MAX_BUFFER),
        "websockets": one_of("refuse", "inspect"),
        "connect_timeout": duration(),
        "idle_timeout": duration(),
        "providers": providers,
    },
)

DLP = section(
    partial(settings.Dlp, mode="redact"),  # who writes it down means it
    {
        "mode": one_of("redact", "tokenize", "disabled"),
        "patterns": table(one_of(*BUILT_IN), flag),
        "custom_patterns": CUSTOM_PATTERNS,
    },
)


def retention(default: settings.Retention) -> Any:
    """Return the reader of a retention whose omitted keys are `default`'s."""

    def make(
        max_age_days: float = default.max_age_days, max_size_mb: float = default.max_size_mb
    ) -> settings.Retention:
        return settings.Retention(max_age_days, max_size_mb)

    return section(make, {"max_age_days": positive(36500), "max_size_mb": positive(1e9)})


LLM_STORAGE = section(
    settings.LlmStorage, {"store_bodies": flag, "retention": retention(settings.LlmStorage().retention)}
)
STORE = section(settings.Store, {"path": absolute_path, "retention": retention(settings.Store().retention)})


def _ordered_ttls(at: At, resolve: settings.Resolve) -> settings.Resolve:
    if resolve.min_ttl > resolve.max_ttl:
        at.key("min_ttl").note(f"{resolve.min_ttl:g}s", f"at most `max_ttl`, which is {resolve.max_ttl:g}s")
    return resolve


def _mark_within_mask(at: At, network: settings.Network) -> settings.Network:
    if network.mark & ~network.mark_mask:
        at.key("mark").note(
            f"{network.mark:#010x}", f"bits of `mark_mask`, which is {network.mark_mask:#010x}"
        )
    if not network.mark and network.mark_mask != settings.Network().mark_mask:
        at.key("mark_mask").note(f"{network.mark_mask:#010x}", "a `mark` in it")
    return network


def _a_layer_of_the_scope(at: At, network: settings.Network) -> settings.Network:
    if (
        network.scope == "netns"
        and network.mode != "off"
        and network.layers
        and "nftables" not in network.layers
    ):
        at.key("layers").note(", ".join(network.layers), "`nftables` too: `scope: netns` has no other layer")
    return network


NETWORK = checked(
    section(
        settings.Network,
        {
            "mode": one_of("off", "tag", "enforce"),
            "required": flag,
            "layers": items(one_of("ebpf", "nftables"), same=str),
            "scope": one_of("host", "sessions", "netns"),
            "llm_direct": one_of("off", "tag", "refuse"),
            "on_exit": one_of("remove", "keep"),
            "on_crash": one_of("keep"),  # what a killed daemon leaves stays: nobody is there to take it away
            "on_shared_address": one_of("sni", "block", "tag"),
            "on_unknown_sni": one_of("block", "tag"),
            "bpf_loader": one_of("auto", "prebuilt", "bcc"),
            "mark": integer(0, 0xFFFFFFFF),
            "mark_mask": integer(0, 0xFFFFFFFF),
            "nflog_group": integer(1, 65535),
            "egress": checked(
                section(
                    settings.Egress,
                    {
                        "sessions": one_of("open", "tag", "refuse"),
                        "allow": items(egress.destination, same=egress.same),
                    },
                ),
                egress.within_room,
            ),
            "resolve": checked(
                section(
                    settings.Resolve,
                    {
                        "min_ttl": duration(),
                        "max_ttl": duration(),
                        "grace": duration(zero=True),
                        "snoop_dns": flag,
                        "stub": flag,
                        "stub_listen": listen,
                        "stub_port": port,
                        "upstream": items(listen, same=str),
                    },
                ),
                _ordered_ttls,
            ),
        },
    ),
    _mark_within_mask,
    _a_layer_of_the_scope,
)

CONFIG = section(
    settings.Config,
    {
        "version": integer(1, 1),
        "sandbox": section(settings.Sandbox, {"mcp": MCP}),
        "proxy": PROXY,
        "dlp": DLP,
        "llm_storage": LLM_STORAGE,
        "gateway": GATEWAY,
        "network": NETWORK,
        "store": STORE,
        "metrics": section(partial(settings.Metrics, listen="127.0.0.1"), {"listen": listen, "port": port}),
        "log": section(
            settings.Log,
            {"format": one_of("text", "json"), "level": one_of("debug", "info", "warning", "error")},
        ),
        "control": section(settings.Control, {"socket": socket_path}),
    },
)


def parse(mapping: Mapping[str, Any]) -> settings.Config:
    """Return the Config of a mapping, or raise ConfigError with all its problems, in the order of the file."""
    problems: list[Problem] = []
    names = {
        "server": _ids(mapping, "sandbox", "mcp", "servers"),
        "security scheme": _ids(mapping, "gateway", "security_schemes"),
    }
    config = settings.Config()
    try:
        config = CONFIG(At("", problems, names=names), mapping)
        _distinct_ports(config, problems)
        _credentials_over_http(config, problems)
    except Refused:
        pass  # noted already
    config = in_force(config)
    if problems:
        raise ConfigError(problems)
    return config


def _credentials_over_http(config: settings.Config, problems: list[Problem]) -> None:
    """Note credentials for servers that nobody sends a header to."""
    local = {fold(s.id) for s in config.sandbox.mcp.servers if s.transport is Transport.STDIO}
    for name, server in config.gateway.servers.items():
        given = (
            ("upstream_security", server.upstream_security), ("passthrough", server.passthrough),
            ("tools", any(tool.upstream_security for tool in server.tools.values())),
        )  # fmt: skip
        for key, value in given if fold(name) in local else ():
            if value:
                problems.append(
                    Problem(
                        f"gateway.servers.{name}.{key}",
                        "a credential for a stdio server",
                        "none: a process gets its credentials by its `env`",
                    )
                )


def in_force(config: settings.Config) -> settings.Config:
    """Return the configuration with what its proxy mode forces: `mcp-only` leaves bodies alone and keeps them."""
    if config.proxy.mode != "mcp-only":
        return config
    return replace(
        config,
        dlp=replace(config.dlp, mode="disabled"),
        llm_storage=replace(config.llm_storage, store_bodies=True),
    )


def digest(mapping: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of a JSON-like mapping: equal for equal content, whatever the order of its keys."""
    canonical = json.dumps(mapping, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode("ascii")).hexdigest()


def _ids(mapping: Any, *steps: str) -> dict[str, str]:
    """Return the ids declared in a list of the raw mapping, as folded -> as spelt."""
    for step in steps:
        mapping = mapping.get(step) if isinstance(mapping, Mapping) else None
    found: dict[str, str] = {}
    for entry in mapping if isinstance(mapping, list | tuple) else ():
        name = entry.get("id") if isinstance(entry, Mapping) else None
        if isinstance(name, str):
            found.setdefault(fold(name), name)
    return found


def _distinct_ports(config: settings.Config, problems: list[Problem]) -> None:
    """Note listeners that would stand in each other's way; port 0 is any free port."""
    proxy, gateway, metrics = config.proxy, config.gateway, config.metrics
    listeners = [
        ("proxy.port", proxy.mode != "disabled", proxy.listen, proxy.port),
        ("gateway.port", gateway.enabled, gateway.listen, gateway.port),
        ("metrics.port", bool(metrics.listen), metrics.listen, metrics.port),
    ]
    active = [(path, address, number) for path, on, address, number in listeners if on and number]
    for (path, address, number), (other, other_address, other_number) in combinations(active, 2):
        if number == other_number and (address == other_address or {address, other_address} & ANY_ADDRESS):
            problems.append(Problem(other, f"{number}, the same as `{path}`", "a port of its own"))
