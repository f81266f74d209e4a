"""What others wrote, as an event may hold it: bounded, and text that every JSON reader takes; and a verdict as an event tells it.

Models, clients and servers write what they like, so nothing of theirs goes into an event but through here.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import orjson

from agentsh_net.core.links.link import MAX_INPUT, MAX_TEXT
from agentsh_net.core.model import Verdict
from agentsh_net.core.values.strict_json import MAX_DEPTH

_WIDEST: Final = 1 << 63  # what orjson and SQLite take for an integer
_LONGEST: Final = 1 << 12  # bits of a number that is told in decimal digits, which cost quadratic time


def bounded(text: str, limit: int = MAX_TEXT) -> str:
    """Return at most `limit` characters of a text, with lone surrogates written out."""
    return text[:limit].encode("utf-8", "backslashreplace").decode("utf-8")[:limit]


def bounded_input(value: Any) -> Any:
    """Return a call's arguments whole, or their beginning with length and SHA-256 where they are above the bound."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        # Lone surrogates and integers past 64 bits become text where they stand; what is nested too deeply, as a whole.
        value = _sendable(value)
        text = orjson.dumps(value)
    if len(text) <= MAX_INPUT:
        return value
    return {
        "truncated": text[:MAX_INPUT].decode("utf-8", "ignore"),
        "length": len(text),
        "sha256": sha256(text).hexdigest(),
    }


def decided(verdict: Verdict) -> dict[str, Any]:
    """Return the fields of an event that tell of a verdict."""
    return {
        "action": verdict.action.value,
        "would": verdict.would.value if verdict.would else None,
        "reason": bounded(verdict.reason),
        "rule": bounded(verdict.rule),
    }


def _sendable(value: Any, depth: int = 0) -> Any:
    """Return a value as every JSON reader takes it."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        case int() if not -_WIDEST <= value < _WIDEST:
            return str(value) if value.bit_length() < _LONGEST else hex(value)
        case dict() | list() if depth == MAX_DEPTH:
            return "(nested too deeply to record)"
        case dict():
            return {_sendable(key): _sendable(item, depth + 1) for key, item in value.items()}
        case list():
            return [_sendable(item, depth + 1) for item in value]
        case _:
            return value
