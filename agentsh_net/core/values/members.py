"""Members of a JSON value, found by what their keys read as, at any depth.

Values are as `strict_json.read` returns them: no deeper than its bound. Protobuf's JSON takes `functionCall` and `function_call`, Go's
encoding/json any case: keys are compared without either. What a member means is the dialects' business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from agentsh_net.core.values.strict_json import Path


class Member(NamedTuple):
    """A value and where it stands."""

    path: Path
    value: Any


def plain(key: str) -> str:
    """Return a key as the most generous parser compares it."""
    return key.casefold().replace("_", "")


def find(value: Any, names: frozenset[str], opaque: frozenset[str] = frozenset()) -> list[Member]:
    """Return the members whose plain key is in `names`, in the order of the text; what is in them, or in `opaque`, is not looked at."""
    found: list[Member] = []
    _search(value, (), (names, opaque), found)
    return found


def _search(
    value: Any, path: Path, wanted: tuple[frozenset[str], frozenset[str]], found: list[Member]
) -> None:
    names, opaque = wanted
    if isinstance(value, list):
        for number, item in enumerate(value):
            _search(item, (*path, number), wanted, found)
    elif isinstance(value, dict):
        for key, item in value.items():
            name = plain(key)
            if name in names:
                found.append(Member((*path, key), item))
            elif name not in opaque:
                _search(item, (*path, key), wanted, found)


def folded(value: Any) -> dict[str, Any]:
    """Return an object by its plain keys, the last of those that read alike; no object has none."""
    return {plain(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def twice(value: Mapping[str, Any]) -> frozenset[str]:
    """Return the plain keys that stand in an object twice."""
    return frozenset(key for key, times in Counter(map(plain, value)).items() if times > 1)


def clash_of(keys: Collection[str]) -> str:
    """Say that keys stand twice; empty where none does."""
    return f"the key {min(keys)!r} stands twice" if keys else ""


def text_of(value: Any) -> str:
    """Return a text; anything else is none."""
    return value if isinstance(value, str) else ""


def at(value: Any, path: Path) -> Any:
    """Return what stands at a path."""
    for step in path:
        value = value[step]
    return value
