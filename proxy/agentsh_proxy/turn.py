"""One turn of the event loop: what is written in it goes out at its end, one write a connection.

A send wakes whoever reads; sends that follow one another at once wake it once. It decides nothing and holds no bytes itself.
"""

from __future__ import annotations

from collections.abc import Callable

# A write above this goes out at once: libuv reads one socket up to 32 times a turn, and what waits must stay within backpressure.
# (Writes below it are some tens a turn: at most a hundred KiB of small events.)
MAX_WAITING = 4 << 10


class Turn:
    """Calls what asked to be called, once, after everything that was ready has been read."""

    __slots__ = ("_call_soon", "_due")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._due: list[Callable[[], None]] = []

    def at_end(self, action: Callable[[], None]) -> None:
        """Call `action` at the end of this turn."""
        if not self._due:
            self._call_soon(self._end)
        self._due.append(action)

    def _end(self) -> None:
        due, self._due = self._due, []
        for action in due:
            action()
