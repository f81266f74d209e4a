"""Google's generateContent (Gemini API and Vertex AI): streams and whole answers from one engine, requests, and Google's errors.

Not read: counted tokens and embeddings, in which there is nothing to execute. Batches are no part of it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any, Final

from agentsh_net.core.dialects.base import Dialect, Enforce, Framing, Judge, Limits, Stream, always
from agentsh_net.core.dialects.gemini import request as gemini_request
from agentsh_net.core.dialects.gemini.calls import NAME, Ledger
from agentsh_net.core.dialects.gemini.parts import scan
from agentsh_net.core.dialects.gemini.stream import EitherDecoder, GeminiStream
from agentsh_net.core.dialects.inline_edits import in_place, rewritten
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.whole_answer import whole
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


def _stream(judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
    """Return the machine for one streamed answer, events or an array."""
    return GeminiStream(
        judge, limits=limits, fail_closed=fail_closed, enforce=enforce, error=partial(error, 502)
    )


def _framing(max_frame: int) -> Framing:
    """Cut events or the elements of an array: the first character tells."""
    return Framing(EitherDecoder(max_frame), in_place)


def _rewrite(data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    """Judge the calls of a whole answer, or of an array of them."""
    found = scan(reading)
    ledger = Ledger(judge)
    marks = ledger.add(found, out)
    ledger.abandon(out)
    hidden = bool(found.hidden) and ledger.hidden(found.hidden, out)
    edits = ledger.edits(marks)
    return rewritten(data, reading, edits, ambiguous=found.ambiguous, hidden=hidden)


def error(status: int, message: str) -> bytes:
    """Return an error body as Google's APIs write it."""
    code = _STATUS.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
    told: dict[str, Any] = {"code": status, "message": message, "status": code}
    return strict_json.dump({"error": told}).encode()


def _error_frame(message: str) -> bytes:
    """Return the event that ends a stream with an error."""
    return b"data: " + error(502, message) + b"\r\n\r\n"


# Two methods: the path alone says whether the answer streams.
DIALECT: Final = Dialect(
    NAME,
    _WHOLE,
    request=partial(gemini_request.read, stream=False),
    stream=_stream,
    body=whole(_rewrite, error),
    error=error,
    error_frame=_error_frame,
)
STREAMED: Final = replace(
    DIALECT, paths=_STREAMED, request=partial(gemini_request.read, stream=True), framing=_framing
)
