"""A shim's lines as every peer reads them, or what is to be known of one that peers may read differently.

What becomes of either is the handler's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links import shim_link
from agentsh_net.core.mcp import dangers, gate, jsonrpc
from agentsh_net.core.mcp.jsonrpc import Body, Id

LIMITS: Final = jsonrpc.Limits(size=shim_link.MAX_LINE)


class Unread(NamedTuple):
    """A line that is not read for certain: why, and what some peer may take it for; a server's may be mere noise.

    `ids`: of a client's line that of its message, where that can be told; of a server's those of the answers on it.
    """

    why: str
    danger: str
    ids: tuple[Id, ...]
    noise: bool = False


Read = Callable[[bytes], Body | Unread]


def of_client(line: bytes) -> Body | Unread:
    """Read a client's line, the tools that it calls too."""
    try:
        body = gate.read(line, LIMITS)
        for message in filter(gate.is_call, body.messages):
            gate.call_in(message)
    except ProtocolError as error:
        id_ = dangers.id_in(line)
        return Unread(str(error), dangers.doubt_of_client(line), () if id_ is None else (id_,))
    return body


def of_server(line: bytes) -> Body | Unread:
    """Read a server's line."""
    try:
        return gate.read(line, LIMITS)
    except ProtocolError as error:
        noise = dangers.is_noise(line)
        return Unread(str(error), dangers.doubt(line), tuple(dangers.answered_in(line)), noise)
