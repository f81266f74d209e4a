"""Rarer disguises of texts in definitions and results: other bases, Morse, shifted letters, letters held apart, words run together.

Each is undone only where a sign of it stands, which costs a search or two; arguments are not looked at for these.
What is common enough to be looked for everywhere is core.inspect.disguised's and core.inspect.encoded's business.
"""

from __future__ import annotations

import html
import re
from base64 import a85decode, b32decode, b64decode, b85decode
from binascii import a2b_qp
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

MAX_CHARS: Final = 16_384  # of a text that is looked at
SHORTEST: Final = 24  # characters of a text, and of a word that is decoded
MAX_WORDS: Final = 32  # long words of one text that are decoded
MAX_SHIFTED: Final = 2_048  # characters of a text in which shifted letters are looked for
FEWEST: Final = 8  # letters, of whatever is undone letter by letter

_MORSE = dict(
    zip(
        ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.. ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----. .--.-. .-.-.-".split(),  # noqa: SIM905 - signs read better as signs
        "abcdefghijklmnopqrstuvwxyz0123456789@.",
        strict=True,
    )
)
_BRAILLE = "⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵"
SHAPES: Final = (
    {ord(dots): chr(97 + at) for at, dots in enumerate(_BRAILLE)}
    | {0x2800: " "}
    | {0x1F1E6 + at: chr(97 + at) for at in range(26)}  # regional indicators
)
SHAPE = re.compile("[\u2801-\u28ff\U0001f1e6-\U0001f1ff]")
PICTURE = re.compile("(?<=[^\\W\\d_])[\u2600-\u27bf\U0001f300-\U0001faff]\ufe0f?(?=[^\\W\\d_])")

MORSE = re.compile(r"(?:[.\-]{1,6}[ /]{1,3}){16,1000}[.\-]{0,6}")
HEX_APART = re.compile(r"(?:(?:0x)?[0-9a-fA-F]{2}[ :,;-]{1,2}){16,2000}(?:0x)?[0-9a-fA-F]{2}")
OCTAL = re.compile(
    r"(?:\\[01][0-7]{2}){12,2000}|(?<!\d)(?:[01]?[0-7]{2,3}[ ,]){16,2000}[01]?[0-7]{2,3}(?!\d)"
)
APART = re.compile(r"(?<![^\W_])[^\W_]([.\-_*,/|+~])[^\W_](?:\1[^\W_])+(?![^\W_])")
WIDELY = re.compile(r"(?<!\S)\w(?: \w)*(?: {2,8}\w(?: \w)*){4,}(?!\S)")  # letters one space apart, words more
APART_SIGNS = (".e.", "-e-", "_e_", "*e*", ",e,", "/e/", "|e|", "+e+", "~e~")
BRACES = re.compile(r"\\u\{([0-9a-fA-F]{2,4})\}")
ONE_IN_TAGS = re.compile(r">[^<>\s]<")
TAG = re.compile(r"<[^<>]{1,200}>")
EMPTY = re.compile(r"(?<=\w)(?:<!--[^<>]{0,40}-->|<(\w{1,12})[^<>]{0,40}></\1>)(?=\w)")
FEWEST_EMPTY = 3
JOINTS = re.compile(r"""(["'])\s?\+\s?\1""")  # "Igno" + "re"
LINE_OF_ONE = re.compile(r"\n([^\n])?(?=\n|\Z)")
CODE_POINTS = re.compile(r"(?:U\+00[2-7][0-9A-Fa-f][ ,]{0,2}){12,2000}")
CALLS = re.compile(r"\bchr\((\d{2,3})\)")
# In the alphabet.
PLACES = re.compile(r"(?<![\d-])(?:\d{1,2}(?:-\d{1,2})*[ /]{1,3}){3,400}\d{1,2}(?:-\d{1,2})*(?![\d-])")
PLACE_OF_THE = "20-8-5"
QUOTED_PRINTABLE = re.compile(r"=(?:[2-7][0-9A-F]|\r?\n)")  # RFC 2045, section 6.7
# RFC 2152; with & and comma that of IMAP (RFC 3501, section 5.1.3).
UTF7 = re.compile(r"[+&](A[A-Za-z0-9+/,]{15,4000})")
SYMBOLS = str.maketrans("@4310!|$5+7", "aaeioiisstt")
SYMBOL_SIGNS = ("@ll", "!n$", "!n5", "|gn", "!gn", "pr3v")
BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
BASE32 = re.compile(r"[A-Z2-7]{32,}={0,6}")
BASE85 = re.compile(r"[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{40,}")
RARE = frozenset("!#$%&()*;<>?@^`{|}~")
FEWEST_RARE = 3
JOINT = re.compile(r"[-_.+*/#:]+")
HUMP = re.compile(r"[A-Z]?[a-z]+")
FEWEST_JOINED = 6  # words that run together; names have fewer

