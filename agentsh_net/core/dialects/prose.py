"""Frames that say the same but for the text in one string: most of an answer is of such frames, and one look at each is enough.

What stands before the text is compared with what the dialect knows by heart, what stands behind it too. The text is printable ASCII
without a quote or a backslash, so that nothing in it ends the string or the line: whatever words it has, it is prose to every client.
Anything else is not denied, only read in full. What else a frame may be is `inspection`'s business.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_QUOTE: Final = b'"'
# Printable ASCII stays ASCII and all else becomes what is none, so that two calls tell whether there is anything else: where five
# searches or an expression would cost thrice as much.
_PLAIN: Final = bytes(0 if 0x20 <= code < 0x7F and code != ord("\\") else 0xFF for code in range(0x100))


class Shape(NamedTuple):
    """What stands around the text, up to its first quote and from its last: in some streams what hides the text's length differs."""

    before: re.Pattern[bytes]
    behind: re.Pattern[bytes]


class Prose:
    """What stood around the text in the last frame of a shape, in one stream."""

    __slots__ = ("_at", "_before", "_behind", "_shape")

    def __init__(self, shape: Shape | None) -> None:
        self._shape = shape
        self._behind = b""
        self._before = _QUOTE  # of nothing: `_at` says where it ends
        self._at = 0

    def goes_on(self, frame: bytes) -> bool:
        """Say whether `frame` is the last one that was learned, but for its text."""
        at = self._at
        if frame[:at] != self._before:
            return False
        end = frame.find(_QUOTE, at)
        tail = frame[end:]
        return (tail == self._behind or self._ends(tail)) and frame[at:end].translate(_PLAIN).isascii()

    def _ends(self, tail: bytes) -> bool:
        """Say whether this may stand behind the text; it is compared first with the next one's."""
        found = self._shape is not None and self._shape.behind.fullmatch(tail) is not None
        if found:
            self._behind = tail
        return found

    def learn(self, frame: bytes) -> None:
        """Look how a frame that passed begins, or the first of several."""
        if self._shape is None or (self._at and frame.startswith(self._before)):
            return
        match = self._shape.before.match(frame)
        if match is not None:
            self._before = match[0]
            self._at = len(self._before)
