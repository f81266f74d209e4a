"""The schema of `sandbox.mcp`: declared servers, the rules over servers and tools, pins, rates, inspection.

What a rule does to a call is the policy's business; here it only becomes a value with its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentsh_net.core.configuration import settings
from agentsh_net.core.configuration.arguments import arguments, bounded_regex
from agentsh_net.core.configuration.patterns import content_hash, glob, native_tool
from agentsh_net.core.configuration.scalars import (
    duration,
    environment_name,
    fingerprint,
    flag,
    header_value,
    http_url,
    identifier,
    integer,
    one_of,
    positive,
    reference,
    sent_name,
    text,
    word,
)
from agentsh_net.core.configuration.schema import (
    At,
    Reader,
    Required,
    items,
    meant,
    record,
    secret,
    section,
    table,
)
from agentsh_net.core.model import Server, Transport
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.web.urls import HttpUrl

POLICIES = one_of("allowlist", "denylist", "none")
REACTIONS = one_of("block", "alert", "allow")
SEVERITIES = one_of("low", "medium", "high", "critical")

# A million calls a minute is no limit any more, and keeps the bucket's arithmetic exact.
MAX_RATE = 1_000_000

DECLARED_SERVER = reference("server")

SERVER = record(
    {
        "id": Required(identifier),
        "type": Required(one_of("stdio", "http", "sse")),
        "command": word,
        "args": secret(items(text)),
        "env": secret(table(environment_name, text)),
        "url": http_url,
        "headers": secret(table(sent_name, header_value)),
        "tls_fingerprint": fingerprint,
        "pin_tls": flag,
        "pin_binary": flag,
    }
)
BELONGS = {
    Transport.STDIO: ("command", "args", "env", "pin_binary"),
    Transport.HTTP: ("url", "headers", "tls_fingerprint", "pin_tls"),
    Transport.SSE: ("url", "headers", "tls_fingerprint", "pin_tls"),
}
ALLOWED = {transport: frozenset({"id", *keys}) for transport, keys in BELONGS.items()}


def server(at: At, value: Any) -> Server:
    """Read a declared server; what belongs to the other transport is a problem, not ignored."""
    given = SERVER(at, value)
    transport = Transport(given.pop("type"))
    keys = BELONGS[transport]
    for name in sorted(given.keys() - ALLOWED[transport]):
        at.key(name).note(
            f"`{name}` of a server of type {transport}", "only " + ", ".join(f"`{k}`" for k in keys)
        )
        del given[name]
    if keys[0] not in value:
        at.key(keys[0]).note("nothing", f"`{keys[0]}`: a server of type {transport} needs it")
    url: HttpUrl | None = given.pop("url", None)
    if url is None:
        return Server(transport=transport, **given)
    if "tls_fingerprint" in given and url.scheme != "https":
        at.key("tls_fingerprint").note("a fingerprint for a URL without TLS", "an https URL")
    return Server(transport=transport, url=value["url"], host=url.host, port=url.port, **given)


def server_rule(at: At, value: Any) -> settings.ServerRule:
    """Read `{id: glob}`, or the glob alone."""
    if isinstance(value, str):
        return settings.ServerRule(glob(at, value), at.path)
    return settings.ServerRule(record({"id": Required(glob)})(at, value)["id"], at.path)


def tool_rule(at: At, value: Any) -> settings.ToolRule:
    """Read a rule over tools; an empty one would mean every tool of every server, which is written with `*`."""
    if isinstance(value, str):
        at.refuse(value, "a mapping such as `{tool: ...}` or `{server: ..., tool: ...}`")
    given = record({"server": glob, "tool": glob, "content_hash": content_hash, "args": arguments})(at, value)
    if not value or set(value) == {"args"}:
        at.refuse(value, "`server`, `tool` or both (`*` for every one)")
    return settings.ToolRule(**given, path=at.path)


def default_burst(calls_per_minute: float) -> int:
    """Return the burst of a rate that names none: ten seconds' worth, at least one call."""
    return max(1, int(calls_per_minute / 6))


def _rate(calls_per_minute: float, burst: int | None = None) -> settings.RateLimit:
    return settings.RateLimit(calls_per_minute, default_burst(calls_per_minute) if burst is None else burst)


def _rates(
    *,
    enabled: bool,
    default_rpm: float = settings.RateLimits().default_rpm,
    default_burst: int | None = None,
    per_server: Mapping[str, settings.RateLimit] | None = None,
) -> settings.RateLimits:
    general = _rate(default_rpm, default_burst)
    return settings.RateLimits(enabled, general.calls_per_minute, general.burst, per_server or {})


RATE = section(_rate, {"calls_per_minute": Required(positive(MAX_RATE)), "burst": integer(1, MAX_RATE)})
RATES = section(
    meant(_rates),
    {
        "enabled": flag,
        "default_rpm": positive(MAX_RATE),
        "default_burst": integer(1, MAX_RATE),
        "per_server": table(DECLARED_SERVER, RATE),
    },
)

PINNING = section(
    settings.VersionPinning, {"enabled": flag, "on_change": REACTIONS, "auto_trust_first": flag}
)


CUSTOM_PATTERN = section(
    settings.CustomPattern,
    {"name": Required(identifier), "regex": Required(bounded_regex), "display": text, "severity": SEVERITIES},
)
CUSTOM_PATTERNS = items(CUSTOM_PATTERN, same=lambda pattern: fold(pattern.name))

INSPECTION = section(settings.Inspection, {"block_severity": SEVERITIES, "custom_patterns": CUSTOM_PATTERNS})
OUTPUT_INSPECTION = section(meant(settings.OutputInspection), {"enabled": flag, "on_detection": REACTIONS})
SERVER_ASKS = section(
    settings.ServerAsks, {"policy": REACTIONS, "per_server": table(DECLARED_SERVER, REACTIONS)}
)
CROSS_SERVER = section(
    meant(settings.CrossServer),
    {
        "enabled": flag,
        "read_then_send_window": duration(),
        "burst": section(settings.Burst, {"calls": integer(1, MAX_RATE), "window": duration()}),
        "same_turn_only": flag,
    },
)

MCP: Reader[settings.Mcp] = section(
    settings.Mcp,
    {
        "enforce_policy": flag,
        "fail_closed": flag,
        "block_mode": one_of("replace", "steer"),
        "hide_denied": flag,
        "native_tools": items(native_tool),
        "servers": items(server, same=lambda declared: fold(declared.id)),
        "server_policy": POLICIES,
        "allowed_servers": items(server_rule),
        "denied_servers": items(server_rule),
        "tool_policy": POLICIES,
        "allowed_tools": items(tool_rule),
        "denied_tools": items(tool_rule),
        "version_pinning": PINNING,
        "rate_limits": RATES,
        "inspection": INSPECTION,
        "output_inspection": OUTPUT_INSPECTION,
        "sampling": SERVER_ASKS,
        "elicitation": SERVER_ASKS,
        "cross_server": CROSS_SERVER,
    },
)
