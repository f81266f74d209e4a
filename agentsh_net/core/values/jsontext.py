"""JSON that never fails on what an agent or a server wrote: fast where it can be, whole where it must be.

An input that a fast encoder refuses (lone surrogates, integers past 64 bits, deep nesting) must not keep an event out of the audit trail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

import orjson


def dumps(value: Any) -> bytes:
    """Return compact JSON on one line. Falls back to the slow encoder, and for values nested past its depth to their text."""
    try:
        return orjson.dumps(value)
    except TypeError:  # orjson.JSONEncodeError
        return _dumps_slowly(value)


def loads(text: bytes | str) -> Any:
    """Return the value that `dumps` wrote. Raises ValueError (also for nesting too deep to read)."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            return json.loads(text)  # lone surrogates
        except RecursionError as deep:
            raise ValueError("JSON nested too deeply") from deep


def _dumps_slowly(value: Any) -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), default=repr, allow_nan=False).encode("ascii")
    except (RecursionError, ValueError, TypeError):
        # Too deep, too many digits, NaN, keys that are no JSON keys.
        if isinstance(value, Mapping):
            return json.dumps({str(k): _shallow(v) for k, v in value.items()}, separators=(",", ":")).encode(
                "ascii"
            )
        return json.dumps(_shallow(value)).encode("ascii")


def _shallow(value: Any) -> Any:
    """Return a scalar as it is and anything else as a note of what stood there."""
    if value is None or isinstance(value, str | bool):
        return value
    if (isinstance(value, int) and value.bit_length() <= 64) or (
        isinstance(value, float) and isfinite(value)
    ):
        return value
    return f"<{type(value).__name__} that JSON cannot hold>"
