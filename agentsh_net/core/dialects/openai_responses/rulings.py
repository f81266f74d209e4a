"""What was decided about the calls of one answer: every place that repeats a call gets the verdict of the first.

A place that contradicts another is a flaw of the call, for which policy refuses it: clients act on different places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.openai_responses.items import OTHER_ARGUMENTS, Call
from agentsh_net.core.dialects.openai_responses.kept_calls import kept
from agentsh_net.core.dialects.output import Output, notice
from agentsh_net.core.dialects.steering import Steered
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.members import text_of

# Far beyond any answer's calls; each costs us some hundred bytes.
MAX_CALLS: Final = 1 << 12


class Place(NamedTuple):
    """How a place of an answer tells of a call."""

    repeats: bool = False  # it lists what other events said before, perhaps under new ids
    another: bool = False  # an item of its own, which a client runs again and the rate is charged for, whatever ids it repeats
    partial: bool = False  # more arguments are to come, and will be judged
    late: str = ""  # the flaw of a call that was not heard of before
    doubt: str = ""  # why nobody can tell what its arguments are
    # Read again from a list that grows: told only where it is refused, and never charged.
    stored: bool = False


PLAIN: Final = Place()


@dataclass(slots=True)
class _Known:
    call: Call  # its arguments are kept as a digest in `said`, not here
    said: str
    notice: str
    ordinal: int

    def contradiction(self, call: Call, said: str) -> str:
        """Say what `call` contradicts."""
        return self.call.differs(_bare(call)) or (
            OTHER_ARGUMENTS if self.said and said and self.said != said else ""
        )

    def covers(self, call: Call, said: str) -> bool:
        """Say whether `call` adds nothing that was not judged."""
        mine = self.call
        return said == self.said and all(
            theirs in {"", ours}
            for ours, theirs in (
                (mine.kind, call.kind),
                (mine.name, call.name),
                (mine.namespace, call.namespace),
                (mine.server_label, call.server_label),
            )
        )


class Rulings:
    """The verdicts of one answer."""

    __slots__ = ("_by_content", "_by_id", "_count", "_judge", "_refused", "kept_in", "refuses")

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._by_id: dict[tuple[str, str], _Known] = {}
        self._by_content: dict[tuple[str, ...], _Known] = {}
        self._refused: dict[str, str] = {}  # call id -> notice
        self._count = 0
        self.refuses = False  # a call was refused: later events may be about it
        self.kept_in: tuple[str, ...] = ()  # the ids of the answer and its conversation

    @property
    def full(self) -> bool:
        """Say whether there were more calls than any answer has."""
        return max(len(self._by_content), len(self._by_id) // 2) > MAX_CALLS

    def decide(self, call: Call, out: Output, place: Place = PLAIN) -> str:
        """Return the notice that replaces a call, as a place tells of it, or nothing where it is allowed."""
        said = call.digest()
        content = (call.kind, call.name, call.namespace, call.server_label, said)
        known = self._find(call)
        if known is None and place.repeats and not call.flaw and content in self._by_content:
            return self._by_content[content].notice
        flaw = call.flaw
        if known is not None:
            contradiction = known.contradiction(call, said)
            if known.notice and (not contradiction or known.call.call_id == call.call_id):
                return known.notice  # refused once, whatever is said of it later
            flaw = flaw or contradiction
            if not (flaw or place.another) and known.covers(call, said):
                return ""
        whole = call if known is None or flaw else known.call.joined(call)
        flaw = flaw or (place.late if known is None else "")
        fresh = known is None or place.another or bool(flaw)
        self._count += fresh
        ordinal = self._count if known is None or fresh else known.ordinal
        asked = replace(whole.asked(), flaw=flaw, ordinal=ordinal, doubt=place.doubt, stored=place.stored)
        text = self._ask(asked, whole, out)
        if known is None or not flaw:
            told = said or (known.said if known is not None else "")
            self._remember(_Known(_bare(whole), "" if place.partial else told, text, ordinal), content)
        if text and call.reply_id and not isinstance(text, Steered):
            self._refused[call.reply_id] = text
        return text

    def withheld(self, item: Mapping[str, Any]) -> str:
        """Return the notice where a folded item is the result of a refused call: without its call nobody takes it."""
        if not self._refused or not text_of(item.get("type")).casefold().endswith("_output"):
            return ""
        return self._refused.get(text_of(item.get("call_id")), "")

    def _ask(self, asked: ToolCall, call: Call, out: Output) -> str:
        """Have a call judged, and tell of it; return the notice that replaces it, or nothing."""
        verdict = self._judge(asked)
        if not verdict.blocked:
            if not asked.stored or verdict.would is not None:
                out.judged(asked, verdict)
            return ""
        self.refuses = True
        text = notice(asked.name, verdict.reason)
        # Of other kinds the API wants answers that no client gives to an unknown tool.
        steered = verdict.steered and call.kind == "function_call" and call.call_id
        out.judged(asked if steered else replace(asked, kept=kept(call, self.kept_in, text)), verdict)
        return Steered(text) if steered else text

    def _find(self, call: Call) -> _Known | None:
        by_call = self._by_id.get(("call_id", call.call_id)) if call.call_id else None
        return by_call or (self._by_id.get(("id", call.id)) if call.id else None)

    def _remember(self, known: _Known, content: tuple[str, ...]) -> None:
        if content not in self._by_content or known.notice:
            self._by_content[content] = known
        if known.call.call_id:
            self._by_id["call_id", known.call.call_id] = known
        if known.call.id:
            self._by_id["id", known.call.id] = known


def _bare(call: Call) -> Call:
    """Return a call without its arguments, of which only a digest is kept: answers are long, and there are many."""
    return Call(call.kind, call.name, call.namespace, call.server_label, call.call_id, call.id)
