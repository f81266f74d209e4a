"""A server's 401 behind the gateway: kept from a client that cannot mend it, with what would.

Tokens of a server that has a login of its own are bound to its own URL (RFC 8707): no client gets a good one at the gateway's.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.gateway_http import wants_login
from agentsh_proxy.gateway.view import Place
from agentsh_proxy.http_client import Response


def check(response: Response, place: Place, asked: Mapping[str, str]) -> None:
    """Raise ProtocolError for a 401 about the gateway's own credential, or about a login; `asked` are the client's fields."""
    if response.status != 401:
        return
    passthrough = place.settings.passthrough
    declared = any(name.lower() == "authorization" for name in place.server.headers)
    shown = declared or place.upstream is not None or (passthrough and "authorization" in asked)
    if not shown and wants_login(response.headers):
        raise ProtocolError(
            f"server {place.server.id} wants a login of its own (OAuth), and its tokens are bound to its own URL: give "
            "the gateway a token for it (gateway.servers, upstream_security), or let the client connect to it directly",
            status=502,
        )
    if not passthrough:
        raise ProtocolError(
            f"server {place.server.id} refuses the gateway's credential (HTTP 401): "
            "check gateway.servers and security_schemes, or set `passthrough`",
            status=502,
        )
