"""What changed between two JSON values, field by field, for a human to judge: nothing hidden stays hidden.

What counts as a change is the canonical form's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from agentsh_net.core import canonical
from agentsh_net.core.folding import visible

MAX_SHOWN = 500  # characters of a value: a paragraph; the whole is in the pin store
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
        yield Difference(dotted(path), "changed", _shown(old), _shown(new))


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
    return visible(canonical.text(value), MAX_SHOWN)
