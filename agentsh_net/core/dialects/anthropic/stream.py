"""The stream machine of Anthropic Messages: a call is held from its start to its stop, judged once, released or replaced.

Everything behind a held call waits for it. Which block an event belongs to, `roster` says; what a call is and what
stands in its place, `blocks`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from agentsh_net.core.dialects.anthropic.blocks import Rulings, arguments, flaw_of, is_call, spelled
from agentsh_net.core.dialects.anthropic.event import (
    Event,
    read,
    steered_frames,
    text_frames,
)
from agentsh_net.core.dialects.anthropic.message import rewritten
from agentsh_net.core.dialects.anthropic.ordinary import (
    begins_message,
    ends_content,
    ends_message,
    opened_block,
    piece_of_arguments,
)
from agentsh_net.core.dialects.anthropic.roster import MAX_BLOCKS, Block, Roster
from agentsh_net.core.dialects.base import MIN_WEIGHT, Judge, Limits
from agentsh_net.core.dialects.machine import INCOMPLETE, State
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.steering import Steered
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.framing.sse_writing import make_frame, with_data
from agentsh_net.core.values import json_splice
from agentsh_net.core.values.strict_json import Reading

# Besides what every dialect looks for: blocks are counted (`_start`), arguments without a call are dropped (`partial_json`), and an end
# is remembered (`message_stop`, `error`). Parts of five bytes, by which these are found and little else (call_signs says why).
SIGNS: Final = (b"_star", b"e_sto", b"error", b"_json")

_LATE: Final = "a call after the end of the message"
# Some clients add what comes to the last one, and end that.
_NESTED: Final = "another block came within the call"


class AnthropicMachine:
    """An `inspection.Machine`. Everything behind a held call waits for it, so that the order of events is never changed."""

    __slots__ = (
        "_begun", "_held", "_limit", "_make", "_over", "_put", "_queue", "_roster", "_rulings", "_waiting", "idle",
    )  # fmt: skip

    def __init__(
        self,
        judge: Judge,
        limits: Limits,
        make: Callable[[str, bytes], bytes] = make_frame,
        put: Callable[[Frame, bytes], bytes] = with_data,
    ) -> None:
        self._make = make  # writes an event
        self._put = put  # puts other data into a frame
        self._rulings = Rulings(judge)
        self._limit = limits.held
        self._queue: deque[tuple[bytes, Block | None]] = deque()
        self._waiting = 0  # bytes in the queue
        self._held: list[Block] = []
        self._roster = Roster()
        self._begun = False  # a message_start came
        self.idle = True  # no call came, so that ordinary frames have nothing to do with one
        self._over = False  # message_stop or an error came

    @property
    def holding(self) -> bool:
        """Say whether bytes wait for a verdict."""
        return bool(self._queue)

    def knows(self, frame: bytes) -> bool:
        """Take a frame that begins or ends every answer, while nothing is held: it leaves as it came."""
        if self.idle and begins_message(frame):
            self._begun = True
        elif (index := opened_block(frame)) is not None and not self._roster.full:
            self._roster.add(Block(index))
        elif ends_message(frame):
            self._over = True
        else:  # of an answer whose calls were refused it may have to say another reason
            return not self._rulings.ends_turn and ends_content(frame)
        return True

    def holds(self, frame: bytes) -> bool:
        """Hold a frame that is more of the arguments of a held call, as nearly all are between its start and its stop."""
        piece = piece_of_arguments(frame)
        if piece is None:
            return False
        index, text = piece
        block = self._roster.named(index)
        weight = max(len(frame), MIN_WEIGHT)
        if block is None or block.state is not State.HELD or self._waiting + weight > self._limit:
            return False
        if self._roster.misplaced(index):
            return False
        self._queue.append((frame, block))
        self._waiting += weight
        block.parts.append(text)
        return True

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a whole frame."""
        event = None if reading is None else read(frame, reading)
        if reading is None or event is None:
            self._emit(frame.raw, out)
        else:
            self._event(event, frame, reading, out)
        if self._waiting > self._limit and not out.end:
            self._overflow(out)

    def release(self, out: Output, doubt: str) -> None:
        """Judge every held call by what is there, and let go of it."""
        self._settle(out, State.PASSING, doubt)

    def finish(self, out: Output) -> None:
        """Take the end of the stream: a call that is still held is never released, and the client is told."""
        if self._held:
            detail = f"the answer ended within a call of {self._names()}"
            self._discard(out, INCOMPLETE)
            out.fault("incomplete_call", detail, must_cut=True)

    def _event(self, event: Event, frame: Frame, reading: Reading, out: Output) -> None:
        if "error" in {event.kind, frame.event}:
            self._fail(out)
        if event.opens_block:
            self._start(event, frame, out)
        elif event.message is not None:
            self._message(event, frame, reading, out)
        elif event.brings_arguments or event.kind in {"content_block_delta", "content_block_stop"}:
            self._indexed(event, frame, out)
        elif "message_delta" in {event.kind, frame.event}:
            self._message_delta(event, frame, reading, out)
        else:
            if "message_stop" in {event.kind, frame.event}:
                self._settle(out, State.STOPLESS)
                self._over = True
            self._emit(frame.raw, out)

    def _start(self, event: Event, frame: Frame, out: Output) -> None:
        """Take a block's start: hold a call, put the notice for the result of a refused one, let all else pass."""
        first = self._roster.named(event.index)
        if first is not None and first.state is State.HELD:
            self._settle(out, State.STOPLESS)
        block = Block(event.index)
        if is_call(event.block) or event.flaw:
            self._take_for_call(block, event)
        self._doubt_all_but(None)
        if self._held:
            block.doubt = _NESTED
        if not self._known(block, out):
            return
        if block.state is State.HELD:
            self._held.append(block)
            self._emit(frame.raw, out, block)
        elif text := self._rulings.withheld(event.block):
            block.state = State.REPLACED
            self._emit(text_frames(self._number(block), text, self._make), out)
        else:
            self._emit(frame.raw, out)

    def _take_for_call(self, block: Block, event: Event) -> None:
        """Fill in what a block's start says of the call that it begins, and what is wrong with that."""
        self.idle = False
        block.state = State.HELD
        block.fields = event.block
        block.flaw = event.flaw or flaw_of(event.block)
        if event.index is None:
            block.flaw = block.flaw or "the block has no index"
        if self._roster.reused(event.index):
            block.flaw = block.flaw or "two blocks with arguments at one index"  # some clients merge them
        if self._over:
            block.flaw = _LATE

    def _known(self, block: Block, out: Output, *, positioned: bool = True) -> bool:
        """Remember a block, unless there are too many."""
        if self._roster.full:
            self._cut("too_many_blocks", f"more than {MAX_BLOCKS} content blocks", out, must_cut=True)
            return False
        self._roster.add(block, positioned=positioned)
        return True

    def _message(self, event: Event, frame: Frame, reading: Reading, out: Output) -> None:
        """Take an event with a message in it: calls may sit in its content already."""
        self._settle(out, State.STOPLESS)
        result = rewritten(
            frame.data or b"",
            reading,
            self._rulings,
            out,
            key=event.message or "",
            flaw=event.flaw,
            late=_LATE if self._over else "",
        )
        self.idle = self.idle and not result.calls
        for at, notice in enumerate(result.content):
            state = State.DONE if at in result.calls else State.PLAIN
            block = Block(at, State.REPLACED if notice else state)
            if block.live:
                self._roster.released(block)
            # The SDKs keep the first message_start, others take the last.
            if not self._known(block, out, positioned=not self._begun):
                return
        self._begun = True
        self._emit(frame.raw if result.data is None else self._put(frame, result.data), out)

    def _indexed(self, event: Event, frame: Frame, out: Output) -> None:
        """Take a delta or a stop: it belongs to the block of its index, if all parsers agree on which that is."""
        named = self._roster.named(event.index)
        self._doubt_all_but(named)
        if event.flaw and not self.idle:
            for block in self._held:
                block.flaw = block.flaw or event.flaw
            out.dropped("duplicate_keys", event.flaw)
            return
        if event.brings_arguments and (problem := self._roster.misplaced(event.index)):
            if named is not None and named.state is State.HELD:
                named.flaw = named.flaw or problem
            else:
                out.dropped("event_out_of_place", problem)
                return
        if named is None or named.state is State.PLAIN:
            if event.brings_arguments:
                self._roster.argued(event.index)
            self._emit(frame.raw, out)
            return
        stop = event.kind == "content_block_stop"
        match named.state:
            case State.HELD:
                self._continue(named, event, frame, out)
            case State.PASSING | State.STOPLESS if stop:
                named.state = State.DONE
                self._emit(frame.raw, out)
            case State.PASSING:
                self._emit(frame.raw, out)
            case State.REPLACED:
                return
            case _:
                out.dropped("event_out_of_place", f"{event.kind} for a call that had ended")

    def _doubt_all_but(self, named: Block | None) -> None:
        """Note that what came belongs to another block than the one that is held; of several each is in doubt already."""
        if self._held and self._held[0] is not named:
            self._held[0].doubt = _NESTED

    def _continue(self, block: Block, event: Event, frame: Frame, out: Output) -> None:
        """Take a further event of a held call; its stop brings the verdict."""
        self._emit(frame.raw, out, block)
        if event.kind == "content_block_stop":
            self._resolve(block, out, State.DONE)
            self._flush(out)
        elif event.brings_arguments:
            part = event.delta.get("partial_json")
            if isinstance(part, str) and event.delta.get("type") == "input_json_delta":
                block.parts.append(part)
            else:
                block.flaw = block.flaw or "arguments of an odd type"

    def _message_delta(self, event: Event, frame: Frame, reading: Reading, out: Output) -> None:
        """Take the end of the content: the stop_reason must not announce calls that the client did not get."""
        self._settle(out, State.STOPLESS)
        if not (self._rulings.ends_turn and event.delta.get("stop_reason") == "tool_use"):
            self._emit(frame.raw, out)
            return
        outer = spelled(reading.value, "delta")
        inner = spelled(reading.value[outer], "stop_reason")
        self._emit(self._put(frame, json_splice.splice(frame.data or b"", {(outer, inner): "end_turn"})), out)

    def _fail(self, out: Output) -> None:
        """Take an error of the provider: what was held is incomplete."""
        if self._held:
            out.dropped("incomplete_call", f"an error came within a call of {self._names()}")
            self._discard(out, INCOMPLETE)
        self._over = True

    def _overflow(self, out: Output) -> None:
        detail = f"calls of {self._names()} outgrew {self._limit} bytes"
        if not self._cut("held_too_long", detail, out):
            self._settle(out, State.PASSING)  # judged by what is there: a long input launders no name

    def _names(self) -> str:
        return ", ".join(repr(block.fields.get("name")) for block in self._held)[:200]

    def _number(self, block: Block) -> int:
        """Return the index that a replacement carries."""
        return self._roster.position(block) if block.index is None else block.index

    def _settle(self, out: Output, state: State, doubt: str = "") -> None:
        """Judge every held call by what is there."""
        for block in list(self._held):
            self._resolve(block, out, state, doubt)
        self._flush(out)

    def _resolve(self, block: Block, out: Output, state: State, doubt: str = "") -> None:
        value, flaw = arguments(block.fields, "".join(block.parts))
        block.notice = self._rulings.decide(
            block.fields, value, block.flaw or flaw, out, doubt or block.doubt
        )
        block.state = State.REPLACED if block.notice else state
        block.call_id = block.fields.get("id")
        if block.live:
            self._roster.released(block)
        block.parts.clear()
        block.fields = {}
        self._held.remove(block)

    def _emit(self, data: bytes, out: Output, block: Block | None = None) -> None:
        """Write, or queue behind what is held."""
        if not self._queue and block is None:
            out.write(data)
            return
        self._queue.append((data, block))
        self._waiting += max(len(data), MIN_WEIGHT)

    def _flush(self, out: Output) -> None:
        """Write what no longer waits for a verdict, in the order it came."""
        while self._queue:
            data, block = self._queue[0]
            if block is not None and block.state is State.HELD:
                return
            self._queue.popleft()
            self._waiting -= max(len(data), MIN_WEIGHT)
            if block is None or block.state is not State.REPLACED:
                out.write(data)
            elif block.notice:
                number, notice = self._number(block), block.notice
                if isinstance(notice, Steered):
                    out.write(steered_frames(number, notice, block.call_id, self._make))
                else:
                    out.write(text_frames(number, notice, self._make))
                block.notice = ""

    def _cut(self, cause: str, detail: str, out: Output, *, must_cut: bool = False) -> bool:
        if out.fault(cause, detail, must_cut=must_cut):
            self._discard(out, detail)
            return True
        return False

    def _discard(self, out: Output, reason: str) -> None:
        """Forget what is held: the client never hears of it, the audit does."""
        for block in self._held:
            value, _ = arguments(block.fields, "".join(block.parts))
            self._rulings.decide(block.fields, value, reason, out)
            block.state = State.REPLACED
        self._held.clear()
        self._queue.clear()
        self._waiting = 0
