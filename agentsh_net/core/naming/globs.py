"""Patterns over server ids and tool names: whole string, case and width ignored, `*` crosses `/`, `?`, `[a-z]`, `[!a-z]`.

A bad pattern is an error, never a literal. Matching time is bounded by pattern times text, whatever either says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from agentsh_net.core.errors import ConfigError, Problem
from agentsh_net.core.naming.folding import fold, normal

MAX_PATTERN = 512  # characters; MCP names have at most 128, and a pattern is read by people
MAX_RANGE = 4096  # characters of one `[a-z]`: every one is folded, so a range over all of Unicode is refused

EXPECTED = "a pattern of letters, `*`, `?` and `[...]`"


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern, ready to match folded text. `literal` is the folded text of a pattern without wildcards."""

    pattern: str
    literal: str | None = None
    every: bool = False  # the bare `*`
    begins: str = ""  # what every match begins with, so that lists can be sorted by it
    matches: Callable[[str], bool] = field(default=lambda _: False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class _OneOf:
    """One character: any (`?`), or one of a set, or none of it."""

    chars: frozenset[str] = frozenset()
    negated: bool = True

    def regex(self) -> str:
        if not self.chars:
            return "."
        return f"[{'^' if self.negated else ''}{''.join(re.escape(c) for c in sorted(self.chars))}]"


_Segment = list[str | _OneOf]  # what stands between two `*`


def check(pattern: str) -> str | None:
    """Say what is wrong with a pattern, or None."""
    try:
        parse(pattern)
    except ConfigError as error:
        return error.problems[0].found
    return None


def parse(pattern: str, path: str = "", *, exact: bool = False) -> Glob:
    """Return the pattern ready to match; `path` is where it stands in the file. Raises ConfigError.

    `exact`: it will match text as it is written, not folded text.
    """
    form = str if exact else normal
    try:
        segments = _segments(pattern.strip(), form)
    except _BadPatternError as error:
        raise ConfigError((Problem(path, str(error), EXPECTED),)) from error
    if segments == [[], []]:
        return Glob(pattern, every=True, matches=lambda _: True)
    if all(isinstance(item, str) for segment in segments for item in segment):
        texts = ["".join(str(item) for item in segment) for segment in segments]
        if len(texts) == 1:
            literal = texts[0] if exact else fold(texts[0])
            return Glob(pattern, literal, matches=literal.__eq__)
        return Glob(pattern, begins=texts[0], matches=_between_stars(texts))
    begins = segments[0][0] if segments[0] else ""
    return Glob(pattern, begins=begins if isinstance(begins, str) else "", matches=_by_regex(segments))


class _BadPatternError(ValueError):
    """What is wrong with a pattern, as `parse` tells it."""


def _segments(text: str, form: Callable[[str], str]) -> list[_Segment]:
    """Cut a pattern at its runs of `*`. Wildcards are read before folding, so that no full-width star becomes one."""
    if not text or not fold(text):
        raise _BadPatternError("an empty pattern")
    if len(text) > MAX_PATTERN:
        raise _BadPatternError(f"a pattern of {len(text)} characters (at most {MAX_PATTERN})")
    segments: list[_Segment] = [[]]
    at = 0
    while at < len(text):
        char = text[at]
        match char:
            case "*":
                if segments[-1] or len(segments) == 1:
                    segments.append([])
                at += 1
            case "?":
                segments[-1].append(_OneOf())
                at += 1
            case "[":
                one_of, at = _one_of(text, at, form)
                segments[-1].append(one_of)
            case "\\":
                raise _BadPatternError("a backslash (a literal `*` is written `[*]`)")
            case _:
                end = next((i for i in range(at, len(text)) if text[i] in "*?[\\"), len(text))
                segments[-1].append(form(text[at:end]))
                at = end
    return segments


def _one_of(text: str, start: int, form: Callable[[str], str]) -> tuple[_OneOf, int]:
    """Read `[...]` at `start`; return the set and the index behind it. A leading `]` is a member, as in POSIX."""
    at = start + 1
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    end = text.find("]", at + 1)
    if end < 0:
        raise _BadPatternError("a `[` without its `]`")
    members = text[at:end]
    chars: set[str] = set()
    at = 0
    while at < len(members):
        first, last, step = members[at], members[at], 1
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            last, step = members[at + 2], 3
        if ord(last) < ord(first) or ord(last) - ord(first) > MAX_RANGE:
            raise _BadPatternError(f"the range {first}-{last} (backwards, or over {MAX_RANGE} characters)")
        chars |= {form(chr(code)) for code in range(ord(first), ord(last) + 1)}
        at += step
    if any(len(c) != 1 for c in chars):
        raise _BadPatternError("a character in `[...]` that no single character equals when case is ignored")
    return _OneOf(frozenset(chars), negated), end + 1


def _between_stars(texts: list[str]) -> Callable[[str], bool]:
    """Return a matcher of `head*middle*...*tail`: the leftmost place for each middle is always good enough."""
    head, *middles, tail = texts
    shortest = sum(map(len, texts))
    if not middles and not tail:
        return lambda text: text.startswith(head)
    if not middles and not head:
        return lambda text: text.endswith(tail)

    def matches(text: str) -> bool:
        if len(text) < shortest or not text.startswith(head) or not text.endswith(tail):
            return False
        at, end = len(head), len(text) - len(tail)
        for middle in middles:
            found = text.find(middle, at, end)
            if found < 0:
                return False
            at = found + len(middle)
        return True

    return matches


def _by_regex(segments: list[_Segment]) -> Callable[[str], bool]:
    """Return a matcher by one regular expression; each `*` but the last is atomic, so nothing backtracks twice."""
    parts = [
        "".join(item.regex() if isinstance(item, _OneOf) else re.escape(item) for item in segment)
        for segment in segments
    ]
    if len(parts) == 1:
        source = parts[0]
    else:
        source = parts[0] + "".join(f"(?>.*?{part})" for part in parts[1:-1]) + ".*" + parts[-1]
    full = re.compile(source, re.DOTALL).fullmatch
    literals = [item for segment in segments for item in segment if isinstance(item, str)]
    needle = max(literals, key=len, default="")  # looking for it is five times cheaper than matching
    return lambda text: needle in text and full(text) is not None
