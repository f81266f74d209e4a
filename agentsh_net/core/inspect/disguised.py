"""Whole texts in a disguise that a model sees through: rot13, written backwards, digits for letters, escapes, character codes.

Each is undone only where its own signs are there, so that honest text is not read twice. Runs inside a text are
core.inspect.encoded's business.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from urllib.parse import unquote

from agentsh_net.core.inspect.lexicon import WORDS

SHORTEST = 24  # characters of a text that is looked at
MAX_CHARS = 16_384  # characters of one that are undone
# Frequent words of English as each disguise spells them: two of them are no accident.
FEWEST = 2
_USUAL = ("the", "and", "you", "all", "this", "with", "that", "before", "ignore", "previous", "send", "read", "instructions", "file", "password")  # fmt: skip
ROT13 = frozenset(codecs.encode(word, "rot13") for word in _USUAL)
BACKWARDS = frozenset(word[::-1] for word in _USUAL)

WORD = re.compile(r"[a-z]{3,40}")
MIXED = re.compile(
    r"(?<![\w.-])(?=[\w@$]{2,20}(?![\w@$.-]))(?:\d{0,2}[a-z@$]+\d)[\w@$]*|(?<![\w.-])\d[a-z]{2,19}(?![\w.-])"
)
LEET_SIGN = re.compile(r"[a-z][013457@$][a-z]")
LEET = str.maketrans("01345789@$", "oieastbgas")
FEWEST_LEET = 3
ESCAPES = re.compile(r"\\(?:u00|U000000|x)([2-6][0-9a-fA-F]|7[0-9a-eA-E])")
FEWEST_ESCAPES = 2
PERCENT = re.compile(r"%(?:25)*[2-7][0-9a-fA-F]")
FEWEST_PERCENT = 4
CODES = re.compile(r"(?<![\d.])(?:1?\d{2}[ ,]{1,2}){11,400}1?\d{2}(?![\d.])")
BITS = re.compile(r"(?<![\d.])(?:[01]{8}[ ,]?){8,400}(?![\d.])")


def undisguised(raw: str) -> Iterator[str]:
    """Yield what a text says without each disguise whose signs it has."""
    if len(raw) < SHORTEST:
        return
    text = raw[:MAX_CHARS]
    low = text.lower()
    if _spelled(ROT13, low):
        yield codecs.encode(text, "rot13")
    if _spelled(BACKWARDS, low):
        yield text[::-1]
        yield " ".join(word[::-1] for word in text.split())
    if "\\" in text and len(ESCAPES.findall(text)) >= FEWEST_ESCAPES:
        yield ESCAPES.sub(lambda match: chr(int(match[1], 16)), text)
    if "%" in text and len(PERCENT.findall(text)) >= FEWEST_PERCENT:
        yield unquote(unquote(text) if "%25" in text else text)
    if not low.isascii() or not any(map(low.__contains__, "01345")):
        return
    yield from leet(low)
    yield from _codes(text)


def _spelled(disguised: frozenset[str], low: str) -> bool:
    """Say whether a text has the usual words in a disguise; looked for as parts of words first, which costs less."""
    there = {word for word in disguised if word in low}
    return len(there) >= FEWEST and len(there.intersection(WORD.findall(low))) >= FEWEST


def leet(low: str) -> Iterator[str]:
    """Yield a text in lower case without digits for letters, where there are enough of them."""
    if len(LEET_SIGN.findall(low)) < FEWEST_LEET - 1:
        return
    mixed = [match[0] for match in MIXED.finditer(low)]
    if sum(word.translate(LEET) in WORDS for word in mixed) >= FEWEST_LEET:
        yield MIXED.sub(lambda match: match[0].translate(LEET), low)


def _codes(text: str) -> Iterator[str]:
    for match in CODES.finditer(text):
        numbers = [int(number) for number in re.findall(r"\d+", match[0])]
        if all(32 <= number < 127 for number in numbers):
            yield "".join(map(chr, numbers))
    for match in BITS.finditer(text):
        digits = re.sub(r"[ ,]", "", match[0])
        data = bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits) - 7, 8))
        if data.isascii() and data.decode("ascii").isprintable():
            yield data.decode("ascii")
