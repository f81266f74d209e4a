"""OpenAI Chat Completions: the dialect as the proxy sees it. Whole answers and streams share one ledger of calls.

The Responses API is another dialect; what a call looks like is in openai_chat_fragments.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentsh_net.core.dialects.base import (
    Connector,
    Enforce,
    Fault,
    Judge,
    Limits,
    RequestFacts,
    Step,
    Stream,
    always,
    asked,
)
from agentsh_net.core.dialects.call_signs import LONGEST
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.machine import DONE, Wire
from agentsh_net.core.dialects.openai_chat.calls import NAME
from agentsh_net.core.dialects.openai_chat.fragments import fold
from agentsh_net.core.dialects.openai_chat.ordinary import PROSE
from agentsh_net.core.dialects.openai_chat.stream import ChatMachine
from agentsh_net.core.dialects.openai_chat.whole import rewrite_whole
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.request_offers import offering
from agentsh_net.core.dialects.request_reading import ambiguous, read_object, too_many
from agentsh_net.core.dialects.whole_answer import inspect_whole, is_harmless
from agentsh_net.core.values.strict_json import Reading, dump

# Stored completions carry calls as well, listed, alone or in their messages (GET, and POST to change metadata). Azure and gateways put
# a deployment or account before it: `/openai/deployments/d/chat/completions`. Mistral's agents answer as chats, xAI's deferred ones are
# fetched later, and gateways give the choices of legacy completions what they give those of chats.
_PATHS: Final = dict.fromkeys(
    ("GET", "POST"),
    re.compile(
        r"/(?:.*/)?(?:completions|chat/completions/[^/]+(?:/messages)?|chat/deferred-completion/[^/]+)"
    ),
)

# OpenAI refuses more than 128 tools; a request with more connectors than tools can be is not read further.
MAX_CONNECTORS: Final = 128
# Keys of a request that say what policy reads; one of them twice means two readers read two requests.
_REQUEST_KEYS: Final = frozenset(
    {"stream", "tools", "type", "server_url", "server_label", "connector_id", "mcp"}
)

_ERROR_TYPES: Final = {
    401: ("authentication_error", "invalid_api_key"),
    403: ("permission_error", None),
    404: ("invalid_request_error", "not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}

_WIRE: Final = Wire(signs=(DONE.lower()[:LONGEST],), prose=PROSE)


class OpenAIChat:
    """`base.Dialect` of `/v1/chat/completions`."""

    name = NAME
    own_framing = False
    files = False
    harmless = staticmethod(is_harmless)

    def inspects(self, method: str, path: str) -> bool:
        """Say whether answers to this request may carry tool calls."""
        return asked(_PATHS, method, path)

    def request(self, body: bytes) -> RequestFacts:
        """Read whether a stream is asked for, and which MCP servers the provider is asked to call itself.

        Chat Completions has no such connectors; gateways that speak it do, as tools of type `mcp`.
        """
        if not body.strip():
            return RequestFacts()
        reading = read_object(body)
        if isinstance(reading, Fault):
            return RequestFacts(fault=reading)
        clashes = {key.casefold() for key in reading.duplicates}
        keys = fold(reading.value, clashes)
        stream = _truth(reading.value.get(keys.get("stream", "stream")))
        connectors = _connectors(reading.value.get(keys.get("tools", "tools")), clashes)
        fault = ambiguous(body, clashes & _REQUEST_KEYS) or too_many(len(connectors), MAX_CONNECTORS)
        parsed = reading.value if connectors else offering(reading.value)
        return RequestFacts(stream, connectors[:MAX_CONNECTORS], fault, parsed=parsed)

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        """Return the machine for one streamed answer."""
        return Inspector(
            lambda: ChatMachine(judge, limits),
            _WIRE,
            limits=limits,
            fail_closed=fail_closed,
            error_frame=self.error_frame,
            enforce=enforce,
        )

    def framing(self, max_frame: int) -> None:
        """Its streams are server-sent events."""

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the client gets for a whole JSON answer: a completion, or a list of stored ones."""

        def rewrite(reading: Reading, out: Output) -> bytes:
            return rewrite_whole(data, reading, judge, out.judged)

        return inspect_whole(self, data, rewrite, fail_closed=fail_closed, enforce=enforce)

    def error(self, status: int, message: str) -> bytes:
        """Return an error body in OpenAI's shape."""
        return dump({"error": _error(status, message)}).encode()

    def error_frame(self, message: str) -> bytes:
        """Return an error event, at which the SDKs raise, and `[DONE]` for clients that only know that as the end."""
        return b"data: " + self.error(502, message) + b"\n\ndata: [DONE]\n\n"


def _connectors(tools: Any, clashes: set[str]) -> tuple[Connector, ...]:
    found: list[Connector] = []
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        keys = fold(tool, clashes)
        kind = tool.get(keys.get("type", "type"))
        if not isinstance(kind, str) or kind.casefold() != "mcp":
            continue
        inner = tool.get(keys.get("mcp", "mcp"))
        told = inner if isinstance(inner, dict) else tool
        told_keys = fold(told, clashes)
        label, url, identity = (
            told.get(told_keys.get(key, key)) for key in ("server_label", "server_url", "connector_id")
        )
        server_id = next((text for text in (label, identity) if isinstance(text, str) and text), "")
        found.append(Connector(server_id, url if isinstance(url, str) else ""))
    return tuple(found)


def _truth(value: Any) -> bool:
    """Return what lenient servers make of a flag."""
    return value.strip().casefold() in {"true", "1", "yes", "on"} if isinstance(value, str) else bool(value)


def _error(status: int, message: str) -> dict[str, Any]:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    kind, code = _ERROR_TYPES.get(status, (kind, None))
    return {"message": message, "type": kind, "param": None, "code": code}


DIALECT: Final = OpenAIChat()
