"""What carries clients' requests to one server is to the router: it serves, lets go of what nobody uses, and is closed.

Whether a server speaks HTTP itself or sits behind a pipe is the carriers' business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from agentsh_net.core.mcp.jsonrpc import Id
from agentsh_net.core.model import Server
from agentsh_proxy.gateway.admission import Admitted
from agentsh_proxy.gateway.connection import GatewayConnection
from agentsh_proxy.gateway.requests import HttpRequest

# Whether a request is answered or will be, at once or once it is awaited; False where the server turned out to be of a kind that
# this carrier cannot serve, and nothing was answered.
Served = bool | Awaitable[bool]
# What a request gets for a server that policy denies; without an id, what a GET gets.
Denied = Callable[[Id | None], bytes]


class Carrier(Protocol):
    """Who carries requests to one server."""

    server: Server

    def serve(self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted) -> Served:
        """Answer a request of a client. Raises ProtocolError."""
        ...

    def tick(self, now: float) -> None:
        """Let go of what nobody uses (once a second)."""
        ...

    def deny(self, error: Denied) -> tuple[int, int]:
        """End everything with a server that policy denies; return how many sessions, and requests in flight, that ended."""
        ...

    def close(self) -> None:
        """End everything with the server."""
        ...
