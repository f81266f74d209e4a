"""JSON read as any client's parser might read it.

`read` finds what a strict parser would refuse and a lenient one would act on (RFC 8259 leaves duplicate keys, NaN and lone
surrogates to the parser). How a text is rewritten is `json_splice`'s business.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from agentsh_net.core.errors import ProtocolError

_END_OF_KEY: Final = re.compile(rb'"(?<!\\")[ \t\r\n]*:')  # the quote first: a literal is looked for quickly
_LONG: Final = 16  # digits; past 2**53 parsers differ
_LONG_NUMBER: Final = re.compile(rb"[0-9]{%d}" % _LONG)
# Of 16 digits in a row three in a row stand at places that 5 divides: they are looked for first, at a tenth of the cost.
_EACH: Final = 5
_DIGITS: Final = bytes(ord("0") if chr(code).isdecimal() else 0 for code in range(0x100))
_LONG_ENOUGH: Final = b"000"
# Places that are looked at; an image of 80 MB has as many, numbers of 15 digits soon more.
_MAX_TRIES: Final = 1 << 16
_UNSURE: Final = object()
_TOO_DEEP: Final = "JSON nested too deeply"
# A string that is never closed ends the text: one pass, whatever it holds.
_NESTING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|(?P<opening>[\[{])|(?P<closing>[\]}])', re.DOTALL)

Path = tuple[str | int, ...]

# Browsers' `Response.json()` and Python's `json.loads(bytes)` skip one.
BOM: Final = "\ufeff"

# Containers in containers. No tool's arguments come near; other parsers read on to 64 (.NET), 128 (Rust), 512 (PHP), 10000 (Go) or by
# the stack of the moment (Python), which must not decide here. Below the 254 that orjson writes, so that what was read can be told.
MAX_DEPTH: Final = 200
_MARGIN: Final = 254 - MAX_DEPTH  # in so many lists orjson writes what is no deeper, and refuses the rest

# Longer integers than any identifier or money needs; int() of more digits is quadratic and CPython refuses it.
_MAX_DIGITS: Final = 4000


# What clients trim off a text before they parse it: `str.strip` of Python, `trim` of JavaScript.
_TRIMMED: Final = "".join(c for c in map(chr, range(0x3001)) if c.isspace()) + BOM


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) < _MAX_DIGITS else digits


_LENIENT: Final = json.JSONDecoder(parse_int=_integer, strict=False)


class Reading(NamedTuple):
    """A value as lenient parsers see it (last key wins), and what is wrong with its text.

    `flaws`: `invalid_utf8` (read with U+FFFD, as browsers do), `not_a_number` (NaN, Infinity).
    """

    value: Any
    duplicates: frozenset[str] = frozenset()
    flaws: tuple[str, ...] = ()


class DivergentError(ProtocolError):
    """We cannot read this text, but other parsers may: it must never pass as merely broken.

    `leading` is what they read of it, where that is known and not all of it.
    """

    def __init__(self, why: str, leading: bytes | None = None) -> None:
        super().__init__(why)
        self.leading = leading


@dataclass(slots=True)
class _Notes:
    duplicates: set[str] = field(default_factory=set)
    flaws: list[str] = field(default_factory=list)

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                (self.duplicates if key in seen else seen).add(key)
        return value

    def constant(self, name: str) -> float:
        self.flaws.append("not_a_number")
        return float(name)


def read(data: bytes) -> Reading:
    """Return the value of `data`. Raises ProtocolError where no common parser could read it.

    Raises DivergentError where some can: deeper nesting than ours, UTF-16 or UTF-32, which Python's `json.loads` detects, more
    behind the value, and white space around it that is none of JSON's.
    """
    value = _plain(data)
    if value is not _UNSURE:
        return Reading(value)
    notes = _Notes()
    if b"\0" in data:
        raise DivergentError("not UTF-8: there are NUL bytes in it")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        notes.flaws.append("invalid_utf8")
    if _is_deep(text):
        raise DivergentError(_TOO_DEEP)
    try:
        value = _loads(text.removeprefix(BOM), notes)
    except ValueError as error:
        leading = _leading(text.strip(_TRIMMED))
        if leading is not None:
            raise DivergentError(f"JSON to some parsers: {error}", leading) from error
        raise ProtocolError(f"not JSON: {error}") from error
    return Reading(value, frozenset(notes.duplicates), tuple(dict.fromkeys(notes.flaws)))


def _loads(text: str, notes: _Notes) -> Any:
    return json.loads(
        text,
        object_pairs_hook=notes.pairs,
        parse_constant=notes.constant,
        parse_int=_integer,
        strict=False,  # bare control characters in strings, which some parsers take
    )


def _leading(text: str) -> bytes | None:
    """Return the whole object or array that a text begins with: Jackson and Go's Decoder read that far, and what is behind it not at all."""
    if not text.startswith(("{", "[")):
        return None
    try:
        _, end = _LENIENT.raw_decode(text)
    except ValueError:
        return None
    return text[:end].encode("utf-8", "surrogatepass")


