"""Google's Interactions API: streams and whole interactions from one engine, requests, and Google's errors.

Read: answers to POST /interactions, stored interactions (GET, which may stream) and cancelled ones. Agents and triggers, which the
provider runs by itself, are no part of it.
"""

from __future__ import annotations

import re
from functools import partial
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
from agentsh_net.core.dialects.block_stream import BlockMachine
from agentsh_net.core.dialects.call_signs import may_hide_call
from agentsh_net.core.dialects.gemini import dialect as gemini
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.interactions import request as interactions_request
from agentsh_net.core.dialects.interactions.events import words
from agentsh_net.core.dialects.interactions.steps import NAME, Rulings, rewrite
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.whole_answer import inspect_whole, is_harmless_json
from agentsh_net.core.values.strict_json import Reading, dump

_PATHS: Final = {
    "POST": re.compile(r"(?:/.*)?/interactions(?:/[^/]+/cancel)?"),
    "GET": re.compile(r"(?:/.*)?/interactions(?:/[^/]+)?"),
}

# Besides what every dialect looks for: calls by other words, and what lists steps or says how an interaction stands.
_SIGNS: Final = (b"call", b'ents"', b'teps"', b'puts"', b"uires")
_SPEAKS: Final = partial(may_hide_call, signs=_SIGNS)

_WIRE: Final = Wire(signs=_SIGNS)


class InteractionsDialect:
    """`base.Dialect` of `/interactions`."""

    __slots__ = ()

    name = NAME
    own_framing = False
    files = False

    def inspects(self, method: str, path: str) -> bool:
        """Say whether answers to this request may carry tool calls."""
        return asked(_PATHS, method, path)

    def request(self, body: bytes) -> RequestFacts:
        """Read whether the answer streams, and which MCP servers the provider is to call."""
        return interactions_request.read(body)

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        """Return the machine for one streamed answer."""

        def machine() -> BlockMachine:
            rulings = Rulings(judge)
            return BlockMachine(rulings, limits, words(rulings))

        return Inspector(
            machine,
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
        return is_harmless_json(data, _SPEAKS)

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the client gets for a whole JSON answer: byte for byte the same where no call is refused."""

        def rewritten(reading: Reading, out: Output) -> bytes | None:
            return rewrite(data, reading, Rulings(judge), out)

        return inspect_whole(self, data, rewritten, fail_closed=fail_closed, enforce=enforce)

    def error(self, status: int, message: str) -> bytes:
        """Return an error body as Google's APIs write it."""
        return gemini.DIALECT.error(status, message)

    def error_frame(self, message: str) -> bytes:
        """Return the event that ends a stream with an error."""
        told = {"event_type": "error", "error": {"code": "internal", "message": message}}
        return make_frame("error", dump(told).encode())


DIALECT: Final[Dialect] = InteractionsDialect()
