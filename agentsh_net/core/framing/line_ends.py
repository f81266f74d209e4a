"""Characters at which Python's `str.splitlines` ends a line (httpx's `iter_lines` with it) and no event stream does.

What such a line might hide is the business of who reads streams.
"""

from __future__ import annotations

import re
from typing import Final

# VT, FF, FS, GS, RS; NEL, LINE SEPARATOR, PARAGRAPH SEPARATOR.
CONTROLS: Final = b"\x0b\x0c\x1c\x1d\x1e"
SEPARATORS: Final = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")
# Each of them becomes what is no ASCII: two calls tell whether there is any, or anything that is no ASCII, for a fifth of a search.
_UNUSUAL: Final = bytes(0xFF if code in CONTROLS else code for code in range(0x100))


def has_others(raw: bytes) -> bool:
    """Say whether some reader ends a line of these bytes where the rules end none."""
    if raw.translate(_UNUSUAL).isascii():
        return False
    return SEPARATORS.search(raw) is not None or any(raw.find(code) >= 0 for code in CONTROLS)


def escaped(text: bytes) -> bytes:
    """Return JSON with each of them as the escape that means it: no reader ends a line there."""
    if not has_others(text):
        return text
    text = SEPARATORS.sub(lambda found: _escape(found[0]), text)
    for code in CONTROLS:
        text = text.replace(bytes((code,)), _escape(bytes((code,))))
    return text


def _escape(character: bytes) -> bytes:
    return b"\\u%04x" % ord(character.decode())
