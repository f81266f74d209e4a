"""The calls of an Ollama answer, whole or one line of a stream: each stands whole, and is judged, removed or left to the byte.

`message.tool_calls[]`, with or without ids and indices; older and other servers put the function's fields into the entry itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentsh_net.core.dialects.argument_text import KEY_TWICE, parsed
from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.inline_edits import rewritten
from agentsh_net.core.dialects.output import Output, notice
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.json_splice import DELETE
from agentsh_net.core.values.members import Member, at, clash_of, find, folded, plain, text_of, twice
from agentsh_net.core.values.strict_json import Path, Reading

NAME: Final = "ollama"

_CALLS: Final = frozenset({"toolcalls", "toolcall", "functioncall"})
# Keys that decide where a call stands: twice in a text, a parser may see one that is not in our reading.
_CARRIERS: Final = frozenset({"message", "toolcalls", "messages"})
# Where they stand: in the message of a chat, or in the answer to a prompt.
_PLACES: Final = (["message", "toolcalls"], ["toolcalls"])


class Rulings:
    """What was decided about the calls of one answer."""

    __slots__ = ("_count", "_judge")

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._count = 0

    def rewrite(self, data: bytes, reading: Reading, out: Output) -> bytes | None:
        """Judge the calls in a text and return what the client may have of it; None: all."""
        value = reading.value
        members = [m for m in find(value, _CALLS) if m.value not in (None, [], {}, "", False)]
        clashes = {plain(key) for key in reading.duplicates}
        flaw = clash_of(clashes)
        if not members:
            hidden = bool(clashes & _CARRIERS) and bool(self._decide({}, flaw, out))
            return rewritten(data, reading, {}, ambiguous=True, hidden=hidden)
        edits: dict[Path, Any] = {}
        for member in members:
            self._one(value, member, flaw, edits, out)
        return rewritten(data, reading, edits, ambiguous=bool(clashes), hidden=False)

    def _one(self, root: Any, member: Member, flaw: str, edits: dict[Path, Any], out: Output) -> None:
        """Judge the entries of one list of calls."""
        if [plain(step) if isinstance(step, str) else step for step in member.path] not in _PLACES:
            flaw = flaw or "a call outside of the message"
        if not isinstance(member.value, list):
            flaw = flaw or "calls that are no list"
        entries = member.value if isinstance(member.value, list) else [member.value]
        notices = [self._decide(entry, flaw, out) for entry in entries]
        refused = [number for number, text in enumerate(notices) if text]
        if not refused:
            return
        if len(refused) == len(entries):
            edits[member.path] = DELETE
        else:
            edits |= {(*member.path, number): DELETE for number in refused}
        told = "\n".join(text for text in notices if text)
        path, said = _content(root, member.path[:-1], edits)
        edits[path] = f"{said}\n\n{told}" if said else told

    def _decide(self, entry: Any, flaw: str, out: Output) -> str:
        """Return the notice for a call that is refused; empty where it may stay."""
        self._count += 1
        call = _call(entry, flaw, self._count)
        verdict = self._judge(call)
        out.judged(call, verdict)
        return notice(call.name, verdict.reason) if verdict.blocked else ""


def rewrite_whole(data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    """Judge the calls of a whole answer and return what the client may have of it; None: all."""
    return Rulings(judge).rewrite(data, reading, out)


def _content(root: Any, carrier: Path, edits: Mapping[Path, Any]) -> tuple[Path, str]:
    """Return where a message says something, and what."""
    message = at(root, carrier)
    keys = {plain(key): key for key in message}
    name = "content" if carrier or "message" in keys or "response" not in keys else "response"
    path = (*carrier, keys.get(name, name))
    said = edits.get(path, message.get(path[-1]))
    return path, said if isinstance(said, str) else ""


def _call(entry: Any, flaw: str, ordinal: int) -> ToolCall:
    outer = folded(entry)
    inner = outer.get("function")
    told = folded(inner) if isinstance(inner, dict) else outer
    name, call_id = told.get("name"), outer.get("id")
    for each in (entry, inner):
        if isinstance(each, dict):
            flaw = flaw or clash_of(twice(each))
    if not isinstance(name, str) or not name:
        flaw = flaw or "a call without a name"
    elif told is not outer and outer.get("name", name) != name:
        flaw = flaw or "a call with two names"
    value, doubt = _arguments(told)
    return ToolCall(
        text_of(name),
        text_of(call_id),
        value,
        dialect=NAME,
        flaw=flaw,
        ordinal=ordinal,
        doubt=doubt,
    )


def _arguments(told: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the arguments, an object or (of other servers) its text, and why nobody can tell what they are."""
    value = told.get("arguments", told.get("parameters"))
    doubt = "they stand under two keys" if "arguments" in told and "parameters" in told else ""
    if not isinstance(value, str):
        return value, doubt
    value, twice = parsed(value)
    return value, doubt or (KEY_TWICE if twice else "")
