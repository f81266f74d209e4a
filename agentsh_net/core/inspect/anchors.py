"""Many words and parts of phrases looked for in one text: by the words it has, which are far fewer than its letters.

What follows from finding one is its callers' business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LETTERS = 3  # beside each other
BY_FREQUENCY = "etaoinshrdlcumwfgypbvkjxqz"

_RUN = re.compile("[a-z]+")
_ASCII = bytes(range(128))
_LETTERS = bytes(byte if ord("a") <= byte <= ord("z") else ord(" ") for byte in range(256))


class Anchors:
    """Pieces of text in lower case, to be found in texts in lower case."""

    def __init__(self, anchors: Iterable[str]) -> None:
        # What stands in a text stands there with each run of letters in it, a run of letters stands in a word, and each three
        # of its letters stand there beside each other: few stems are looked for one by one.
        self._by_stem: dict[str, list[str]] = {}
        self._wordless: list[str] = []
        self._by_character: dict[str, list[str]] = {}  # of other alphabets or with accents
        for anchor in dict.fromkeys(anchors):
            runs = _RUN.findall(anchor)
            if not anchor.isascii():
                self._by_character.setdefault(_beyond_ascii(anchor)[0], []).append(anchor)
            elif runs:
                self._by_stem.setdefault(max(runs, key=len), []).append(anchor)
            else:
                self._wordless.append(anchor)
        self._short = [stem for stem in self._by_stem if len(stem) < LETTERS]
        self._by_letters: dict[tuple[str, ...], list[str]] = {}
        for stem in self._by_stem:
            if len(stem) >= LETTERS:
                self._by_letters.setdefault(_telling(stem), []).append(stem)

    def there(self, text: str, words: Iterable[str] | None = None) -> set[str]:
        """Return those that stand in a text; `words` are its `words_of`, where they are known."""
        distinct = " ".join(words_of(text) if words is None else words)
        found: set[str] = set()
        for character in () if text.isascii() else self._by_character.keys() & {*_beyond_ascii(text)}:
            found.update(anchor for anchor in self._by_character[character] if anchor in text)
        found.update(anchor for anchor in self._wordless if anchor in text)
        stems = [*self._short]
        for together in self._by_letters.keys() & set(
            zip(distinct, distinct[1:], distinct[2:], strict=False)
        ):
            stems += self._by_letters[together]
        for stem in stems:
            if stem in distinct:
                found.update(anchor for anchor in self._by_stem[stem] if anchor in text)
        return found


def _telling(stem: str) -> tuple[str, ...]:
    """Return those letters of a stem, beside each other, that are the rarest in English."""
    runs = [stem[at : at + LETTERS] for at in range(len(stem) - LETTERS + 1)]
    return tuple(max(runs, key=lambda run: sum(map(BY_FREQUENCY.index, run))))


def _beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not ASCII."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


def words_of(text: str) -> set[str]:
    """Return the runs of small letters from a to z in a text."""
    letters = text.encode("utf-8", "replace").translate(_LETTERS)
    return {word.decode() for word in {*letters.split()}}
