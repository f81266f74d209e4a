"""A client that sends no more, and may wait for its answer or be gone: TCP says the same of both (RFC 9293 section 3.6).

The first bytes of every answer are known, and so are sent one by one while the answer is awaited: a client that is gone resets the
connection at the first, which the next one finds out. What becomes of its request then is the connection's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

SOON: Final = 0.05  # seconds from the first byte to the second: a reset on the same machine is there at once
_KNOWN: Final = b"HTTP/1.1 "  # how every answer of ours begins


class HalfOpen:
    """What such a client was sent of its answer. `write` sends to it, `call_later` is the loop's."""

    __slots__ = ("_begun", "_sent", "_write")

    def __init__(
        self, write: Callable[[bytes], object], call_later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._write = write
        self._sent = 0
        self._begun = False  # the answer is there, or the client is gone: nothing is to be asked any more
        self.ask()
        call_later(SOON, self.ask)

    def ask(self) -> None:
        """Send the next byte of the answer, if more of it is known."""
        if not self._begun and self._sent < len(_KNOWN):
            self._sent += 1
            self._write(_KNOWN[self._sent - 1 : self._sent])

    def rest(self, data: bytes) -> bytes:
        """Return what is left to send of the answer, given its next bytes; ask no more."""
        if self._begun:
            return data
        self._begun = True
        return data[self._sent :]
