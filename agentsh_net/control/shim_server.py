"""The socket that shims ask at: open to every local user, for questions about their own lines and nothing else.

How many may be there, and whose; what is said on one connection is `shim_connection`'s business, who may control the daemon
the other socket's.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agentsh_net.control.peer import Peer
from agentsh_net.control.shim_allowance import Allowance
from agentsh_net.control.shim_connection import CHUNK, Service, ShimConnection
from agentsh_net.control.socket_file import Listening, listen

MAX_SHIMS: Final = 512  # an agent has a dozen servers, and a machine a few dozen agents
MAX_SHIMS_OF_USER: Final = 128
CLOSING: Final = 3.0  # seconds in which what was told goes on record when the daemon ends


class ShimServer:
    """Serves the shims' socket, mode 0666."""

    def __init__(self, path: Path, service: Service, on_bug: Callable[[BaseException], None]) -> None:
        self._path = path
        self._service = service
        self._on_bug = on_bug
        self._listening: Listening | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[ShimConnection] = set()
        self._users: dict[int, Allowance] = {}
        # Where connections read, one after the other: asyncio would ask the system for memory each time.
        self.space = memoryview(bytearray(CHUNK))

    async def start(self) -> None:
        """Begin to listen. Raises ControlError."""
        self._listening = listen(self._path, 0o666)
        _let_pass(self._path.parent)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: ShimConnection(self, self._service, self._on_bug), sock=self._listening.socket
        )

    async def close(self) -> None:
        """End every connection and remove the socket."""
        if self._server is not None:
            self._server.close()
        until = asyncio.get_running_loop().time() + CLOSING
        for connection in tuple(self._connections):
            await connection.record_all(until)
            connection.abort()
        if self._listening is not None:
            self._listening.release()
            self._listening = None

    def revoke(self) -> None:
        """Tell every shim that the policy is another now: no verdict stands."""
        for connection in self._connections:
            connection.revoke()

    def admit(self, connection: ShimConnection, peer: Peer, now: float) -> Allowance | None:
        """Return what a user may ask for, or None where there are too many connections already."""
        user = self._users.setdefault(peer.uid, Allowance(now))
        if len(self._connections) >= MAX_SHIMS or user.connections >= MAX_SHIMS_OF_USER:
            return None
        user.connections += 1
        self._connections.add(connection)
        return user

    def release(self, connection: ShimConnection) -> None:
        """Forget a connection. What its user asked for stays counted."""
        self._connections.discard(connection)


def _let_pass(folder: Path) -> None:
    """Let every user through the folder that we made (0750) to the one socket in it that is theirs; not into it."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode == 0o750:
        folder.chmod(0o751)
