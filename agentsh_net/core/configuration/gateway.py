"""The schema of `gateway`: where it listens, the credentials it checks and adds, and its settings per server.

Which credential goes where on the wire is the gateway's business.
"""

from __future__ import annotations

from typing import Any

from agentsh_net.core.configuration import settings
from agentsh_net.core.configuration.patterns import glob
from agentsh_net.core.configuration.scalars import (
    FRAMING,
    MAX_BUFFER,
    NOT_FRAMING,
    duration,
    flag,
    header_name,
    header_value,
    identifier,
    listen,
    one_of,
    origin,
    port,
    reference,
    size,
)
from agentsh_net.core.configuration.schema import (
    At,
    Reader,
    Required,
    checked,
    items,
    meant,
    record,
    secret,
    section,
    table,
)
from agentsh_net.core.naming.folding import fold

SECURITY = reference("security scheme")

SCHEME = record(
    {
        "id": Required(identifier),
        "type": Required(one_of("http", "apiKey")),
        "credential": Required(secret(header_value)),
        "scheme": one_of("basic", "bearer"),
        "in": one_of("header", "query"),
        "name": header_name,
    }
)
SCHEME_KEYS = {"http": ("scheme",), "apiKey": ("in", "name")}


def security_scheme(at: At, value: Any) -> settings.SecurityScheme:
    """Read a credential and how it is carried (OpenAPI's securitySchemes: http and apiKey)."""
    given = SCHEME(at, value)
    wanted, other = SCHEME_KEYS[given["type"]], SCHEME_KEYS["http" if given["type"] == "apiKey" else "apiKey"]
    for name in wanted:
        if name not in value:
            at.key(name).note("nothing", f"`{name}`: a scheme of type {given['type']} needs it")
    for name in other:
        if given.pop(name, None):
            at.key(name).note(f"`{name}` of a scheme of type {given['type']}", "only " + ", ".join(wanted))
    if given.get("in") == "header" and given.get("name", "").lower() in FRAMING:
        at.key("name").note(f"the field {given['name']}", NOT_FRAMING)
    if not given["credential"].strip():
        at.key("credential").note(
            "an empty credential", "the secret, for instance ${file:/run/secrets/token}"
        )
    elif given.get("scheme") == "basic" and ":" not in given["credential"]:
        at.key("credential").note("a credential without a colon", "user:password (RFC 7617)")
    return settings.SecurityScheme(location=given.pop("in", ""), **given)


def _guarded(at: At, server: settings.GatewayServer) -> settings.GatewayServer:
    if server.user and not server.downstream_security:
        at.key("user").note(
            f"{server.user!r} without `downstream_security`",
            "a `downstream_security`: without one every local user could act as that user",
        )
    return server


def _user(at: At, value: Any) -> str:
    """Read the name of a user; root is none that a server may have."""
    name = identifier(at, value)
    if name in {"root", "0"}:
        at.refuse(value, "a user other than root: a server behind the gateway never runs as root")
    return name


def _passes_or_replaces(at: At, server: settings.GatewayServer) -> settings.GatewayServer:
    if server.passthrough and server.upstream_security:
        at.key("passthrough").note("true beside `upstream_security`", "one of the two")
    return server


GATEWAY: Reader[settings.Gateway] = section(
    meant(settings.Gateway),
    {
        "enabled": flag,
        "listen": listen,
        "port": port,
        "max_request": size(1 << 10, MAX_BUFFER),
        "max_response": size(1 << 10, MAX_BUFFER),
        "blocked_as": one_of("error", "result"),
        "allowed_origins": items(origin),
        "security_schemes": items(security_scheme, same=lambda scheme: fold(scheme.id)),
        "servers": table(
            reference("server"),
            checked(
                section(
                    settings.GatewayServer,
                    {
                        "timeout": duration(),
                        "downstream_security": SECURITY,
                        "upstream_security": SECURITY,
                        "passthrough": flag,
                        "hide_denied": flag,
                        "user": _user,
                        "allow_tools": items(glob),
                        "tools": table(
                            identifier, section(settings.GatewayTool, {"upstream_security": SECURITY})
                        ),
                    },
                ),
                _passes_or_replaces,
                _guarded,
            ),
        ),
    },
)
