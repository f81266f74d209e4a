"""Where function calls stand in a generateContent answer: a parsed value in, pieces with their paths out.

A call is one part of a candidate, or (Vertex AI, `streamFunctionCallArguments`) several that follow each other. Executable code,
its results and the provider's own tool calls are no calls of a client. What pieces add up to is not decided here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from agentsh_net.core.values.members import at, clash_of, find, folded, plain, text_of, twice
from agentsh_net.core.values.strict_json import Path, Reading

_CALL: Final = frozenset({"functioncall", "functioncalls"})
# What was returned by a tool may hold anything.
_OPAQUE: Final = frozenset({"functionresponse", "toolresponse"})
# Keys that decide where a call stands: twice in a text, a parser may see one that is not in our reading.
_CARRIERS: Final = frozenset(
    {"candidates", "content", "parts", "functioncall", "functioncalls", "response", "error"}
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A `functionCall`: a call, or a piece of one that `continues`."""

    candidate: str
    part: Path  # of the part that it is; empty where it stands in no list of parts
    path: Path  # of the member itself
    name: str
    id: str
    args: Any
    partial: tuple[Any, ...]  # `partialArgs`
    continues: bool
    signature: str
    flaw: str


@dataclass(slots=True)
class Found:
    """What an answer, or a part of a streamed one, says of calls. `hidden`: why a parser may see one that is not among `pieces`."""

    pieces: list[Piece] = field(default_factory=list)
    error: bool = False
    hidden: str = ""
    ambiguous: bool = False  # it must be written anew if anything of it is refused


def scan(reading: Reading) -> Found:
    """Return the calls in an answer, in a list of answers, or in what wraps one."""
    value = reading.value
    found = Found(error="error" in folded(value))
    members = [member for member in find(value, _CALL, _OPAQUE) if member.value not in (None, [], False)]
    clashes = {plain(key) for key in reading.duplicates}
    parts = Counter(member.path[:-1] for member in members)
    if clashes and (members or clashes & _CARRIERS):
        found.ambiguous = True
        found.hidden = "" if members else clash_of(clashes)
    for member in members:
        flaw = clash_of(clashes)
        if parts[member.path[:-1]] > 1:
            flaw = flaw or "two calls in one part"
        found.pieces.append(_piece(value, member.path, member.value, flaw))
    return found


def _piece(root: Any, path: Path, value: Any, flaw: str) -> Piece:
    candidate, place = _place(root, path)
    part = path[:-1]
    listed = bool(part) and isinstance(part[-1], int)
    call = folded(value)
    name, call_id, partial = call.get("name"), call.get("id"), call.get("partialargs")
    if not isinstance(value, dict):
        flaw = flaw or "a call that is no object"
    elif clash := clash_of(twice(value)):
        flaw = flaw or clash
    elif not isinstance(name, str | None):
        flaw = flaw or "the tool's name is not a string"
    signature = folded(at(root, part)).get("thoughtsignature")
    return Piece(
        candidate=candidate,
        part=part if listed else (),
        path=path,
        name=text_of(name),
        id=text_of(call_id),
        args=call.get("args"),
        partial=tuple(partial) if isinstance(partial, list) else (),
        continues=bool(call.get("willcontinue")),
        signature=text_of(signature),
        flaw=flaw or place,
    )


def _place(root: Any, path: Path) -> tuple[str, str]:
    """Return the candidate that a call belongs to, and what is wrong with the place where it stands."""
    keys = [plain(key) if isinstance(key, str) else key for key in path]
    match keys:
        case [*_, "candidates", int(number), "content", "parts", int(), "functioncall"]:
            told = folded(at(root, path[:-4])).get("index")
            return str(told if type(told) is int else number), ""
        case _:
            return "", "a call outside of a candidate's parts"
