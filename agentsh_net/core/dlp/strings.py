"""The strings of a JSON text where they stand: found by one pass over the text, edited without touching what is around them.

Duplicate keys, huge numbers and lone surrogates are somebody else's: all that is not a string stays as it was written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined] # the C scanner of the json module; typeshed does not list it
from json.encoder import encode_basestring_ascii
from typing import Final, NamedTuple

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values.strict_json import MAX_DEPTH

_MARK: Final = re.compile(r'["{}\[\]]')
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(slots=True)
class Frame:
    """A container: the key it stands under (an array's elements share its key), its zone, and its `type` once that was read."""

    key: str
    zone: int
    is_object: bool
    type: str = ""
    member: str = ""  # the key whose value comes next


class Text(NamedTuple):
    """A string: its quotes are at `start` and `end - 1`. `key` is the one it stands under, or itself where `is_key`."""

    start: int
    end: int
    value: str
    key: str
    is_key: bool
    frame: Frame


Zone = Callable[[int, str, bool], int]


def texts(document: str, zone: Zone, first: int = 0) -> Iterator[Text]:
    """Yield every string. `zone` is asked what a container is, given what it stands in, its key (none in an array), and whether it is an object.

    Raises ProtocolError where the text is certainly no JSON: a string without end, brackets that do not pair, or nesting too deep.
    """
    stack = [Frame("", first, is_object=False)]
    at = 0
    while (match := _MARK.search(document, at)) is not None:
        mark, at = match.group(), match.end()
        top = stack[-1]
        if mark == '"':
            start = at - 1
            try:
                value, at = scanstring(document, at, False)
            except (JSONDecodeError, ValueError) as error:
                raise ProtocolError(f"not JSON: {error}") from error
            gap = _SPACE.match(document, at)
            if top.is_object and gap is not None and document[gap.end() : gap.end() + 1] == ":":
                top.member = value
                yield Text(start, at, value, value, True, top)
            else:
                key = top.member if top.is_object else top.key
                if key == "type":
                    top.type = value
                yield Text(start, at, value, key, False, top)
        elif mark in "{[":
            if len(stack) > MAX_DEPTH:
                raise ProtocolError("JSON nested too deeply")
            key = top.member if top.is_object else top.key
            inner = zone(top.zone, top.member if top.is_object else "", mark == "{")
            stack.append(Frame(key, inner, mark == "{"))
        elif len(stack) == 1 or top.is_object != (mark == "}"):
            raise ProtocolError("not JSON: brackets do not pair")
        else:
            stack.pop()
    if len(stack) != 1:
        raise ProtocolError("not JSON: a bracket is not closed")


class Cut(NamedTuple):
    """Characters `start` to `end` of a string's value become `text`."""

    start: int
    end: int
    text: str


def edited(literal: str, cuts: list[Cut]) -> str:
    """Return a string's literal (with its quotes) with cuts made in its value; what is between them is as it was written.

    Positions count a pair of escaped surrogates as two, as `unescaped` does.
    """
    _, places = unescaped(literal)
    out, at = [], 0
    for cut in sorted(cuts):
        begin, end = _raw(places, cut.start), _raw(places, cut.end)
        out += [literal[at:begin], _escaped(cut.text)]
        at = end
    return "".join([*out, literal[at:]])


def unescaped(literal: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the value of a literal, an escape a character, and (position in the value, in the literal) behind each escape."""
    out, places, at, length = [], [(0, 1)], 1, 0
    for match in _ESCAPE.finditer(literal, 1, len(literal) - 1):
        plain = literal[at : match.start()]
        char = chr(int(match[1], 16)) if match[1] else _SHORT.get(match[2], match[2])
        out += [plain, char]
        length += len(plain) + 1
        at = match.end()
        places.append((length, at))
    return "".join([*out, literal[at:-1]]), places


def _raw(places: list[tuple[int, int]], position: int) -> int:
    value, raw = places[bisect_right(places, (position, 1 << 62)) - 1]
    return raw + position - value


def _escaped(text: str) -> str:
    return encode_basestring_ascii(text)[1:-1]
