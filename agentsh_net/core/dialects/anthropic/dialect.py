"""The Anthropic Messages API: streams and whole answers from one engine, requests, and errors in the provider's shape.

Batches and their results are `batches`' business. `count_tokens` is not inspected: nothing in it reaches an agent as a call.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.dialects.anthropic import request as anthropic_request
from agentsh_net.core.dialects.anthropic.blocks import NAME
from agentsh_net.core.dialects.anthropic.message import rewrite_whole
from agentsh_net.core.dialects.anthropic.ordinary import PROSE
from agentsh_net.core.dialects.anthropic.stream import SIGNS, AnthropicMachine
from agentsh_net.core.dialects.base import Dialect
from agentsh_net.core.dialects.inspection import streamed
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.whole_answer import whole
from agentsh_net.core.framing.sse_writing import make_frame
from agentsh_net.core.values import strict_json

# https://docs.anthropic.com/en/api/errors
_ERROR_TYPES: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}

# Gateways put an account before it, Bedrock's own endpoint and DeepSeek `/anthropic`, some clients no version. Claude on Vertex AI: the
# same bodies under projects/P/locations/L/publishers/anthropic/models/M.
_PATHS: Final = {
    "POST": re.compile(r"(?:/.*)?/messages|/.*/publishers/anthropic/models/[^/]+:(?:stream)?rawpredict")
}


def _error(status: int, message: str) -> bytes:
    """Return an error body; its type is the one that the API gives the status."""
    fallback = "invalid_request_error" if status < 500 else "api_error"
    return _told(_ERROR_TYPES.get(status, fallback), message)


def _error_frame(message: str) -> bytes:
    """Return the event that ends a stream with an error."""
    return make_frame("error", _told("api_error", message))


def _told(kind: str, message: str) -> bytes:
    return strict_json.dump({"type": "error", "error": {"type": kind, "message": message}}).encode()


DIALECT: Final = Dialect(
    NAME,
    _PATHS,
    request=anthropic_request.read,
    stream=streamed(AnthropicMachine, Wire(signs=SIGNS, prose=PROSE), _error_frame),
    body=whole(rewrite_whole, _error),
    error=_error,
    error_frame=_error_frame,
)
