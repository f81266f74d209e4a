"""Google's Interactions API: streams and whole interactions from one engine, requests, and Google's errors.

Read: answers to POST /interactions, stored interactions (GET, which may stream) and cancelled ones. Agents and triggers, which the
provider runs by itself, are no part of it.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from agentsh_net.core.dialects.base import Dialect, Judge, Limits
from agentsh_net.core.dialects.block_stream import BlockMachine
from agentsh_net.core.dialects.call_signs import may_hide_call
from agentsh_net.core.dialects.gemini.dialect import error
from agentsh_net.core.dialects.inspection import streamed
from agentsh_net.core.dialects.interactions import request as interactions_request
from agentsh_net.core.dialects.interactions.events import SIGNS, words
from agentsh_net.core.dialects.interactions.steps import NAME, Rulings, rewrite
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.unread import is_harmless_json
from agentsh_net.core.dialects.whole_answer import whole
from agentsh_net.core.framing.sse_writing import make_frame
from agentsh_net.core.values.strict_json import Reading, dump

_PATHS: Final = {
    "POST": re.compile(r"(?:/.*)?/interactions(?:/[^/]+/cancel)?"),
    "GET": re.compile(r"(?:/.*)?/interactions(?:/[^/]+)?"),
}

# Besides what every dialect looks for: calls by other words, and what lists steps or says how an interaction stands.
_SIGNS: Final = (b"call", b'ents"', b'teps"', b'puts"', b"uires")
_HARMLESS: Final = partial(is_harmless_json, speaks=partial(may_hide_call, signs=_SIGNS))


def _machine(judge: Judge, limits: Limits) -> BlockMachine:
    rulings = Rulings(judge)
    return BlockMachine(rulings, limits, words(rulings))


def _rewrite(data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    return rewrite(data, reading, Rulings(judge), out)


def _error_frame(message: str) -> bytes:
    """Return the event that ends a stream with an error."""
    told = {"event_type": "error", "error": {"code": "internal", "message": message}}
    return make_frame("error", dump(told).encode())


DIALECT: Final = Dialect(
    NAME,
    _PATHS,
    request=interactions_request.read,
    stream=streamed(_machine, Wire(signs=_SIGNS + SIGNS), _error_frame),
    body=whole(_rewrite, error, _HARMLESS),
    error=error,
    error_frame=_error_frame,
    harmless=_HARMLESS,
)
