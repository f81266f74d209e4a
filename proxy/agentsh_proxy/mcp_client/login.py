"""Which declared servers want a login of their own (OAuth): asked once each, without any credential, as a client's first request.

What follows from it is the caller's business: tokens that such a server takes are bound to its own URL (RFC 8707), so a client
that asks for one at the gateway's URL is refused by its SDK, or gets one that the server must not take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import exchange as mcp_exchange
from agentsh_net.core.mcp import http_rules as mcp_http
from agentsh_net.core.model import Server, Transport
from agentsh_proxy.http_client import HttpClient, tls_context

PATIENCE: Final = 5.0  # seconds for one server; all are asked at once, and somebody waits for it
_INITIALIZE: Final = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},'
    b'"clientInfo":{"name":"agentsh-net","version":"1"}}}' % mcp_exchange.LEGACY[0].encode()
)


async def logins(servers: Sequence[Server]) -> frozenset[str]:
    """Return the ids of the servers that answer a request without a credential with 401. Who cannot be asked is none."""
    wanted = await asyncio.gather(*map(_wants_login, servers))
    return frozenset(server.id for server, wants in zip(servers, wanted, strict=True) if wants)


async def _wants_login(server: Server) -> bool:
    try:
        address = mcp_http.address(server.url)
        secure = address.scheme == "https"
        client = HttpClient(address, tls=tls_context() if secure else None, pin=server.tls_fingerprint)
        try:
            async with asyncio.timeout(PATIENCE):
                return await _status(client, server, address.target) == 401
        finally:
            client.close()
    except (ProtocolError, TimeoutError):
        return False


async def _status(client: HttpClient, server: Server, target: str) -> int:
    if server.transport is Transport.SSE:
        response = await client.request("GET", target, (("Accept", "text/event-stream"),))
    else:
        headers = mcp_http.post_headers("", "initialize", "")
        response = await client.request("POST", target, headers, _INITIALIZE)
    response.close()
    return response.status
