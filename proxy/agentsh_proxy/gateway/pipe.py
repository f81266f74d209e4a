"""What a server behind a pipe is to the gateway: messages in and out, one by one. stdio and HTTP+SSE servers are such.

What the messages say is the sessions' business, how they travel the pipes'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from agentsh_net.core.errors import ProtocolError

Hear = Callable[[bytes], bool]  # takes a message, and says whether it could be taken at once
Failed = Callable[[ProtocolError], None]  # is told, later, that a message was not taken


class Pipe(Protocol):
    """A server that takes and gives messages one by one."""

    async def open(self) -> None:
        """Connect. Raises ProtocolError."""
        ...

    def attach(self, hear: Hear) -> None:
        """Have messages heard as they come, in their order; what is not heard waits for `receive`."""
        ...

    def start(self, message: bytes, failed: Failed) -> bool:
        """Send a message if that can be done without waiting, and say so; `failed` is told if it turns out not to be taken."""
        ...

    async def send(self, message: bytes) -> None:
        """Send a message. Raises ProtocolError."""
        ...

    async def receive(self) -> bytes:
        """Return the next message. Raises ProtocolError where there will be none."""
        ...

    def close(self) -> None:
        """End the server's side."""
        ...
