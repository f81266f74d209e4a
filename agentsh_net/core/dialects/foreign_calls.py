"""Signs of a tool call in an answer that no dialect reads, whatever API it comes from: the words that APIs have for one.

Looked for where an endpoint is not known to carry calls, so that one that does is told of or stopped. Who wants to hide a call from
it can; what is known to carry calls is read by a dialect, or goes by fail_closed as a whole (`core.web.http_route`).
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentsh_net.core.dialects.call_signs import has_escaped_letters, plain
from agentsh_net.core.values import members

# Of the bytes before, those that a sign may begin in: the longest, with room for the white space that pretty-printers put into it.
_TAIL: Final = 512

_DROPPED: Final = b" \t\r\n\0"  # NUL: UTF-16

_WORD: Final = rb"(?:(?:tool|function)[-_.]?(?:calls?|uses?)|(?:custom|client|mcp)[-_.]?tool|mcp[-_.]?call|shell[-_.]?call)"
_SIGN: Final = re.compile(
    # A key with something under it, ...
    rb'"(?:(?:tool|function)_?(?:calls?|uses?)|required_?action|return_?control)":(?:\[["\[{]|\{")'
    # ... a type that is no result's, ...
    rb'|"(?:type|event|event_?type|kind)":"[a-z0-9_.:/-]{0,40}'
    + _WORD
    + rb'(?![a-z0-9_.:/-]{0,40}(?:output|result))[^"]{0,60}"'
    # ... and the name of an event.
    rb"|event:[a-z0-9_.:/-]{0,40}" + _WORD
)


# Five bytes at most of each sign, in plain text (`call_signs` says why), and a NUL, behind which nothing is seen at once.
_MARKS: Final = (b"tool", b"funct", b"mcp", b"shell", b"actio", b"contr", b"\0")


def speaks_of_calls(value: Any) -> bool:
    """Say whether anything in an event of unknown format could be a call: a key that names tools or functions, and says something."""
    if isinstance(value, list):
        return any(map(speaks_of_calls, value))
    if not isinstance(value, dict):
        return False
    for key, item in value.items():
        name = members.plain(key)
        if ("tool" in name or "functioncall" in name) and item not in (None, [], {}, "", False):
            return True
        if name == "type" and isinstance(item, str) and "tool" in item.casefold():
            return True
        if speaks_of_calls(item):
            return True
    return False


class Ear:
    """Hears one answer, in any pieces."""

    __slots__ = ("_tail",)

    def __init__(self) -> None:
        self._tail = b""

    def hears(self, data: bytes) -> str:
        """Return the sign of a call in these bytes and those before; empty where there is none."""
        text = self._tail + data
        self._tail = text[-_TAIL:]
        if has_escaped_letters(text):
            text = plain(text)
        folded = text.lower()
        if all(folded.find(mark) < 0 for mark in _MARKS):
            return ""
        found = _SIGN.search(folded.translate(None, _DROPPED))
        return found[0].decode("ascii", "replace") if found else ""
