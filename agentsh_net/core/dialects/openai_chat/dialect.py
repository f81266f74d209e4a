"""OpenAI Chat Completions: the dialect as the proxy sees it. Whole answers and streams share one ledger of calls.

The Responses API is another dialect; what a call looks like is in `fragments`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentsh_net.core.dialects.base import Connector, Dialect, Fault, RequestFacts
from agentsh_net.core.dialects.call_signs import LONGEST
from agentsh_net.core.dialects.inspection import streamed
from agentsh_net.core.dialects.machine import DONE, Wire
from agentsh_net.core.dialects.openai_chat.calls import NAME
from agentsh_net.core.dialects.openai_chat.fragments import fold
from agentsh_net.core.dialects.openai_chat.ordinary import PROSE
from agentsh_net.core.dialects.openai_chat.stream import ChatMachine
from agentsh_net.core.dialects.openai_chat.whole import rewrite_whole
from agentsh_net.core.dialects.request_offers import offering
from agentsh_net.core.dialects.request_reading import ambiguous, read_object, too_many, truth
from agentsh_net.core.dialects.whole_answer import whole
from agentsh_net.core.values.strict_json import dump

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


def _request(body: bytes) -> RequestFacts:
    """Read whether a stream is asked for, and which MCP servers the provider is asked to call itself.

    Chat Completions has no such connectors; gateways that speak it do, as tools of type `mcp`, and Mistral, of type `connector`.
    """
    if not body.strip():
        return RequestFacts()
    reading = read_object(body)
    if isinstance(reading, Fault):
        return RequestFacts(fault=reading)
    clashes = {key.casefold() for key in reading.duplicates}
    keys = fold(reading.value, clashes)
    stream = truth(reading.value.get(keys.get("stream", "stream")))
    connectors = _connectors(reading.value.get(keys.get("tools", "tools")), clashes)
    fault = ambiguous(body, clashes & _REQUEST_KEYS) or too_many(len(connectors), MAX_CONNECTORS)
    parsed = reading.value if connectors else offering(reading.value)
    return RequestFacts(stream, connectors[:MAX_CONNECTORS], fault, parsed=parsed)


def _connectors(tools: Any, clashes: set[str]) -> tuple[Connector, ...]:
    found: list[Connector] = []
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        keys = fold(tool, clashes)
        kind = tool.get(keys.get("type", "type"))
        if not isinstance(kind, str) or kind.strip().casefold() not in {"mcp", "connector"}:
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


def error(status: int, message: str) -> bytes:
    """Return an error body in the shape of all of OpenAI's APIs."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    kind, code = _ERROR_TYPES.get(status, (kind, None))
    return dump({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


def _error_frame(message: str) -> bytes:
    """Return an error event, at which the SDKs raise, and `[DONE]` for clients that only know that as the end."""
    return b"data: " + error(502, message) + b"\n\ndata: [DONE]\n\n"


DIALECT: Final = Dialect(
    NAME,
    _PATHS,
    request=_request,
    stream=streamed(ChatMachine, Wire(signs=(DONE.lower()[:LONGEST],), prose=PROSE), _error_frame),
    body=whole(rewrite_whole, error),
    error=error,
    error_frame=_error_frame,
)
