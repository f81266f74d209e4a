"""What the schema knows and this version does not do yet: switched on, it is refused, never ignored.

Who builds one of these deletes its row. Whether a value is valid at all is `core.config`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.errors import Problem
from agentsh_net.core.schema import describe, key_path


@dataclass(frozen=True, slots=True)
class NotYet:
    """A switch that does not exist yet: its path (`*` is any key), when it counts as on, and what to write instead."""

    path: str
    on: Callable[[Any], bool]
    instead: str


def among(*values: str) -> Callable[[Any], bool]:
    """Return the predicate of a key that has one of these words."""
    return lambda value: isinstance(value, str) and value in values


def true(value: Any) -> bool:
    """Say whether a switch is on."""
    return value is True


def filled(value: Any) -> bool:
    """Say whether a list, mapping or text has something in it."""
    return isinstance(value, list | tuple | Mapping | str) and len(value) > 0


MCP = "sandbox.mcp"

NOT_YET: tuple[NotYet, ...] = ()  # for the next switch that comes before what it switches


def refusals(mapping: Mapping[str, Any], table: tuple[NotYet, ...] = NOT_YET) -> Iterator[Problem]:
    """Yield a problem for everything that is switched on and does not exist yet."""
    for row in table:
        for path, value in _reach(mapping, row.path.split("."), ""):
            if row.on(value):
                yield Problem(path, f"{describe(value)}, which is not available in this version", row.instead)


def _reach(value: Any, steps: list[str], path: str) -> Iterator[tuple[str, Any]]:
    if not steps:
        yield path, value
    elif isinstance(value, Mapping):
        names = [k for k in value if isinstance(k, str)] if steps[0] == "*" else [steps[0]]
        for name in names:
            if name in value:
                yield from _reach(value[name], steps[1:], key_path(path, name))
