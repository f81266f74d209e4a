"""A client that sends no more, and may wait for its answer or be gone: TCP says the same of both (RFC 9293 section 3.6).

The first bytes of every answer are known, and so are sent one by one while the answer is awaited: a client that is gone resets the
connection at the first, which the next one finds out. What becomes of its request then is the connection's business.
"""

from __future__ import annotations

from typing import Final

SOON: Final = 0.05  # seconds from the first byte to the second: a reset on the same machine is there at once
_KNOWN: Final = b"HTTP/1.1 "  # how every answer of ours begins


class HalfOpen:
    """What such a client was sent of its answer."""

    __slots__ = ("_begun", "_sent")

    def __init__(self) -> None:
        self._sent = 0
        self._begun = False  # the answer is there: nothing is to be asked any more

    def probe(self) -> bytes:
        """Return the next byte of the answer; nothing where no more of it is known, or all of it."""
        if self._begun:
            return b""
        byte = _KNOWN[self._sent : self._sent + 1]
        self._sent += len(byte)
        return byte

    def rest(self, data: bytes) -> bytes:
        """Return what is left to send of the answer, given its next bytes."""
        if self._begun:
            return data
        self._begun = True
        return data[self._sent :]
