"""What clients that read a stream line by line find in a frame, where the WHATWG rules find something else or nothing.

Such clients take each `data:` line for an event of its own, or split lines as Python's `str.splitlines` does (httpx's `iter_lines`),
at U+2028 and the like, or join lines that are no event, or decode each by itself, which drops a BOM before it. No honest stream gives them anything that the rules do not give.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values import strict_json

# Line ends for str.splitlines, and for no event stream: VT, FF, FS, GS, RS; NEL, LINE SEPARATOR, PARAGRAPH SEPARATOR.
_CONTROLS: Final = b"\x0b\x0c\x1c\x1d\x1e"
_ENDS: Final = b"\r\n" + _CONTROLS
# Each of them becomes what is no ASCII: two calls tell whether there is any, or anything that is no ASCII, for a fifth of a search.
_UNUSUAL: Final = bytes(0xFF if code in _CONTROLS else code for code in range(0x100))
_BOM: Final = b"\xef\xbb\xbf"
_BEFORE_LINE: Final = re.compile(rb"(?:^|(?<=[\r\n]))(?:\xef\xbb\xbf)+")
_DATA: Final = re.compile(rb"(?:^|(?<=[\r\n]))data(?:: ?|(?=[\r\n]|$))([^\r\n]*)")
_SEPARATORS: Final = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")


def hides_event(frame: Frame) -> bool:
    """Say whether a line by itself is an event that the frame as a whole is not."""
    if frame.raw.find(_BOM) >= 0 and _reads_otherwise(frame):
        return True
    several = frame.data is not None and b"\n" in frame.data
    if not several and not _has_other_line_ends(frame.raw):
        return False
    whole = (frame.data or b"").decode("utf-8", "replace").strip()
    for line in frame.raw.decode("utf-8", "replace").splitlines():
        name, _, value = line.strip().partition(":")
        value = value.strip()
        if name == "data" and value != whole and _is_object(value):
            return True
    return False


def _reads_otherwise(frame: Frame) -> bool:
    """Say whether a frame has other data for clients that skip a BOM before each line (the rules skip one, at the stream's beginning)."""
    lines = _BEFORE_LINE.sub(b"", frame.raw)
    if lines == frame.raw:
        return False
    found = _DATA.findall(lines)
    return (b"\n".join(found) if found else None) != frame.data


def on_one_line(data: bytes) -> bytes:
    """Return `data` as clients have it that join its lines by nothing, so that a word on two lines is one (google-genai)."""
    data = data.translate(None, _ENDS)
    return data if data.isascii() else _SEPARATORS.sub(b"", data)


def _has_other_line_ends(raw: bytes) -> bool:
    if raw.translate(_UNUSUAL).isascii():
        return False
    return _SEPARATORS.search(raw) is not None or any(raw.find(code) >= 0 for code in _CONTROLS)


def _is_object(text: str) -> bool:
    if not text.startswith("{") or not (text.endswith("}") or "\0" in text):
        return False  # nor any part of one that a parser takes, unless it is UTF-16 that was read as UTF-8
    try:
        strict_json.read(text.encode("utf-8", "replace"))
    except strict_json.DivergentError:
        return True
    except ProtocolError:
        return False
    return True