def _plain(data: bytes) -> Any:
    """Return the value of a text that all parsers read alike, found by a fast one; _UNSURE where that is not certain.

    A text that is written as it was read has no key twice. Of others it is told by counting: without escaped backslashes every key
    ends in a quote that none precedes, so the text has at least as many `":` as members, and as many as the value has keys only if
    no key stands twice.
    """
    if _has_long_number(data):
        return _UNSURE
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _UNSURE
    if _is_written(data, value):
        return value
    if data.find(b"\\\\") >= 0:
        return _UNSURE
    keys, depth, level = 0, 0, [value]
    while level:
        below: list[Any] = []
        containers = False
        for item in level:
            if type(item) is dict:
                keys += len(item)
                below += item.values()
                containers = True
            elif type(item) is list:
                below += item
                containers = True
        depth += containers
        level = below
    if depth > MAX_DEPTH:
        raise DivergentError(_TOO_DEEP)
    return value if len(_END_OF_KEY.findall(data)) == keys else _UNSURE


def _is_written(data: bytes, value: Any) -> bool:
    """Say whether a text is what orjson writes of its value, within MAX_DEPTH.

    But for spaces before its last bracket, with which Anthropic hides how long a text is.
    """
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        compact = orjson.dumps(value)
    else:
        for _ in range(_MARGIN):
            value = [value]
        try:
            compact = orjson.dumps(value)[_MARGIN:-_MARGIN]
        except orjson.JSONEncodeError:
            return False  # it is too deep, and the caller will see that
    last = len(compact) - 1
    return data == compact or (data[last:].lstrip(b" ") == compact[last:] and data[:last] == compact[:last])


def _has_long_number(data: bytes) -> bool:
    sampled = data[::_EACH].translate(_DIGITS)
    at = sampled.find(_LONG_ENOUGH)
    for _ in range(_MAX_TRIES):
        if at < 0:
            return False
        place = at * _EACH  # in a long number, a few digits behind its first
        if _LONG_NUMBER.search(data, max(0, place - _EACH), place + _LONG):
            return True
        at = sampled.find(_LONG_ENOUGH, at + 1)
    return _LONG_NUMBER.search(data) is not None


def _is_deep(text: str) -> bool:
    """Say whether containers stand deeper in each other than MAX_DEPTH, be the text JSON or not."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    depth = 0
    for match in _NESTING.finditer(text):
        mark = match.lastgroup
        depth += (mark == "opening") - (mark == "closing")
        if depth > MAX_DEPTH:
            return True
    return False


def dump(value: Any) -> str:
    """Return compact JSON text in ASCII, which no parser and no lone surrogate can break."""
    return json.dumps(value, separators=(",", ":"))
