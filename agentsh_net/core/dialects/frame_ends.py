"""Where frames of server-sent events end for certain, found without cutting them: blank lines of LF and CRLF.

Lines that end by CR alone (WHATWG HTML section 9.2.6) are not seen here; `core.framing.sse` cuts by the whole grammar.
"""

from __future__ import annotations

from typing import Final

ENDS: Final = (b"\n\n", b"\n\r\n")


def end_of_last(data: bytes, at: int, end: int) -> int:
    """Return where the last whole frame between two places ends, the first of them where none does."""
    if data.endswith(ENDS, at, end):
        return end
    plain = data.rfind(b"\n\n", at, end) + 2
    # Searched from the back too, but no further than that: in a stream without CR it would go over all of it.
    carriage = data.rfind(b"\n\r\n", plain if plain > 1 else at, end) + 3
    return max(plain if plain > 1 else at, carriage if carriage > 2 else at)


def end_of_next(data: bytes, at: int) -> int:
    """Return where the frame ends that byte `at` is in; the end of `data` where that is not told before."""
    plain = data.find(b"\n\n", at)
    # Not over all of a stream without CR.
    carriage = data.find(b"\n\r\n", at, plain + 1 if plain >= 0 else len(data))
    if plain >= 0 > carriage:
        return plain + 2
    return carriage + 3 if carriage >= 0 else len(data)