_USUAL = ("the", "and", "you", "ignore", "previous", "instructions", "send", "password")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
ATBASH = str.maketrans(_LETTERS + _LETTERS.upper(), _LETTERS[::-1] + _LETTERS[::-1].upper())
ROT47 = {code: 33 + (code - 33 + 47) % 94 for code in range(33, 127)}
SHIFTED_WORDS = ("instructions", "previous", "the", "user", "this", "file", "send", "read")
# Letters that English has once in two hundred. Whichever way letters are shifted, frequent ones become these: one in ten at least.
SELDOM = "jqxz"
FEWEST_SELDOM = 6
SHARE_OF_SELDOM = 25
# Of words in the opposite order.
BACKWARD_PAIRS = ("user the ", " the of ", " the to ", " the tell", " the send", " the with ", "previous all", "tool this", "file the ")  # fmt: skip


def _shift(by: int) -> dict[int, int]:
    turned = _LETTERS[by:] + _LETTERS[:by]
    return str.maketrans(_LETTERS + _LETTERS.upper(), turned + turned.upper())


SHIFTS = tuple((tuple(word.translate(_shift(26 - by)) for word in SHIFTED_WORDS), _shift(by)) for by in range(1, 26) if by != 13)  # fmt: skip
_SIGNS_ATBASH = tuple(word.translate(ATBASH) for word in _USUAL)
_SIGNS_ROT47 = tuple(word.translate(ROT47) for word in _USUAL)


def readings(raw: str) -> Iterator[str]:
    """Yield what a text, or a part of it, says without each disguise whose signs it has."""
    if len(raw) < SHORTEST:
        return
    text = raw[:MAX_CHARS]
    if not text.isascii():
        yield from _pictures(text)
    yield from _apart(text)
    yield from _numbers(text)
    yield from _in_transfer(text)
    yield from _shifted(text)
    yield from _long_words(text)


def _pictures(text: str) -> Iterator[str]:
    if len(SHAPE.findall(text)) >= FEWEST:
        yield text.translate(SHAPES)
    if len(PICTURE.findall(text)) >= FEWEST:
        yield PICTURE.sub("", text)


def _apart(text: str) -> Iterator[str]:
    """Yield texts whose letters stand apart: by signs, each in a tag, or as entities of entities."""
    if any(sign in text for sign in APART_SIGNS) and sum(1 for _ in APART.finditer(text)) > 1:
        yield APART.sub(lambda match: match[0].replace(match[1], ""), text)
    if " e " in text and " t " in text and "  " in text:
        yield WIDELY.sub(lambda match: re.sub(r"(?<=\w) (?=\w)", "", match[0]), text)
    if "</" in text and len(ONE_IN_TAGS.findall(text)) >= FEWEST:
        yield TAG.sub("", text)
    if ("></" in text or "-->" in text) and len(EMPTY.findall(text)) >= FEWEST_EMPTY:
        yield EMPTY.sub("", text)
    if "+" in text and len(JOINTS.findall(text)) >= FEWEST:
        yield JOINTS.sub("", text)
    if "\ne\n" in text and len(LINE_OF_ONE.findall(text)) >= SHORTEST:
        yield LINE_OF_ONE.sub(lambda match: match[1] or " ", text)
    if "&amp;#" in text:
        yield html.unescape(html.unescape(text))


def _numbers(text: str) -> Iterator[str]:
    """Yield what codes spell: Morse, bytes in hexadecimal or octal, escapes in braces."""
    if "-. " in text and ".- " in text:
        for match in MORSE.finditer(text):
            yield " ".join(
                "".join(_MORSE.get(sign, "") for sign in word.split()) for word in match[0].split("/")
            )
    if "\\u{" in text:
        yield BRACES.sub(lambda match: chr(int(match[1], 16)), text)
    if any(sign in text for sign in (" 20 ", ":20:", "x20", ",20,", "-20-")):
        for match in HEX_APART.finditer(text):
            digits = re.findall(r"(?:0x)?([0-9a-fA-F]{2})", match[0])
            yield from _printable([int(two, 16) for two in digits])
    if "\\1" in text or " 40 " in text:
        for match in OCTAL.finditer(text):
            yield from _printable([int(digits, 8) for digits in re.findall(r"[0-7]{2,3}", match[0])])
    if "U+00" in text:
        for match in CODE_POINTS.finditer(text):
            yield "".join(chr(int(code, 16)) for code in re.findall(r"00[2-7][0-9A-Fa-f]", match[0]))
    if "chr(" in text:
        yield from _printable(list(map(int, CALLS.findall(text))))
    if PLACE_OF_THE in text:
        for match in PLACES.finditer(text):
            yield " ".join(map(_by_places, match[0].replace("/", " ").split()))


