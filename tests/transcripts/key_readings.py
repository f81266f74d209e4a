"""What lenient JSON readers make of an object's pairs, as `object_pairs_hook`: which of two equal keys they take."""

from __future__ import annotations

from typing import Any

Pairs = list[tuple[str, Any]]


def last_wins(pairs: Pairs) -> dict[str, Any]:
    return dict(pairs)


def first_wins(pairs: Pairs) -> dict[str, Any]:
    return dict(reversed(pairs))


def any_case(pairs: Pairs) -> dict[str, Any]:
    return {key.casefold(): value for key, value in pairs}
