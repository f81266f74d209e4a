"""The loop every streamed dialect shares: cut frames, let pass at once what cannot hide a call, hand the rest to the machine.

What no two clients read alike is stopped here, whatever the dialect. Not its business: what a call looks like. That is the
dialect's machine (core.dialects.machine), which only ever sees whole frames. Where nothing is enforced the machine watches: it is fed
the same frames, and what it writes is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agentsh_net.core.dialects.base import Enforce, Judge, Limits, Step, Streamed, always
from agentsh_net.core.dialects.call_signs import Places, may_hide_call
from agentsh_net.core.dialects.frame_ends import ENDS, end_of_last, end_of_next
from agentsh_net.core.dialects.line_reading import hides_event, on_one_line
from agentsh_net.core.dialects.machine import DONE, EVENTS, Machine, Wire
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.prose import Prose
from agentsh_net.core.dialects.spelling import Spelling
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.sse import Decoder, Frame
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import Reading

_new: Final = tuple.__new__

# Bytes of a piece that the next is read with: the longest mark, each letter of it an escape.
_TAIL: Final = len(b"function_call") * len(b"\\u0041")

# Bytes of a read up to which it is asked at once whether any frame may speak of a call; in longer ones, where.
_SHORT: Final = 4096

# Calls of one answer, far beyond any: each is an event, and whoever fills the audit trail wipes it.
MAX_CALLS: Final = 1 << 12


class Inspector:
    """A `base.Stream` around a machine."""

    __slots__ = (
        "_calls", "_comment", "_decoder", "_ended", "_enforce", "_enforcing", "_error_frame", "_events", "_fail_closed", "_fast",
        "_frames", "_joins", "_machine", "_make", "_max_frame", "_note", "_prose", "_signs", "_skims", "_strict", "_tail", "_told_oversize",
        "_waits", "_wary", "_wraps",
    )  # fmt: skip

    def __init__(
        self,
        make: Callable[[], Machine],
        wire: Wire = EVENTS,
        *,
        note: Callable[[Any], None] | None = None,
        limits: Limits,
        fail_closed: bool,
        error_frame: Callable[[str], bytes],
        enforce: Enforce = always,
        fast: bool = True,
    ) -> None:
        self._make = make
        self._note = note  # told what every frame says that is read
        self._machine = make()
        self._max_frame = limits.max_frame
        self._decoder = Decoder(limits.max_frame)
        self._events = wire.frames is None
        self._frames = self._decoder if wire.frames is None else wire.frames(limits.max_frame)
        self._skims = fast and self._events  # what is framed otherwise is cut before it is looked at
        self._strict = wire.strict
        self._joins = wire.joins
        self._wraps = wire.wraps
        self._comment = wire.comment
        self._fail_closed = fail_closed
        self._error_frame = error_frame
        self._enforce = enforce
        self._enforcing = False
        self._fast = fast  # off only in the tests that prove the fast path equal to the slow one
        self._prose = Prose(wire.prose)
        self._signs = wire.signs
        self._ended = False
        self._calls = 0  # that were judged
        self._told_oversize = False
        self._wary = False  # the event that outgrew the bound may be the rest of a call that was blocked
        self._tail = b""  # of what was seen of it
        self._waits = True  # the decoder may hold something, or has to be told that frames passed

    @property
    def holding(self) -> bool:
        """Say whether a call is held back."""
        return self._enforcing and self._machine.holding

    def heed(self) -> None:
        """Let the machine see every frame from now on."""
        self._fast = self._skims = False
        self._waits = True

    def keep_alive(self) -> bytes:
        """Return a comment while a call is held."""
        return self._comment if self.holding else b""

    def fail(self, message: str) -> bytes:
        """Return the event that ends the answer with an error."""
        return self._error_frame(message)

    def passes(self, data: bytes) -> bool:
        """Take a read that goes on with prose."""
        return not self._waits and len(data) <= self._max_frame and self._prose.goes_on(data)

    def feed(self, data: bytes) -> Step:
        """Take the next bytes of the answer."""
        if self.passes(data):
            return _new(Step, (data, (), (), False))  # what `Step(data)` is, without a call in between
        if self._ended:
            return Step(b"", end=True)
        if not self._skims or not self._machine.idle:
            return self._known(data) or self._slow(data)
        if self._waits:
            waiting = self._decoder.take()
            if waiting is None:
                return self._slow(data)
            data = waiting + data
            if not data:
                return Step(b"")  # nothing came, and the stream's first bytes may still be to come
        if len(data) > self._max_frame:  # an event may be too long: so may be what cannot hide a call
            return self._slow(data)
        end = len(data) if data.endswith(ENDS) else end_of_last(data, 0, len(data))
        if end == len(data) <= _SHORT:
            if not may_hide_call(data, self._signs):
                self._pass_by()
                self._prose.learn(data)
                return Step(data)
            if self._machine.knows(data):
                self._pass_by()
                return Step(data)
            if end_of_next(data, 0) == end:  # the one frame: nothing is left to let pass
                return self._slow(data)
        self._waits = True
        out = self._output()
        if end:
            self._part(data[:end], out)
        if end < len(data) and not out.end:
            self._take(data[end:], out)
        return out.step()

    def finish(self) -> Step:
        """Take the end of the answer."""
        if self._ended:
            return Step(b"", end=True)
        if not self._waits and self._machine.idle:  # nothing is half here, and nothing is held
            self._ended = self._waits = True
            return Step(b"")
        out = self._output()
        rest = self._frames.finish()
        if rest is not None:
            self._frame(rest, out)
        if not out.end:
            self._machine.finish(out)
        self._ended = self._waits = True
        return out.step()

    def _known(self, data: bytes) -> Step | None:
        """Take a read that is a frame known by heart, in an answer with calls; None where it has to be cut and read."""
        if not self._skims or len(data) > self._max_frame or not self._decoder.aligned:
            return None
        if self._machine.holds(data):
            return Step(b"" if self._enforcing else data)
        return Step(data) if not self._machine.holding and self._machine.knows(data) else None

    def _pass_by(self) -> None:
        """Note that whole frames passed by the decoder."""
        if self._waits:
            self._decoder.skip()
            self._waits = False

    def _output(self) -> Output:
        # A call that began to leave unheld leaves whole; and what was enforced once stays so, lest an answer be half of each.
        if not self._enforcing and not self._machine.holding:
            self._enforcing = self._enforce()
        return Output(fail_closed=self._fail_closed, error_frame=self._error_frame, enforce=self._enforcing)

    def _part(self, frames: bytes, out: Output) -> None:
        """Let pass those of these whole frames that cannot hide a call; the machine takes the others."""
        places, size, at = Places(frames, self._signs), len(frames), 0
        while at < size and self._machine.idle and not out.end:
            first = places.first(at)
            start = end_of_last(frames, at, first)
            if start > at:
                self._decoder.skip()
                out.relay(frames[at:start])
            at = end_of_next(frames, first)
            if start < at:
                frame = frames[start:at]
                if self._machine.knows(frame):
                    self._decoder.skip()
                    out.relay(frame)
                else:
                    self._take(frame, out)
        if at < size and not out.end:
            self._take(frames[at:], out)

    def _slow(self, data: bytes) -> Step:
        self._waits = True
        out = self._output()
        self._take(data, out)
        return out.step()

    def _take(self, data: bytes, out: Output) -> None:
        for frame in self._frames.feed(data):
            self._frame(frame, out)
            if out.end:
                self._ended = True
                break

    def _frame(self, frame: Frame, out: Output) -> None:
        if frame.oversize:
            self._oversize(frame, out)
            return
        self._told_oversize = self._wary = False
        if frame.flaw:
            self._cut("malformed_frame", frame.flaw, out)
            if out.end:
                return
        if self._fast and self._machine.idle and self._passes(frame.raw):
            out.relay(frame.raw)  # whatever else it is: how bytes were cut into chunks must not decide
            return
        reading = self._read(frame, out)
        if out.end:
            return
        before = out.calls
        try:
            self._machine.frame(frame, reading, out)
        except ProtocolError as error:
            out.fault("malformed_json", f"an event cannot be rewritten: {error}", must_cut=True)
        self._calls += out.calls - before
        if self._calls > MAX_CALLS and not out.end:
            self._calls = 0
            out.fault("too_many_calls", f"more than {MAX_CALLS} calls in one answer", must_cut=True)
        if not self._enforcing:
            out.relay(frame.raw)
        if out.lost:
            out.lost = False
            # The answer would have ended here; it goes on, and so does the watch.
            self._machine = self._make()

    def _passes(self, frame: bytes) -> bool:
        return not may_hide_call(self._told(frame), self._signs) or self._machine.knows(frame)

    def _read(self, frame: Frame, out: Output) -> Reading | None:
        """Return what the data of a frame says, and stop what only some clients would find a call in."""
        if self._events and hides_event(frame):
            self._cut("ambiguous_lines", "a line of an event is an event to some clients", out)
        data = frame.data
        if data is None or out.end or not (text := data.strip()):
            return None
        if self._events and text.startswith(DONE):
            behind = self._told(text.removeprefix(DONE))
            if not may_hide_call(behind, self._signs):
                return None
        try:
            reading = strict_json.read(data)
        except ProtocolError as error:
            if isinstance(error, strict_json.DivergentError) and self._hides(error):
                self._cut("unreadable_json", str(error), out)
            elif self._strict and may_hide_call(self._told(data), self._signs):
                self._cut("malformed_json", str(error), out)
            else:
                out.fault("malformed_json", str(error))
            return None
        if self._joins and not _reads_alike(reading, self._told(data)):
            self._cut("ambiguous_lines", "a string on two lines is another to some clients", out)
            return None
        if "invalid_utf8" in reading.flaws:
            out.fault("invalid_utf8", "an event is not UTF-8")
        # What would have passed unread says nothing of a call, and chunks decide what does.
        if self._note is not None and (
            not self._machine.idle or may_hide_call(self._told(data), self._signs)
        ):
            self._note(reading.value)
        return reading

    def _hides(self, error: strict_json.DivergentError) -> bool:
        """Say whether what other parsers read of a text may be a call, or a part of one that is held."""
        return error.leading is None or self.holding or may_hide_call(self._told(error.leading), self._signs)

    def _told(self, text: bytes) -> bytes:
        """Return what some client takes a text for, in which no call may hide either."""
        return on_one_line(text) if self._joins else text

    def _cut(self, cause: str, detail: str, out: Output) -> None:
        """Stop what must not pass as merely broken."""
        if self._fail_closed:
            out.fault(cause, detail)
        else:
            out.fault(cause, detail, must_cut=True)
            out.lost = False  # unreadable to us, and no reason for the machine to start anew

    def _oversize(self, frame: Frame, out: Output) -> None:
        """Cut under fail_closed, pass on else: behind a call that was blocked only what does not speak of calls."""
        if not self._told_oversize:
            self._told_oversize = True
            detail = "an event outgrew proxy.max_frame"
            stuck = self.holding and not self._released(detail, out)
            if out.fault("frame_too_long", detail, must_cut=stuck):
                return
        begun = bool(self._tail)
        if self._wary and self._speaks(frame.raw):
            if begun and self._events:
                out.relay(b"\n\n")  # the error must not become the end of a line
            out.fault("frame_too_long", "an event of a blocked call outgrew proxy.max_frame", must_cut=True)
            return
        out.relay(frame.raw)

    def _released(self, doubt: str, out: Output) -> bool:
        """Let go of held calls: a frame that cannot be held must not overtake them. It may be the rest of one that is blocked."""
        if self._fail_closed:
            return False
        blocked = out.blocked
        self._machine.release(out, doubt)
        self._wary, self._tail = out.blocked > blocked, b""
        return not self._machine.holding

    def _speaks(self, piece: bytes) -> bool:
        """Say whether a piece of an event, with the end of the last, may speak of a call."""
        seen = self._tail + piece.replace(b"\0", b"")  # of UTF-16, or of a binary framing
        self._tail = seen[-_TAIL:]
        return self._wraps or may_hide_call(self._told(seen), self._signs)


def streamed(
    machine: Callable[[Judge, Limits], Machine], wire: Wire, error_frame: Callable[[str], bytes]
) -> Streamed:
    """Return what makes an inspector for each of a dialect's streams."""

    def stream(judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Inspector:
        spelling = Spelling(judge)
        return Inspector(
            lambda: machine(spelling.judge, limits),
            wire,
            note=spelling.note,
            limits=limits,
            fail_closed=fail_closed,
            error_frame=error_frame,
            enforce=enforce,
        )

    return stream


def _reads_alike(reading: Reading, text: bytes) -> bool:
    """Say whether a text says what was read, or nothing."""
    try:
        return strict_json.read(text) == reading
    except strict_json.DivergentError:
        return False
    except ProtocolError:
        return True
