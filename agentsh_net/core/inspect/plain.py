"""Text as its reader takes it: look-alike letters, hidden characters, entities, spaced-out letters and emphasis undone.

Patterns match this form, so that none of them has to know of disguises. That a disguise was worn is other detectors' find.
"""

from __future__ import annotations

import html
import re
import unicodedata

from agentsh_net.core.inspect.confusables import LATIN
from agentsh_net.core.naming.folding import IGNORABLE

# Emphasis and quotes go, apostrophes become one.
MARKS = str.maketrans(
    dict.fromkeys('*`"\u201c\u201d\u201e\u00ab\u00bb') | dict.fromkeys("\u2019\u2018\u00b4\u02bc\uff07", "'")
)
# Tags (U+E0000-E007F) spell ASCII, invisibly; models read it.
TAGS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
BUT_TAGS = re.compile("(?![\U000e0020-\U000e007e])" + IGNORABLE.pattern)
CONTROL = re.compile(r"\x1b\[[0-9;:?]*+[ -/]*+[@-~]|[\x00-\x08\x0e-\x1b\x7f]")
SPACED = re.compile(r"\b\w(?: \w\b){3,}")  # one space between letters; words stand further apart
ENTITY = re.compile(r"&(?:#\d{2,7}|#[xX][0-9a-fA-F]{2,6}|[a-zA-Z]{2,8};)")
BLANK = {0x2800: " "}  # Braille without dots: the one blank that is no space by its category
HIDDEN = frozenset({"Cc", "Cf", "Mn", "Me", "Cn", "Co"})


def plain(text: str) -> str:
    """Return text in lower case, single-spaced, in ASCII letters where it only looks otherwise."""
    return " ".join(readable(text).translate(MARKS).lower().split())


def readable(text: str) -> str:
    """Return text without its disguises, but with its case, quotes and lines."""
    if not text.isascii():
        text = _undisguised(text)
    if "&" in text and ENTITY.search(text):
        text = html.unescape(text)
    if not text.isprintable():
        text = CONTROL.sub("", text)
    if " " in text and SPACED.search(text):
        text = SPACED.sub(lambda match: match[0].replace(" ", ""), text)
    return text


def _undisguised(text: str) -> str:
    text = unicodedata.normalize("NFKD", BUT_TAGS.sub("", text).translate(TAGS | BLANK))
    if text.isascii():
        return text
    hidden = [ord(c) for c in set(text) if not c.isascii() and unicodedata.category(c) in HIDDEN]
    return unicodedata.normalize("NFC", text.translate(dict.fromkeys(hidden))).translate(LATIN)
