"""Heads of answers, and an inspection that refuses every call, for tests of what becomes of an answer."""

from __future__ import annotations

import orjson
from agentsh_proxy.llm.inspecting import Inspection
from agentsh_proxy.llm.relaying import Client

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.catalog import BY_NAME
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.web.http_head import parse_response

BOTH = Client(chunks=True, keep_alive=True)
TEXT = b'event: ping\ndata: {"type": "ping"}\n\n'
START = orjson.dumps(
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "x", "input": {}},
    }
)
HELD = b"event: content_block_start\ndata: " + START + b"\n\n"


def inspection(
    notes: list | None = None, *, stream: bool = True, fail_closed: bool = False, max_body: int = 1 << 20
) -> Inspection:
    notes = [] if notes is None else notes
    return Inspection(
        dialect=BY_NAME["anthropic"], judge=lambda _: Verdict(Action.BLOCK, "no"), limits=Limits(), fail_closed=fail_closed,
        max_body=max_body, wants_stream=stream, note=lambda step: notes.extend((*step.judged, *step.faults)),
    )  # fmt: skip


def head(*fields: bytes, status: bytes = b"200 OK"):
    return parse_response(b"\r\n".join([b"HTTP/1.1 " + status, *fields]) + b"\r\n\r\n")


SSE = head(b"Content-Type: text/event-stream", b"Transfer-Encoding: chunked")
JSON = head(b"Content-Type: application/json", b"Content-Length: 2")


def never() -> bool:
    return False
