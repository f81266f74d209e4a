"""The calls of a Bedrock Converse answer: what a `toolUse` says, what was decided about it, and whole answers after that.

Nova answers in the same shape where it is invoked directly. In which order a stream's events leave is `block_stream`'s business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.inline_edits import rewritten
from agentsh_net.core.dialects.output import Output, notice
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.json_splice import DELETE
from agentsh_net.core.values.members import clash_of, find, folded, plain, text_of, twice
from agentsh_net.core.values.strict_json import Path, Reading

NAME: Final = "bedrock"

TOOL_USE: Final = frozenset({"tooluse"})
# What a tool returned may hold anything, and so may what a model was asked to fill in.
OPAQUE: Final = frozenset({"toolresult", "additionalmodelresponsefields"})
# Keys that decide where a call stands: twice in a text, a parser may see one that is not in our reading.
CARRIERS: Final = frozenset(
    {"output", "message", "content", "tooluse", "start", "delta", "contentblockindex", "bytes"}
)


class Rulings:
    """What was decided about the calls of one answer, so that its stopReason agrees with that."""

    __slots__ = ("_blocked", "_calls", "_judge")

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._calls = 0
        self._blocked = 0

    @property
    def ends_turn(self) -> bool:
        """Say whether there were calls and all were refused."""
        return 0 < self._calls == self._blocked

    def decide(self, block: Mapping[str, Any], value: Any, flaw: str, out: Output, doubt: str = "") -> str:
        """Judge a folded `toolUse` and return the notice that replaces it, or nothing where it is allowed."""
        self._calls += 1
        call_id = block.get("tooluseid")
        call = ToolCall(
            name=text_of(block.get("name")),
            call_id=text_of(call_id),
            input=value,
            dialect=NAME,
            flaw=flaw,
            ordinal=self._calls,
            doubt=doubt,
        )
        verdict = self._judge(call)
        out.judged(call, verdict)
        if not verdict.blocked:
            return ""
        self._blocked += 1
        return notice(call.name, verdict.reason)

    def hidden(self, reason: str, out: Output) -> bool:
        """Judge what cannot be seen; say whether it may not pass."""
        return bool(self.decide({}, None, reason, out))


def flaw_of(value: Any) -> str:
    """Say what makes a `toolUse` mean different things to different clients; empty where nothing does."""
    if not isinstance(value, dict):
        return "a call that is no object"
    if clash := clash_of(twice(value)):
        return clash
    return "" if text_of(folded(value).get("name")) else "a call without a name"


def rewrite_whole(data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    """Judge the calls of a whole answer and return what the client may have of it; None: all."""
    rulings = Rulings(judge)
    root = reading.value
    flaw = clash_of(set(map(plain, reading.duplicates)))
    members = [m for m in find(root, TOOL_USE, OPAQUE) if m.value is not None]
    if not members:
        carried = not CARRIERS.isdisjoint(map(plain, reading.duplicates))
        hidden = carried and rulings.hidden(flaw, out)
        return rewritten(data, reading, {}, ambiguous=True, hidden=hidden)
    blocks = Counter(member.path[:-1] for member in members)
    edits: dict[Path, Any] = {}
    for path, value in members:
        block = path[:-1]
        why = flaw or flaw_of(value) or _place(path)
        if blocks[block] > 1:
            why = why or "two calls in one block"
        told = rulings.decide(folded(value), folded(value).get("input"), why, out)
        if told and block and isinstance(block[-1], int):
            edits[block] = {"text": told}
        elif told:
            edits[path] = DELETE
    if rulings.ends_turn:
        edits |= {path: "end_turn" for path, reason in _reasons(root) if reason == "tool_use"}
    return rewritten(data, reading, edits, ambiguous=bool(reading.duplicates), hidden=False)


def _place(path: Path) -> str:
    keys = [plain(key) if isinstance(key, str) else key for key in path]
    match keys:
        case ["output", "message", "content", int(), "tooluse"]:
            return ""
        case _:
            return "a call outside of the message's content"


def _reasons(root: Any) -> list[tuple[Path, Any]]:
    return (
        [((key,), root[key]) for key in root if plain(key) == "stopreason"] if isinstance(root, dict) else []
    )
