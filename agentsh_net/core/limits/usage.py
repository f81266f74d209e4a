"""What an answer says it cost: the counts of tokens in it, read from its bytes in passing, in any dialect's words.

Text cannot fake them: inside a string their quotes are escaped. A tool's arguments can, and only upwards.
"""

from __future__ import annotations

import re
from typing import Final

_COUNT: Final = re.compile(
    rb'"(input_tokens|cache_creation_input_tokens|prompt_tokens|promptTokenCount|prompt_eval_count|inputTokens'
    rb"|output_tokens|completion_tokens|candidatesTokenCount|thoughtsTokenCount|eval_count|outputTokens)"
    rb'"[ \t\r\n]*:[ \t\r\n]*([0-9]{1,9})(?=[^0-9])'
)
_OUTPUT: Final = frozenset(
    (b"output_tokens", b"completion_tokens", b"candidatesTokenCount", b"thoughtsTokenCount", b"eval_count", b"outputTokens")
)  # fmt: skip
# Bytes of one count with its name and some space: what is kept in case a read ends in it.
_LONGEST: Final = 64


class Usage:
    """Reads one answer. Streams say their counts several times, growing: the highest of each name counts."""

    __slots__ = ("_counts", "_rest", "events")

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}
        self._rest = b""
        self.events = 0  # of a stream; a token each, where nothing better is known

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the answer."""
        self.events += data.count(b"\ndata:") + data.startswith(b"data:")
        text = self._rest + data
        self._rest = text[-_LONGEST:]
        if text.find(b"oken") < 0 and text.find(b"eval_count") < 0:
            return
        for match in _COUNT.finditer(text):
            name, count = match[1], int(match[2])
            if count > self._counts.get(name, -1):
                self._counts[name] = count

    @property
    def known(self) -> bool:
        """Say whether the answer told anything."""
        return bool(self._counts)

    @property
    def input(self) -> int:
        """Tokens of the request; those read from the provider's cache are not counted by most limits, nor here."""
        return sum(count for name, count in self._counts.items() if name not in _OUTPUT)

    @property
    def output(self) -> int:
        """Tokens of the answer."""
        return sum(count for name, count in self._counts.items() if name in _OUTPUT)
