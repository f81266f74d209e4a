"""Batches: the requests that make one (Anthropic's stand in the body), and files and lines of results, with an answer in each line.

A file may hold anything: what is no JSON by lines is none of it. OpenAI's and Gemini's batches are made of files that nobody reads on
their way up; those go by fail_closed (`core.web.http_route`).
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from agentsh_net.core.dialects import embedded
from agentsh_net.core.dialects.anthropic import dialect as anthropic
from agentsh_net.core.dialects.anthropic import request as anthropic_request
from agentsh_net.core.dialects.base import (
    Connector,
    Dialect,
    Enforce,
    Framing,
    Judge,
    Limits,
    RequestFacts,
    Step,
    Stream,
    always,
    asked,
)
from agentsh_net.core.dialects.call_signs import may_hide_call
from agentsh_net.core.dialects.gemini import dialect as gemini
from agentsh_net.core.dialects.inline_edits import in_place
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.machine import Wire, never
from agentsh_net.core.dialects.openai_chat import dialect as openai_chat
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.request_reading import ambiguous, may_name_server, too_many, unreadable
from agentsh_net.core.dialects.whole_answer import inspect_whole, is_harmless_json
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.ndjson import LineDecoder
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.members import folded, twice
from agentsh_net.core.values.strict_json import Reading

NAME: Final = "batch"

# Besides what every dialect looks for: calls of the Responses API that speak of no tool.
_SIGNS: Final = (b"call", b"mcp_", b"rogra")
_SPEAKS: Final = partial(may_hide_call, signs=_SIGNS)
_NAMING: Final = frozenset(
    {"requests", "params", "mcp_servers", "tools", "type", "name", "url", "mcp_server_name"}
)

# What requests stand in: of two that are alike but for their case nobody knows which counts.
_WRAPPING: Final = frozenset({"requests", "params"})

# Servers of one batch, each told of in an event: more than anybody declares.
_MAX_CONNECTORS: Final = 64

_MADE: Final = re.compile(r"(?:/.*)?/messages/batches")
_RESULTS: Final = re.compile(r"(?:/.*)?/(?:messages/batches/[^/]+/results|batches/[^/]+/output)")
_FILES: Final = re.compile(r"(?:/.*)?/files/(?:[^/]+/content|[^/]+:download)")

_WIRE: Final = Wire(LineDecoder, signs=_SIGNS, strict=True, comment=b"")


class LinesMachine:
    """An `inspection.Machine`: every line stands for itself, and none is held."""

    __slots__ = ("_judge", "_told")

    idle = True
    holding = False
    knows = holds = never

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a line."""
        data = None if reading is None else embedded.rewritten(frame.data or b"", reading, self._judge, out)
        out.write(frame.raw if data is None else in_place(frame, data))

    def release(self, out: Output, doubt: str) -> None:
        """Nothing is held."""

    def finish(self, out: Output) -> None:
        """Nothing is held."""


class BatchDialect:
    """A `base.Dialect` of what is asked for at one kind of path; errors are in the shape of the API that it belongs to."""

    __slots__ = ("_api", "_paths", "files", "own_framing")

    name = NAME

    def __init__(self, api: Dialect, path: re.Pattern[str], method: str, *, files: bool = False) -> None:
        self._api = api
        self._paths = {method: path}
        self.files = files
        self.own_framing = method == "GET"

    def inspects(self, method: str, path: str) -> bool:
        """Say whether a batch is made here, or its results are."""
        return asked(self._paths, method, path)

    def request(self, body: bytes) -> RequestFacts:
        """Read which MCP servers the provider is to call for any of the requests; results are asked for without a body."""
        return _made(body) if not self.own_framing else RequestFacts(stream=True)

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        """Return the machine for lines of results."""
        return Inspector(
            lambda: LinesMachine(judge),
            _WIRE,
            limits=limits,
            fail_closed=fail_closed,
            error_frame=self.error_frame,
            enforce=enforce,
        )

    def framing(self, max_frame: int) -> Framing | None:
        """Results are lines."""
        return Framing(LineDecoder(max_frame), in_place) if self.own_framing else None

    def harmless(self, data: bytes) -> bool:
        """Say whether a whole JSON answer holds nothing that any parser could take for a call, so that it leaves as it came."""
        return is_harmless_json(data, _SPEAKS)

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the client gets for a whole JSON answer: byte for byte the same where no call is refused."""

        def rewrite(reading: Reading, out: Output) -> bytes | None:
            return embedded.rewritten(data, reading, judge, out)

        return inspect_whole(self, data, rewrite, fail_closed=fail_closed, enforce=enforce)

    def error(self, status: int, message: str) -> bytes:
        """Return an error body in the API's shape."""
        return self._api.error(status, message)

    def error_frame(self, message: str) -> bytes:
        """Return the line that ends results with an error."""
        return self.error(502, message) + b"\n"


def _made(body: bytes) -> RequestFacts:
    """Return the facts of a body that makes a batch: the connectors of all its requests."""
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


MADE: Final[Dialect] = BatchDialect(anthropic.DIALECT, _MADE, "POST")
RESULTS: Final[Dialect] = BatchDialect(anthropic.DIALECT, _RESULTS, "GET")
FILES: Final[Dialect] = BatchDialect(openai_chat.DIALECT, _FILES, "GET", files=True)
GEMINI_FILES: Final[Dialect] = BatchDialect(gemini.DIALECT, _FILES, "GET", files=True)
