"""Which of MCP's two eras a client speaks: by what its request's head names, or by what its message has in it.

Which one a server speaks is found out by its answers, and not here.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentsh_net.core.mcp import gateway_http
from agentsh_net.core.mcp.exchange import LEGACY, MODERN
from agentsh_net.core.mcp.jsonrpc import Body, Request
from agentsh_proxy.gateway.requests import HttpRequest


def begins(body: Body | None) -> bool:
    """Say whether a message is the `initialize` that a session of an older revision begins with."""
    message = body.messages[0] if body is not None and not body.batch else None
    return isinstance(message, Request) and message.method == "initialize"


def is_modern(body: Body | None) -> bool:
    """Say whether a message is a request of 2026-07-28, by the version in it."""
    message = body.messages[0] if body is not None and not body.batch else None
    params = message.params if isinstance(message, Request) else None
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    return isinstance(meta, Mapping) and gateway_http.VERSION_KEY in meta


def asks_modern(asked: HttpRequest) -> bool:
    """Say whether a request is of the revision without sessions: by the revision it names, else by what it has of that one."""
    named = asked.fields.get("mcp-protocol-version", "")
    if named in LEGACY or (not named and asked.fields.get("mcp-method") == "initialize"):
        return False
    return named == MODERN or "mcp-method" in asked.fields or gateway_http.VERSION_KEY.encode() in asked.body
