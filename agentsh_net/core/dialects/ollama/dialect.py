"""Ollama's own API: answers by lines (what it does unless `stream` is false) and whole ones, requests, and errors in its shape.

Its OpenAI- and Anthropic-like endpoints are read by their dialects. Pulling, creating and embedding carry no calls.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.dialects.base import Dialect, Fault, Judge, Limits, RequestFacts
from agentsh_net.core.dialects.inspection import streamed
from agentsh_net.core.dialects.lines import LinesMachine, by_lines
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.ollama.calls import NAME, Rulings, rewrite_whole
from agentsh_net.core.dialects.request_offers import offering
from agentsh_net.core.dialects.request_reading import ambiguous, read_object
from agentsh_net.core.dialects.whole_answer import whole
from agentsh_net.core.framing.ndjson import LineDecoder
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.members import folded, plain, twice

# `generate` takes no tools; its answer has a place for calls all the same.
_PATHS: Final = {"POST": re.compile(r".*/api/(?:chat|generate)")}


def _request(body: bytes) -> RequestFacts:
    """Read whether the answer streams; Ollama calls no MCP servers itself."""
    reading = read_object(body)
    if isinstance(reading, Fault):
        return RequestFacts(stream=True, fault=reading)
    keys = {plain(key) for key in reading.duplicates} | twice(reading.value)
    stream = folded(reading.value).get("stream") is not False
    return RequestFacts(
        stream=stream, fault=ambiguous(body, keys & {"stream", "tools"}), parsed=offering(reading.value)
    )


def _machine(judge: Judge, _limits: Limits) -> LinesMachine:
    return LinesMachine(Rulings(judge).rewrite)


def _error(_status: int, message: str) -> bytes:
    """Return an error body: in Ollama's shape it is the message alone."""
    return strict_json.dump({"error": message}).encode()


def _error_frame(message: str) -> bytes:
    """Return the line that ends a stream with an error."""
    return _error(502, message) + b"\n"


DIALECT: Final = Dialect(
    NAME,
    _PATHS,
    request=_request,
    stream=streamed(_machine, Wire(LineDecoder, strict=True, comment=b""), _error_frame),
    body=whole(rewrite_whole, _error),
    error=_error,
    error_frame=_error_frame,
    framing=by_lines,
)
