"""A call at the control socket: its arguments, of which nothing is taken for granted, and who makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentsh_net.control.peer import Peer
from agentsh_net.core.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, and by whom."""

    args: Mapping[str, Any]
    peer: Peer

    def text(self, name: str, default: str | None = None) -> str:
        """Return an argument that is text. Raises ProtocolError where it is not, or is missing without a default."""
        value = self.args.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise ProtocolError(f"{name} is text")
        return value
