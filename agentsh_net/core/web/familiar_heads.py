"""Heads like one that came before: what stands in them to the byte is not read again.

A client's differ in the length of their body alone, a server's in a few lines. What is not the same is read as strictly as
`http_head` reads a whole head, and what comes out is what it gives.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from agentsh_net.core.web.http_head import (
    MAX_LENGTH_DIGITS,
    TEXT,
    ResponseHead,
    parse_response,
    tells_nothing,
)

# Bytes of an answer's head, which is 1 KiB behind the largest CDN; there is one for each number of lines.
MAX_REMEMBERED = 4 << 10

_LINE_END: Final = b"\r\n"
# What may stand in a field's value stays ASCII, all else becomes what is none: a fifth of what an expression costs.
_TEXT: Final = bytes(0 if TEXT.fullmatch(bytes([code])) else 0xFF for code in range(0x100))
_new: Final = tuple.__new__

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
        if data[:start] != before:
            return None
        digits, found, _ = data[start : start + MAX_LENGTH_DIGITS + rest].partition(after)
        if not (found and digits.isdigit()):
            return None
        body = data[start + len(digits) + rest :]
        return body if int(digits) == len(body) else None


def mould(raw: bytes) -> Mould | None:
    """Return the mould of a head that `parse_request` took, None where it has no Content-Length."""
    match = _LENGTH.search(raw)
    if match is None:
        return None
    start, end = match.span(1)
    return Mould(raw[:start], raw[end:], start, len(raw) - end)


class _Likeness(NamedTuple):
    """What heads of as many lines had in common."""

    lines: list[bytes]  # of those below only the beginning
    varying: tuple[tuple[int, int], ...]  # lines that tell nothing: which, and how long their names are
    sized: tuple[int, int] | None  # the line with the length: which it is, and how much stands before it
    told: tuple[Any, ...]  # of a ResponseHead, behind its first three


class AnswerHeads:
    """Reads the heads of one server's answers.

    To read every line of each is a sixth of what a short answer costs, and twice that behind a CDN, which adds twenty lines.
    """

    __slots__ = ("_likenesses",)

    def __init__(self) -> None:
        # By the number of lines, which tells one kind of answer from another.
        self._likenesses: dict[int, _Likeness] = {}

    def read(self, head: bytes) -> ResponseHead:
        """Return what `parse_response` returns for a head, which is given without its blank line. Raises ProtocolError as it does."""
        lines = head.split(_LINE_END)
        likeness = self._likenesses.get(len(lines))
        if likeness is None:
            return self._remembered(head, None)
        known, varying, sized, told = likeness
        length = None
        if sized is not None:
            at, size = sized
            line = lines[at]
            digits = line[size:]
            if not (digits.isdigit() and len(digits) <= MAX_LENGTH_DIGITS):
                return self._remembered(head, likeness)
            length = int(digits)
            lines[at] = line[:size]
        values = []
        for at, size in varying:
            line = lines[at]
            values.append(line[size:])
            lines[at] = line[:size]
        if lines != known or (values and not b"".join(values).translate(_TEXT).isascii()):
            return self._remembered(head, likeness)
        line = lines[0]
        return _new(ResponseHead, (line, head[len(line) :], length) + told)  # noqa: RUF005 - half the price of unpacking

    def _remembered(self, head: bytes, likeness: _Likeness | None) -> ResponseHead:
        """Read a whole head, and expect from now on what it has in common with those before."""
        parsed = parse_response(head + b"\r\n\r\n")
        if len(head) > MAX_REMEMBERED:
            return parsed
        lines, told = head.split(_LINE_END), parsed[3:]
        sized: tuple[int, int] | None = None
        varying: list[tuple[int, int]] = []
        for at, line in enumerate(lines):
            if line[:15].lower() == b"content-length:":
                lines[at] = line.rstrip(b"0123456789")
                sized = at, len(lines[at])
        if likeness is not None and (likeness.sized, likeness.told) == (sized, told):
            for at, (line, other) in enumerate(zip(lines, likeness.lines, strict=True)):
                name = line[: line.find(b":") + 1]
                if at and line != other and other.startswith(name) and tells_nothing((line,)):
                    lines[at] = name
                    varying.append((at, len(name)))
        self._likenesses[len(lines)] = _Likeness(lines, tuple(varying), sized, told)
        return parsed
