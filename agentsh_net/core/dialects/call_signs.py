r"""What in the bytes of an answer could speak of a call: what holds none of it passes every dialect's machine unread.

Every call of every dialect stands under a key or type that contains `tool`, `function_call` or `functionCall`. Case is folded
because some parsers fold the case of keys (Go's encoding/json). A NUL byte is UTF-16 or UTF-32, which Python's `json.loads`
detects. Which frames there are, and what becomes of them, is `inspection`'s business.

ESCAPES. `\u00XX` can spell every letter of these, and no other escape can: a `\uXXXX` of more than seven bits is no ASCII character,
alone or as a surrogate, and `\n` and its like stand for none of `a-z` and `_`. So marks are looked for in the plain text, in which
each escape of U+0040 to U+007F (all letters, and `_`) is the character it stands for. Why that overlooks nothing:

1. Such an escape has one backslash, its first byte, so that no two overlap: the plain text replaces every one and nothing else. The
   plain text of two frames is the two plain texts, since no escape that is replaced has a line end in it.
2. `\u` begins an escape, for a parser, unless the backslash is itself escaped. Where a backslash stands before it, nothing is
   concluded: that is a sign (`_UNSURE`). So is an escape that is cut short, which lenient parsers read in many ways.
3. Every other such escape is read as its character by whoever reads the string it stands in. That is no quote, and no backslash
   (U+005C is in `_UNSURE` too), so strings begin and end where they did: text and plain text have the same members in the same
   order, keys that stand twice and all. Where strings are, and whether this is JSON at all, is never asked.
4. So a key or value with a mark in it is a run of the mark's own letters in the plain text, and there it is found.

A line end in a string is one of its characters, and no mark has one; for clients that drop it, lines are joined before they come here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

# Marks, and the signs of dialects, have five bytes at most: in texts of 30,000 bytes and more CPython (3.10 on) looks for longer ones
# by an algorithm that takes 0.3 to 0.6 ns a byte, against 0.12 to 0.15. Each is a part of what it stands for, so it finds more.
LONGEST: Final = 5

_TOOL: Final = b"tool"
_FUNCTION: Final = b"funct"
_NUL: Final = b"\0"
_FUNCTION_CALL: Final = re.compile(rb"function_?call")

_BACKSLASH: Final = b"\\"
_BEGINS_ESCAPE: Final = b"\\u00"
_LETTER: Final = re.compile(rb"\\u00[4-7]")
_SPELLED: Final = re.compile(rb"\\u00([4-7][0-9A-Fa-f])")
_UNSURE: Final = re.compile(rb"\\(?:\\u00[4-7]|u00[4-7](?![0-9A-Fa-f])|u005[Cc])")
_CHARACTERS: Final = {
    digits.encode(): bytes([code]) for code in range(0x40, 0x80) for digits in (f"{code:02x}", f"{code:02X}")
}
_SHORTER: Final = len(b"\\u0041") - len(b"A")


def has_escaped_letters(text: bytes) -> bool:
    """Say whether a letter may be spelled as an escape, which honest writers of JSON never do."""
    # One byte first, which costs a tenth; most texts have a backslash, few have `\\u00`.
    return text.find(_BACKSLASH) >= 0 and text.find(_BEGINS_ESCAPE) >= 0 and _LETTER.search(text) is not None


def plain(text: bytes) -> bytes:
    """Return a text with the escapes of U+0040 to U+007F replaced by their characters."""
    return _SPELLED.sub(_character, text)


def _character(escape: re.Match[bytes]) -> bytes:
    return _CHARACTERS[escape[1]]


def may_hide_call(frames: bytes, signs: tuple[bytes, ...] = ()) -> bool:
    """Say whether any frame of these could speak of a call, in any dialect; see above for why no escape hides one.

    `signs` (lower case) are what else a dialect's machine must see.
    """
    if frames.find(_BACKSLASH) >= 0 and has_escaped_letters(frames):  # most have none, and a call costs more
        if _UNSURE.search(frames) is not None:
            return True
        frames = plain(frames)
    folded = frames.lower()
    find = folded.find  # half the price of `in`, which makes and drops a TypeError first: may it be an integer that is asked for?
    for sign in signs:  # a loop and not any(): this runs for every read of every stream
        if find(sign) >= 0:
            return True
    return (
        find(_TOOL) >= 0
        or (find(_FUNCTION) >= 0 and _FUNCTION_CALL.search(folded) is not None)
        or find(_NUL) >= 0
    )


class Places:
    """Where in whole frames something may speak of a call. Each mark is looked for once, so that many cost what the text is long."""

    __slots__ = ("_folded", "_letters", "_marks", "_places", "_size", "_starts", "_text", "_unsure")

    def __init__(self, frames: bytes, signs: tuple[bytes, ...]) -> None:
        self._text = frames
        self._size = len(frames)
        lettered = has_escaped_letters(frames)
        # Where the letters that are escapes in the text begin: there, and in the folded text.
        self._starts = [match.start() for match in _SPELLED.finditer(frames)] if lettered else []
        self._letters = [start - _SHORTER * number for number, start in enumerate(self._starts)]
        self._folded = (plain(frames) if lettered else frames).lower()
        self._marks = (*signs, _TOOL, _FUNCTION, _NUL)
        self._places = [-1] * len(self._marks)  # in the folded text
        self._unsure = -1 if lettered else self._size

    def first(self, at: int) -> int:
        """Return where the first mark stands from `at` on, where a frame begins; the end of the text where there is none."""
        folded, places = self._folded, self._places
        begin = at - _SHORTER * bisect_left(self._starts, at)
        for number, place in enumerate(places):
            if place < begin:
                found = folded.find(self._marks[number], begin)
                places[number] = found if found >= 0 else len(folded)
        if self._unsure < at:
            match = _UNSURE.search(self._text, at)
            self._unsure = self._size if match is None else match.start()
        nearest = min(places)
        return min(nearest + _SHORTER * bisect_left(self._letters, nearest), self._unsure)
