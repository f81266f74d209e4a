"""JSON edited in its own text, so that numbers, spacing and key order of all else survive to the byte.

What is to be edited, and whether the text may be read so, is the caller's business (`strict_json`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values.strict_json import BOM, Path, dump


class _Delete:
    """The edit that removes a member or an element with its comma."""

    __slots__ = ()


DELETE: Final = _Delete()


@dataclass(frozen=True, slots=True)
class Raw:
    """An edit that is JSON text already."""

    text: str


def splice(data: bytes, edits: Mapping[Path, Any]) -> bytes:
    """Return `data` (valid JSON) with the values at the paths replaced, removed (DELETE) or, in objects, appended.

    Everything else keeps its bytes. A path below a duplicated key is edited under each of its occurrences; one below another path that is
    edited is no longer there.
    Raises ProtocolError where a path leads nowhere.
    """
    text = data.decode("utf-8", "surrogateescape")
    tree: dict[str | int, Any] = {}
    for path in sorted(edits, key=len):
        node: Any = tree
        for key in path[:-1]:
            node = node if isinstance(node, _Leaf) else node.setdefault(key, {})
        if not isinstance(node, _Leaf):  # what it stands in is another's edit already
            node[path[-1]] = _Leaf(edits[path])
    cutter = _Cutter(text)
    cutter.value(_skip_space(text, len(BOM) if text.startswith(BOM) else 0), tree)
    out, at = [], 0
    for start, end, replacement in sorted(cutter.cuts, key=lambda cut: cut[:2]):
        out += [text[at:start], replacement]
        at = end
    return "".join([*out, text[at:]]).encode("utf-8", "surrogateescape")


def _text(value: Any) -> str:
    return value.text if isinstance(value, Raw) else dump(value)


@dataclass(frozen=True, slots=True)
class _Leaf:
    value: Any


_SPACE: Final = re.compile(r"[ \t\n\r]*")
# Unrolled, so that there is one way to match only. (Possessive forms would say so, but Python before 3.11.5 matches them wrongly.)
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR: Final = re.compile(r"[^ \t\n\r,\]}]+")
_STRUCTURE: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _end_of_value(text: str, at: int) -> int:
    """Return where the value that begins at `at` ends, without reading what is in it."""
    if text[at : at + 1] not in {"{", "["}:
        match = (_STRING if text[at : at + 1] == '"' else _SCALAR).match(text, at)
        if match is None:
            raise ProtocolError(f"not JSON at character {at}")
        return match.end()
    depth = 0
    for match in _STRUCTURE.finditer(text, at):
        mark = match.group()
        depth += (mark in {"{", "["}) - (mark in {"}", "]"})
        if depth == 0:
            return match.end()
    raise ProtocolError(f"not JSON: what opens at character {at} is never closed")


@dataclass(frozen=True, slots=True)
class _Member:
    key: str | int
    start: int  # of the key in an object, of the value in an array
    value: int
    end: int


@dataclass(slots=True)
class _Cutter:
    text: str
    cuts: list[tuple[int, int, str]] = field(default_factory=list)

    def value(self, at: int, tree: Mapping[str | int, Any]) -> None:
        """Note the cuts that `tree` asks for in the container at `at`."""
        members = self._members(at)
        removed: set[int] = set()
        found: set[str | int] = set()
        for number, member in enumerate(members):
            edit = tree.get(member.key)
            if edit is None:
                continue
            found.add(member.key)
            if not isinstance(edit, _Leaf):
                self.value(member.value, edit)
            elif edit.value is DELETE:
                removed.add(number)
            else:
                self.cuts.append((member.value, member.end, _text(edit.value)))
        self._remove(members, removed)
        missing = {key: edit for key, edit in tree.items() if key not in found}
        if missing:
            self._append(at, members, removed, missing)

    def _members(self, at: int) -> list[_Member]:
        text = self.text
        members: list[_Member] = []
        opening = text[at : at + 1]
        if opening not in {"{", "["}:
            raise ProtocolError(f"the edited path leads through a scalar at character {at}")
        at = _skip_space(text, at + 1)
        while text[at : at + 1] not in {"}", "]", ""}:
            start = at
            key: str | int = len(members)
            if opening == "{":
                end = _end_of_value(text, at)
                key = json.loads(text[at:end], strict=False)
                at = _skip_space(text, _skip_space(text, end) + 1)  # over the colon
            end = _end_of_value(text, at)
            members.append(_Member(key, start, at, end))
            at = _skip_space(text, end)
            if text[at : at + 1] == ",":
                at = _skip_space(text, at + 1)
        return members

    def _remove(self, members: Sequence[_Member], removed: set[int]) -> None:
        kept_before = False
        for number, member in enumerate(members):
            if number not in removed:
                kept_before = True
            elif kept_before:
                self.cuts.append((members[number - 1].end, member.end, ""))
            elif number + 1 < len(members):
                self.cuts.append((member.start, members[number + 1].start, ""))
            else:
                self.cuts.append((member.start, member.end, ""))

    def _append(
        self, at: int, members: Sequence[_Member], removed: set[int], missing: Mapping[str | int, Any]
    ) -> None:
        if self.text[at] != "{" or not all(isinstance(edit, _Leaf) for edit in missing.values()):
            raise ProtocolError(f"the edited path {min(map(str, missing))!r} is not there")
        added = ",".join(
            f"{dump(key)}:{_text(edit.value)}" for key, edit in missing.items() if edit.value is not DELETE
        )
        if not added:
            return
        end = members[-1].end if members else at + 1
        self.cuts.append((end, end, ("," if len(removed) < len(members) else "") + added))
