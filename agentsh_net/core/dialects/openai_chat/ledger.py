"""The ledger of one answer's calls: fragments go in, each call is judged once when it is complete, verdicts come to stay.

Where two parsers would read two different names out of the same fragments, both readings are asked about; whether frames are held
meanwhile is the stream machine's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.openai_chat.calls import Call, ChoiceState, Fate, Named
from agentsh_net.core.dialects.openai_chat.fragments import Fragment, Slot
from agentsh_net.core.dialects.openai_chat.order import Order
from agentsh_net.core.dialects.output import notice
from agentsh_net.core.model import ToolCall, Verdict
from agentsh_net.core.values.strict_json import Path

# Bytes of names and calls remembered to the end of a stream: some 500 calls. OpenAI allows 128 tools and answers with fewer calls;
# the more there are, the more a call that grows after its end costs to judge again.
MAX_REMEMBERED: Final = 1 << 18
_COST_OF_CALL: Final = 512
# Names of other choices that a name is joined to: eight choices of eight calls.
_MAX_OTHERS: Final = 64

_GREW: Final = "it grew after its end, in a stream that clients read in two ways"
_GROWS: Final = "it grew after its end"
_STRAYED: Final = "its pieces stand under different indices of a choice to some clients"
_JOINED_OVER_CHOICES: Final = "joined with another choice's it names a blocked tool"
_ADDED_UP: Final = "added up with the others of its index it names a blocked tool"
_NAMELESS: Final = "arguments for no call"
_MINGLED: Final = "some clients add its arguments to an earlier call's"

Record = Callable[[ToolCall, Verdict], None]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a fragment of a call stands in its frame."""

    call: Call
    carrier: Path
    path: Path
    siblings: int
    keys: tuple[Path, Path] | None
    names: tuple[Path, ...]
    id: str


