"""A streamed chat completion: frames with calls are held until their choices end, then leave as they came or rewritten.

What a call is and what becomes of it is the ledger's business; this file decides only when bytes leave.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agentsh_net.core.dialects.base import Judge, Limits
from agentsh_net.core.dialects.inspection import Output, may_hide_call
from agentsh_net.core.dialects.openai_chat_calls import NAME
from agentsh_net.core.dialects.openai_chat_edits import Findings, event, promises, rewrite, whole
from agentsh_net.core.dialects.openai_chat_fragments import Chunk, Fragment, scan
from agentsh_net.core.dialects.openai_chat_ledger import Ledger, hostile_verdict
from agentsh_net.core.dialects.openai_chat_whole import rewrite_whole
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import ToolCall
from agentsh_net.core.sse import Frame
from agentsh_net.core.strict_json import Reading, read

DONE: Final = b"[DONE]"

_AFTER_DONE: Final = "a call after the end of the stream"
_ENDED_INSIDE: Final = "the answer ended inside the call"
_TWO_READINGS: Final = "an event that clients which split lines themselves read as several"
# Lines of an event stream that are no data: comments, and fields with or without a value (WHATWG HTML, 9.2.6).
_FIELD: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?::|(?:event|id|retry)(?::|$))")
_UNREADABLE: Final = Findings()


@dataclass(frozen=True, slots=True)
class _Held:
    frame: Frame
    found: Findings


class ChatMachine:
    """An `inspection.Machine`. Everything behind a held call is held too, so that order is never a question."""

    __slots__ = ("_done", "_held", "_judge", "_ledger", "_limits", "_size")

    def __init__(self, judge: Judge, limits: Limits) -> None:
        self._judge = judge
        self._ledger = Ledger(judge, streamed=True)
        self._limits = limits
        self._held: list[_Held] = []
        self._size = 0
        self._done = False

    @property
    def idle(self) -> bool:
        """Say whether a frame without any sign of a call would leave as it came."""
        return not self._held

    @property
    def holding(self) -> bool:
        """Say whether a call is held back."""
        return bool(self._held)

    def frame(self, frame: Frame, out: Output) -> None:
        """Take a whole frame."""
        if frame.data is not None and frame.data.lstrip().startswith(DONE):
            self._end(frame, out)
        elif not self._held and not may_hide_call(frame.raw):
            out.write(frame.raw)  # whatever else it is: how bytes were cut into chunks must not decide
        elif frame.data is None:
            self._without_data(frame, out)
        else:
            self._chunk(frame, frame.data, out)

    def finish(self, out: Output) -> None:
        """Take the end of the stream: what is still held loses its calls, and the client is told."""
        if not self._held:
            return
        if self._held[-1].found is _UNREADABLE and not whole(self._held[-1].frame):
            self._held.pop()  # half a line: the error would become its other half
        self._ledger.abandon(out.judged, _ENDED_INSIDE)
        last = self._held[-1].frame if self._held else None
        self._release(out)
        if last is not None and not whole(last):
            out.write(b"\n\n")
        out.fault("unfinished_call", _ENDED_INSIDE, must_cut=True)

    def _end(self, frame: Frame, out: Output) -> None:
        """Take `[DONE]`: calls are complete, whether their choices said so or not."""
        self._ledger.settle(out.judged)
        self._release(out)
        self._done = True
        out.write(frame.raw)

    def _without_data(self, frame: Frame, out: Output) -> None:
        """Take comments and the like: they may hide an event from us, but not from clients that split lines by other rules."""
        hidden = list(_hidden(frame))
        if hidden:
            self._refuse(hidden, _TWO_READINGS, out)
        elif self._held:
            self._hold(_Held(frame, _UNREADABLE), out)
        elif all(_FIELD.match(line) for line in frame.raw.splitlines() if line):
            out.write(frame.raw)
        else:
            self._no_event(frame, out)

    def _no_event(self, frame: Frame, out: Output) -> None:
        """Take text that is no event: a whole answer under the content type of a stream."""
        try:
            reading = read(frame.raw)
            out.write(rewrite_whole(frame.raw, reading, self._judge, out.judged))
        except ProtocolError as error:
            if not out.fault("malformed_json", f"no event, and {error}"):
                out.write(frame.raw)

    def _chunk(self, frame: Frame, data: bytes, out: Output) -> None:
        hidden = list(_hidden(frame)) if frame.raw.count(b"data:") > 1 else []
        reading = self._read(data, out)
        if out.end:
            return
        if reading is None:
            if hidden:
                self._refuse(hidden, _TWO_READINGS, out)
            elif self._held:
                self._hold(_Held(frame, _UNREADABLE), out)
            else:
                out.write(frame.raw)
            return
        chunk = scan(reading.value, reading.duplicates)
        reason = _TWO_READINGS if hidden else chunk.hostile
        if self._done and (chunk.fragments or reason):
            self._refuse(chunk.fragments or hidden, reason or _AFTER_DONE, out)
            return
        if reason and not chunk.fragments:
            self._refuse(hidden, reason, out)
        self._take(frame, chunk, reason, out)

    def _read(self, data: bytes, out: Output) -> Reading | None:
        """Return what the data says; None: nothing that a parser would read, and the response goes on unless cut."""
        try:
            reading = read(data)
        except ProtocolError as error:
            out.fault("malformed_json", str(error))
            return None
        if "invalid_utf8" in reading.flaws:
            out.fault("invalid_utf8", "an event that is not UTF-8")
        return reading

    def _take(self, frame: Frame, chunk: Chunk, reason: str, out: Output) -> None:
        marks = tuple(self._ledger.add(fragment, reason) for fragment in chunk.fragments)
        for choice in chunk.choices:
            if choice.finish:
                self._ledger.finish(choice.number)
        held = _Held(frame, Findings(marks, promises(chunk.choices), hostile=bool(reason)))
        if chunk.error:
            self._ledger.abandon(out.judged, _ENDED_INSIDE)
        if self._held or marks:
            self._hold(held, out)
        else:
            self._write(held, out)

    def _hold(self, held: _Held, out: Output) -> None:
        """Keep a frame until no call can grow; past the bound give up by fail_closed."""
        self._held.append(held)
        self._size += len(held.frame.raw)
        if not self._ledger.open:
            self._ledger.settle(out.judged)
            self._release(out)
        elif self._ledger.full:
            out.fault("too_many_calls", "more calls than can be remembered", must_cut=True)
        elif self._size > self._limits.held and not out.fault(
            "held_too_long", f"calls of more than {self._limits.held} bytes"
        ):
            # Judged by what is there: a call's name stands at its beginning, and what follows is judged again.
            self._ledger.settle(out.judged)
            self._release(out)

    def _release(self, out: Output) -> None:
        for held in self._held:
            self._write(held, out)
        self._held.clear()
        self._size = 0

    def _write(self, held: _Held, out: Output) -> None:
        frame, found = held.frame, held.found
        if frame.data is None or not (found.marks or found.finishes or found.hostile):
            out.write(frame.raw)
            return
        try:
            data = rewrite(frame.data, found, self._ledger.choices)
        except ProtocolError as error:
            out.fault("malformed_json", str(error), must_cut=True)
            return
        out.write(frame.raw if data is frame.data else event(frame, data))

    def _refuse(self, fragments: list[Fragment], reason: str, out: Output) -> None:
        """Record what is dropped with its frame; without a visible call, that there was something."""
        named = [
            ToolCall(name, fragment.id, dialect=NAME) for fragment in fragments for _, name in fragment.names
        ]
        for call in named or [ToolCall("", dialect=NAME)]:
            out.judged(call, hostile_verdict(reason))


def _hidden(frame: Frame) -> Iterator[Fragment]:
    """Yield the calls that a client would find which takes each line by itself, or splits lines at U+2028 and the like.

    Such clients are many: `str.splitlines` is what HTTP libraries offer them.
    """
    for line in frame.raw.decode("utf-8", "replace").splitlines():
        if not line.startswith("data:"):
            continue
        data = line[5:].strip().encode("utf-8", "replace")
        if frame.data is not None and data == frame.data.strip():
            continue
        try:
            reading = read(data)
        except ProtocolError:
            continue
        yield from scan(reading.value).fragments
