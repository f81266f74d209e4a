"""The loop every streamed dialect shares: cut frames, let pass at once what cannot hide a call, hand the rest to the machine.

Not its business: what a call looks like. That is the dialect's machine, which only ever sees whole frames.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Protocol

from agentsh_net.core.dialects.base import Fault, Judged, Limits, Step
from agentsh_net.core.model import ToolCall, Verdict
from agentsh_net.core.sse import Decoder, Frame

# A JSON escape of an ASCII character can spell any key, type or name in disguise; those of others cannot.
_ESCAPED_ASCII: Final = re.compile(rb"\\u00[0-7]")


def may_hide_call(frames: bytes, signs: tuple[bytes, ...] = ()) -> bool:
    """Say whether any frame of these could speak of a call, in any dialect.

    Every call of every dialect stands under a key or type that contains `tool` or `function_call`; case is folded because some
    parsers fold the case of keys (Go's encoding/json). `signs` (lower case) are what else a dialect's machine must see.
    """
    folded = frames.lower()
    find = folded.find  # half the price of `in`, which makes and drops a TypeError first: may it be an integer that is asked for?
    for sign in signs:  # a loop and not any(): this runs for every read of every stream
        if find(sign) >= 0:
            return True
    return (
        find(b"tool") >= 0
        or find(b"function_call") >= 0
        or (find(b"\\u00") >= 0 and _ESCAPED_ASCII.search(folded) is not None)
    )


def notice(name: str, reason: str) -> str:
    """Return the text that stands where a blocked call stood."""
    return f"[agentsh] Tool '{name}' blocked by policy: {reason}"


class Output:
    """What one step of a machine leads to, gathered."""

    __slots__ = ("_error_frame", "_fail_closed", "_faults", "_judged", "_out", "end")

    def __init__(self, *, fail_closed: bool, error_frame: Callable[[str], bytes]) -> None:
        self._fail_closed = fail_closed
        self._error_frame = error_frame
        self._out: list[bytes] = []
        self._judged: list[Judged] = []
        self._faults: list[Fault] = []
        self.end = False

    def write(self, data: bytes) -> None:
        """Send bytes to the client, unless the response was cut before."""
        if not self.end:
            self._out.append(data)

    def judged(self, call: ToolCall, verdict: Verdict) -> None:
        """Record a decision for the audit."""
        self._judged.append(Judged(call, verdict))

    def fault(self, cause: str, detail: str, *, must_cut: bool = False) -> bool:
        """Record what could not be read; cut the response under fail_closed (or where there is no honest way on).

        Returns whether it was cut: if not, the caller passes the bytes on untouched.
        """
        cut = self._fail_closed or must_cut
        self._faults.append(Fault(cause, detail, cut))
        if cut:
            self.write(self._error_frame(f"response cut by agentsh-net: {cause}: {detail}"))
            self.end = True
        return cut

    def dropped(self, cause: str, detail: str) -> None:
        """Record that something was left out of an answer that goes on."""
        self._faults.append(Fault(cause, detail, cut=True))

    def step(self) -> Step:
        """Return all of it as a value."""
        return Step(b"".join(self._out), tuple(self._judged), tuple(self._faults), self.end)


class Machine(Protocol):
    """What a dialect writes: it sees whole frames, in order, and writes what the client gets."""

    @property
    def idle(self) -> bool:
        """Say whether a frame without any sign of a call would leave as it came: nothing held, nothing to amend."""
        ...

    @property
    def holding(self) -> bool:
        """Say whether bytes are held back for a verdict."""
        ...

    def frame(self, frame: Frame, out: Output) -> None:
        """Take a whole frame."""
        ...

    def finish(self, out: Output) -> None:
        """Take the end of the stream; what is held is never released."""
        ...


class Inspector:
    """A `base.Stream` around a machine."""

    __slots__ = (
        "_decoder",
        "_ended",
        "_error_frame",
        "_fail_closed",
        "_fast",
        "_machine",
        "_signs",
        "_told_oversize",
    )

    def __init__(
        self,
        machine: Machine,
        *,
        limits: Limits,
        fail_closed: bool,
        error_frame: Callable[[str], bytes],
        fast: bool = True,
        signs: tuple[bytes, ...] = (),
    ) -> None:
        self._machine = machine
        self._decoder = Decoder(limits.max_frame)
        self._fail_closed = fail_closed
        self._error_frame = error_frame
        self._fast = fast  # off only in the tests that prove the fast path equal to the slow one
        self._signs = signs  # frames the machine must see besides those that may hide a call
        self._ended = False
        self._told_oversize = False

    @property
    def holding(self) -> bool:
        """Say whether a call is held back."""
        return self._machine.holding

    def feed(self, data: bytes) -> Step:
        """Take the next bytes of the answer."""
        if self._ended:
            return Step(b"", end=True)
        if not self._fast or not self._machine.idle:
            return self._slow(data)
        waiting = self._decoder.take()
        if waiting is None:
            return self._slow(data)
        if waiting:
            data = waiting + data
        end = _end_of_frames(data)
        if end == len(data) and not may_hide_call(data, self._signs):
            self._decoder.skip()
            return Step(data)
        out = self._output()
        if end:
            self._part(data[:end], out)
        if not out.end:
            self._take(data[end:], out)
        return out.step()

    def finish(self) -> Step:
        """Take the end of the answer."""
        if self._ended:
            return Step(b"", end=True)
        out = self._output()
        rest = self._decoder.finish()
        if rest is not None:
            self._frame(rest, out)
        if not out.end:
            self._machine.finish(out)
        self._ended = True
        return out.step()

    def _output(self) -> Output:
        return Output(fail_closed=self._fail_closed, error_frame=self._error_frame)

    def _part(self, frames: bytes, out: Output) -> None:
        """Let pass those of these whole frames that cannot hide a call, found by halving; the machine takes the others."""
        if not self._machine.idle:
            self._take(frames, out)
        elif not may_hide_call(frames, self._signs):
            self._decoder.skip()
            out.write(frames)
        elif half := _half(frames):
            self._part(frames[:half], out)
            if not out.end:
                self._part(frames[half:], out)
        else:
            self._take(frames, out)

    def _slow(self, data: bytes) -> Step:
        out = self._output()
        self._take(data, out)
        return out.step()

    def _take(self, data: bytes, out: Output) -> None:
        for frame in self._decoder.feed(data):
            self._frame(frame, out)
            if out.end:
                self._ended = True
                break

    def _frame(self, frame: Frame, out: Output) -> None:
        if not frame.oversize:
            self._told_oversize = False
            self._machine.frame(frame, out)
            return
        if not self._told_oversize:
            self._told_oversize = True
            # Behind a held call there is no way on: the frame cannot be held, and must not overtake the call.
            detail = "an event outgrew proxy.max_frame"
            if out.fault("frame_too_long", detail, must_cut=self._machine.holding):
                return
        out.write(frame.raw)


def _end_of_frames(data: bytes) -> int:
    """Return how many bytes of `data` are whole frames for certain (LF and CRLF streams; others take the slow path)."""
    if data.endswith((b"\n\n", b"\n\r\n")):
        return len(data)
    plain = data.rfind(b"\n\n") + 2
    carriage = data.rfind(b"\n\r\n") + 3
    return max(plain if plain > 1 else 0, carriage if carriage > 2 else 0)


def _half(frames: bytes) -> int:
    """Return the end of a frame near the middle, 0 where the middle lies in the only frame."""
    middle = len(frames) // 2
    end = _end_of_frames(frames[:middle])
    if not end:
        after = frames.find(b"\n\n", middle) + 2
        end = after if 1 < after < len(frames) else 0
    return end
