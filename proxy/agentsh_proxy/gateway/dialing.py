"""What the gateway tells of the connections that it opens to servers: whose request led to one, which the kernel cannot know.

The kernel's records of them name a worker that serves everybody; they are left out (`agentsh_net.current`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from agentsh_net.core.audit.events import Event, NetworkConnection
from agentsh_net.core.model import Server
from agentsh_proxy.http_client import Response

LAYER: Final = "proxy"
REASON: Final = "the gateway connected for a request of this session"

Tell = Callable[[Response, Server, str], None]  # what was answered, by which server, in which session


def teller(emit: Callable[[Event], None]) -> Tell:
    """Return what tells of an answer's connection if it was opened for it."""

    def tell(response: Response, server: Server, session_id: str) -> None:
        if response.opened:
            emit(connected(server, session_id, response.opened))

    return tell


def connected(server: Server, session_id: str, remote: tuple[str, int]) -> NetworkConnection:
    """Return the event of a connection to an address and port. The request explains it, be it a call or not."""
    host, port = remote
    return NetworkConnection(
        session_id=session_id,
        reason=REASON,
        remote_addr=f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        remote_host=server.host,
        server_id=server.id,
        server_type=server.transport.value,
        candidates=[server.id],
        layer=LAYER,
        family="inet6" if ":" in host else "inet",
        protocol="tcp",
        pid=os.getpid(),
        comm="agentsh-net",
        uid=os.getuid(),
        correlated=True,
    )
