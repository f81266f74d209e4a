"""Arguments of a Gemini call that came in pieces, put together: a JSON path and a value each (Vertex AI, `partialArgs`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from agentsh_net.core.values.members import folded

# A member or an element (RFC 9535, section 2.3, what names one value).
_STEP: Final = re.compile(r"\.([^.\[\]'\"]+)|\[([0-9]{1,4})\]|\['([^'\\]*)'\]|\[\"([^\"\\]*)\"\]")
_MAX_STEPS: Final = 64  # no deeper than .NET reads JSON


def assembled(args: Any, partial: Iterable[Any]) -> tuple[Any, str]:
    """Return the arguments, and why nobody can tell what they are: then they are the pieces as they came."""
    pieces = list(partial)
    if not pieces:
        return args, ""
    root: dict[str, Any] = {"$": dict(args) if isinstance(args, dict) else {}}
    for entry in _joined(pieces):
        steps = _steps(entry.get("jsonpath"))
        if steps is None or not _put(root, ["$", *steps], entry):
            return {"args": args, "partialArgs": pieces}, "a piece of them has no place"
    return root["$"], "they came both whole and in pieces" if args else ""


def _joined(pieces: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the pieces with plain keys, those of one string as one, where it begins: text comes token by token."""
    entries = [folded(piece) for piece in pieces]
    texts: dict[str, list[str]] = {}
    for entry in entries:
        if _is_text(entry):
            texts.setdefault(entry["jsonpath"], []).append(entry["stringvalue"])
    for entry in entries:
        if not _is_text(entry):
            yield entry
        elif text := texts.pop(entry["jsonpath"], None):
            yield {"jsonpath": entry["jsonpath"], "stringvalue": "".join(text)}


def _is_text(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("stringvalue"), str) and isinstance(entry.get("jsonpath"), str)


def _steps(path: Any) -> list[str | int] | None:
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or len(steps) > _MAX_STEPS:
            return None
        name, index, single, double = match.groups()
        steps.append(
            int(index) if index else next(text for text in (name, single, double) if text is not None)
        )
        at = match.end()
    return steps or None


def _put(root: dict[str, Any], steps: list[str | int], entry: dict[str, Any]) -> bool:
    """Put a value in its place, behind what is there of a string; say whether that could be done."""
    container: Any = root
    for step, following in pairwise(steps):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int) and step > len(container):
            return False  # a list grows entry by entry: what is skipped over would cost memory
        container = _step(container, step, empty)
        if not isinstance(container, list if isinstance(following, int) else dict):
            return False
    last = steps[-1]
    if isinstance(last, int) and last > len(container):
        return False
    old = _step(container, last, None)
    if "stringvalue" in entry:
        value = entry["stringvalue"]
        if not isinstance(value, str) or not isinstance(old, str | None):
            return False
        value = (old or "") + value
    elif old is not None:
        return False  # a value in two pieces
    else:
        value = next((entry[key] for key in ("numbervalue", "boolvalue") if key in entry), None)
    container[last] = value
    return True


def _step(container: Any, step: Any, empty: Any) -> Any:
    """Return what stands at a step, made where nothing does."""
    if isinstance(container, list):
        if step == len(container):
            container.append(empty)
    elif container.get(step) is None:
        container[step] = empty
    return container[step]
