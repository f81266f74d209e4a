"""Arguments that hold nothing, told at a glance over many calls at once: where no detector's signs stand, none finds anything.

It may only err to one side. Whatever a detector of arguments can find has a sign here, in every text that holds it, and in
every text that this one is a part of; where a sign stands, the detectors themselves look.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from agentsh_net.core.inspect import commands, credentials, links
from agentsh_net.core.inspect.anchors import Anchors, words_of
from agentsh_net.core.inspect.disguised import BACKWARDS, FEWEST, ROT13, leet
from agentsh_net.core.inspect.encoded import readable_run
from agentsh_net.core.inspect.phrases import SHORTEST, Index, Phrase, matches
from agentsh_net.core.inspect.plain import ENTITY, MARKS, plain

MAX_CHARS: Final = 64 << 10  # of all: none of the calls meets the bound that each of them has

# Spelling that is undone before anything is searched (`%`, escapes), images that are fetched, references.
_SIGNS: Final = ("%", "\\", "![", *links.REFERENCES)
_SCHEME: Final = re.compile(r"(?:(?:java|vb|live)\s*script|about|chrome|filesystem)\s*:")
_SCHEMES: Final = ("script", "about", "chrome", "filesystem")
_CATCHERS: Final = Anchors(links.CATCHING)
_PATHS: Final = Anchors((*credentials.SECRET_ANCHORS, *credentials.SETTINGS_ANCHORS))
_BLANK: Final = str.maketrans("\n\t\r", "   ")
LONGEST_WORD: Final = 40  # letters; of a longer one other detectors look at parts


def _classes(*classes: tuple[str, str]) -> bytes:
    """Return a table that turns the characters of each class into one letter, all others into a point."""
    table = bytearray(b"." * 256)
    for members, letter in classes:
        for member in members.encode():
            table[member] = ord(letter)
    return bytes(table)


_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = "0123456789"
# Letters one space apart; digits for letters; lists of numbers.
_SPACED: Final = (_classes((_LETTERS + _LETTERS.upper() + _DIGITS + "_", "a"), (" ", " ")), b"a a a a")
_LEET: Final = (_classes((_LETTERS, "a"), ("013457@$", "1")), b"a1a")
_CODES: Final = (_classes((_DIGITS + " ,", "1")), b"1" * 35)


class Quiet:
    """Tells strings in which these phrases, and what else is looked for in arguments, cannot be found."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def strings(self, strings: Collection[str]) -> bool:
        """Say whether none of these strings, keys and values of arguments, holds anything."""
        candidates = self._candidates("\n".join(strings))
        if not candidates:
            return candidates is not None
        plainly = [plain(string) for string in strings if len(string) >= SHORTEST]
        return not any(matches(phrase, text) for phrase in candidates for text in plainly)

    def doubtful(self, lines: Sequence[str]) -> list[str]:
        """Return those lines in which something may be held: values of a call each, in compact JSON without escapes."""
        candidates = self._candidates("\n".join(lines))
        if candidates is None:
            return [*lines]
        return [line for line in lines if candidates and _matched(candidates, line)]

    def _candidates(self, text: str) -> list[Phrase] | None:
        """Return the phrases that may stand in one of the strings in a text, None where there is a sign of something else.

        Between any two strings there are quotes or a newline.
        """
        if len(text) > MAX_CHARS or not text.isascii():
            return None
        if not text.translate(_BLANK).isprintable() or any(sign in text for sign in _SIGNS):
            return None
        raw, low = text.encode(), text.lower()
        if _SPACED[1] in raw.translate(_SPACED[0]) or ("&" in text and ENTITY.search(text)):
            return None
        plainly = _unmarked(low)
        words = words_of(plainly)
        if _refers(text, low) or _reaches(text, low, plainly, words) or _disguises(text, low):
            return None
        return self._index.candidates(plainly, words)


def _unmarked(low: str) -> str:
    """Return what `plain` makes of text in lower case that has no other disguise than marks."""
    return " ".join(low.translate(MARKS).split())


def _matched(candidates: Sequence[Phrase], line: str) -> bool:
    """Say whether one of the strings on a line holds a phrase: without escapes what stands between two quotes is one."""
    texts = [_unmarked(text) for text in line.lower().split('"')[1::2] if len(text) >= SHORTEST]
    return any(matches(phrase, text) for phrase in candidates for text in texts)


def _refers(text: str, low: str) -> bool:
    """Say whether something in it may lead elsewhere."""
    if "icon" in low or ("data:" in low and links.DATA_DOCUMENT.search(text)):
        return True
    if any(scheme in low for scheme in _SCHEMES) and _SCHEME.search(low):
        return True
    return ("://" in text or "<" in text) and bool(_CATCHERS.there(low))


def _reaches(text: str, low: str, plainly: str, words: set[str]) -> bool:
    """Say whether a path, a command or the shape of a key may stand in it."""
    if ".." in plainly and credentials.TRAVERSAL.search(plainly):
        return True
    if _PATHS.there(plainly, words) or any(anchor in low for anchor in commands.ANCHORS):
        return True
    keys = any(anchor in text for anchor in credentials.KEY_ANCHORS)
    return keys and credentials.KEY_SHAPE.search(text) is not None


def _disguises(text: str, low: str) -> bool:
    """Say whether something in it may be encoded."""
    raw = low.encode()
    words = words_of(low)
    if (
        len(words & ROT13) >= FEWEST
        or len(words & BACKWARDS) >= FEWEST
        or _CODES[1] in raw.translate(_CODES[0])
    ):
        return True
    if any(len(word) > LONGEST_WORD for word in words) or readable_run(text):
        return True
    return raw.translate(_LEET[0]).count(_LEET[1]) > 1 and next(leet(low), None) is not None
