"""A streamed chat completion: frames with calls are held until their choices end, then leave as they came or rewritten.

What a call is and what becomes of it is the ledger's business; this file decides only when bytes leave.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agentsh_net.core.dialects.base import MIN_WEIGHT, Judge, Limits
from agentsh_net.core.dialects.machine import DONE, INCOMPLETE, never
from agentsh_net.core.dialects.openai_chat.calls import NAME
from agentsh_net.core.dialects.openai_chat.edits import Findings, event, promises, rewrite, whole
from agentsh_net.core.dialects.openai_chat.fragments import Chunk, Fragment, scan
from agentsh_net.core.dialects.openai_chat.ledger import Ledger
from agentsh_net.core.dialects.openai_chat.whole import rewrite_whole
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.stray_calls import OF_MESSAGES, has_message_call
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.strict_json import DivergentError, Reading, read

_AFTER_DONE: Final = "a call after the end of the stream"
_TOO_MANY: Final = "more calls than can be remembered"
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

    knows = holds = never

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

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a whole frame."""
        if reading is not None:
            self._chunk(frame, reading, out)
        elif frame.data is not None and frame.data.lstrip().startswith(DONE):
            self._end(frame, out)
        elif self._held:
            self._hold(_Held(frame, _UNREADABLE), out)
        elif frame.data is None and not all(_FIELD.match(line) for line in frame.raw.splitlines() if line):
            self._no_event(frame, out)
        else:
            out.write(frame.raw)

    def release(self, out: Output, doubt: str) -> None:
        """Judge every held call by what is there, and let go of it; what follows is judged again."""
        self._ledger.settle(out.judged, doubt)
        self._release(out)

    def finish(self, out: Output) -> None:
        """Take the end of the stream: what is still held loses its calls, and the client is told."""
        if not self._held:
            return
        if self._held[-1].found is _UNREADABLE and not whole(self._held[-1].frame):
            self._held.pop()  # half a line: the error would become its other half
        self._ledger.abandon(out.judged, INCOMPLETE)
        last = self._held[-1].frame if self._held else None
        self._release(out)
        if last is not None and not whole(last):
            out.write(b"\n\n")
        out.fault("unfinished_call", INCOMPLETE, must_cut=True)

    def _end(self, frame: Frame, out: Output) -> None:
        """Take `[DONE]`: calls are complete, whether their choices said so or not."""
        self._ledger.settle(out.judged)
        self._release(out)
        self._done = True
        out.write(frame.raw)

    def _no_event(self, frame: Frame, out: Output) -> None:
        """Take text that is no event: a whole answer under the content type of a stream."""
        data = frame.raw
        try:
            reading = read(data)
        except ProtocolError as error:
            divergent = isinstance(error, DivergentError)
            if out.fault("malformed_json", f"no event, and {error}", must_cut=divergent):
                return
        else:
            try:
                made = rewrite_whole(data, reading, self._judge, out)
            except ProtocolError as error:
                out.fault("malformed_json", str(error), must_cut=True)
                return
            data = data if made is None else made
        out.write(data)

    def _chunk(self, frame: Frame, reading: Reading, out: Output) -> None:
        chunk = scan(reading.value, reading.duplicates)
        reason = chunk.hostile
        stray = OF_MESSAGES if has_message_call(reading.value) else ""
        if stray or (self._done and (chunk.fragments or reason)):
            if not self._refused(chunk.fragments, reason or stray or _AFTER_DONE, out):
                out.write(frame.raw)
            return
        hostile = bool(reason) if chunk.fragments or not reason else self._refused([], reason, out)
        self._take(frame, chunk, reason, out, hostile=hostile)

    def _take(self, frame: Frame, chunk: Chunk, reason: str, out: Output, *, hostile: bool) -> None:
        marks = self._ledger.take(chunk.fragments, reason)
        for choice in chunk.choices:
            if choice.finish:
                self._ledger.finish(choice.number)
        held = _Held(frame, Findings(marks, promises(chunk.choices), hostile))
        if chunk.error:
            self._ledger.abandon(out.judged, INCOMPLETE)
        if self._held or marks:
            self._hold(held, out)
        else:
            self._write(held, out)

    def _hold(self, held: _Held, out: Output) -> None:
        """Keep a frame until no call can grow; past the bound give up by fail_closed."""
        self._held.append(held)
        self._size += max(len(held.frame.raw), MIN_WEIGHT)
        if self._ledger.full:
            self._ledger.abandon(out.judged, _TOO_MANY)
            out.fault("too_many_calls", _TOO_MANY, must_cut=True)
        elif not self._ledger.open:
            self._ledger.settle(out.judged)
            self._release(out)
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

    def _refused(self, fragments: list[Fragment], reason: str, out: Output) -> bool:
        """Judge what cannot be trusted; without a visible call, that there was something. Say whether it may not leave."""
        named = [
            ToolCall(name, fragment.id, dialect=NAME, flaw=reason)
            for fragment in fragments
            for _, name in fragment.names
        ]
        refused = False
        for call in named or [ToolCall("", dialect=NAME, flaw=reason)]:
            verdict = self._judge(call)
            out.judged(call, verdict)
            refused = refused or verdict.blocked
        return refused
