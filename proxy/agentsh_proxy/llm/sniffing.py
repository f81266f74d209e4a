"""What a body is by its first bytes: a client may go by them, whatever the head says.

What becomes of it is `choosing`'s business.
"""

from __future__ import annotations

from enum import Enum, auto

from agentsh_net.core.framing.sse import BOM

# Leading white space that hides what a body is: enough for pretty-printers, too little to hold memory.
MAX_SNIFFED = 4096

_FIELDS = (b"event:", b"data:", b"id:", b"retry:", b":")  # of an event stream
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip (RFC 1952), zstd (RFC 8878); no text begins so
_SPACE = b" \t\r\n"
# What is no white space of JSON's, and is trimmed off by clients before they parse (`strip` of Python, `trim` of JavaScript).
_TRIMMED = "".join(c for c in map(chr, range(0x3001)) if c.isspace()) + "\ufeff"
_ODD = frozenset(c.encode()[:1] for c in _TRIMMED) - {b" ", b"\t", b"\r", b"\n"}
# JSON, be it in UTF-16 or UTF-32, which some parsers detect: with a byte order mark, or by the NUL beside the first character.
_WHOLE = frozenset(b"{[\0\xfe\xff")


class Kind(Enum):
    """What a client may take a body for."""

    WHOLE = auto()  # JSON
    EVENTS = auto()
    PACKED = auto()  # compressed, though the head does not say so
    OTHER = auto()


def kind_of(beginning: bytes, *, last: bool) -> Kind | None:
    """Return what begins like this; None while more has to be seen. `last`: no more comes."""
    if beginning.startswith(b"event:"):
        return Kind.EVENTS  # as most streams begin
    if beginning.startswith(PACKED):
        return Kind.PACKED
    text = beginning.removeprefix(BOM).lstrip(_SPACE)
    if text[:1] in _ODD:
        text = text.decode("utf-8", "ignore").lstrip(_TRIMMED).encode()
    if not last and len(beginning) <= MAX_SNIFFED and _is_open(beginning, text):
        return None
    if text and (text[0] in _WHOLE or text[1:2] == b"\0"):
        return Kind.WHOLE
    return Kind.EVENTS if text.startswith(_FIELDS) else Kind.OTHER


def _is_open(beginning: bytes, text: bytes) -> bool:
    """Say whether the next byte could settle it: nothing but space yet, or a part of a mark."""
    if any(mark.startswith(beginning) for mark in (BOM, *PACKED)):
        return True
    return len(text) < 2 or (len(text) < len("event:") and any(field.startswith(text) for field in _FIELDS))
