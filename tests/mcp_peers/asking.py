"""What a declared server offers, asked for once: what the watcher does again and again."""

from __future__ import annotations

from agentsh_proxy.mcp_client.discovery import Discovered
from agentsh_proxy.mcp_client.session import Session

from agentsh_net.core.model import Server


async def discover(server: Server, *, within: float) -> Discovered:
    """Ask for it within so many seconds. Raises ProtocolError."""
    async with Session(server) as session:
        return Discovered.of(session, await session.list(within))
