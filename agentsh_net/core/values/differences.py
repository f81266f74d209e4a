"""What changed between two JSON values, field by field, for a human to judge: nothing hidden stays hidden.

What counts as a change is the canonical form's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from agentsh_net.core.inspect.confusables import skeleton
from agentsh_net.core.naming.folding import visible
from agentsh_net.core.values import canonical

MAX_SHOWN = 500  # characters of a value: a paragraph; the whole is in the pin store
CONTEXT = 40  # characters shown around what differs in a longer text
MAX_DIFFERENCES = 200  # a rewritten definition is judged by its first fields, not by its four-hundredth

PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field: `path` as `$.inputSchema.required[0]`; `old` and `new` as JSON text, empty where the field is missing."""

    path: str
    kind: str  # added | removed | changed
    old: str = ""
    new: str = ""

    def to_json(self) -> dict[str, str]:
        """Return it as an event carries it."""
        return asdict(self)


def between(old: Any, new: Any) -> tuple[Difference, ...]:
    """Return the fields in which two JSON values differ, at most MAX_DIFFERENCES of them. Empty means canonically equal."""
    return tuple(islice(_walk(old, new, ()), MAX_DIFFERENCES))


def _walk(old: Any, new: Any, path: Path) -> Iterator[Difference]:
    if canonical.text(old) == canonical.text(new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(k for k in new if k not in old)]:
            yield from _field(old, new, key, (*path, key))
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        before, after = dict(enumerate(old)), dict(enumerate(new))
        for index in range(max(len(old), len(new))):
            yield from _field(before, after, index, (*path, index))
    else:
        yield Difference(dotted(path), "changed", *_side_by_side(canonical.text(old), canonical.text(new)))


def _field(
    old: Mapping[Any, Any], new: Mapping[Any, Any], key: str | int, path: Path
) -> Iterator[Difference]:
    if key not in new:
        yield Difference(dotted(path), "removed", old=_shown(old[key]))
    elif key not in old:
        yield Difference(dotted(path), "added", new=_shown(new[key]))
    else:
        yield from _walk(old[key], new[key], path)


def dotted(path: Path) -> str:
    """Write a path as JSONPath does (RFC 9535): dots for plain keys, brackets for the rest."""
    parts = ["$"]
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif PLAIN_KEY.fullmatch(step):
            parts.append(f".{step}")
        else:
            parts.append(f"[{visible(canonical.text(step), MAX_SHOWN)}]")
    return "".join(parts)


def _shown(value: Any) -> str:
    return _cut(canonical.text(value), 0, 0, plain=True)


def _side_by_side(old: str, new: str) -> tuple[str, str]:
    """Return two texts as they are shown: long ones from where they differ to where they do, and look-alikes told apart."""
    before = after = 0
    if max(len(old), len(new)) > MAX_SHOWN:
        before = _alike(old, new)
        rest = min(len(old), len(new)) - before
        after = min(rest, _alike(old[::-1], new[::-1]))
        before, after = max(0, before - CONTEXT), max(0, after - CONTEXT)
    one, other = (text[before : len(text) - after] for text in (old, new))
    plain = skeleton(one[:MAX_SHOWN]) != skeleton(other[:MAX_SHOWN])
    return _cut(one, before, after, plain=plain), _cut(other, before, after, plain=plain)


def _cut(text: str, before: int, after: int, *, plain: bool) -> str:
    """Return a piece of a text with what is left out: around it as much as is alike, in it what is too long to show."""
    say = visible if plain else _in_ascii
    head, tail = MAX_SHOWN * 3 // 5, MAX_SHOWN * 2 // 5
    left_out = len(text) - head - tail
    shown = (
        say(text)
        if left_out <= 0
        else f"{say(text[:head])}… ({left_out} more characters) …{say(text[-tail:])}"
    )
    start = f"… ({before} characters alike) …" if before else ""
    return start + shown + (f"… ({after} characters alike)" if after else "")


def _in_ascii(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


def _alike(old: str, new: str) -> int:
    """Return how many first characters two texts have in common."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[low:middle] == new[low:middle] else (low, middle - 1)
    return low
