"""The schema of a tool rule's `args`: paths into the arguments, and what stands there.

What a matcher does to a call is core.verdicts.argument_rules' business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentsh_net.core.configuration import settings
from agentsh_net.core.configuration.patterns import glob, regex
from agentsh_net.core.configuration.schema import At, describe, items, mapping, record
from agentsh_net.core.inspect import regex_cost
from agentsh_net.core.values import json_path

# Conditions on one tool: people write them, and each is looked at in every call of the tool.
MAX_CONDITIONS = 32
MAX_VALUES = 1000  # of one `in`

MATCHERS = ("equals", "in", "glob", "regex")


def bounded_regex(at: At, value: Any) -> str:
    """Read a regular expression that no hostile text can make run for seconds."""
    pattern = regex(at, value)
    if not regex_cost.window(pattern):
        at.refuse(
            value,
            "a regular expression with at most one unbounded repeat and none inside another: write `.{0,50}` for `.*`",
        )
    return pattern


def scalar(at: At, value: Any) -> Any:
    """Read what an argument may be compared with: text, a number, true, false or null."""
    if value is not None and not isinstance(value, str | int | float | bool):
        at.refuse(value, "a text, a number, true, false or null")
    return value


def _values(at: At, value: Any) -> tuple[Any, ...]:
    read = items(scalar)(at, value)
    if not 0 < len(value) <= MAX_VALUES:
        at.refuse(value, f"a list of 1 to {MAX_VALUES} values")
    return read


_READERS: dict[str, Callable[[At, Any], Any]] = {
    "equals": scalar,
    "in": _values,
    "glob": glob,
    "regex": bounded_regex,
}


def arguments(at: At, value: Any) -> tuple[settings.ArgumentMatch, ...]:
    """Read `{path: {equals|in|glob|regex: ...}}`: every condition must hold for the rule to."""
    given = mapping(at, value)
    found: list[settings.ArgumentMatch] = []
    for name, matcher in given.items():
        here = at.key(name)
        try:
            path = json_path.parse(name)
        except json_path.PathError as error:
            here.note(
                f"{describe(name)} ({error})",
                "a path like `path`, `$.options.mode`, `$.files[*]` or `$..url`",
            )
            continue
        kinds = record(_READERS)(here, matcher)
        if not matcher:
            here.refuse(matcher, "one of " + ", ".join(f"`{kind}`" for kind in MATCHERS))
        found += [settings.ArgumentMatch(path.shown, kind, read) for kind, read in kinds.items()]
    if not 0 < len(given) <= MAX_CONDITIONS or len(found) > MAX_CONDITIONS:
        at.refuse(value, f"1 to {MAX_CONDITIONS} conditions on arguments")
    return tuple(found)
