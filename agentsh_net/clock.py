"""The daemon's time and identity: RFC 3339 timestamps and time-ordered ids. The core takes both as arguments.

Not its business: monotonic time for timers (`time.monotonic` where it is needed).
"""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

_SEQUENCE_MASK: Final = (1 << 60) - 1  # 48 bits of milliseconds, 12 bits of their 4096ths

# The digit of an id that holds the two bits of RFC 9562's variant and two random ones, by a random digit.
_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}

_RANDOM: Final = 1024  # bytes drawn at once, for 128 ids


def rfc3339(time_ns: int) -> str:
    """Return a wall-clock time (ns since the epoch) in UTC with microseconds: equal length, so text order is time order."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return f"{_second(seconds)}.{rest // 1000:06d}Z"


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def now_rfc3339() -> str:
    """Return the present time, RFC 3339, UTC, with microseconds."""
    return rfc3339(time.time_ns())


def lowest_id(time_ns: int) -> str:
    """Return the lowest id that `new_id` could have made at that time (before 1970: the lowest of all): a bound for searches by time."""
    return _format(_sequence(max(0, time_ns)), 0)


class IdSource:
    """Makes UUIDs of version 7 (RFC 9562, section 6.2, method 3) that never go backwards, even if the clock does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        # Drawn in advance: a system call for each id would hand the interpreter lock away each time.
        self._random = b""

    def next(self) -> str:
        """Return an id that sorts after every id this source has made."""
        with self._lock:
            self._last = max(_sequence(time.time_ns()), self._last + 1)
            sequence = self._last
            if not self._random:
                self._random = os.urandom(_RANDOM)
            random, self._random = self._random[:8], self._random[8:]
        return _format(sequence, int.from_bytes(random, "big") >> 2)

    def several(self, count: int) -> list[str]:
        """Return so many ids in order, as `next` would make them, at a third of the price of each."""
        with self._lock:
            first = max(_sequence(time.time_ns()), self._last + 1)
            self._last = first + count - 1
            random = os.urandom(8 * count).hex()
        ids, millisecond, head = [], -1, ""
        for number in range(count):
            sequence, r = first + number, random[16 * number : 16 * number + 16]
            if sequence >> 12 != millisecond:
                millisecond = sequence >> 12
                head = f"{millisecond >> 16:08x}-{millisecond & 0xFFFF:04x}-7"
            ids.append(f"{head}{sequence & 0xFFF:03x}-{_VARIANT[r[0]]}{r[1:4]}-{r[4:]}")
        return ids


def new_id() -> str:
    """Return a time-ordered id, greater than any this process has made."""
    return _IDS.next()


def new_ids(count: int) -> list[str]:
    """Return so many ids as `new_id` makes them, in order."""
    return _IDS.several(count)


def _sequence(time_ns: int) -> int:
    milliseconds, rest = divmod(time_ns, 1_000_000)
    return (milliseconds << 12 | (rest << 12) // 1_000_000) & _SEQUENCE_MASK


def _format(sequence: int, random: int) -> str:
    value = (sequence >> 12) << 80 | 0x7 << 76 | (sequence & 0xFFF) << 64 | 0b10 << 62 | random
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


# One for the process: order among ids means nothing unless they come from one sequence.
_IDS: Final = IdSource()
