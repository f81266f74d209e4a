"""Google's generateContent (Gemini API and Vertex AI): streams and whole answers from one engine, requests, and Google's errors.

Not read: counted tokens and embeddings, in which there is nothing to execute. Batches are no part of it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentsh_net.core.dialects.base import (
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
from agentsh_net.core.dialects.gemini import request as gemini_request
from agentsh_net.core.dialects.gemini.calls import NAME, Ledger
from agentsh_net.core.dialects.gemini.parts import scan
from agentsh_net.core.dialects.gemini.stream import EitherDecoder, GeminiStream
from agentsh_net.core.dialects.inline_edits import in_place, rewritten
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.whole_answer import inspect_whole, is_harmless
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import Reading

# Whatever stands before it: models, tunedModels, Vertex AI's projects/P/locations/L/publishers/google/models, Code Assist's v1internal.
# What is cached may bring MCP servers into requests that do not show them.
_STREAMED: Final = {"POST": re.compile(r"/.*:streamgeneratecontent")}
_WHOLE: Final = {
    "POST": re.compile(r"/.*:generatecontent|/.*/cachedcontents(?:/[^/]+)?"),
    "PATCH": re.compile(r"/.*/cachedcontents(?:/[^/]+)?"),
}

# google.rpc.Code by HTTP status (https://cloud.google.com/apis/design/errors).
_STATUS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GeminiDialect:
    """A `base.Dialect` of one of the two methods: the path alone says whether the answer streams."""

    __slots__ = ("_paths", "_streams", "own_framing")

    name = NAME
    files = False
    harmless = staticmethod(is_harmless)

    def __init__(self, *, streams: bool) -> None:
        self._paths = _STREAMED if streams else _WHOLE
        self._streams = streams
        self.own_framing = streams

    def inspects(self, method: str, path: str) -> bool:
        """Say whether answers to this request may carry function calls, or the request MCP servers."""
        return asked(self._paths, method, path)

    def request(self, body: bytes) -> RequestFacts:
        """Read which MCP servers the provider is to call."""
        return gemini_request.read(body, stream=self._streams)

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        """Return the machine for one streamed answer, events or an array."""

        def error(message: str) -> bytes:
            return self.error(502, message)

        return GeminiStream(judge, limits=limits, fail_closed=fail_closed, enforce=enforce, error=error)

    def framing(self, max_frame: int) -> Framing | None:
        """Its streams are events or the elements of an array: their first character tells."""
        return Framing(EitherDecoder(max_frame), in_place) if self._streams else None

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the client gets for a whole JSON answer, or for an array of them: byte for byte the same where no call is refused."""

        def rewrite(reading: Reading, out: Output) -> bytes | None:
            found = scan(reading)
            ledger = Ledger(judge)
            marks = ledger.add(found, out)
            ledger.abandon(out)
            hidden = bool(found.hidden) and ledger.hidden(found.hidden, out)
            edits = ledger.edits(marks)
            return rewritten(data, reading, edits, ambiguous=found.ambiguous, hidden=hidden)

        return inspect_whole(self, data, rewrite, fail_closed=fail_closed, enforce=enforce)

    def error(self, status: int, message: str) -> bytes:
        """Return an error body as Google's APIs write it."""
        code = _STATUS.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
        told: dict[str, Any] = {"code": status, "message": message, "status": code}
        return strict_json.dump({"error": told}).encode()

    def error_frame(self, message: str) -> bytes:
        """Return the event that ends a stream with an error."""
        return b"data: " + self.error(502, message) + b"\r\n\r\n"


DIALECT: Final[Dialect] = GeminiDialect(streams=False)
STREAMED: Final[Dialect] = GeminiDialect(streams=True)