class Ledger:
    """All calls of one answer. `streamed`: fragments of an index add up; else each is a call."""

    __slots__ = (
        "_calls", "_exposed", "_judge", "_names", "_open", "_order", "_released", "_streamed", "_weight", "choices",
    )  # fmt: skip

    def __init__(self, judge: Judge, *, streamed: bool) -> None:
        self._judge = judge
        self._streamed = streamed
        self._weight = 0
        self._calls = 0
        self._names: list[Named] = []  # in order of arrival
        self._order = Order()
        self._released: set[ToolCall] = set()  # what the client has, with arguments that nobody knows
        self._exposed = False  # among them is one that arguments decide about
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

    def take(self, fragments: Iterable[Fragment], hostile: str = "") -> tuple[Mark, ...]:
        """Take the fragments of a frame, as long as the ledger is not full; `hostile` says why that cannot be trusted, if it cannot."""
        self._order.begin_frame()
        return tuple(self._add(fragment, hostile) for fragment in fragments if not self.full)

    def _add(self, fragment: Fragment, hostile: str) -> Mark:
        choice = self._choice(fragment.choice)
        call = self._find(choice, fragment)
        hostile = hostile or fragment.flaw
        begins = call is None
        if call is None:
            self._calls += 1
            call = Call(fragment.choice, fragment.slot, fragment.odd, self._calls, strayed=fragment.strayed)
            self._weight += _COST_OF_CALL
            choice.calls.append(call)
            choice.pending.append(call)
            choice.slots[fragment.slot] = call
        elif call.fate is Fate.KEPT and (hostile or not fragment.empty):
            # It grows after its end: what the client would then have is judged again.
            call.fate = Fate.PENDING
            call.doubt = call.doubt or (_GROWS if call.fed else "")
            choice.pending.append(call)
        if call.fate is Fate.PENDING:
            if self._streamed:
                self._order.follow(fragment, call, begins=begins)
            self._open.add(fragment.choice)
            call.grow(fragment, hostile or (_STRAYED if fragment.strayed is not call.strayed else ""))
            named = [Named(call, name) for _, name in fragment.names]
            choice.names += named
            self._names += named
            choice.anonymous = choice.anonymous or bool(fragment.names and not fragment.id)
            self._weight += sum(len(name) for _, name in fragment.names)
        return Mark(
            call,
            fragment.carrier,
            fragment.path,
            fragment.siblings,
            fragment.keys,
            tuple(path for path, _ in fragment.names),
            fragment.id,
        )

    def finish(self, number: int) -> None:
        """Note that a choice said why it ended."""
        self._open.discard(number)

    def settle(self, record: Record, doubt: str = "") -> None:
        """Judge every pending call; `doubt` is why nobody can tell, now or later, what their arguments say."""
        doubt = doubt or ("" if self._write_whole() else self._order.broken)
        for choice in self.choices.values():
            for call in choice.pending:
                call.doubt = call.doubt or doubt
                call.asked = call.tool_call()
                self._rule(call, self._misplaced(call))
        if not self._streamed:
            self._add_up()
        elif len(self.choices) > 1:
            self._part()
        for choice in self.choices.values():
            if choice.pending and self._streamed:
                self._unify(choice)
            for call in choice.pending:
                self._tell(call, choice, record)
                if self._streamed and call.fate is Fate.KEPT:
                    asked = call.asked
                    self._released.add(
                        ToolCall(
                            asked.name, namespace=asked.namespace, dialect=asked.dialect, hypothetical=True
                        )
                    )
            choice.release()
        self._open.clear()

    def abandon(self, record: Record, reason: str) -> None:
        """Drop every pending call: the answer ended inside it."""
        for choice in self.choices.values():
            for call in choice.pending:
                call.asked = call.tool_call()
                self._rule(call, reason)
                record(call.asked, call.verdict)
                choice.shifted = choice.shifted or call.fate is Fate.REMOVED
            choice.release()
        self._open.clear()

    def _write_whole(self) -> bool:
        """Have each call written into its first piece where verdicts hang on how clients add pieces up; say whether that is settled."""
        choices = tuple(self.choices.values())
        if self._open or not (self._order.broken and len(choices) == 1 and choices[0].writable):
            return False
        calls = choices[0].calls
        verdicts = [self._judge(replace(call.tool_call(), hypothetical=True)) for call in calls]
        if not any(map(_surely, verdicts)):
            return False
        if any(verdict.blocked for verdict in verdicts):
            choices[0].unified = True
            for call in calls:
                call.whole = "".join(call.texts)
        return True

    def _misplaced(self, call: Call) -> str:
        """Say why some client may take a call's arguments for those of one that it has; empty where none does."""
        if self._streamed and call.nameless:
            return _NAMELESS
        if self._order.broken and not self._exposed:
            self._exposed = any(map(self._surely_denied, self._released))
            self._released.clear()
        return _MINGLED if self._exposed else ""

    def _rule(self, call: Call, flaw: str) -> None:
        """Ask for the verdict on a call; `flaw` is what is wrong with it besides what its frames showed."""
        if flaw:
            call.asked = replace(call.asked, flaw=flaw)
        call.verdict = self._judge(call.asked)
        call.fate = Fate.REMOVED if call.verdict.blocked else Fate.KEPT

    @staticmethod
    def _tell(call: Call, choice: ChoiceState, record: Record) -> None:
        verdict = call.verdict
        record(call.asked, verdict)
        if verdict.blocked:
            call.notice = ("\n" if choice.noticed else "") + notice(call.name, verdict.reason)
            choice.shifted = choice.noticed = True

    def _part(self) -> None:
        """Remove calls of later choices whose names join to a blocked one for clients that read `choices[0]` and no more.

        Most do: with `n` of 1 they never look at a choice's own index. A join that nobody knows is not blocked for that,
        as two choices' calls are usually just two calls.
        """
        before: list[Named] = []
        joined: dict[tuple[str, int | None], str] = {}  # by what such a client goes by: the index
        for named in self._names:
            call, name = named.call, named.name
            if not named.kept:
                continue
            index = call.slot[1:]
            if not named.released:
                others = (other for other in before[-_MAX_OTHERS:] if other.call.choice != call.choice)
                readings = {other.name + name for other in others}
                if readings:
                    readings.add(joined.get(index, "") + name)
                if any(
                    self._surely_denied(replace(call.asked, name=reading, hypothetical=True))
                    for reading in readings
                ):
                    self._rule(call, _JOINED_OVER_CHOICES)
                    if call.fate is Fate.REMOVED:
                        continue
            before.append(named)
            joined[index] = joined.get(index, "") + name

    def _add_up(self) -> None:
        """Remove entries of a whole answer whose names, added up by their index as those of a stream are, name a blocked tool."""
        for choice in self.choices.values():
            alike: dict[Slot, list[Call]] = {}
            for call in choice.calls:
                if call.fate is Fate.KEPT and call.slot[2] is not None:
                    alike.setdefault(call.slot, []).append(call)
            for calls in alike.values():
                name = "".join(call.name for call in calls)
                if len(calls) > 1 and self._surely_denied(
                    replace(calls[-1].asked, name=name, hypothetical=True)
                ):
                    for call in calls:
                        self._rule(call, _ADDED_UP)

    def _surely_denied(self, call: ToolCall) -> bool:
        return _surely(self._judge(call))

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

    def _unify(self, choice: ChoiceState) -> None:
        """Have names and indices written so that every parser reads what was judged, where one would read a blocked name."""
        choice.unified = choice.unified or self._misread(choice)
        if not choice.unified:
            return
        for call in choice.pending:
            if call.released and call.fate is Fate.KEPT:
                # What the client has of it cannot be written again.
                self._rule(call, _GREW)

    def _misread(self, choice: ChoiceState) -> bool:
        """Say whether some parser would read a name out of the kept fragments that is blocked."""
        joins = choice.joins()
        if joins is None:
            return True
        asking = replace(choice.pending[-1].asked, flaw="", hypothetical=True)
        asked = {call.name for call in choice.calls if call.fate is Fate.KEPT}
        for join in joins:
            if join not in asked:
                asked.add(join)
                if self._judge(replace(asking, name=join)).blocked:
                    return True
        return False


def _surely(denied: Verdict) -> bool:
    return denied.denied and not denied.rule.endswith("fail_closed")


def _begins_another(call: Call, fragment: Fragment) -> bool:
    """Say whether a fragment at a call's index is a new call: another id with a name, or a name where there is no index."""
    if not fragment.names:
        return False
    if fragment.slot[1] == "tool_calls" and fragment.slot[2] is None:
        return True
    return bool(fragment.id and call.id and fragment.id != call.id)
