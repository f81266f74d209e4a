"""Letters that pass for others inside text: words of mixed scripts, words written wholly in look-alikes, styled letters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from agentsh_net.core.inspect.confusables import LATIN
from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.strings import Text

WORD = re.compile(r"[^\W\d_]+(?:[\d_]*[^\W\d_]+)*")
# Mathematical, circled, squared and full-width Latin letters.
STYLED = re.compile(
    "[\U0001d400-\U0001d6a3\uff21-\uff3a\uff41-\uff5a\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189\u1d00-\u1d22\u2c60-\u2c7f\u2170-\u217f\u2160-\u216f]"
)
ENCLOSED = re.compile(
    "[\u249c-\u24e9\U0001f110-\U0001f12c\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]{2,}"
)
EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Letters that are Latin by script and stand for a plain one: alone in ASCII text they are a disguise.
TURKISH = frozenset("ğşçöüĞŞÇÖÜİâî")
# The letters that nobody tells apart. A whole word of the others is a word of its own language.
CLOSE = frozenset(
    "\u0430\u0441\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u0455\u0443\u0445\u0475\u0501\u051b\u051d\u0410\u0412\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0391\u0392\u0395\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u0396\u03bf\u03b1\u03bd\u03b9\u03ba\u03c1\u03c5\u0585\u057d\u0570\u0578"
)
MAX_WORDS = 20_000  # of one string; past them there was nothing to see


def homoglyphs(texts: Iterable[Text], *, strict: bool) -> Iterator[Finding]:
    """Find the first disguised word of each string. `strict` is for definitions; elsewhere a dotless i may be of a Turkish name."""
    for text in texts:
        if not text.raw.isascii():
            found = _disguised(text.raw, strict=strict)
            if found:
                pattern, start, end = found
                plain = unicodedata.normalize("NFKD", text.raw[start:end]).translate(LATIN)
                shown = excerpt(text.raw, start, end, f"{_escaped(text.raw[start:end])} reads {plain[:60]}")
                # Turkish prose may have no other letter of its own.
                severity = Severity.MEDIUM if _only_dotless(text.raw[start:end]) else Severity.HIGH
                yield Finding(pattern, Category.LOOKALIKE, severity, text.path, shown)


def _disguised(raw: str, *, strict: bool) -> tuple[str, int, int] | None:
    if match := ENCLOSED.search(raw):
        return "styled-letters", *match.span()
    foreign = _foreign(raw)
    for number, match in enumerate(WORD.finditer(raw)):
        word = match[0]
        if number > MAX_WORDS:
            return None
        if word.isascii():
            continue
        if _styled(word, raw):
            return "styled-letters", *match.span()
        if _pronounced(match):
            continue
        if _mixed(word, raw, strict=strict) or (not foreign and _wholly(word)):
            return "homoglyph", *match.span()
    return None


def _styled(word: str, raw: str) -> bool:
    """Say whether a word of two letters or more has letters from an alphabet of symbols; full-width ones are at home in East Asia."""
    return len(word) > 1 and bool(STYLED.search(word)) and not EAST_ASIAN.search(raw)


def _mixed(word: str, raw: str, *, strict: bool) -> bool:
    """Say whether all but the plain letters of a word are look-alikes of plain ones."""
    odd = [c for c in word if not c.isascii() and c.isalpha()]
    if not odd or not any(c.isascii() and c.isalpha() for c in word) or not all(ord(c) in LATIN for c in odd):
        return False
    return not _only_dotless(word) or (strict and not TURKISH & set(raw))


def _pronounced(match: re.Match[str]) -> bool:
    """Say whether a word is a transcription: between slashes or brackets, its other letters phonetic ones."""
    raw, end = match.string, match.end()
    return (
        raw[match.start() - 1 : match.start()] in ("/", "[")
        and raw[end : end + 1] in ("/", "]")
        and all("\u0250" <= c <= "\u02af" for c in match[0] if not c.isascii())
    )


def _only_dotless(word: str) -> bool:
    return {c for c in word if not c.isascii()} == {"\u0131"}


def _wholly(word: str) -> bool:
    """Say whether a word of four letters or more is written in look-alikes of another script only."""
    return len(word) > 3 and CLOSE.issuperset(word)


def _foreign(raw: str) -> bool:
    """Say whether a text is really written in another alphabet: it has letters there that look like no Latin one."""
    return any(
        c.isalpha()
        and not c.isascii()
        and ord(c) not in LATIN
        and unicodedata.name(c, "")[:5] in ("CYRIL", "GREEK", "ARMEN")
        for c in set(raw)
    )


def _escaped(word: str) -> str:
    return "".join(c if c.isascii() else f"<U+{ord(c):04X}>" for c in word[:30])
