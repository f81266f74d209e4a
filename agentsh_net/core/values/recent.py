"""Tables that forget what was used longest ago, so that nobody outside can fill the memory with them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def remember(recent: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Put an entry where the one that was used last stands; forget the first where there are more than `most`."""
    recent[key] = value
    recent.move_to_end(key)
    if len(recent) > most:
        recent.popitem(last=False)
