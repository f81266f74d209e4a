"""The calls of one chat completion, put together from fragments, judged once each when complete, and renumbered.

Where two parsers would read two different names out of the same fragments, both readings are asked about; whether frames are held
meanwhile is the stream machine's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.inspection import notice
from agentsh_net.core.dialects.openai_chat_fragments import Fragment, Slot
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Action, ToolCall, Verdict
from agentsh_net.core.strict_json import Path, read

NAME: Final = "openai"

# Names and calls remembered to the end of a stream: some thousands of calls, far beyond any answer's.
MAX_REMEMBERED: Final = 1 << 20
_COST_OF_CALL: Final = 512
# Name fragments whose joins are all asked about (136 of them); more cannot be an accident, and are unified unasked.
_MAX_JOINED: Final = 16

Record = Callable[[ToolCall, Verdict], None]


class Fate(Enum):
    """What becomes of a call's fragments."""

    PENDING = auto()
    KEPT = auto()
    REMOVED = auto()


@dataclass(slots=True, eq=False)
class Call:
    """One call as it grows."""

    choice: int
    slot: Slot
    odd: bool
    id: str = ""
    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    value: Any = None
    namespace: str = ""
    custom: bool = False
    hostile: str = ""
    fate: Fate = Fate.PENDING
    released: bool = False  # the client has a part of it
    number: int | None = None  # the index it gets; None: the one it came with
    notice: str = ""  # the text that is still to be written in its place
    name_written: bool = False

    @property
    def name(self) -> str:
        """Return the name: fragments joined, or the one that was sent again and again."""
        return self.names[0] if len(set(self.names)) == 1 else "".join(self.names)

    def grow(self, fragment: Fragment, hostile: str) -> None:
        """Take a fragment."""
        self.id = self.id or fragment.id
        self.names += [name for _, name in fragment.names]
        self.texts += fragment.texts
        self.value = fragment.value if fragment.value is not None else self.value
        self.namespace = fragment.namespace or self.namespace
        self.custom = self.custom or fragment.custom
        self.odd = self.odd or fragment.odd
        self.hostile = self.hostile or hostile

    def tool_call(self, name: str | None = None) -> ToolCall:
        """Return what the judge is asked about, under another name if one is given."""
        shown = self.name if name is None else name
        return ToolCall(shown, self.id, self._input(), self.namespace, dialect=NAME)

    def _input(self) -> Any:
        text = "".join(self.texts)
        if not text and self.value is not None:
            return self.value
        if self.custom:
            return text
        try:
            return read(text.encode("utf-8", "replace")).value
        except ProtocolError:
            return text


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a fragment of a call stands in its frame."""

    call: Call
    carrier: Path
    path: Path
    siblings: int
    index: Path | None
    names: tuple[Path, ...]


@dataclass(slots=True)
class ChoiceState:
    """The calls of one choice, in order of appearance, over the whole answer."""

    calls: list[Call] = field(default_factory=list)
    pending: list[Call] = field(default_factory=list)  # those without a verdict
    slots: dict[Slot, Call] = field(default_factory=dict)
    names: list[tuple[Call, str]] = field(default_factory=list)  # fragments in order of arrival
    next_number: int = 0
    shifted: bool = False  # an index was freed: what follows is renumbered
    noticed: bool = False  # a notice stands in its content
    unified: bool = False  # names and indices are written so that every parser reads the same

    @property
    def emptied(self) -> bool:
        """Say whether there were calls and the client got none."""
        return bool(self.calls) and not any(c.released or c.fate is not Fate.REMOVED for c in self.calls)

    def joins(self) -> Iterator[str] | None:
        """Return the other names that a parser may read out of what is kept; None: more than can be asked about."""
        kept = [(call, name) for call, name in self.names if call.fate is Fate.KEPT]
        if self._irregular():
            groups = [[name for _, name in kept]]
        else:
            groups = [[name for of, name in kept if of is call] for call in self.calls if len(call.names) > 1]
        if any(len(names) > _MAX_JOINED for names in groups):
            return None
        return (join for names in groups if len(names) > 1 for join in _joins(names))

    def release(self) -> None:
        """Give the kept ones of the settled calls dense indices, once one was freed, and let them go."""
        for call in self.pending:
            _, kind, index = call.slot
            if call.fate is not Fate.KEPT:
                continue
            if kind == "tool_calls" and not call.released:
                if not (self.shifted or self.unified):
                    self.next_number = 1 + max(self.next_number, -1 if index is None else index)
                else:
                    call.number = self.next_number if index is not None or self.unified else None
                    self.next_number += 1
            call.released = True
        self.pending.clear()

    def _irregular(self) -> bool:
        """Say whether parsers could disagree on which fragments belong together: indices are not 0, 1, 2 ... by appearance."""
        calls = [call for call in self.calls if call.slot[1] == "tool_calls"]
        carriers = {call.slot[0] for call in calls}
        return len(carriers) > 1 or any(c.odd or c.slot[2] != at for at, c in enumerate(calls))


def _joins(names: list[str]) -> Iterator[str]:
    for start in range(len(names)):
        for end in range(start + 1, len(names) + 1):
            yield "".join(names[start:end])
            if end < len(names):
                yield names[start] + names[end]


class Ledger:
    """All calls of one answer. `streamed`: fragments of an index add up; else each is a call."""

    __slots__ = ("_judge", "_open", "_streamed", "_weight", "choices")

    def __init__(self, judge: Judge, *, streamed: bool) -> None:
        self._judge = judge
        self._streamed = streamed
        self._weight = 0
        self._open: set[int] = set()  # choices with a call that may still grow
        self.choices: dict[int, ChoiceState] = {}

    @property
    def full(self) -> bool:
        """Say whether more was to be remembered than an honest answer has."""
        return self._streamed and self._weight > MAX_REMEMBERED

    @property
    def open(self) -> bool:
        """Say whether a call may still grow."""
        return bool(self._open)

    def add(self, fragment: Fragment, hostile: str = "") -> Mark:
        """Take a fragment; `hostile` says why its frame cannot be trusted, if it cannot."""
        choice = self._choice(fragment.choice)
        call = self._find(choice, fragment)
        if call is None:
            call = Call(fragment.choice, fragment.slot, fragment.odd)
            self._weight += _COST_OF_CALL
            choice.calls.append(call)
            choice.pending.append(call)
            choice.slots[fragment.slot] = call
        elif call.fate is Fate.KEPT and (hostile or not fragment.empty):
            # It grows after its end: what the client would then have is judged again.
            call.fate = Fate.PENDING
            call.texts.clear()
            choice.pending.append(call)
        if call.fate is Fate.PENDING:
            self._open.add(fragment.choice)
            call.grow(fragment, hostile)
            choice.names += [(call, name) for _, name in fragment.names]
            self._weight += sum(len(name) for _, name in fragment.names)
        return Mark(
            call,
            fragment.carrier,
            fragment.path,
            fragment.siblings,
            fragment.index,
            tuple(path for path, _ in fragment.names),
        )

    def finish(self, number: int) -> None:
        """Note that a choice said why it ended."""
        self._open.discard(number)

    def settle(self, record: Record) -> None:
        """Judge every pending call."""
        for choice in self.choices.values():
            for call in choice.pending:
                asked = call.tool_call()
                verdict = hostile_verdict(call.hostile) if call.hostile else self._judge(asked)
                record(asked, verdict)
                call.fate = Fate.REMOVED if verdict.blocked else Fate.KEPT
                if verdict.blocked:
                    call.notice = ("\n" if choice.noticed else "") + notice(call.name, verdict.reason)
                    choice.shifted = choice.noticed = True
            if choice.pending and self._streamed and not choice.unified:
                choice.unified = self._misread(choice)
            choice.release()
        self._open.clear()

    def abandon(self, record: Record, reason: str) -> None:
        """Drop every pending call: the answer ended inside it."""
        for choice in self.choices.values():
            for call in choice.pending:
                record(call.tool_call(), hostile_verdict(reason))
                call.fate = Fate.REMOVED
                choice.shifted = True
            choice.release()
        self._open.clear()

    def _choice(self, number: int) -> ChoiceState:
        choice = self.choices.get(number)
        if choice is None:
            choice = self.choices[number] = ChoiceState()
            self._weight += _COST_OF_CALL
        return choice

    def _find(self, choice: ChoiceState, fragment: Fragment) -> Call | None:
        """Return the call that a fragment continues."""
        if not self._streamed:
            return None
        call = choice.slots.get(fragment.slot)
        if call is not None:
            return None if _begins_another(call, fragment) else call
        if fragment.slot[2] is None and not fragment.names and not fragment.id and choice.calls:
            return choice.calls[-1]
        return None

    def _misread(self, choice: ChoiceState) -> bool:
        """Say whether some parser would read a name out of the kept fragments that is blocked."""
        joins = choice.joins()
        if joins is None:
            return True
        kept = [call for call in choice.calls if call.fate is Fate.KEPT]
        asked = {call.name for call in kept}
        for join in joins:
            if join not in asked:
                asked.add(join)
                if self._judge(kept[-1].tool_call(join)).blocked:
                    return True
        return False


def hostile_verdict(reason: str) -> Verdict:
    """Return the verdict on what no policy needs to be asked about."""
    return Verdict(Action.BLOCK, reason, rule="protocol")


def _begins_another(call: Call, fragment: Fragment) -> bool:
    """Say whether a fragment at a call's index is a new call: another id with a name, or a name where there is no index."""
    if not fragment.names:
        return False
    if fragment.slot[1] == "tool_calls" and fragment.slot[2] is None:
        return True
    return bool(fragment.id and call.id and fragment.id != call.id)
