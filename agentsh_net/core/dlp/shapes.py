"""What personal data and credentials look like in plain text. Every search is linear in the text, whatever the text is.

Where in a request is searched, and what is written in the place of a find, is not its business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Hit(NamedTuple):
    """A find: characters `start` to `end` of the text are a `kind`."""

    start: int
    end: int
    kind: str


Search = Callable[[str], Iterator[tuple[int, int]]]

_DOMAIN: Final = re.compile(r"@(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_]{2,63}(?![\w@])")
_LOCAL: Final = re.compile(r"[\w.%+'-]{1,64}\Z")  # of RFC 5321's 64 characters, those that mailboxes have
# Mailboxes that are no person's and that agents' work is full of: `git@github.com:...`, the co-author of commits.
_IMPERSONAL: Final = frozenset({"git", "noreply", "no-reply"})

_GAP: Final = "[ \\-\u00a0\u2010-\u2015]"
# Digits first, what must not stand before them after that: so the engine skips to digits at the speed of a table.
_DIGITS: Final = re.compile(rf"\d(?<![\w.\-]\d)\d{{2,}}(?:{_GAP}\d{{2,}})*")  # in groups, as they are written
_DOUBLED: Final = "0246813579"  # the digit sum of twice a digit
# Issuers and their lengths: what is a number of 13 to 19 digits and passes Luhn by chance is mostly none of these.
_ISSUER: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01]|720)\d{12,13}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12,15}|35\d{14}|62\d{14,17}"
)
_SSN: Final = re.compile(
    r"\d(?<![\w.\-]\d)(?<!9)\d\d(?<!000)(?<!666)([ \-\u2010-\u2015])(?!00)\d{2}\1(?!0000)\d{4}(?![\w\-])"
)
_IBAN: Final = re.compile(r"[0-9](?<=[A-Za-z]{2}[0-9])(?<![A-Za-z0-9]{3}[0-9])[0-9] ?[A-Za-z0-9]")
# E.123, E.164.
_INTERNATIONAL: Final = re.compile(r"\+[1-9](?:[ .\-\u00a0]?(?:\(\d{1,4}\)[ .\-]?)?\d){7,14}(?![\w\-])")
_NATIONAL: Final = re.compile(
    r"[(1-9](?<![\w.\-][(1-9])(?:(?<=1)[ .\-](?:\([2-9]\d{2}\) ?|[2-9]\d{2}[.\- ])|(?<=\()[2-9]\d{2}\) ?|(?<=[2-9])\d{2}[.\- ])"
    r"[2-9]\d{2}[.\- ]\d{4}(?![\w\-])"
)

# ISO 13616 registry: how long a country's IBAN is.
_IBAN_LENGTH: Final[Mapping[str, int]] = MappingProxyType(
    {
        country: length
        for length, countries in {
            15: "NO", 16: "BE", 18: "DK FO FI GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU XK MN", 21: "CH HR LI LV",
            22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM TL SO", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
            25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV",
            29: "BR EG PS QA UA", 30: "JO KW MU", 31: "MT SC", 32: "LC", 33: "RU",
        }.items()
        for country in countries.split()
    }
)  # fmt: skip

# By what a key must contain, the search for it: a literal is found at the speed of memory, an alternation of all is not.
# What may repeat is bounded by what stops it: a run is entered at its beginning only, so no text makes the search quadratic.
_KEYS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        anchor: re.compile(pattern)
        for anchor, pattern in {
            "sk-": r"(?<![A-Za-z0-9])sk-(?:(?:ant|proj|svcacct|admin|or-v1|lf)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})",
            "AKIA": r"(?<![A-Za-z0-9])AKIA[A-Z2-7]{16}(?![A-Za-z0-9])",
            "ASIA": r"(?<![A-Za-z0-9])ASIA[A-Z2-7]{16}(?![A-Za-z0-9])",
            "gh": r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,}",
            "github_pat_": r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{22,}",
            "glpat-": r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_.-]{20,}",
            "xox": r"(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{10,}",
            "xapp-": r"(?<![A-Za-z0-9])xapp-[A-Za-z0-9-]{20,}",
            "AIza": r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}",
            "k_live_": r"(?<![A-Za-z0-9])[rs]k_live_[A-Za-z0-9]{20,}",
            "npm_": r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}",
            "pypi-": r"(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{50,}",
            "hf_": r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{34,}",
            "SG.": r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}",
            "eyJ": r"(?<![\w.-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        }.items()
    }
)
_KEY_BEGINS: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS: Final = re.compile(r"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_SHORTEST_KEY: Final = 15


def emails(text: str) -> Iterator[tuple[int, int]]:
    """Find e-mail addresses."""
    if "@" not in text:
        return
    for match in _DOMAIN.finditer(text):
        start = match.start()
        begin = max(0, start - 64)
        local = _LOCAL.search(text[begin:start]) if start else None
        name = local[0].lstrip(".'-%") if local else ""
        if name and name.lower() not in _IMPERSONAL:
            yield start - len(name), match.end()


def cards(text: str) -> Iterator[tuple[int, int]]:
    """Find payment card numbers: an issuer's, with the check digit of ISO/IEC 7812-1 (Luhn)."""
    for match in _DIGITS.finditer(text):
        if match.end() - match.start() < 13:
            continue
        places = [at for at in range(*match.span()) if text[at].isdecimal()]
        digits = "".join(str(int(text[at])) for at in places)
        first = 0
        while first + 13 <= len(places):
            last = _end_of_card(text, places, digits, first)
            if last:
                yield places[first], places[last - 1] + 1
            first = last or first + 1


