"""What is known of a regular expression before it searches: an upper bound on what that costs, and letters that no match is without.

Python's re has no time limit, and a match holds the interpreter: so the bound is worked out before a pattern is accepted. It
counts the ways in which the repeats of a pattern can share out a text, and errs on the side of refusing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

# The re module's own parser: what it understands is what is run. It has no public name.
from re import _parser  # type: ignore[attr-defined] # see above
from typing import Any

SEARCHED = 16 << 10  # characters of one string that are searched
WINDOWS = (4096, 1024, 256)  # characters of it that are searched at a time, overlapping by half
# Ways in which a pattern may match at one place: with every place of SEARCHED, twice, some 10**8 steps, a second or two for
# a text that is made to be slow. One unbounded repeat, or two like .{0,50}.
MAX_WAYS = 3_000
CEILING = 10**12  # beyond it the exact number says nothing

Node = tuple[Any, Any]


def window(pattern: str) -> int:
    """Return how many characters may be searched at a time; 0 where a text of 256 could already take too long.

    Raises re.error for no regular expression.
    """
    tree = _parser.parse(pattern)
    return next((size for size in WINDOWS if _ways(tree, size) <= MAX_WAYS), 0)


def ways(pattern: str, size: int) -> int:
    """Return in how many ways a pattern can match at one place of a text of this size, at most. Raises re.error."""
    return _ways(_parser.parse(pattern), size)


def widest(pattern: str) -> int:
    """Return how many characters a match may span, at most. Raises re.error."""
    return int(_parser.parse(pattern).getwidth()[1])


def needed(pattern: str) -> frozenset[frozenset[str]]:
    """Return sets of letters: of each, one letter is in every match, so that a text without need not be searched. Raises re.error."""
    return frozenset(_needed(_parser.parse(pattern)))


def _ways(nodes: Iterable[Node], size: int) -> int:
    """Return in how many ways a sequence can match at one place, at most."""
    ways = 1
    for name, value in ((str(op), value) for op, value in nodes):
        ways = min(CEILING, ways * _ways_of(name, value, size))
    return ways


def _ways_of(name: str, value: Any, size: int) -> int:
    match name:
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, inner = value
            return _repeated(least, min(int(most), size), _ways(inner, size))
        case "POSSESSIVE_REPEAT":
            return _closed(_ways(value[2], size), size)
        case "ATOMIC_GROUP":
            return _closed(_ways(value, size), size)
        case "SUBPATTERN":
            return _ways(value[-1], size)
        case "ASSERT" | "ASSERT_NOT":
            return _ways(value[1], size)
        case "BRANCH":
            return _branched(value[1], size)
        case "GROUPREF_EXISTS":
            return sum(_ways(branch, size) for branch in value[1:] if branch is not None)
        case _:
            return 1


def _repeated(least: int, most: int, inner: int) -> int:
    if most <= least:
        return min(CEILING, int(inner ** min(most, 64)))
    if inner > 1 and most > 1:
        return min(CEILING, int(inner ** min(most, 64)) * (most - least + 1))
    return most - least + 1


def _closed(inner: int, size: int) -> int:
    """Return the ways of what is never entered again: one, where what is in it is no worse than a single repeat."""
    return 1 if inner <= size else inner


def _branched(branches: Sequence[Sequence[Node]], size: int) -> int:
    """Return the ways of alternatives: those that begin with different letters exclude each other."""
    ways = [_ways(branch, size) for branch in branches]
    first = [(str(branch[0][0]), branch[0][1]) if len(branch) else None for branch in branches]
    exclusive = all(f is not None and f[0] == "LITERAL" for f in first) and len(set(first)) == len(first)
    return max(ways) if exclusive else sum(ways)


def _needed(nodes: Iterable[Node]) -> Iterator[frozenset[str]]:
    """Yield the letters of which one is in every match of a sequence, for each place that every match has."""
    for name, value in ((str(op), value) for op, value in nodes):
        match name:
            case "LITERAL":
                yield frozenset(chr(value))
            case "IN" if all(str(op) == "LITERAL" for op, _ in value):
                yield frozenset(chr(letter) for _, letter in value)
            case "SUBPATTERN":
                yield from _needed(value[-1])
            case "BRANCH":
                branches = [list(_needed(branch)) for branch in value[1]]
                if all(branches):
                    yield frozenset().union(*(min(groups, key=len) for groups in branches))
            case "MAX_REPEAT" | "MIN_REPEAT" if value[0]:
                yield from _needed(value[2])


def compiles(pattern: str) -> re.Pattern[str]:
    """Compile a pattern, case-insensitively. Raises re.error."""
    return re.compile(pattern, re.IGNORECASE)
