"""The calls of one Gemini answer: pieces go in, each call is judged once when it is complete, and verdicts become edits.

A refused call leaves a text part in its place. Which frames are held meanwhile is `stream`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.gemini.arguments import assembled
from agentsh_net.core.dialects.gemini.parts import Found, Piece
from agentsh_net.core.dialects.machine import INCOMPLETE
from agentsh_net.core.dialects.output import Output, notice
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.json_splice import DELETE
from agentsh_net.core.values.strict_json import Path

NAME: Final = "gemini"

# Beyond what a model writes into one answer; each costs us some hundred bytes until the answer ends.
MAX_OPEN: Final = 256


@dataclass(slots=True, eq=False)
class Call:
    """One call as it grows."""

    ordinal: int
    name: str
    id: str = ""
    args: Any = None
    partial: list[Any] = field(default_factory=list)
    flaw: str = ""
    doubt: str = ""  # why nobody can tell what its arguments say
    notice: str = ""  # what stands in its place, once it was refused

    def asked(self) -> ToolCall:
        """Return what the judge is asked about."""
        value, doubt = assembled(self.args, self.partial)
        return ToolCall(
            self.name,
            self.id,
            value,
            dialect=NAME,
            flaw=self.flaw,
            ordinal=self.ordinal,
            doubt=self.doubt or doubt,
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece of a call in its text; `first`: the call begins with it."""

    call: Call
    piece: Piece
    first: bool


class Ledger:
    """All calls of one answer."""

    __slots__ = ("_count", "_judge", "_open", "_settled", "_signatures")

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._count = 0
        self._open: dict[str, Call] = {}  # by candidate
        self._settled: dict[str, Call] = {}  # by candidate: judged before their end
        self._signatures: dict[str, str] = {}  # of refused calls, by candidate

    @property
    def open(self) -> bool:
        """Say whether a call goes on."""
        return bool(self._open)

    @property
    def full(self) -> bool:
        """Say whether more calls are open than an honest answer has."""
        return len(self._open) > MAX_OPEN

    def names(self) -> str:
        """Return the names of the open calls, for a message."""
        return ", ".join(repr(call.name) for call in self._open.values())[:200]

    def add(self, found: Found, out: Output) -> tuple[Mark, ...]:
        """Take the pieces of one text."""
        return tuple(self._add(piece, out) for piece in found.pieces)

    def hidden(self, reason: str, out: Output) -> bool:
        """Judge what cannot be seen; say whether it may not pass."""
        call = Call(0, "", flaw=reason)
        self._decide(call, out)
        return bool(call.notice)

    def settle(self, out: Output, doubt: str = "") -> None:
        """Judge every open call by what is there: what is still to come of it shares its fate."""
        for call in self._open.values():
            call.doubt = call.doubt or doubt
            self._decide(call, out)
        self._settled |= self._open
        self._open.clear()

    def abandon(self, out: Output, reason: str = INCOMPLETE) -> None:
        """Judge every open call as one that has no end."""
        for call in self._open.values():
            call.flaw = call.flaw or reason
        self.settle(out)

    def edits(self, marks: Iterable[Mark]) -> dict[Path, Any]:
        """Return what the verdicts mean for a text with these pieces."""
        edits: dict[Path, Any] = {}
        for mark in marks:
            call, piece = mark.call, mark.piece
            if call.notice:
                if not piece.part:
                    edits[piece.path] = DELETE
                elif mark.first:
                    edits[piece.part] = {"text": call.notice}
                else:
                    edits.setdefault(piece.part, DELETE)
                if piece.signature:
                    self._signatures.setdefault(piece.candidate, piece.signature)
            elif piece.part and mark.first and piece.part not in edits:
                # Gemini takes a turn back only with the signature that its first call came with.
                signature = self._signatures.pop(piece.candidate, "")
                if signature and not piece.signature:
                    edits[(*piece.part, "thoughtSignature")] = signature
        taken = {path for path in edits if path[-1] != "thoughtSignature"}
        return {path: edit for path, edit in edits.items() if path in taken or path[:-1] not in taken}

    def _add(self, piece: Piece, out: Output) -> Mark:
        settled = self._settled.get(piece.candidate)
        if settled is not None:
            if not piece.continues or piece.name:
                del self._settled[piece.candidate]
            if not piece.name:
                return Mark(settled, piece, first=False)
        call = self._open.get(piece.candidate)
        first = call is None
        if call is None:
            self._count += 1
            call = Call(self._count, piece.name)
            if not piece.name:
                call.flaw = "a call without a name"
        elif piece.name and piece.name != call.name:
            call.flaw = call.flaw or f"a call of {piece.name!r} within a call"
        call.id = call.id or piece.id
        call.args = piece.args if piece.args is not None else call.args
        call.partial += piece.partial
        call.flaw = call.flaw or piece.flaw
        if piece.continues:
            self._open[piece.candidate] = call
        else:
            self._open.pop(piece.candidate, None)
            self._decide(call, out)
        return Mark(call, piece, first)

    def _decide(self, call: Call, out: Output) -> None:
        asked = call.asked()
        verdict = self._judge(asked)
        out.judged(asked, verdict)
        call.partial.clear()
        call.args = None
        if verdict.blocked:
            call.notice = notice(call.name, verdict.reason)