def numbers_of_social_security(text: str) -> Iterator[tuple[int, int]]:
    """Find US social security numbers, in groups as they are written."""
    return (match.span() for match in _SSN.finditer(text))


def ibans(text: str) -> Iterator[tuple[int, int]]:
    """Find international bank account numbers: a country's length, and the check digits of ISO 7064 (mod 97 is 1)."""
    for match in _IBAN.finditer(text):
        start = match.start() - 2
        length = _IBAN_LENGTH.get(text[start : start + 2].upper(), 0)
        at, kept = start, ""
        while at < len(text) and len(kept) < length:
            char = text[at]
            if char.isascii() and char.isalnum():
                kept += char
            elif char != " " or text[at - 1] == " ":
                break
            at += 1
        ends = at == len(text) or not text[at].isalnum()
        if length and len(kept) == length and ends and _mod_97(kept.upper()):
            yield start, at


def phones(text: str) -> Iterator[tuple[int, int]]:
    """Find telephone numbers: international ones, and those of North America in their groups."""
    if "+" in text:
        for match in _INTERNATIONAL.finditer(text):
            start = match.start()
            if not (start and (text[start - 1].isalnum() or text[start - 1] in "+.")):
                yield match.span()
    yield from (match.span() for match in _NATIONAL.finditer(text))


def keys(text: str) -> Iterator[tuple[int, int]]:
    """Find API keys, tokens and private keys; a private key that is cut off goes to the end of the text."""
    if len(text) < _SHORTEST_KEY:
        return
    for anchor, pattern in _KEYS.items():
        if anchor in text:
            yield from (match.span() for match in pattern.finditer(text))
    at = 0
    while "PRIVATE KEY" in text and (begin := _KEY_BEGINS.search(text, at)):
        end = _KEY_ENDS.search(text, begin.end())
        at = end.end() if end else len(text)
        yield begin.start(), at


BUILT_IN: Final[Mapping[str, Search]] = MappingProxyType(
    {
        "api_key": keys,
        "email": emails,
        "iban": ibans,
        "credit_card": cards,
        "ssn": numbers_of_social_security,
        "phone": phones,
    }
)


def _end_of_card(text: str, places: list[int], digits: str, first: int) -> int:
    """Return where (in `digits`) a card number ends that begins with group `first`; 0 where none begins there."""
    if first and places[first - 1] == places[first] - 1:
        return 0  # in the middle of a group
    for last in range(min(first + 19, len(places)), first + 12, -1):
        after = text[places[last - 1] + 1 : places[last - 1] + 2]
        if after.isalnum() or after == "_":
            continue
        number = digits[first:last]
        if _ISSUER.fullmatch(number) and _luhn(number):
            return last
    return 0


def _luhn(digits: str) -> bool:
    return (sum(map(int, digits[-1::-2])) + sum(int(_DOUBLED[int(d)]) for d in digits[-2::-2])) % 10 == 0


def _mod_97(iban: str) -> bool:
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97 == 1
