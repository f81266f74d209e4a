"""Canonical JSON (RFC 8785) of a parsed value, and its hash: equal for every spelling of equal data.

Numbers are IEEE doubles, as the JavaScript clients read them. Reading JSON is not its business.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from agentsh_net.core.errors import ProtocolError

MAX_DEPTH = 200  # levels; tool definitions have about 20, Python's stack ends near 1000

ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
ESCAPED = re.compile('[\x00-\x1f"\\\\\ud800-\udfff]')
SURROGATE = re.compile("[\ud800-\udfff]")


def text(value: Any) -> str:
    """Return the canonical text of what a JSON parser returned. Raises ProtocolError past MAX_DEPTH, TypeError for no JSON.

    Where RFC 8785 has no form there is still exactly one: a lone surrogate is escaped, as JSON.stringify does it,
    NaN and the infinities are words, and an integer past the doubles is written in full, so that all of it can be pinned.
    """
    parts: list[str] = []
    _write(value, parts, 0)
    return "".join(parts)


def hash_of(value: Any) -> str:
    """Return `sha256:<hex>` of the canonical text in UTF-8."""
    return "sha256:" + sha256(text(value).encode()).hexdigest()


def _write(value: Any, parts: list[str], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ProtocolError(f"JSON nested deeper than {MAX_DEPTH} levels")
    match value:
        case str():
            parts.append(_string(value))
        case None:
            parts.append("null")
        case bool():
            parts.append("true" if value else "false")
        case int() | float():
            parts.append(_number(value))
        case Mapping():
            _write_object(value, parts, depth)
        case list() | tuple():
            parts.append("[")
            for index, item in enumerate(value):
                if index:
                    parts.append(",")
                _write(item, parts, depth + 1)
            parts.append("]")
        case _:
            raise TypeError(f"{type(value).__name__} is not a JSON value")


def _write_object(value: Mapping[Any, Any], parts: list[str], depth: int) -> None:
    if not all(isinstance(key, str) for key in value):
        raise TypeError("a key of a JSON object is a string")
    parts.append("{")
    for index, key in enumerate(sorted(value, key=_utf16)):
        if index:
            parts.append(",")
        parts.append(_string(key))
        parts.append(":")
        _write(value[key], parts, depth + 1)
    parts.append("}")


def _utf16(key: str) -> bytes:
    """Return what keys are sorted by: their UTF-16 code units (RFC 8785, section 3.2.3)."""
    return key.encode("utf-16-be", "surrogatepass")


def _string(value: str) -> str:
    if SURROGATE.search(value):  # two halves that stand side by side are one character
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return f'"{ESCAPED.sub(_escape, value)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return ESCAPES.get(char) or f"\\u{ord(char):04x}"


def _number(value: float) -> str:
    """Write a number as ECMAScript does (ECMA-262, Number::toString): shortest digits, exponent outside 1e-7 .. 1e21."""
    try:
        double = float(value)
    except OverflowError:
        return hex(int(value))  # the decimal digits of such a number cost quadratic time
    if not math.isfinite(double):
        return repr(double)
    if double == 0:
        return "0"  # minus zero too
    sign = "-" if double < 0 else ""
    digits, point = _shortest(repr(abs(double)))
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{point - 1:+d}"


def _shortest(shown: str) -> tuple[str, int]:
    """Return the significant digits of Python's shortest repr, and where the point stands relative to the first of them."""
    mantissa, _, exponent = shown.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    return stripped.rstrip("0"), point
