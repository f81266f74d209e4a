"""Requests of a client that a line of its server answers, as the shim names them.

What becomes of the answers is the handler's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentsh_net.core.links.shim_link import LinkError
from agentsh_net.core.mcp.jsonrpc import Body, ErrorResponse, Id


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request of the client that a message on the line answers. `continues`: a tools/list that named a cursor.

    `tool` is that of a tools/call, or the prompt or resource that another request names. `id` is None of what answers none.
    """

    index: int
    id: Id | None
    method: str
    continues: bool
    tool: str


def answered_request(item: Any) -> AnsweredRequest:
    """Return what a shim says of a request. Raises LinkError."""
    match item:
        case [int(index), int() | str() as id_, str(method), bool(continues), str(tool)] if index >= 0:
            return AnsweredRequest(index, id_, method, continues, tool)
        case _:
            raise LinkError("an answer to a request that is none")


def unasked(body: Body) -> list[tuple[AnsweredRequest, ErrorResponse]]:
    """Return the errors that answer no request: of a message that the server could not read (JSON-RPC 2.0, section 5)."""
    return [
        (AnsweredRequest(index, None, "", continues=False, tool=""), message)
        for index, message in enumerate(body.messages)
        if isinstance(message, ErrorResponse) and message.id is None
    ]
