"""Paths into JSON values, as argument rules write them: `path`, `$.a.b[0]`, `$["odd key"]`, `[*]`, `..`.

A subset of RFC 9535: no filters, no slices, no unions. What is done with what a path selects is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_PATH = 256  # characters; people write them
MAX_SEGMENTS = 16  # deeper arguments are found with `..`
# Values that one path looks at, at most: a tool's arguments have dozens; a file of a million numbers is no rule's business.
MAX_VISITED = 20_000

_TOKEN = re.compile(
    r"""(?P<descend>\.\.)?(?:\.?(?P<name>[^\s.\[\]"'*$]+)|\.?(?P<star>\*)|\[(?:(?P<index>0|[1-9][0-9]{0,8})|(?P<any>\*)|"(?P<double>[^"]*)"|'(?P<single>[^']*)')\])"""
)


class PathError(ValueError):
    """What is wrong with a path."""


class TooMuchError(Exception):
    """A value is too large to look through."""


class Segment(NamedTuple):
    """One step: a key, an index, or (None) everything; `descend`: at any depth."""

    key: str | int | None
    descend: bool


class Node(NamedTuple):
    """A selected value. `exact`: every key on the way is spelt as the path spells it."""

    value: Any
    exact: bool


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path, ready to select."""

    shown: str
    segments: tuple[Segment, ...]

    def select(self, value: Any) -> list[Node]:
        """Return what the path selects; keys are also found in another case, as Go's encoding/json finds them, and up to a NUL, as C does.

        Raises TooMuchError.
        """
        nodes = [Node(value, exact=True)]
        for segment in self.segments:
            if segment.descend:
                nodes = _with_descendants(nodes)
            nodes = [below for node in nodes for below in _children(node, segment.key)]
            if len(nodes) > MAX_VISITED:
                raise TooMuchError
        return nodes


def parse(text: str) -> JsonPath:
    """Return a path; a name alone is a key of the arguments. Raises PathError."""
    if not text or len(text) > MAX_PATH or not text.isprintable():
        raise PathError(f"a path has 1 to {MAX_PATH} printable characters")
    at = 1 if text.startswith("$") else 0
    segments: list[Segment] = []
    while at < len(text):
        match = _TOKEN.match(text, at)
        plain = match is not None and (match["name"] is not None or match["star"] is not None)
        bare = plain and match is not None and not match["descend"] and text[at] != "."
        if match is None or (bare and at > 0):
            raise PathError(f"not understood from character {at + 1}: {text[at : at + 20]!r}")
        segments.append(Segment(_key(match), bool(match["descend"])))
        at = match.end()
    if len(segments) > MAX_SEGMENTS:
        raise PathError(f"more than {MAX_SEGMENTS} steps")
    shown = text if text.startswith("$") else f"${text}" if text.startswith(("[", ".")) else f"$.{text}"
    return JsonPath(shown, tuple(segments))


def _key(match: re.Match[str]) -> str | int | None:
    if match["index"] is not None:
        return int(match["index"])
    return next((match[k] for k in ("name", "double", "single") if match[k] is not None), None)


def _children(node: Node, key: str | int | None) -> Iterator[Node]:
    value, exact = node
    if isinstance(value, Mapping):
        if key is None:
            yield from (Node(item, exact) for item in value.values())
        elif isinstance(key, str):
            wanted = key.casefold()
            yield from (
                Node(item, exact and name == key)
                for name, item in value.items()
                if name.partition("\0")[0].casefold() == wanted
            )
    elif isinstance(value, list):
        if key is None:
            yield from (Node(item, exact) for item in value)
        elif isinstance(key, int) and key < len(value):
            yield Node(value[key], exact)


def _with_descendants(nodes: list[Node]) -> list[Node]:
    """Return the nodes and all that is below them; a loop, because depth is the sender's choice."""
    found: list[Node] = []
    waiting = nodes[::-1]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if len(found) > MAX_VISITED:
            raise TooMuchError
        waiting += _children(node, None)
    return found
