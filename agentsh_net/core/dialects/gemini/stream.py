"""A streamed Gemini answer: server-sent events, or (without `alt=sse`) the elements of one JSON array.

A call that comes whole is judged at once; frames are held only while one goes on. Where calls stand is `parts`' business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from agentsh_net.core.dialects.base import MIN_WEIGHT, Enforce, FrameDecoder, Judge, Limits, Step
from agentsh_net.core.dialects.gemini.calls import Ledger, Mark
from agentsh_net.core.dialects.gemini.parts import Found, scan
from agentsh_net.core.dialects.inline_edits import in_place, rewritten
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.line_reading import on_one_line
from agentsh_net.core.dialects.machine import Wire, never
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.spelling import Spelling
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.json_array import ArrayDecoder
from agentsh_net.core.framing.sse import BOM, Decoder, Frame
from agentsh_net.core.framing.sse_writing import with_data
from agentsh_net.core.values.strict_json import Path, Reading, read

_SPACE: Final = b" \t\r\n"
_EVENTS: Final = Wire(strict=True, comment=b"\r\n")  # google-genai takes a comment for JSON
_ARRAY: Final = Wire(ArrayDecoder, strict=True, joins=True, comment=b"\n")

_FIELDS: Final = (b":", b"data:", b"event:", b"id:", b"retry:")
# The official SDK takes lines that are no field for JSON, from the first that could begin it to where its braces balance.
_STRAY: Final = tuple(end + begin for end in (b"\n", b"\r") for begin in (b"{", b"[", b" ", b"\t"))


@dataclass(frozen=True, slots=True)
class _Held:
    frame: Frame
    reading: Reading | None = None
    found: Found | None = None
    marks: tuple[Mark, ...] = ()
    hidden: bool = False


class GeminiMachine:
    """An `inspection.Machine`. `write` puts other data into a frame."""

    __slots__ = ("_events", "_held", "_ledger", "_limit", "_waiting", "_write")

    knows = holds = never

    def __init__(self, judge: Judge, limits: Limits, *, events: bool) -> None:
        self._ledger = Ledger(judge)
        self._limit = limits.held
        self._events = events
        self._write: Callable[[Frame, bytes], bytes] = with_data if events else in_place
        self._held: list[_Held] = []
        self._waiting = 0  # bytes that are held

    @property
    def idle(self) -> bool:
        """Say whether a frame without a sign of a call would leave as it came."""
        return not self._held

    @property
    def holding(self) -> bool:
        """Say whether a call goes on."""
        return bool(self._held)

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a whole frame."""
        if self._events and (stray := _stray(frame)) and self._strays(stray, out):
            return
        if reading is None:
            self._take(_Held(frame), out)
            return
        found = scan(reading)
        if found.error:
            self._ledger.abandon(out)
        marks = self._ledger.add(found, out)
        hidden = bool(found.hidden) and self._ledger.hidden(found.hidden, out)
        self._take(_Held(frame, reading, found, marks, hidden), out)

    def release(self, out: Output, doubt: str) -> None:
        """Judge the calls that go on by what is there, and let go of them: what is still to come shares their fate."""
        self._ledger.settle(out, doubt)
        self._release(out)

    def finish(self, out: Output) -> None:
        """Take the end of the stream: a call that goes on has none, and the client is told."""
        if self._ledger.open:
            detail = f"the answer ended within a call of {self._ledger.names()}"
            self._ledger.abandon(out)
            self._release(out)
            out.fault("incomplete_call", detail, must_cut=True)

    def _take(self, held: _Held, out: Output) -> None:
        """Hold a frame while a call goes on, else let go of all."""
        self._held.append(held)
        self._waiting += max(len(held.frame.raw), MIN_WEIGHT)
        if not self._ledger.open:
            self._release(out)
            return
        names = self._ledger.names()
        if self._ledger.full:
            self._ledger.abandon(out, "more calls at once than can be remembered")
            self._drop()
            out.fault("too_many_calls", f"calls of {names}", must_cut=True)
        elif self._waiting > self._limit:
            if out.fault("held_too_long", f"calls of {names} outgrew {self._limit} bytes"):
                self._ledger.abandon(out)
                self._drop()
            else:  # judged by what is there: a call's name stands at its beginning
                self._ledger.settle(out)
                self._release(out)

    def _release(self, out: Output) -> None:
        for held in self._held:
            out.write(self._made(held))
        self._drop()

    def _drop(self) -> None:
        self._held.clear()
        self._waiting = 0

    def _made(self, held: _Held) -> bytes:
        """Return what a frame becomes. Raises ProtocolError where it cannot be rewritten."""
        frame, reading, found = held.frame, held.reading, held.found
        if reading is None or found is None:
            return frame.raw
        edits: dict[Path, Any] = self._ledger.edits(held.marks)
        text = frame.data or b""
        data = rewritten(text, reading, edits, ambiguous=found.ambiguous, hidden=held.hidden)
        return frame.raw if data is None else self._write(frame, data)

    def _strays(self, text: bytes, out: Output) -> bool:
        """Judge what stands beside the events; say whether the answer ended here."""
        try:
            found = scan(read(text))
        except ProtocolError as error:
            return out.fault("ambiguous_lines", f"text beside the events: {error}", must_cut=True)
        if not (found.pieces or found.hidden):
            return False  # an error, as the API tells it
        self._ledger.add(found, out)
        self._ledger.abandon(out)
        return out.fault("ambiguous_lines", "a call beside the events", must_cut=True)