def _by_places(word: str) -> str:
    """Return the word that places in the alphabet spell."""
    return "".join(chr(96 + int(place)) for place in word.split("-") if 0 < int(place) < 27)


def _in_transfer(text: str) -> Iterator[str]:
    """Yield what encodings of mails say: quoted-printable, UTF-7."""
    if "=" in text and len(QUOTED_PRINTABLE.findall(text)) >= FEWEST:
        spelled = a2b_qp(text.encode("utf-8", "replace")).decode("utf-8", "replace")
        yield spelled.replace("_", " ") if "?Q?" in text else spelled
    if "+A" in text or "&A" in text:
        for match in UTF7.finditer(text):
            bare = match[1].replace(",", "/")
            yield from _decoded(b64decode, bare[: len(bare) // 8 * 8], "utf-16-be")


def _printable(codes: list[int]) -> Iterator[str]:
    if all(32 <= code < 127 for code in codes):
        yield "".join(map(chr, codes))


def _shifted(text: str) -> Iterator[str]:
    """Yield texts whose letters are others: symbols, the alphabet backwards or shifted, the printable characters shifted."""
    low = text.lower()
    if _some(SYMBOL_SIGNS, low):
        yield low.translate(SYMBOLS)
    if _some(_SIGNS_ATBASH, low):
        yield text.translate(ATBASH)
    if _some(_SIGNS_ROT47, text):
        yield text.translate(ROT47)
    if _some(BACKWARD_PAIRS, low):
        yield " ".join(reversed(text.split()))
    seldom = sum(map(low.count, SELDOM)) if len(text) <= MAX_SHIFTED else 0
    if seldom >= FEWEST_SELDOM and seldom * SHARE_OF_SELDOM >= len(text):
        yield from (text.translate(table) for signs, table in SHIFTS if _some(signs, low))


def _some(signs: tuple[str, ...], text: str) -> bool:
    """Say whether a text has two signs at least."""
    return len([sign for sign in signs if sign in text]) > 1


def _long_words(text: str) -> Iterator[str]:
    """Yield what words longer than any word spell: runs in other bases, and words that run together."""
    words = text.split()
    long = [(at, word) for at, word in enumerate(words) if len(word) >= SHORTEST][:MAX_WORDS]
    yield from _wrapped([(at, word) for at, word in long if BASE64.fullmatch(word)], words)
    for _, word in long:
        if BASE32.fullmatch(word):
            yield from _decoded(b32decode, word.rstrip("=") + "=" * (-len(word.rstrip("=")) % 8))
        elif word.startswith("<~"):
            yield from _decoded(a85decode, word.removeprefix("<~").removesuffix("~>"))
        elif BASE85.fullmatch(word) and len(RARE.intersection(word)) >= FEWEST_RARE:
            yield from _decoded(b85decode, word)
    joined = [_joined(word.partition("#")[2] if "://" in word else word) for _, word in long]
    if any(joined):
        yield ". ".join(filter(None, joined))


def _wrapped(lines: list[tuple[int, str]], words: list[str]) -> Iterator[str]:
    """Yield what base64 over several lines spells."""
    block: list[str] = []
    for (at, word), (following, _) in pairwise([*lines, (-1, "")]):
        block.append(word)
        if following != at + 1:
            last = words[at + 1] if at + 1 < len(words) and BASE64.fullmatch(words[at + 1]) else ""
            for tail in {last, ""} if len(block) > 1 or last else ():
                bare = "".join(block).rstrip("=") + tail.rstrip("=")
                yield from _decoded(b64decode, bare + "=" * (-len(bare) % 4))
            block = []


def _decoded(decode: Callable[[str], bytes], run: str, charset: str = "utf-8") -> Iterator[str]:
    try:
        text = decode(run).decode(charset)
    except ValueError:  # binascii's errors and those of UTF-8 are of this kind
        return
    if text.isprintable() and " " in text:
        yield text


def _joined(word: str) -> str:
    """Return the words that run together in one; empty where it is one."""
    parts = [part for part in JOINT.split(word) if part.isalpha()]
    if len(parts) < FEWEST_JOINED:
        parts = HUMP.findall(word) if word.isalpha() else []
    return " ".join(parts) if len(parts) >= FEWEST_JOINED else ""
