r"""What a text says once the escapes in it are undone: tools answer with JSON, URLs and coloured output, each as a string.

`\nsk-ant-...` is a line that begins with a key, not a word that ends in one. Whose escapes they are nobody says, so a text is
searched both as it is written and as it reads. What is searched for is not its business.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, NamedTuple

_ESCAPE: Final = re.compile(
    r"\\(?:([\"'/\\0abefnrtv])|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))"  # JSON, JavaScript, Python
    r"|%([0-9A-Fa-f]{2})"  # RFC 3986 section 2.1
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # ECMA-48: colours, which say nothing
)
_SIGNS: Final = ("\\", "%", "\x1b")
_SHORT: Final = {c: c for c in "\"'/\\"} | dict(zip("0abefnrtv", "\0\a\b\x1b\f\n\r\t\v", strict=True))
_LAST: Final = 1 << 62  # behind every position


class Places(NamedTuple):
    """Where the escapes of a text stand, and (position in what it reads, in what is written) behind each of them."""

    spans: list[tuple[int, int]]
    behind: list[tuple[int, int]]

    def written(self, position: int) -> int:
        """Return where in the text as it is written a character stands, given where in what it reads."""
        read, written = self.behind[bisect_right(self.behind, (position, _LAST)) - 1]
        return written + position - read

    def outside(self, position: int) -> int:
        """Return a position in the text as it is written, moved behind the escape in which it lies."""
        start, end = self.spans[bisect_right(self.spans, (position, 0)) - 1]
        return end if start < position < end else position


def undone(text: str) -> str:
    """Return how a text reads."""
    return _ESCAPE.sub(_plain, text) if any(sign in text for sign in _SIGNS) else text


def places(text: str) -> Places:
    """Return where the escapes of a text are that has some."""
    spans, behind, read = [], [(0, 0)], 0
    for match in _ESCAPE.finditer(text):
        start, end = match.span()
        read += start - behind[-1][1] + len(_plain(match))
        spans.append((start, end))
        behind.append((read, end))
    return Places(spans, behind)


def _plain(match: re.Match[str]) -> str:
    short = match[1]
    if short:
        return _SHORT[short]
    code = match[2] or match[3] or match[4]
    return chr(int(code, 16)) if code else ""