def _stray(frame: Frame) -> bytes:
    """Return the lines of an event that are no field, joined."""
    lines = frame.raw.splitlines()
    return on_one_line(b"".join(line for line in lines if line and not line.startswith(_FIELDS))).strip(
        _SPACE
    )


def strays(data: bytes, *, begins_line: bool) -> bool:
    """Say whether a line in these bytes could begin JSON that stands beside the events."""
    if begins_line and data[:1] in (b"{", b"[", b" ", b"\t"):
        return True
    find = data.find
    return any(find(sign) >= 0 for sign in _STRAY)


def _begins(data: bytes) -> bytes:
    """Return the first character that says something, nothing where none came yet."""
    return data.removeprefix(BOM).lstrip(_SPACE)[:1]


def _is_array(start: bytes) -> bool:
    return start in (b"{", b"[", b"\0")


class EitherDecoder:
    """Cuts events or the elements of an array, whichever begins."""

    __slots__ = ("_beginning", "_decoder", "_max")

    def __init__(self, max_frame: int) -> None:
        self._max = max_frame
        self._beginning = b""
        self._decoder: FrameDecoder | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes."""
        if self._decoder is None:
            data = self._beginning + data
            start = _begins(data)
            if not start and len(data) <= self._max:
                self._beginning = data
                return []
            self._decoder = ArrayDecoder(self._max) if _is_array(start) else Decoder(self._max)
        return self._decoder.feed(data)

    def finish(self) -> Frame | None:
        """Return what the stream ended in the middle of."""
        if self._decoder is not None:
            return self._decoder.finish()
        return Frame(self._beginning) if self._beginning else None


class GeminiStream:
    """A `base.Stream` of either kind: the first character tells an array from events."""

    __slots__ = (
        "_beginning", "_begins_line", "_enforce", "_error", "_events", "_fail_closed", "_inspector", "_judge", "_last", "_limits",
        "_sent",
    )  # fmt: skip

    def __init__(
        self,
        judge: Judge,
        *,
        limits: Limits,
        fail_closed: bool,
        enforce: Enforce,
        error: Callable[[str], bytes],
    ) -> None:
        self._judge = judge
        self._limits = limits
        self._fail_closed = fail_closed
        self._enforce = enforce
        self._error = error
        self._beginning = b""
        self._events = True
        self._inspector: Inspector | None = None
        self._begins_line = True
        self._sent = False  # an element of the array
        self._last = b""  # what tells of an error

    @property
    def holding(self) -> bool:
        """Say whether a call goes on."""
        return self._inspector is not None and self._inspector.holding

    def passes(self, data: bytes) -> bool:  # noqa: ARG002 - whatever is in it
        """Say no: no frame of these is known by heart."""
        return False

    def feed(self, data: bytes) -> Step:
        """Take the next bytes of the answer."""
        inspector = self._inspector
        if inspector is None:
            data = self._beginning + data
            start = _begins(data)
            if not start and len(data) <= self._limits.max_frame:
                self._beginning = data
                return Step(b"")
            inspector = self._inspector = self._begin(start)
        if not data:
            return inspector.feed(data)
        if not self._events:
            return self._ended(inspector.feed(data))
        if strays(data, begins_line=self._begins_line):
            inspector.heed()
        self._begins_line = data[-1] in b"\r\n"
        return inspector.feed(data)

    def finish(self) -> Step:
        """Take the end of the answer."""
        if self._inspector is None:
            return Step(self._beginning)
        step = self._inspector.finish()
        return step if self._events else self._ended(step)

    def keep_alive(self) -> bytes:
        """Return a blank line, between events as between elements."""
        return self._inspector.keep_alive() if self._inspector is not None else b""

    def fail(self, message: str) -> bytes:
        """Return an event with an error, or a last element."""
        error = self._frame(message)
        return error if self._events else self._closed(error)

    def _begin(self, start: bytes) -> Inspector:
        self._events = not _is_array(start)
        spelling = Spelling(self._judge)
        return Inspector(
            lambda: GeminiMachine(spelling.judge, self._limits, events=self._events),
            _EVENTS if self._events else _ARRAY,
            note=spelling.note,
            limits=self._limits,
            fail_closed=self._fail_closed,
            error_frame=self._frame,
            enforce=self._enforce,
        )

    def _frame(self, message: str) -> bytes:
        error = self._error(message)
        self._last = b"data: " + error + b"\r\n\r\n" if self._events else error
        return self._last

    def _ended(self, step: Step) -> Step:
        """Make the error that ends an array an element of it."""
        if step.end and self._last and step.out.endswith(self._last):
            before = step.out[: -len(self._last)]
            self._sent = self._sent or bool(before)
            step = step._replace(out=before + self._closed(self._last))
        self._sent = self._sent or bool(step.out)
        return step

    def _closed(self, error: bytes) -> bytes:
        return (b",\n" if self._sent else b"[") + error + b"]"
