"""Batches: the requests that make one (Anthropic's stand in the body), and files and lines of results, with an answer in each line.

A file may hold anything: what is no JSON by lines is none of it. OpenAI's and Gemini's batches are made of files that nobody reads on
their way up; those go by fail_closed (`core.web.http_route`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any, Final

from agentsh_net.core.dialects import embedded
from agentsh_net.core.dialects.anthropic import dialect as anthropic
from agentsh_net.core.dialects.anthropic import request as anthropic_request
from agentsh_net.core.dialects.base import Connector, Dialect, Judge, Limits, RequestFacts
from agentsh_net.core.dialects.call_signs import may_hide_call
from agentsh_net.core.dialects.gemini import dialect as gemini
from agentsh_net.core.dialects.inspection import streamed
from agentsh_net.core.dialects.lines import LinesMachine, by_lines
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.openai_chat import dialect as openai_chat
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.request_reading import ambiguous, may_name_server, too_many, unreadable
from agentsh_net.core.dialects.unread import is_harmless_json
from agentsh_net.core.dialects.whole_answer import whole
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.ndjson import LineDecoder
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.members import folded, twice
from agentsh_net.core.values.strict_json import Reading

NAME: Final = "batch"

# Besides what every dialect looks for: calls of the Responses API that speak of no tool.
_SIGNS: Final = (b"call", b"mcp_", b"rogra")
_HARMLESS: Final = partial(is_harmless_json, speaks=partial(may_hide_call, signs=_SIGNS))
_WIRE: Final = Wire(LineDecoder, signs=_SIGNS, strict=True, comment=b"")
_NAMING: Final = frozenset(
    {"requests", "params", "mcp_servers", "tools", "type", "name", "url", "mcp_server_name"}
)

# What requests stand in: of two that are alike but for their case nobody knows which counts.
_WRAPPING: Final = frozenset({"requests", "params"})

# Servers of one batch, each told of in an event: more than anybody declares.
_MAX_CONNECTORS: Final = 64

_MADE: Final = {"POST": re.compile(r"(?:/.*)?/messages/batches")}
_RESULTS: Final = {"GET": re.compile(r"(?:/.*)?/(?:messages/batches/[^/]+/results|batches/[^/]+/output)")}
_FILES: Final = {"GET": re.compile(r"(?:/.*)?/files/(?:[^/]+/content|[^/]+:download)")}


def _machine(judge: Judge, _limits: Limits) -> LinesMachine:
    def rewrite(data: bytes, reading: Reading, out: Output) -> bytes | None:
        return embedded.rewritten(data, reading, judge, out)

    return LinesMachine(rewrite)


def _made(body: bytes) -> RequestFacts:
    """Read which MCP servers the provider is to call for any of the requests that make a batch."""
    if not may_name_server(body):
        return RequestFacts()
    try:
        reading = strict_json.read(body)
    except ProtocolError as error:
        return RequestFacts(fault=unreadable(body, error))
    clashes = {key.casefold() for key in reading.duplicates} & _NAMING
    listed = folded(reading.value).get("requests")
    entries = listed if isinstance(listed, list) else []
    for part in (reading.value, *entries):
        clashes |= twice(part) & _WRAPPING if isinstance(part, dict) else set()
    if (fault := ambiguous(body, clashes)) is not None:
        return RequestFacts(fault=fault)
    connectors: dict[Connector, None] = {}
    for entry in entries:
        params: Any = folded(entry).get("params")
        inner = anthropic_request.read(strict_json.dump(params).encode())
        if inner.fault is not None and inner.fault.cut:
            return RequestFacts(fault=inner.fault)
        connectors |= dict.fromkeys(inner.connectors)
    if (fault := too_many(len(connectors), _MAX_CONNECTORS)) is not None:
        return RequestFacts(fault=fault)
    parsed = reading.value if isinstance(reading.value, dict) else None
    return RequestFacts(connectors=tuple(connectors), parsed=parsed)


def _results(_body: bytes) -> RequestFacts:
    """Results are asked for without a body, and come by lines."""
    return RequestFacts(stream=True)


def _dialect(api: Dialect, paths: dict[str, re.Pattern[str]]) -> Dialect:
    """Return the dialect of what is asked for at one kind of path; errors are in the shape of the API that it belongs to."""

    def error_frame(message: str) -> bytes:
        return api.error(502, message) + b"\n"

    return Dialect(
        NAME,
        paths,
        request=_results,
        stream=streamed(_machine, _WIRE, error_frame),
        body=whole(embedded.rewritten, api.error, _HARMLESS),
        error=api.error,
        error_frame=error_frame,
        harmless=_HARMLESS,
        framing=by_lines,
    )


MADE: Final = replace(_dialect(anthropic.DIALECT, _MADE), request=_made, framing=None)
RESULTS: Final = _dialect(anthropic.DIALECT, _RESULTS)
FILES: Final = replace(_dialect(openai_chat.DIALECT, _FILES), files=True)
GEMINI_FILES: Final = replace(_dialect(gemini.DIALECT, _FILES), files=True)
