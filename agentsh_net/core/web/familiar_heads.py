"""Heads like one that came before: what stands in them to the byte is not read again.

A client's differ in the length of their body alone, a server's in a few lines. What is not the same is read as strictly as
`http_head` reads a whole head, and what comes out is what it gives.
"""

from __future__ import annotations

import re
from itertools import compress
from operator import ne
from typing import Any, NamedTuple

from agentsh_net.core.web.http_head import MAX_LENGTH_DIGITS, ResponseHead, parse_response, tells_nothing

MAX_REMEMBERED = (
    4 << 10
)  # bytes of an answer's head, which is 1 KiB behind the largest CDN; there is one for each number of lines

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,15})(?=[ \t]*\r\n)", re.IGNORECASE)


class Mould(NamedTuple):
    """A request head that was read once, with its one Content-Length cut out: a client's heads differ in nothing else."""

    before: bytes
    after: bytes
    start: int  # of the length: what stands before it, in bytes
    rest: int  # ... and what stands after it

    def length_in(self, raw: bytes) -> int | None:
        """Return the Content-Length of a head that is otherwise this one to the byte; None where it is another head."""
        before, after, start, rest = self
        if not (raw.startswith(before) and raw.endswith(after)):
            return None
        digits = raw[start : len(raw) - rest]
        return int(digits) if digits.isdigit() and len(digits) <= MAX_LENGTH_DIGITS else None

    def body_in(self, data: bytes) -> bytes | None:
        """Return the body where `data` is such a head with the whole body it announces, and nothing else."""
        before, after, start, rest = self
        if not data.startswith(before):
            return None
        end = data.find(after, start, start + MAX_LENGTH_DIGITS + rest)
        digits = data[start:end] if end >= 0 else b""
        body = data[end + rest :]
        return body if digits.isdigit() and int(digits) == len(body) else None


def mould(raw: bytes) -> Mould | None:
    """Return the mould of a head that `parse_request` took, None where it has no Content-Length."""
    match = _LENGTH.search(raw)
    if match is None:
        return None
    start, end = match.span(1)
    return Mould(raw[:start], raw[end:], start, len(raw) - end)


class _Likeness(NamedTuple):
    """What heads of as many lines had in common."""

    lines: tuple[
        bytes | None, ...
    ]  # None where they differed, in what tells nothing; in place of the length nothing stands
    strangers: int  # how many are None
    place: int  # of the line with the length, 0 where there is none
    name: bytes  # what stands before the length in it
    told: tuple[Any, ...]  # of a ResponseHead, behind its first three


class AnswerHeads:
    """Reads the heads of one server's answers.

    To read every line of each is a sixth of what a short answer costs, and twice that behind a CDN, which adds twenty lines.
    """

    __slots__ = ("_likenesses",)

    def __init__(self) -> None:
        self._likenesses: dict[
            int, _Likeness
        ] = {}  # by the number of lines, which tells one kind of answer from another

    def read(self, raw: bytes) -> ResponseHead:
        """Return what `parse_response` returns. Raises ProtocolError as it does."""
        lines = raw[:-4].split(b"\r\n")
        likeness = self._likenesses.get(len(lines))
        if likeness is None:
            return self._remembered(raw, None)
        known, strangers, place, name, told = likeness
        length = None
        if place:
            sized = lines[place]
            digits = sized[len(name) :]
            if not (sized.startswith(name) and digits.isdigit() and len(digits) <= MAX_LENGTH_DIGITS):
                return self._remembered(raw, likeness)
            length = int(digits)
            lines[place] = b""
        strange = list(compress(lines, map(ne, lines, known)))
        if len(strange) != strangers or (strange and not tells_nothing(strange)):
            return self._remembered(raw, likeness)
        line = lines[0]
        return ResponseHead(line, raw[len(line) : -4], length, *told)

    def _remembered(self, raw: bytes, likeness: _Likeness | None) -> ResponseHead:
        """Read a whole head, and expect from now on what it has in common with those before."""
        head = parse_response(raw)
        if len(raw) > MAX_REMEMBERED:
            return head
        lines = raw[:-4].split(b"\r\n")
        place = next((at for at, line in enumerate(lines) if line[:15].lower() == b"content-length:"), 0)
        name = b""
        if place:
            name, lines[place] = lines[place].rstrip(b"0123456789"), b""
        expected: list[bytes | None] = [*lines]
        if likeness is not None and likeness[2:] == (place, name, head[3:]):
            for at, (line, same) in enumerate(zip(lines, likeness.lines, strict=True)):
                if line != same and at and tells_nothing((line,)):
                    expected[at] = None
        told = _Likeness(tuple(expected), expected.count(None), place, name, head[3:])
        self._likenesses[len(lines)] = told
        return head
