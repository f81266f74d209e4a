"""The OpenAI Responses API: streams and whole answers from one engine, requests, and errors in the provider's shape.

Read: what is put into a new conversation, answers to POST /responses, compactions, stored responses (GET /responses/{id}, which may stream), cancelled ones, and the items of
requests and conversations, listed, alone or as they were added. Not read, because nothing in them is executed: token counts.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.dialects.anthropic.event import make_frame
from agentsh_net.core.dialects.base import (
    Dialect,
    Enforce,
    Judge,
    Limits,
    RequestFacts,
    Step,
    Stream,
    always,
    asked,
)
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.openai_chat import dialect as openai_chat
from agentsh_net.core.dialects.openai_responses import request as openai_responses_request
from agentsh_net.core.dialects.openai_responses.items import NAME
from agentsh_net.core.dialects.openai_responses.output import rewritten
from agentsh_net.core.dialects.openai_responses.rulings import Rulings
from agentsh_net.core.dialects.openai_responses.stream import SIGNS, ResponsesMachine
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.whole_answer import inspect_whole, is_harmless_json
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import Reading

# Whatever stands before it: Azure has /openai/responses, ChatGPT /backend-api/codex/responses.
_PATHS: Final = {
    "POST": re.compile(r"(?:/.*)?/(?:responses(?:/compact|/[^/]+/cancel)?|conversations(?:/[^/]+/items)?)"),
    "GET": re.compile(
        r"(?:/.*)?/(?:responses(?:/[^/]+(?:/input_items)?)?|conversations/[^/]+/items(?:/[^/]+)?)"
    ),
}

# No item without one of these is a call (see `is_call`); a response's `tool_choice` and `max_tool_calls` are no sign of one.
# Each is looked for by itself: an expression without a prefix takes ten times as long.
_SIGNS: Final = (b"mcp", b"program", b'"arguments"', b'"input"', b'_output"')
_CALL: Final = re.compile(rb'call(?!s")')
_ESCAPED_ASCII: Final = re.compile(rb"\\u00[0-7]")

_WIRE: Final = Wire(signs=SIGNS)


class OpenAIResponses:
    """`base.Dialect` of `/v1/responses`."""

    __slots__ = ()

    name = NAME
    own_framing = False
    files = False

    def inspects(self, method: str, path: str) -> bool:
        """Say whether answers to this request may carry tool calls."""
        return asked(_PATHS, method, path)

    def request(self, body: bytes) -> RequestFacts:
        """Read whether the answer streams, which MCP servers the provider is to call, and which calls are approved."""
        return openai_responses_request.read(body)

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        """Return the machine for one streamed answer."""
        return Inspector(
            lambda: ResponsesMachine(judge, limits),
            _WIRE,
            limits=limits,
            fail_closed=fail_closed,
            error_frame=self.error_frame,
            enforce=enforce,
        )

    def framing(self, max_frame: int) -> None:
        """Its streams are server-sent events."""

    def harmless(self, data: bytes) -> bool:
        """Say whether a whole JSON answer holds nothing that any parser could take for a call, so that it leaves as it came."""
        return is_harmless_json(data, _speaks)

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the client gets for a whole JSON answer: byte for byte the same where no call is refused."""

        def rewrite(reading: Reading, out: Output) -> bytes | None:
            return rewritten(data, reading, Rulings(judge), out).data

        return inspect_whole(self, data, rewrite, fail_closed=fail_closed, enforce=enforce)

    def error(self, status: int, message: str) -> bytes:
        """Return an error body; OpenAI has one shape for all of its APIs."""
        return openai_chat.DIALECT.error(status, message)

    def error_frame(self, message: str) -> bytes:
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


DIALECT: Final[Dialect] = OpenAIResponses()
