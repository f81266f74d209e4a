"""The Anthropic Messages API: streams and whole answers from one engine, requests, and errors in the provider's shape.

Batches and their JSONL results, and `count_tokens`, are not inspected: nothing in them reaches an agent as a call in an answer.
"""

from __future__ import annotations

from typing import Final

import orjson

from agentsh_net.core import strict_json
from agentsh_net.core.dialects import anthropic_request
from agentsh_net.core.dialects.anthropic_blocks import NAME, Rulings
from agentsh_net.core.dialects.anthropic_event import make_frame
from agentsh_net.core.dialects.anthropic_message import rewritten
from agentsh_net.core.dialects.anthropic_stream import SIGNS, AnthropicMachine
from agentsh_net.core.dialects.base import Dialect, Judge, Limits, RequestFacts, Step, Stream
from agentsh_net.core.dialects.inspection import Inspector, Output, may_hide_call
from agentsh_net.core.errors import ProtocolError

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

_PATHS: Final = frozenset({"/v1/messages", "/messages"})


def _error(kind: str, message: str) -> bytes:
    return strict_json.dump({"type": "error", "error": {"type": kind, "message": message}}).encode()


class AnthropicDialect:
    """A `base.Dialect`."""

    __slots__ = ()

    name = NAME

    def inspects(self, method: str, path: str) -> bool:
        """Say whether this is a request for a message; what a lenient router takes for one counts too."""
        plain = path.partition("?")[0].rstrip("/").casefold()
        return method.upper() == "POST" and plain in _PATHS

    def request(self, body: bytes) -> RequestFacts:
        """Read whether the answer streams and which MCP servers the provider is to call."""
        return anthropic_request.read(body)

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool) -> Stream:
        """Return the machine for one streamed answer."""
        return Inspector(
            AnthropicMachine(judge, limits),
            limits=limits,
            fail_closed=fail_closed,
            error_frame=self.error_frame,
            signs=SIGNS,
        )

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool) -> Step:
        """Return what the client gets for a whole JSON answer: byte for byte the same where no call is refused."""
        if not may_hide_call(data) and _is_json(data):
            return Step(data)
        out = Output(fail_closed=fail_closed, error_frame=lambda message: self.error(502, message))
        try:
            reading = strict_json.read(data)
        except strict_json.DivergentError as error:
            out.fault("unreadable_json", str(error), must_cut=True)
            return out.step()
        except ProtocolError as error:
            if not out.fault("malformed_json", str(error)):
                out.write(data)
            return out.step()
        if "invalid_utf8" in reading.flaws and out.fault("invalid_utf8", "the answer is not UTF-8"):
            return out.step()
        changed = None
        if isinstance(reading.value, dict):
            changed = rewritten(data, reading, Rulings(judge), out).data
        out.write(data if changed is None else changed)
        return out.step()

    def error(self, status: int, message: str) -> bytes:
        """Return an error body; its type is the one that the API gives the status."""
        fallback = "invalid_request_error" if status < 500 else "api_error"
        return _error(_ERROR_TYPES.get(status, fallback), message)

    def error_frame(self, message: str) -> bytes:
        """Return the event that ends a stream with an error."""
        return make_frame("error", _error("api_error", message))


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


DIALECT: Final[Dialect] = AnthropicDialect()
