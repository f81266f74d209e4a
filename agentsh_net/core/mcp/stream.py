"""What an MCP client needs of a server-sent event: its kind and data, and the two fields that resume a stream.

Cutting the stream into frames is `sse`'s business, what a message says is `jsonrpc`'s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.sse import Frame

FIELD = re.compile(rb"^(id|retry)(?::[ ]?([^\r\n]*))?\r?$", re.MULTILINE)
LINE_ENDING = re.compile(rb"\r\n|\r")
MAX_RETRY_DIGITS = 9  # eleven days in milliseconds; our own bounds are far below


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event. `data` is empty where there is none; `id` and `retry` (milliseconds) are None where the field is not there."""

    kind: str
    data: bytes
    id: str | None = None
    retry: int | None = None


def read(frame: Frame) -> StreamEvent:
    """Return the event of a frame. Raises ProtocolError for one that outgrew the bound."""
    if frame.oversize:
        raise ProtocolError("the server sends an event that is too long", status=502)
    id_: str | None = None
    retry: int | None = None
    for name, value in FIELD.findall(LINE_ENDING.sub(b"\n", frame.raw)):
        if name == b"id" and b"\0" not in value:  # HTML standard, 9.2.6
            id_ = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= MAX_RETRY_DIGITS:
            retry = int(value)
    return StreamEvent(frame.event or "message", frame.data or b"", id_, retry)
