"""The OpenAI Responses API: streams and whole answers from one engine, requests, and errors in the provider's shape.

Read: what is put into a new conversation, answers to POST /responses, compactions, stored responses (GET /responses/{id}, which may
stream), cancelled ones, and the items of requests and conversations, listed, alone or as they were added. Not read, because nothing
in them is executed: token counts.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from agentsh_net.core.dialects.base import Dialect, Judge
from agentsh_net.core.dialects.inspection import streamed
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.openai_chat.dialect import error
from agentsh_net.core.dialects.openai_responses import request as openai_responses_request
from agentsh_net.core.dialects.openai_responses.items import NAME
from agentsh_net.core.dialects.openai_responses.output import rewritten
from agentsh_net.core.dialects.openai_responses.rulings import Rulings
from agentsh_net.core.dialects.openai_responses.stream import SIGNS, ResponsesMachine
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.unread import is_harmless_json
from agentsh_net.core.dialects.whole_answer import whole
from agentsh_net.core.framing.sse_writing import make_frame
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import Reading

# Whatever stands before it: Azure has /openai/responses, ChatGPT /backend-api/codex/responses. Mistral's conversations go on, begin
# anew and are listed below their own path.
_PATHS: Final = {
    "POST": re.compile(
        r"(?:/.*)?/(?:responses(?:/compact|/[^/]+/cancel)?|conversations(?:/[^/]+(?:/items|/restart)?)?)"
    ),
    "GET": re.compile(
        r"(?:/.*)?/(?:responses(?:/[^/]+(?:/input_items)?)?|conversations/[^/]+/(?:items(?:/[^/]+)?|history|messages))"
    ),
}

# No item without one of these is a call (see `is_call`); a response's `tool_choice` and `max_tool_calls` are no sign of one.
# Each is looked for by itself: an expression without a prefix takes ten times as long.
_SIGNS: Final = (b"mcp", b"program", b'"arguments"', b'"input"', b'_output"')
_CALL: Final = re.compile(rb'call(?!s")')
_ESCAPED_ASCII: Final = re.compile(rb"\\u00[0-7]")


def _rewrite(data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    return rewritten(data, reading, Rulings(judge), out).data


def _error_frame(message: str) -> bytes:
    """Return the events that end a stream with an error.

    The SDKs raise at `error` if there is an object of that name in it, other clients read its flat form, and Codex knows
    `response.failed` alone.
    """
    told = {"code": "server_error", "message": message}
    flat = {"type": "error", "sequence_number": 0, **told, "param": None}
    nested = {"type": "server_error", **told, "param": None}
    failed: dict[str, object] = {
        "id": "",
        "object": "response",
        "status": "failed",
        "error": told,
        "incomplete_details": None,
        "output": [],
        "usage": None,
    }
    end = {"type": "response.failed", "sequence_number": 0, "response": failed}
    return b"".join(
        make_frame(name, strict_json.dump(event).encode())
        for name, event in (("error", flat | {"error": nested}), ("response.failed", end))
    )


def _speaks(data: bytes) -> bool:
    """Say whether an answer may hold an item that is a call."""
    folded = data.lower()
    signs = any(folded.find(sign) >= 0 for sign in _SIGNS)
    return signs or _CALL.search(folded) is not None or _ESCAPED_ASCII.search(folded) is not None


_HARMLESS: Final = partial(is_harmless_json, speaks=_speaks)

DIALECT: Final = Dialect(
    NAME,
    _PATHS,
    request=openai_responses_request.read,
    stream=streamed(ResponsesMachine, Wire(signs=SIGNS), _error_frame),
    body=whole(_rewrite, error, _HARMLESS),
    error=error,
    error_frame=_error_frame,
    harmless=_HARMLESS,
)
