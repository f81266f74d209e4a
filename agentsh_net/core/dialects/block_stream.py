"""The stream machine of answers that come in numbered blocks: a call is held from its start to its stop, judged once, released or replaced.

Blocks come one after another, each with an index of its own; where they do not, clients add arguments up in different ways, and the
call is refused for that. Everything behind a held call waits for it. What an event says, and how one is written, is the dialects'
business (`Words`): Bedrock Converse, Gemini Interactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, NamedTuple, Protocol

from agentsh_net.core.dialects.argument_text import KEY_TWICE, parsed
from agentsh_net.core.dialects.base import MIN_WEIGHT, Limits
from agentsh_net.core.dialects.machine import INCOMPLETE, State, never
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.framing.event_stream import ERROR
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values.members import folded
from agentsh_net.core.values.strict_json import Path, Reading

_LATE: Final = "a call after the end of the message"
# What tells a call from others, and may come with its pieces.
_NAMING: Final = ("name", "id", "servername")
_TWICE: Final = "they came both whole and in pieces"
# Far beyond any answer; other streams wait while those of a hostile one are judged, some 50 us each.
MAX_BLOCKS: Final = 1 << 12


class Part(Enum):
    """What an event is of its block, or of the answer."""

    START = auto()
    DELTA = auto()
    STOP = auto()
    END = auto()  # of the answer
    ERROR = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Event:
    """The parts of an event that matter."""

    part: Part
    index: int | None
    call: Any  # the call that begins here; None: none does
    piece: Any  # what goes on of one
    flaw: str
    hidden: bool  # a parser may see a call that is not among these
    text: Any = None  # the arguments that a piece brings
    given: Any = None  # arguments that came whole
    provided: bool = False  # what a piece goes on with is no client's call
    reason: Path | None = None  # where it says why the answer ended, if it was for calls


class Words(NamedTuple):
    """What a dialect knows of its events."""

    read: Callable[[str, Reading, Path], Event]
    notice: Callable[[int, str], Iterable[bytes]]  # what stands in the place of a refused call
    # What becomes of an event that is part of no block.
    rest: Callable[[Frame, Reading, Event, Output], bytes]
    begin: frozenset[Part] = frozenset({Part.START, Part.DELTA})  # what a block that is no call begins with


class Rulings(Protocol):
    """What decides about calls."""

    def decide(self, block: Mapping[str, Any], value: Any, flaw: str, out: Output, doubt: str = "") -> str:
        """Judge a call by its folded fields, and return the notice that replaces it, or nothing where it is allowed."""
        ...

    def hidden(self, reason: str, out: Output) -> bool:
        """Judge what cannot be seen; say whether it may not pass."""
        ...


@dataclass(slots=True, eq=False)
class _Block:
    index: int | None
    state: State
    fields: dict[str, Any] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    given: Any = None  # arguments that came whole
    flaw: str = ""

    def arguments(self) -> tuple[Any, str]:
        """Return the arguments, and why nobody can tell what they are."""
        value, doubt = arguments("".join(self.parts))
        if self.given in (None, {}, ""):
            return value, doubt
        return (self.given, "") if not self.parts else ({"whole": self.given, "pieces": value}, _TWICE)


def arguments(text: str) -> tuple[Any, str]:
    """Return the input that the pieces of a stream spell, and why nobody can tell what it is."""
    if not text:
        return {}, ""
    value, twice = parsed(text)
    return value, KEY_TWICE if twice else ""


class BlockMachine:
    """Feeds on events, whatever frame they came in."""

    __slots__ = ("_blocks", "_held", "_limit", "_over", "_queue", "_rulings", "_seen", "_waiting", "_words")

    knows = holds = never

    def __init__(self, rulings: Rulings, limits: Limits, words: Words) -> None:
        self._rulings = rulings
        self._limit = limits.held
        self._words = words
        # From the start of the held call on; is it a part of that?
        self._queue: list[tuple[bytes, bool]] = []
        self._waiting = 0  # bytes in the queue
        self._held: _Block | None = None
        self._blocks: dict[int | None, _Block] = {}
        self._seen = False  # a call came
        self._over = False

    @property
    def idle(self) -> bool:
        """Say whether ordinary events have nothing to do with a call: there was none in this answer."""
        return not self._seen

    @property
    def holding(self) -> bool:
        """Say whether events wait for a verdict."""
        return self._held is not None

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a frame that is an event."""
        self.take(frame, frame.event, reading, out)

    def take(self, frame: Frame, kind: str, reading: Reading | None, out: Output, prefix: Path = ()) -> None:
        """Take an event, `prefix` leading to it in what was read; without a reading there is none in the frame."""
        if kind.startswith(ERROR):
            self._fail(out)
            self._over = True
        if reading is None:
            self._emit(frame.raw, out)
        else:
            self._event(frame, reading, self._words.read(kind, reading, prefix), out)
        if self._held is not None and self._waiting > self._limit and not out.end:
            self._overflow(self._held, out)

    def release(self, out: Output, doubt: str) -> None:
        """Judge the held call by what is there, and let go of it: what is still to come shares its fate."""
        if self._held is not None:
            self._resolve(self._held, State.PASSING, out, doubt)

    def finish(self, out: Output) -> None:
        """Take the end of the stream: a call that is still held is never released, and the client is told."""
        if self._held is not None:
            detail = f"the answer ended within a call of {str(self._held.fields.get('name'))[:200]!r}"
            self._discard(INCOMPLETE, out)
            out.fault("incomplete_call", detail, must_cut=True)

    def _event(self, frame: Frame, reading: Reading, event: Event, out: Output) -> None:
        if event.hidden and self._rulings.hidden("a call where none belongs", out):
            self._mark("an event that clients read in two ways")
            out.dropped("event_out_of_place", "a call where none belongs")
            return
        if event.call is not None:
            self._start(frame, event, out)
        elif event.piece is not None:
            self._piece(frame, event, out)
        elif event.part is Part.STOP:
            self._stop(frame, event, out)
        elif event.part in {Part.START, Part.DELTA}:
            self._other(frame, event, out)
        else:
            if event.part is Part.ERROR:
                self._fail(out)
                self._over = True
            if event.part is Part.END:
                self._settle(out, "")
                self._over = True
            self._emit(self._words.rest(frame, reading, event, out), out)

    def _start(self, frame: Frame, event: Event, out: Output) -> None:
        """Hold a call from its start on."""
        if self._held is not None:
            self._settle(out, "calls within each other")
        self._seen = True
        flaw = event.flaw
        if event.index is None:
            flaw = flaw or "the block has no index"
        if event.index in self._blocks:
            flaw = flaw or "two blocks at one index"
        if self._over:
            flaw = flaw or _LATE
        if len(self._blocks) >= MAX_BLOCKS:
            out.fault("too_many_blocks", f"more than {MAX_BLOCKS} content blocks", must_cut=True)
            return
        self._held = self._blocks[event.index] = _Block(
            event.index, State.HELD, folded(event.call), given=event.given, flaw=flaw
        )
        self._emit(frame.raw, out, own=True)

    def _piece(self, frame: Frame, event: Event, out: Output) -> None:
        """Take a piece of a call's input: it belongs to the held call of its index, or to none."""
        block = self._blocks.get(event.index)
        if block is None or block.state in {State.PLAIN, State.DONE}:
            self._mark("arguments of another block within the call")
            if event.provided:
                self._emit(frame.raw, out)
                return
            out.dropped("event_out_of_place", "arguments for no call")
            return
        if block.state is State.REPLACED:
            return
        if block.state is State.HELD:
            self._grow(block, event)
        self._emit(frame.raw, out, own=block.state is State.HELD)

    @staticmethod
    def _grow(block: _Block, event: Event) -> None:
        """Add what a piece says of the held call."""
        if isinstance(event.text, str):
            block.parts.append(event.text)
        elif event.given is not None:
            block.flaw = block.flaw or ("arguments that come whole twice" if block.given else "")
            block.given = event.given
        else:
            block.flaw = block.flaw or event.flaw or "arguments of an odd type"
        block.flaw = block.flaw or event.flaw
        said = folded(event.piece)
        for key in _NAMING:
            if said.get(key) not in (None, ""):
                if block.fields.get(key) not in (None, "", said[key]):
                    block.flaw = block.flaw or "two names for one call"
                block.fields[key] = said[key]

    def _stop(self, frame: Frame, event: Event, out: Output) -> None:
        """Take the end of a block; that of a held call brings the verdict."""
        block = self._blocks.get(event.index)
        if block is not None and block.state is State.REPLACED:
            return
        if block is not None and block.state is State.HELD:
            self._emit(frame.raw, out, own=True)
            self._resolve(block, State.DONE, out)
            return
        # Some clients end the call that they are in, whatever the index.
        self._mark("the end of another block within the call")
        if block is not None and block.state is State.DONE:
            out.dropped("event_out_of_place", "a call that ends twice")
            return
        if block is not None and block.state is State.PASSING:
            block.state = State.DONE
        self._emit(frame.raw, out)

    def _other(self, frame: Frame, event: Event, out: Output) -> None:
        """Take the start or a piece of a block that is no call."""
        block = self._blocks.get(event.index)
        if block is None:
            if event.part in self._words.begin and len(self._blocks) < MAX_BLOCKS:
                self._blocks[event.index] = _Block(event.index, State.PLAIN)
        elif block.state is State.REPLACED:
            return
        elif block.state is State.HELD:
            block.flaw = block.flaw or "something else within the call"
        self._emit(frame.raw, out)

    def _mark(self, flaw: str) -> None:
        if self._held is not None:
            self._held.flaw = self._held.flaw or flaw

    def _settle(self, out: Output, flaw: str) -> None:
        """Judge the held call by what is there."""
        if self._held is not None:
            self._mark(flaw)
            self._resolve(self._held, State.DONE, out)

    def _resolve(self, block: _Block, state: State, out: Output, why: str = "") -> None:
        value, doubt = block.arguments()
        told = self._rulings.decide(block.fields, value, block.flaw, out, why or doubt)
        block.parts.clear()
        block.fields = {}
        queue = self._emptied()
        if told:
            block.state = State.REPLACED
            for event in self._words.notice(0 if block.index is None else block.index, told):
                out.write(event)
        else:
            block.state = state
        for data, own in queue:
            if not (told and own):
                out.write(data)

    def _overflow(self, block: _Block, out: Output) -> None:
        detail = f"a call of {str(block.fields.get('name'))[:200]!r} outgrew {self._limit} bytes"
        if out.fault("held_too_long", detail):
            self._discard(detail, out)
        else:
            self._resolve(block, State.PASSING, out)  # judged by what is there: a long input launders no name

    def _fail(self, out: Output) -> None:
        """Take an error of the provider: what was held is incomplete."""
        if self._held is not None:
            out.dropped("incomplete_call", "an error came within a call")
            self._discard(INCOMPLETE, out)

    def _discard(self, reason: str, out: Output) -> None:
        """Forget what is held: the client never hears of it, the audit does."""
        block = self._held
        if block is not None:
            value, _ = block.arguments()
            self._rulings.decide(block.fields, value, reason, out)
            block.state = State.REPLACED
            for data, own in self._emptied():
                if not own:
                    out.write(data)

    def _emptied(self) -> list[tuple[bytes, bool]]:
        queue, self._queue = self._queue, []
        self._waiting = 0
        self._held = None
        return queue

    def _emit(self, data: bytes, out: Output, *, own: bool = False) -> None:
        """Write, or queue behind what is held; `own`: it is a part of that."""
        if self._held is None:
            out.write(data)
        else:
            self._queue.append((data, own))
            self._waiting += max(len(data), MIN_WEIGHT)
