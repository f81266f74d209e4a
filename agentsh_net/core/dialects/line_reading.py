"""What clients that read a stream line by line find in a frame, where the WHATWG rules find something else or nothing.

Such clients take each `data:` line for an event of its own, or split lines as Python's `str.splitlines` does (httpx's `iter_lines`),
at U+2028 and the like, or join lines that are no event, or decode each by itself, which drops a BOM before it. No honest stream gives
them anything that the rules do not give.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing import line_ends
from agentsh_net.core.framing.sse import BOM, Frame
from agentsh_net.core.values import strict_json

_ENDS: Final = b"\r\n" + line_ends.CONTROLS
_BEFORE_LINE: Final = re.compile(rb"(?:^|(?<=[\r\n]))(?:\xef\xbb\xbf)+")
_DATA: Final = re.compile(rb"(?:^|(?<=[\r\n]))data(?:: ?|(?=[\r\n]|$))([^\r\n]*)")


def hides_event(frame: Frame) -> bool:
    """Say whether a line by itself is an event that the frame as a whole is not."""
    if frame.raw.find(BOM) >= 0 and _reads_otherwise(frame):
        return True
    several = frame.data is not None and b"\n" in frame.data
    if not several and not line_ends.has_others(frame.raw):
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
    return data if data.isascii() else line_ends.SEPARATORS.sub(b"", data)


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
