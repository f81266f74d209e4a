"""One form for names that clients take for the same, and a visible form for text that hides something.

Look-alikes of different scripts stay different names: which of them is meant is not decided here.
"""

from __future__ import annotations

import re
import unicodedata

NOT_ALNUM = re.compile(r"[^0-9a-z]+")  # of a folded name: what every client may replace

CONTROLS = re.compile(r"[\x00-\x1f\x7f]")

# Invisible by the Unicode property Default_Ignorable_Code_Point, but not format characters (category Cf) themselves.
IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf"})

# NFKC of a casefolded string may fold again; the longest chain known takes two rounds.
MAX_ROUNDS = 8


def normal(text: str) -> str:
    """Return NFKC_Casefold (Unicode, section 3.13) without control and format characters; inner and outer space stays."""
    if text.isascii():
        return (text if text.isprintable() else CONTROLS.sub("", text)).lower()
    for _ in range(MAX_ROUNDS):
        folded = _seen(unicodedata.normalize("NFKC", _seen(text)).casefold())
        folded = unicodedata.normalize("NFKC", folded)
        if folded == text:
            break
        text = folded
    return text


def fold(text: str) -> str:
    """Return the form in which names and ids are compared: `normal`, without surrounding space."""
    if text.isascii() and text.isprintable():  # nearly every name
        return text.strip().lower()
    return normal(text.strip()).strip()


def _seen(text: str) -> str:
    text = IGNORABLE.sub("", text)
    return "".join(c for c in text if unicodedata.category(c) not in INVISIBLE_CATEGORIES)


# Line and paragraph separators, surrogates, private use and unassigned code points print as nothing or as anything.
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str, limit: int = 0) -> str:
    """Return `text` with every character that does not show written as `<U+XXXX>`; past `limit` (0: none) it says how much is left out."""
    if text.isascii() and text.isprintable() and (not limit or len(text) <= limit):  # nearly every text
        return text
    kept = text[:limit] if limit else text
    if not (kept.isascii() and kept.isprintable()):
        kept = "".join(_shown(c) for c in kept)
    left = len(text) - limit if limit else 0
    return f"{kept}… ({left} more characters)" if left > 0 else kept


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    odd_space = category == "Zs" and char != " "
    if category in HIDDEN_CATEGORIES or odd_space or IGNORABLE.match(char):
        return f"<U+{ord(char):04X}>"
    return char
