"""The stream machine of the Responses API: a call is held from `added` to `done`, judged once, released or replaced.

Clients act on different events (`added` and deltas, `done`, the output of the last event): all of them tell of the call that
was judged, or the call is refused. `sequence_number` stays dense whatever was replaced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from agentsh_net.core.dialects.base import MIN_WEIGHT, Judge, Limits
from agentsh_net.core.dialects.machine import DONE, INCOMPLETE, State, never
from agentsh_net.core.dialects.openai_responses.event import Event, message_frames, read, renumbered
from agentsh_net.core.dialects.openai_responses.items import Call, is_call, read_call
from agentsh_net.core.dialects.openai_responses.output import rewritten
from agentsh_net.core.dialects.openai_responses.pieces import KIND as PIECE
from agentsh_net.core.dialects.openai_responses.pieces import Pieces
from agentsh_net.core.dialects.openai_responses.rulings import Place, Rulings
from agentsh_net.core.dialects.openai_responses.slots import NO_INDEX, REUSED, Slot, Slots
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.stray_calls import OF_CHAT, chat_calls
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.framing.sse_writing import with_data
from agentsh_net.core.values.strict_json import Reading

# Besides what every dialect looks for: whatever carries an `"item"`, a `"response"`, an `"output"` or arguments, and what ends an answer
# (`"error"`, `[done]`), and Mistral's calls. The last five bytes of each, as far as they are not shorter (call_signs says why).
SIGNS: Final = (b'item"', b'onse"', b'tput"', b"_call", b".call", b'rror"', b"done]")

# A notice comes in at most as many pieces: enough that the events of most refused calls are as many as the message's, so that no
# later event changes (a client may resume a stored response behind a sequence_number).
_MAX_PIECES: Final = 64

_LATE: Final = "a call after the end of the response"
_TOO_MANY: Final = "more items than any answer has"
_OTHER_TYPE: Final = "the item's type changed"
_NESTED: Final = "another item came within the call"  # some clients add what comes to the last one
_TWO_CARRIERS: Final = "one event brings two of an item, a response and arguments"


@dataclass(slots=True)  # not frozen, as events are not
class _Queued:
    frame: Frame
    event: Event | None = None
    data: bytes | None = None  # what its data became
    slot: Slot | None = None  # whose verdict it waits for


class ResponsesMachine:
    """An `inspection.Machine`. Everything behind a held call waits for it, so that the order of events is never changed."""

    __slots__ = ("_held", "_limit", "_over", "_pieces", "_queue", "_rulings", "_shift", "_slots", "_waiting")

    knows = holds = never

    def __init__(self, judge: Judge, limits: Limits) -> None:
        self._rulings = Rulings(judge)
        self._pieces = Pieces(self._rulings)
        self._slots = Slots()
        self._limit = limits.held
        self._queue: deque[_Queued] = deque()
        self._waiting = 0  # bytes in the queue
        self._held: list[Slot] = []
        self._shift = 0  # what is added to each sequence_number
        self._over = False  # the response ended, or failed

    @property
    def idle(self) -> bool:
        """Say whether a frame without any sign of a call would leave as it came."""
        return not (self._queue or self._shift or self._rulings.refuses)

    @property
    def holding(self) -> bool:
        """Say whether bytes wait for a verdict."""
        return bool(self._queue)

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a whole frame."""
        event = None if reading is None else read(frame, reading)
        if reading is not None and event is not None:
            self._event(event, frame, reading, out)
        else:
            if frame.data is not None and frame.data.lstrip().startswith(DONE):
                self._settle(out, State.DONE)
                self._over = True
            self._emit(_Queued(frame), out)
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
        if event.fails_answer:
            self._fail(out)
        carried = (event.item is not None) + event.lists + event.brings
        stray = chat_calls(reading) if "choices" in event.fields else []
        others = [Call(name=name, flaw=OF_CHAT) for name in stray]
        if carried > 1:
            others.append(Call(flaw=_TWO_CARRIERS))
        notices = [self._rulings.decide(call, out) for call in others]
        if any(notices):
            self._drop(event)
        elif event.item is not None:
            self._item(event, event.item, frame, out)
        elif event.lists:
            self._response(event, frame, frame.data or b"", reading, out)
        elif event.kind == PIECE:
            self._piece(event, frame, out)
        else:
            self._detail(event, frame, out)
        if event.error:
            self._over = True
        if (self._slots.full or self._rulings.full) and not out.end:
            self._discard(out, _TOO_MANY)
            out.fault("too_many_items", _TOO_MANY, must_cut=True)

    # Events with a whole item.

    def _item(self, event: Event, item: Mapping[str, Any], frame: Frame, out: Output) -> None:
        """Take an `added`, a `done`, or what else brings an item."""
        called = is_call(item) or event.hidden
        call = read_call(item, event.flaw or (NO_INDEX if event.odd else ""))
        slot = self._slots.of_item(event, item)
        if event.adds_item or slot is None or _is_another(slot, call):
            slot = self._begin(event, item, call, called, slot, out)
        elif slot.state is State.PLAIN and called:
            slot = self._begin(event, item, call, called, None, out)
            slot.flag(_OTHER_TYPE)
        elif slot.state is State.HELD:
            if called:
                slot.view(call, whole=True)
            else:
                slot.flag(_OTHER_TYPE)
        elif slot.is_call and called and slot.state is not State.REPLACED:
            if self._rulings.decide(call, out):
                self._drop(event)  # too late to put anything in its place
                return
            slot.state = State.DONE
        slot.over = slot.over or not event.adds_item
        self._emit(_Queued(frame, event, slot=slot), out)
        if slot.over and slot.state is State.HELD:
            self._resolve(slot, out, State.DONE)
            self._flush(out)

    def _begin(
        self, event: Event, item: Mapping[str, Any], call: Call, called: bool, first: Slot | None, out: Output
    ) -> Slot:
        """Return the slot of a new item: held if it is a call, replaced if it is the result of a refused one."""
        reused = (
            first is not None
            and first.is_call
            and event.adds_item
            and (first.index is not None or not first.over)
        )
        if first is not None and first.state is State.HELD:
            self._resolve(first, out, State.DONE)
            self._flush(out)
        slot = self._slots.add(event, item)
        self._doubt_all_but(None)
        if called:
            slot.state = State.HELD
            slot.doubt = _NESTED if self._held else ""
            slot.call = call
            slot.start = call.arguments if isinstance(call.arguments, str) and event.adds_item else ""
            self._held.append(slot)
            if reused:
                slot.flag(REUSED)
        elif text := self._rulings.withheld(item):
            slot.state, slot.call, slot.notice = State.REPLACED, call, text
        return slot

    # Events without one.

    def _detail(self, event: Event, frame: Frame, out: Output) -> None:
        """Take an event about an item: arguments reach no call but the one all parsers agree on."""
        slot, problem = self._slots.of_detail(event)
        problem = event.flaw or (problem if event.brings else "")
        if event.brings and not problem and not event.providers:
            if slot is None:
                problem = "arguments for no call"
            elif slot.state is State.PLAIN and not (
                slot.kind.endswith(("_call", "_call_output")) and slot.kind in event.kind
            ):
                problem = "arguments for an item that is no call"
            elif slot.state is State.DONE:
                problem = "arguments for a call that had ended"
            elif slot.kind not in event.kind:
                problem = "arguments of another kind of call"
        if event.brings:
            self._doubt_all_but(slot)
        if slot is not None and slot.state is State.HELD:
            if problem:
                slot.flag(problem)
            elif event.brings:
                slot.grow(event)
        elif problem and (slot is None or slot.state is not State.REPLACED):
            out.dropped("event_out_of_place", problem)
            self._drop(event)
            return
        self._emit(_Queued(frame, event, slot=slot), out)

    def _piece(self, event: Event, frame: Frame, out: Output) -> None:
        """Take a call, or a piece of one, that has no item."""
        self._doubt_all_but(None)
        instead = self._pieces.take(event, out, _LATE if self._over else "")
        if instead is None:
            self._emit(_Queued(frame, event), out)
            return
        self._drop(event)
        if not self._queue:
            out.write(instead)

    def _doubt_all_but(self, slot: Slot | None) -> None:
        """Note that what came belongs to another item than the one that is held; of several each is in doubt already."""
        if self._held and self._held[0] is not slot:
            self._held[0].doubt = _NESTED

    def _response(self, event: Event, frame: Frame, data: bytes, reading: Reading, out: Output) -> None:
        """Take an event with a response in it: its output lists items, some of which may be news."""
        ends = event.ends_answer

        def known(position: int, call: Call) -> Call:
            slot = self._slots.at(position)
            if not ends or slot is None or slot.state is not State.HELD or _is_another(slot, call):
                slot = next((s for s in self._held if ends and _same(s.call, call)), None)
            if slot is None:
                return call
            slot.view(call, whole=True)
            self._resolve(slot, out, State.DONE)
            return call

        try:
            result = rewritten(
                data, reading, self._rulings, out, repeats=ends, late=_LATE if self._over else "", extra=known
            )
        except ProtocolError as error:
            self._discard(out, str(error))
            out.fault("malformed_json", str(error), must_cut=True)
            return
        if ends:
            self._settle(out, State.DONE)
            self._over = True
        elif not self._over:
            for position, (call, text) in result.calls.items():
                if self._slots.at(position) is None:
                    state = State.REPLACED if text else State.DONE
                    self._slots.place(Slot(position, state, call.kind, call), call.id)
        self._emit(_Queued(frame, event, data=result.data), out)

    # Verdicts.

    def _settle(self, out: Output, state: State, doubt: str = "") -> None:
        """Judge every held call by what is there."""
        for slot in list(self._held):
            self._resolve(slot, out, state, doubt)
        self._flush(out)

    def _resolve(self, slot: Slot, out: Output, state: State, doubt: str = "") -> None:
        call = slot.whole()
        place = Place(
            another=True,
            partial=state is State.PASSING,
            late=_LATE if self._over else "",
            doubt=doubt or slot.doubts(call),
        )
        slot.notice = self._rulings.decide(call, out, place)
        slot.state = State.REPLACED if slot.notice else state
        slot.parts.clear()
        slot.finals.clear()
        self._held.remove(slot)

    def _fail(self, out: Output) -> None:
        """Take an error: what was held is incomplete."""
        if self._held:
            out.dropped("incomplete_call", f"an error came within a call of {self._names()}")
            self._refuse(INCOMPLETE, out)
            self._flush(out)

    def _overflow(self, out: Output) -> None:
        detail = f"calls of {self._names()} outgrew {self._limit} bytes"
        if out.fault("held_too_long", detail):
            self._discard(out, detail)
        else:
            self._settle(out, State.PASSING)  # judged by what is there: a long input launders no name

    def _names(self) -> str:
        return ", ".join(repr(slot.call.tool) for slot in self._held)[:200]

    # Bytes.

    def _emit(self, queued: _Queued, out: Output) -> None:
        """Write, or queue behind what is held."""
        slot = queued.slot
        if slot is not None and (slot.state is State.HELD or slot.notice):
            slot.frames += queued.event is not None and queued.event.number is not None
        if self._queue or (slot is not None and slot.state is State.HELD):
            self._queue.append(queued)
            self._waiting += max(len(queued.frame.raw), MIN_WEIGHT)
        else:
            self._write(queued, out)

    def _flush(self, out: Output) -> None:
        """Write what no longer waits for a verdict, in the order it came."""
        while self._queue:
            slot = self._queue[0].slot
            if slot is not None and slot.state is State.HELD:
                return
            queued = self._queue.popleft()
            self._waiting -= max(len(queued.frame.raw), MIN_WEIGHT)
            self._write(queued, out)

    def _write(self, queued: _Queued, out: Output) -> None:
        event, slot = queued.event, queued.slot
        number = None if event is None or event.number is None else event.number + self._shift
        if slot is not None and slot.state is State.REPLACED:
            if slot.notice:
                pieces = min(max(slot.frames - 5, 1), _MAX_PIECES)
                made = list(message_frames(slot.notice, slot.call, slot.index, number, pieces))
                for frame in made:
                    out.write(frame)
                slot.notice = ""
                self._shift += len(made) if number is not None else 0
            self._drop(event)
            return
        data = queued.data
        if self._shift and event is not None and number is not None:
            data = renumbered(data or queued.frame.data or b"", event, number)
        out.write(queued.frame.raw if data is None else with_data(queued.frame, data))

    def _drop(self, event: Event | None) -> None:
        """Close the gap in the numbers that an event leaves."""
        if event is not None and event.number is not None:
            self._shift -= 1

    def _discard(self, out: Output, reason: str) -> None:
        """Forget what is held: the client never hears of it, the audit does."""
        self._refuse(reason, out)
        self._queue.clear()
        self._waiting = 0

    def _refuse(self, reason: str, out: Output) -> None:
        """Let no held call be one that is allowed."""
        for slot in self._held:
            self._rulings.decide(replace(slot.whole(), flaw=reason), out)
            slot.state = State.REPLACED
        self._held.clear()


def _is_another(slot: Slot, call: Call) -> bool:
    """Say whether an item at an index is not the one that ended there, but a new one."""
    return slot.over and not _same(slot.call, call)


def _same(one: Call, other: Call) -> bool:
    """Say whether two places name the same call."""
    if one.call_id and other.call_id:
        return one.call_id == other.call_id
    return bool(one.id) and one.id == other.id
