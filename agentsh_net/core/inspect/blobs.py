"""What stands in base64 where MCP carries files: text is read as text, whatever it is called; a picture is megabytes that nobody reads.

Clients decide by the bytes or by the label, or hand the base64 on as it came. Which members hold a file is `strings`' business.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import Any, Final

LOOKED_AT: Final = 4096  # characters at the beginning by which text is told from other files
_TEXTUAL: Final = re.compile(r"text/|[\w.+/-]*(?:json|xml|yaml|javascript|html)", re.IGNORECASE)
_BASE64: Final = bytes(
    c for c in range(256) if chr(c).isascii() and (chr(c).isalnum() or chr(c) in "+/=-_ \r\n\t")
)
# To text, which may be coloured (escape).
_FOREIGN: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")


def text_of(value: Any, media_type: str) -> Any:
    """Return what is to be read of a file's `data` or `blob`; None for one that is no text."""
    if not isinstance(value, str):
        return value
    if value.encode("utf-8", "replace").translate(None, _BASE64):
        return value  # it is no base64: some clients show it as it is
    head = _decoded(value[:LOOKED_AT])
    if _TEXTUAL.match(media_type) or _is_text(head):
        return _as_text(_decoded(value))
    return None


def _decoded(text: str) -> bytes:
    """Return what base64 says of either alphabet, padded or not, broken into lines or not."""
    bare = "".join(text.split()).replace("-", "+").replace("_", "/").partition("=")[0]
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    try:
        return b64decode(bare + "=" * (-len(bare) % 4))
    except (binascii.Error, ValueError):
        return b""


def _is_text(head: bytes) -> bool:
    text = _as_text(head)[:-4]  # the last character may be cut
    return not _FOREIGN.search(text)


def _as_text(data: bytes) -> str:
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if wide else "utf-8", "replace")
