"""The Anthropic Messages API: streams and whole answers from one engine, requests, and errors in the provider's shape.

Batches and their JSONL results, and `count_tokens`, are not inspected: nothing in them reaches an agent as a call in an answer.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.dialects.anthropic import request as anthropic_request
from agentsh_net.core.dialects.anthropic.blocks import NAME, Rulings
from agentsh_net.core.dialects.anthropic.event import make_frame
from agentsh_net.core.dialects.anthropic.message import rewritten
from agentsh_net.core.dialects.anthropic.ordinary import PROSE
from agentsh_net.core.dialects.anthropic.stream import SIGNS, AnthropicMachine
from agentsh_net.core.dialects.base import Dialect, Enforce, Judge, Limits, Step, Stream, always, asked
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.whole_answer import inspect_whole, is_harmless
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import Reading

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

_WIRE: Final = Wire(signs=SIGNS, prose=PROSE)


def _error(kind: str, message: str) -> bytes:
    return strict_json.dump({"type": "error", "error": {"type": kind, "message": message}}).encode()


class AnthropicDialect:
    """A `base.Dialect`."""

    __slots__ = ()

    name = NAME
    own_framing = False
    files = False
    request = staticmethod(anthropic_request.read)
    harmless = staticmethod(is_harmless)

    def inspects(self, method: str, path: str) -> bool:
        """Say whether this is a request for a message; what a lenient router takes for one counts too."""
        return asked(_PATHS, method, path)

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        """Return the machine for one streamed answer."""
        return Inspector(
            lambda: AnthropicMachine(judge, limits),
            _WIRE,
            limits=limits,
            fail_closed=fail_closed,
            error_frame=self.error_frame,
            enforce=enforce,
        )

    def framing(self, max_frame: int) -> None:
        """Its streams are server-sent events."""

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the client gets for a whole JSON answer: byte for byte the same where no call is refused."""

        def rewrite(reading: Reading, out: Output) -> bytes | None:
            if not isinstance(reading.value, dict):
                return None
            return rewritten(data, reading, Rulings(judge), out).data

        return inspect_whole(self, data, rewrite, fail_closed=fail_closed, enforce=enforce)

    def error(self, status: int, message: str) -> bytes:
        """Return an error body; its type is the one that the API gives the status."""
        fallback = "invalid_request_error" if status < 500 else "api_error"
        return _error(_ERROR_TYPES.get(status, fallback), message)

    def error_frame(self, message: str) -> bytes:
        """Return the event that ends a stream with an error."""
        return make_frame("error", _error("api_error", message))


DIALECT: Final[Dialect] = AnthropicDialect()
