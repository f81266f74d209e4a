"""The steps of a Gemini interaction: which of them are calls, what was decided about them, and whole interactions after that.

A refused call leaves a step of text. In which order a stream's events leave is `block_stream`'s business.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.inline_edits import rewritten
from agentsh_net.core.dialects.interactions.kept_calls import kept
from agentsh_net.core.dialects.output import Output, notice
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.members import at, clash_of, folded, plain, text_of, twice
from agentsh_net.core.values.strict_json import Path, Reading

NAME: Final = "interactions"

# What the provider runs itself, on no server of anybody else's.
_PROVIDERS: Final = frozenset(
    {
        "googlesearchcall", "googlemapscall", "codeexecutioncall", "urlcontextcall", "filesearchcall", "retrievalcall",
        "processingcall", "toolsearchcall",
    }
)  # fmt: skip
# What these hold is somebody's data, whatever its keys are.
_OPAQUE: Final = frozenset(
    {
        "arguments", "result", "results", "tools", "input", "responseformat", "generationconfig", "agentconfig", "environment",
        "systeminstruction",
    }
)  # fmt: skip
# Keys that decide where a call stands: twice in a text, a parser may see one that is not in our reading.
CARRIERS: Final = frozenset(
    {"interaction", "steps", "outputs", "step", "content", "delta", "type", "index", "eventtype"}
)
# How an interaction lists its steps; until 2026 they were `outputs`, of which the texts stood alone.
_LISTS: Final = ("steps", "outputs")
_WAITS: Final = "requires_action"
_OUT_OF_PLACE: Final = "a call where none belongs"


def is_call(step: Mapping[str, Any]) -> bool:
    """Say whether a client may run a folded step, or the provider ran it against an MCP server."""
    kind = step.get("type")
    if not isinstance(kind, str | None) and "name" in step:
        return True  # JavaScript makes a text of a list
    told = plain(kind.strip()) if isinstance(kind, str) else ""
    if told in _PROVIDERS or told.endswith("result") or told == "argumentsdelta":
        return False
    return "call" in told or {"name", "arguments"} <= step.keys()


def flaw_of(value: Any) -> str:
    """Say what makes a call mean different things to different clients; empty where nothing does."""
    if clash := clash_of(twice(value)):
        return clash
    call = folded(value)
    odd = [key for key in ("type", "name", "id", "servername") if not isinstance(call.get(key), str | None)]
    return f"the call's {odd[0]} is not a string" if odd else ""


class Rulings:
    """What was decided about the calls of one answer, so that its status agrees with that; what is repeated shares a verdict."""

    __slots__ = ("_blocked", "_calls", "_judge", "_known", "kept_in")

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._calls = 0
        self._blocked = 0
        self._known: dict[str, tuple[str, str]] = {}  # by id: what the call says, and its notice
        self.kept_in = ""  # the id of the interaction

    @property
    def ends_turn(self) -> bool:
        """Say whether there were calls and all were refused."""
        return 0 < self._calls == self._blocked

    def decide(
        self,
        block: Mapping[str, Any],
        value: Any,
        flaw: str,
        out: Output,
        doubt: str = "",
        *,
        stored: bool = False,
    ) -> str:
        """Judge a call by its folded fields, and return the notice that replaces it, or nothing where it is allowed."""
        name, call_id, server = (text_of(block.get(key)) for key in ("name", "id", "servername"))
        said = _digest(name, server, value)
        known, told = self._known.get(call_id, ("", "")) if call_id else ("", "")
        if known == said and not flaw:
            return told
        if known:
            flaw = flaw or "two different calls of one id"
        if not name:
            flaw = flaw or "a call without a name"
        self._calls += 1
        call = ToolCall(
            name, call_id, value, server_name=server, dialect=NAME, flaw=flaw, ordinal=self._calls, doubt=doubt, stored=stored
        )  # fmt: skip
        verdict = self._judge(call)
        told = notice(name, verdict.reason) if verdict.blocked else ""
        if told:
            call = replace(call, kept=kept(call_id, name, self.kept_in, told))
        if not stored or verdict.blocked or verdict.would is not None:
            out.judged(call, verdict)
        self._blocked += verdict.blocked
        if call_id and not known:
            self._known[call_id] = (said, told)
        return told

    def hidden(self, reason: str, out: Output) -> bool:
        """Judge what cannot be seen; say whether it may not pass."""
        return bool(self.decide({}, None, reason, out))


def strays(value: Any, known: frozenset[Path], path: Path = ()) -> bool:
    """Say whether a call stands anywhere but where one belongs."""
    if isinstance(value, list):
        return any(strays(item, known, (*path, number)) for number, item in enumerate(value))
    if not isinstance(value, dict):
        return False
    if path and path not in known and is_call(folded(value)):
        return True
    return any(strays(item, known, (*path, key)) for key, item in value.items() if plain(key) not in _OPAQUE)


def rewrite(data: bytes, reading: Reading, rulings: Rulings, out: Output) -> bytes | None:
    """Judge the calls that an interaction lists, be it the answer or in an event; return what is left of the text; None: all."""
    root = reading.value
    clashes = {plain(key) for key in reading.duplicates}
    edits: dict[Path, Any] = {}
    calls: set[Path] = set()
    for prefix, holder in _holders(root):
        clashes |= twice(holder)
        rulings.kept_in = text_of(holder.get("id")) or rulings.kept_in
        answered = _answered(holder)
        for path, entry in _listed(holder):
            calls.add((*prefix, *path))
            step = folded(entry)
            flaw = flaw_of(entry) or clash_of(clashes)
            stored = text_of(step.get("id")) in answered
            told = rulings.decide(step, step.get("arguments"), flaw, out, stored=stored)
            if told:
                edits[(*prefix, *path)] = _replacement(plain(str(path[0])), told)
    unseen = strays(root, frozenset(calls)) or bool(clashes & CARRIERS and not calls)
    if unseen and rulings.hidden(_OUT_OF_PLACE, out):
        out.fault("event_out_of_place", _OUT_OF_PLACE, must_cut=True)
        return None
    if rulings.ends_turn:
        edits |= dict.fromkeys(_waiting(root), "completed")
    return rewritten(data, reading, edits, ambiguous=bool(clashes), hidden=False)


def _replacement(listed: str, told: str) -> dict[str, Any]:
    text = {"type": "text", "text": told}
    return {"type": "model_output", "content": [text]} if listed == "steps" else text


def _holders(root: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the interactions in a text: itself, and that of an event."""
    if not isinstance(root, dict):
        return
    yield (), root
    for key, value in root.items():
        if plain(key) == "interaction" and isinstance(value, dict):
            yield (key,), value


def _listed(holder: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Yield the calls that an interaction lists."""
    for key, entries in holder.items():
        if plain(key) in _LISTS and isinstance(entries, list):
            for number, entry in enumerate(entries):
                if isinstance(entry, dict) and is_call(folded(entry)):
                    yield (key, number), entry


def _answered(holder: Mapping[str, Any]) -> set[str]:
    """Return the ids of the calls whose results the interaction lists too: they were run in an earlier turn."""
    found: set[str] = set()
    for key, entries in holder.items():
        if plain(key) in _LISTS and isinstance(entries, list):
            found |= {text_of(folded(entry).get("callid")) for entry in entries}
    return found - {""}


def _waiting(root: Any) -> Iterator[Path]:
    """Yield where it is said that the client has to act."""
    for prefix, holder in _holders(root):
        for key in holder:
            if plain(key) == "status" and at(root, (*prefix, key)) == _WAITS:
                yield (*prefix, key)


def _digest(name: str, server: str, value: Any) -> str:
    told = json.dumps([name, server, value if value is not None else {}], sort_keys=True)
    return sha256(told.encode()).hexdigest()
