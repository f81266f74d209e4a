"""A call of a chat completion as it grows, and the calls of a choice: what they are named, by whom, and which indices they get.

Who judges them is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final

from agentsh_net.core.dialects.argument_text import parsed
from agentsh_net.core.dialects.openai_chat.fragments import Fragment, Slot
from agentsh_net.core.model import Action, ToolCall, Verdict

NAME: Final = "openai"

# Name fragments whose joins are all asked about (136 of them); more cannot be an accident, and are unified unasked.
_MAX_JOINED: Final = 16
_NO_CALL: Final = ToolCall("")
_NO_VERDICT: Final = Verdict(Action.BLOCK, "not judged")


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
    ordinal: int = 0  # among the answer's calls, from 1
    id: str = ""
    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    value: Any = None
    namespace: str = ""
    custom: bool = False
    hostile: str = ""
    doubt: str = ""  # why nobody can tell what its arguments say
    fate: Fate = Fate.PENDING
    asked: ToolCall = _NO_CALL  # what the judge was asked
    verdict: Verdict = _NO_VERDICT
    released: bool = False  # the client has a part of it
    fed: bool = False  # some of its arguments were judged and let go of before
    number: int | None = None  # the index it gets; None: the one it came with
    notice: str = ""  # the text that is still to be written in its place
    name_written: bool = False
    strayed: bool = False  # it began in a choice without a plain index
    # Its first piece names it, and all of them say what they say where every client looks for it.
    plain: bool = True
    whole: str | None = None  # the arguments that are written into its first piece, the others being left out

    @property
    def name(self) -> str:
        """Return the name: fragments joined, or the one that was sent again and again."""
        return self.names[0] if len(set(self.names)) == 1 else "".join(self.names)

    @property
    def nameless(self) -> bool:
        """Say whether there are arguments and nothing that they are for."""
        return not self.names and (self.value is not None or any(self.texts))

    def grow(self, fragment: Fragment, hostile: str) -> None:
        """Take a fragment."""
        first = bool(fragment.names) and not self.names
        again = bool(self.names) and fragment.namespace in ("", self.namespace)
        self.plain = self.plain and fragment.plain and fragment.value is None and (first or again)
        self.id = self.id or fragment.id
        self.names += [name for _, name in fragment.names]
        self.texts += fragment.texts
        if fragment.value is not None:
            if self.value is not None:  # to some clients the second is another call's
                self.doubt = self.doubt or "they came twice, as two values"
            self.value = fragment.value
        self.namespace = fragment.namespace or self.namespace
        self.custom = self.custom or fragment.custom
        self.odd = self.odd or fragment.odd
        self.hostile = self.hostile or hostile

    def tool_call(self) -> ToolCall:
        """Return what the judge is asked about."""
        twice = "they came both as text and as a value" if self.texts and self.value is not None else ""
        return ToolCall(
            self.name,
            self.id,
            self._input(),
            self.namespace,
            dialect=NAME,
            flaw=self.hostile,
            ordinal=self.ordinal,
            doubt=self.doubt or twice,
        )

    def _input(self) -> Any:
        text = "".join(self.texts)
        if not text and self.value is not None:
            return self.value
        if self.custom:
            return text
        return parsed(text)[0]


@dataclass(slots=True, eq=False)
class Named:
    """A name fragment; `released`: the client has it, whatever became of its call later."""

    call: Call
    name: str
    released: bool = False

    @property
    def kept(self) -> bool:
        """Say whether the client has it or gets it."""
        return self.released or self.call.fate is Fate.KEPT


@dataclass(slots=True)
class ChoiceState:
    """The calls of one choice, in order of appearance, over the whole answer."""

    calls: list[Call] = field(default_factory=list)
    pending: list[Call] = field(default_factory=list)  # those without a verdict
    slots: dict[Slot, Call] = field(default_factory=dict)
    names: list[Named] = field(default_factory=list)  # in order of arrival
    settled_names: int = 0  # of them belong to calls that were judged
    next_number: int = 0
    shifted: bool = False  # an index was freed: what follows is renumbered
    anonymous: bool = False  # a name came without an id
    noticed: bool = False  # a notice stands in its content
    unified: bool = False  # names and indices are written so that every parser reads the same

    @property
    def emptied(self) -> bool:
        """Say whether there were calls and the client got none."""
        return bool(self.calls) and not any(c.released or c.fate is not Fate.REMOVED for c in self.calls)

    @property
    def writable(self) -> bool:
        """Say whether each call can still be written into its first piece, whole, and all clients would read the same."""
        return all(
            call.plain and call.fate is Fate.PENDING and not (call.released or call.strayed)
            and call.slot[:2] == ("delta", "tool_calls")
            for call in self.calls
        )  # fmt: skip

    def joins(self) -> Iterator[str] | None:
        """Return the other names that a parser may read out of what is kept; None: more than can be asked about."""
        kept = [named for named in self.names if named.kept]
        if self._irregular():
            groups = [[named.name for named in kept]]
        else:
            groups = [[n.name for n in kept if n.call is call] for call in self.calls if len(call.names) > 1]
        if any(len(names) > _MAX_JOINED for names in groups):
            return None
        return (join for names in groups if len(names) > 1 for join in _joins(names))

    def release(self) -> None:
        """Give the kept ones of the settled calls dense indices, once one was freed, and let them go."""
        for call in self.pending:
            _, kind, index = call.slot
            call.fed = call.fed or any(call.texts) or call.value is not None
            call.texts.clear()  # judged: what comes after this is another question
            call.asked, call.value = _NO_CALL, None
            if call.fate is not Fate.KEPT:
                continue
            if kind == "tool_calls" and not call.released:
                if not (self.shifted or self.unified):
                    self.next_number = 1 + max(self.next_number, -1 if index is None else index)
                else:
                    call.number = self.next_number if index is not None or self.unified else None
                    self.next_number += 1
            call.released = True
        for named in self.names[self.settled_names :]:
            named.released = named.kept
        self.settled_names = len(self.names)
        self.pending.clear()

    def own_id(self, call: Call) -> str:
        """Return an id that no other call of the choice has."""
        if call.id and all(other is call or other.id != call.id for other in self.calls):
            return call.id
        return f"call_agentsh_{self.calls.index(call)}"

    def _irregular(self) -> bool:
        """Say whether parsers could disagree on which fragments belong together.

        They do unless indices are 0, 1, 2 ... by appearance, and each name comes with an id of its own (some go by the id alone).
        """
        calls = [call for call in self.calls if call.slot[1] == "tool_calls"]
        return (
            any(call.odd or call.slot[2] != at for at, call in enumerate(calls))
            or len({call.slot[0] for call in calls}) > 1
            or (len(calls) > 1 and (self.anonymous or len({call.id for call in calls}) < len(calls)))
        )


def _joins(names: list[str]) -> Iterator[str]:
    for start in range(len(names)):
        for end in range(start + 1, len(names) + 1):
            yield "".join(names[start:end])
            if end < len(names):
                yield names[start] + names[end]
