"""Text that people do not see and models read: tags, zero-width and bidirectional characters, variation selectors, comments.

Shown decoded where it spells something. What honest text needs (emoji, Persian, Hebrew, ideographs) is no finding.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import permutations

from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.letters import letters, words
from agentsh_net.core.inspect.strings import Text
from agentsh_net.core.naming.folding import visible

TAG = re.compile("[\U000e0000-\U000e007f]+")
FLAG = "\U0001f3f4"  # a black flag, its region in tags, a cancel tag: the only use that is left of them
REGIONS = frozenset({"gbeng", "gbsct", "gbwls"})
SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
ZERO_WIDTH = re.compile(
    "[\u200b-\u200d\u2060-\u2064\u206a-\u206f\ufeff\u180e\u034f\u115f\u1160\u3164\uffa0\u17b4\u17b5\ufff9-\ufffb]+"
)
JOINERS = frozenset("\u200c\u200d")
BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
OVERRIDES = frozenset("\u202d\u202e")
SOFT_HYPHEN = re.compile("\u00ad+")
UNSEEN = re.compile(
    "[\U000e0080-\U000e00ff\U000e01f0-\U000e0fff\ufff0-\ufff8\u2065\ufdd0-\ufdef\U0001d173-\U0001d17a\U0001bca0-\U0001bca3\U00013430-\U0001343f]+"
)
# Letters of nobody's alphabet. Icons of fonts stand alone.
PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]{8,}")
# A stack of marks on one plain letter; no language has three.
STACKED = re.compile("[A-Za-z][\u0300-\u036f\u0483-\u0489\u1dc0-\u1dff\u20d0-\u20ff]{3}")
FEWEST_STACKED = 3
# What two of can spell bits: what is not seen, and spaces of which nobody sees which they are.
UNTOLD = re.compile(
    "[ \u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f\u205f-\u206f\u2800\u3000\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\ue000-\uf8ff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]{16,}"
)
MAX_HIDDEN = 400  # characters of one that are read
# Of core.inspect.lexicon: to take, to give, to call, to ignore, must, never, to delete, to change.
ORDERS = frozenset("RGXVON8xw")
_BLANK = r"[ \t\u00a0\u2000-\u200a\u3000\u2800]"
# Where a line begins it is an indentation, which tables have.
PADDING = re.compile(rf"(?:(?<![\n \t]){_BLANK}{{60}}|{_BLANK}{{100}}|(?:[ \t]?\r?\n){{30}})")
PADDED = 30
# What is left out where a text is rendered: comments of some words, elements that are styled away.
UNRENDERED = re.compile(
    r"""<!--\s*[^\s>-][^>]{0,200}?\w\s+\w | \[//\]:\ \#\ ?[("']\s*\w[^)"']{0,200}?\s\w
      | <\w{1,12}\b[^<>]{0,80}(?:display:\s*none|visibility:\s*hidden|font-size:\s*0|opacity:\s*0)[^<>]{0,80}>\s*\w""",
    re.VERBOSE | re.IGNORECASE,
)
BLANKS = " \t\r\n\u00a0\u3000\u2800" + "".join(map(chr, range(0x2000, 0x200B)))
# A word whose letters stand one by one between them: no editor slips so often.
LETTERWISE = re.compile(f"(?:[A-Za-z]{ZERO_WIDTH.pattern}){{2}}[A-Za-z]")
MANY = 8  # zero-width characters in one string: one is a slip of an editor, a byte of them is a message
FEWEST_BITS = 16  # characters that spell something: two letters
# A byte of them, at least.
ODD_BLANK = re.compile(UNTOLD.pattern.replace("[ ", "[").replace("{16,}", "[^!-~]{7}"))
FEWEST_LETTERS = 3  # of what blanks spell: mails are padded with the same few again and again
MAX_KINDS = 4  # of them: two and what parts them

# Scripts whose letters are joined or kept apart by U+200C and U+200D.
JOINING = ("ARABIC", "SYRIAC", "MONGOLIAN", "NKO", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "KHMER", "MYANMAR", "TIBETAN")  # fmt: skip


def invisible(texts: Iterable[Text], *, strict: bool) -> Iterator[Finding]:
    """Find invisible text. `strict` is for definitions; pages and files that tools return have slips of editors in them."""
    for text in texts:
        raw = text.raw
        if not raw.isascii():
            yield from _tags(text)
            yield from _selectors(text, strict=strict)
            yield from _zero_width(text, strict=strict)
            yield from _bidi(text, strict=strict)
            if strict:
                yield from _soft_hyphens(text)
            yield from _bits(text)
            if match := UNSEEN.search(raw) or PRIVATE.search(raw):
                yield _finding("unassigned-invisible", Severity.HIGH, text, *match.span())
            if strict and len(stacks := list(STACKED.finditer(raw))) >= FEWEST_STACKED:
                yield _finding("stacked-marks", Severity.MEDIUM, text, *stacks[0].span())
        if strict and ("<" in raw or "[//]" in raw):
            yield from _unrendered(text)
        if strict and len(raw) > PADDED and (match := PADDING.search(raw)):
            pushed = raw[match.end() :].strip(BLANKS)
            if pushed:
                note = visible(pushed[:100])
                yield _finding(
                    "pushed-out-of-sight", Severity.MEDIUM, text, match.end() - 1, match.end(), note
                )


def _unrendered(text: Text) -> Iterator[Finding]:
    match = UNRENDERED.search(text.raw)
    # An example of code shows its comments.
    if match and text.raw.count("```", 0, match.start()) % 2 == 0:
        hidden, _, _ = text.raw[match.start() : match.start() + MAX_HIDDEN].partition("-->")
        severity = Severity.LOW if ORDERS.isdisjoint(letters(words(hidden))) else Severity.MEDIUM
        yield _finding("unrendered", severity, text, *match.span())


def _tags(text: Text) -> Iterator[Finding]:
    for match in TAG.finditer(text.raw):
        spelled = "".join(chr(ord(c) - 0xE0000) for c in match[0] if 0x20 <= ord(c) - 0xE0000 < 0x7F)
        flag = match.start() > 0 and text.raw[match.start() - 1] == FLAG
        if not (flag and spelled in REGIONS and match[0].endswith("\U000e007f")):
            yield _finding("tag-characters", Severity.CRITICAL, text, *match.span(), f"{spelled[:200]!r}")
            return


def _selectors(text: Text, *, strict: bool) -> Iterator[Finding]:
    """Find variation selectors that vary nothing: bytes can be spelled in runs of them. A single one is a slip in a page."""
    raw = text.raw
    for match in SELECTOR.finditer(raw):
        before = raw[match.start() - 1] if match.start() else ""
        if len(match[0]) > 1 or not _varies(before, match[0], raw[match.end() : match.end() + 1]):
            spelled = bytes(map(_byte, match[0])).decode("utf-8", "replace")
            alone = Severity.MEDIUM if strict else Severity.LOW
            severity = Severity.HIGH if len(match[0]) > 1 else alone
            yield _finding(
                "variation-selectors", severity, text, *match.span(), f"{visible(spelled[:200])!r}"
            )
            return


def _varies(base: str, selector: str, after: str) -> bool:
    """Say whether a selector has something to vary: a symbol that may be an emoji, a keycap, an ideograph (UTS 51, UAX 37)."""
    if not base or (base.isascii() and not (base in "0123456789#*" and after == "\u20e3")):
        return False
    category = unicodedata.category(base)
    if selector in "\ufe0e\ufe0f":
        return category in ("So", "Sm", "Sk", "Po", "Pd") or base in "0123456789#*\u200d\u2139"
    return category == "Lo" or (category in ("Sm", "Po", "So") and selector == "\ufe00")


def _byte(selector: str) -> int:
    code = ord(selector)
    return code - 0xFE00 if code < 0xFE10 else code - 0xE0100 + 16


def _zero_width(text: Text, *, strict: bool) -> Iterator[Finding]:
    odd = [m for m in ZERO_WIDTH.finditer(text.raw) if not _joins(text.raw, *m.span())]
    spelled = _spelled("".join(match[0] for match in odd))  # they may stand apart, too
    if not (strict or spelled):
        odd = [match for match in odd if _hides(text.raw, match)]
    if not odd:
        return
    total = sum(len(match[0]) for match in odd)
    note = f"{spelled!r}" if spelled else f"{total} of them"
    if spelled:
        severity = Severity.CRITICAL
    elif total >= MANY:
        severity = Severity.HIGH
    elif strict or LETTERWISE.search(text.raw):
        severity = Severity.MEDIUM
    else:
        return
    yield _finding("zero-width", severity, text, *odd[0].span(), note)


def _bits(text: Text) -> Iterator[Finding]:
    """Find runs of two kinds of blanks or unseen characters that spell a text; `_zero_width` finds its own."""
    if not ODD_BLANK.search(text.raw):
        return
    for match in UNTOLD.finditer(text.raw):
        if ZERO_WIDTH.fullmatch(match[0].strip(" ")):
            continue
        spelled = _spelled(match[0]) or _spelled(match[0].removeprefix(" "))
        if len(set(spelled)) >= FEWEST_LETTERS:
            yield _finding("spelled-in-blanks", Severity.CRITICAL, text, *match.span(), f"{spelled!r}")
            return


def _joins(raw: str, start: int, end: int) -> bool:
    """Say whether a joiner does its work between letters of a script that needs it, or between emoji."""
    if end - start != 1 or raw[start] not in JOINERS or not start:
        return False
    before, after = raw[start - 1], raw[end : end + 1]
    if raw[start] == "\u200d" and after and _pictograph(after):
        return _pictograph(before) or before == "\ufe0f"
    return unicodedata.name(before, "").startswith(JOINING)


def _hides(raw: str, match: re.Match[str]) -> bool:
    """Say whether characters part a word or are of several kinds: mails are padded with one kind, and `@` is parted from a name."""
    parts = (
        raw[max(0, match.start() - 1) : match.start()].isalnum()
        and raw[match.end() : match.end() + 1].isalnum()
    )
    return parts or len(set(match[0])) > 1


def _pictograph(char: str) -> bool:
    return unicodedata.category(char) in ("So", "Sk") or char in "\u2640\u2642\u27a1\u2194\u2195"


def _spelled(run: str) -> str:
    """Return the ASCII text that two kinds of characters spell as bits, most significant first; empty where they spell none."""
    kinds = sorted(set(run))
    if len(run) < FEWEST_BITS or len(kinds) > MAX_KINDS:
        return ""
    for zero, one in permutations(kinds, 2):
        bits = "".join("0" if c == zero else "1" for c in run if c in (zero, one))
        if len(bits) >= FEWEST_BITS:
            text = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8)).decode(
                "ascii", "replace"
            )
            if text.isascii() and text.isprintable():
                return text[:200]
    return ""


def _bidi(text: Text, *, strict: bool) -> Iterator[Finding]:
    match = BIDI.search(text.raw)
    if match is None:
        return
    overridden = next((m for m in BIDI.finditer(text.raw) if m[0] in OVERRIDES), None)
    if overridden:
        yield _finding("bidi-override", Severity.HIGH, text, *overridden.span())
    elif strict and not any(
        unicodedata.bidirectional(c) in ("R", "AL") for c in text.raw if c not in "\u061c\u200f"
    ):
        yield _finding("bidi-control", Severity.MEDIUM, text, *match.span())


def _soft_hyphens(text: Text) -> Iterator[Finding]:
    if match := SOFT_HYPHEN.search(text.raw):
        yield _finding("soft-hyphen", Severity.MEDIUM, text, *match.span())


def _finding(pattern: str, severity: Severity, text: Text, start: int, end: int, note: str = "") -> Finding:
    return Finding(pattern, Category.INVISIBLE, severity, text.path, excerpt(text.raw, start, end, note))
