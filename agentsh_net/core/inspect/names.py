"""Names: outside the protocol's alphabet, or so like another server's or tool's that one is taken for the other.

Which of two alike is the impostor: the one in disguise, else the one whose server is declared later. Exactly equal names are
core.flows.crossflow's business: prefixed, they are told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentsh_net.core.inspect.confusables import skeleton
from agentsh_net.core.inspect.findings import Category, Finding, Severity
from agentsh_net.core.naming.folding import fold, visible

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # MCP 2025-11-25, tools, "Tool Names"
# What honest servers have besides: `get status`, `/api/news`.
HARMLESS = re.compile(r"[\w./: !@-]{1,128}", re.ASCII)
SEPARATORS = str.maketrans(dict.fromkeys("_-. /"))
MAX_SHOWN = 200

# Shorter names are a letter apart by chance: add and and, get and set.
SHORTEST_TOOL, SHORTEST_SERVER = 8, 5
# Characters of a name whose neighbours are worked out: a longer one has longer neighbours.
MAX_NEIGHBOURS = 64


def unusual(name: str, path: str) -> Iterator[Finding]:
    """Find a name outside `[A-Za-z0-9_.-]{1,128}`."""
    if not NAME.fullmatch(name):
        severity = Severity.LOW if HARMLESS.fullmatch(name) else Severity.MEDIUM
        if not name.isascii() or not name.isprintable():
            severity = Severity.HIGH
        shown = visible(name, MAX_SHOWN)
        if len(name) > 128:
            shown += f" ({len(name)} characters)"
        yield Finding("unusual-name", Category.NAME, severity, path, shown)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a name looks like, and what is left of it with one letter missing: names one slip apart share one of these.

    `stem` is what is left without a plural or a number at the end: names of one stem are no slip of each other.
    """

    skeleton: str
    bare: str
    stem: str
    neighbours: tuple[str, ...]


Shapes = dict[str, Shape]  # by name; whoever keeps it saves working them out again


class Alike:
    """Names indexed by what they may be mistaken for. A name is (owner, name); the earlier an owner is declared, the older."""

    def __init__(
        self, names: Mapping[str, Sequence[str]], shortest: int, shapes: Shapes | None = None
    ) -> None:
        """`names` is every owner's names, the owners in the order in which they were declared."""
        self._shapes = _shapes(names, shortest, {} if shapes is None else shapes)
        self._age = {owner: age for age, owner in enumerate(names)}
        self._looks: dict[str, list[tuple[str, str]]] = {}
        # Where there are two at least: most neighbours are one name's.
        self._near: dict[str, list[tuple[str, str]]] = {}
        self._mixed: set[str] = set()  # the neighbours where names of several stems meet
        first: dict[str, tuple[str, str]] = {}
        for owner, theirs in names.items():
            for name in theirs:
                shape, entry = self._shapes[name], (owner, name)
                self._looks.setdefault(shape.skeleton, []).append(entry)
                for neighbour in shape.neighbours:
                    earliest = first.setdefault(neighbour, entry)
                    if earliest is entry:
                        continue
                    if self._shapes[earliest[1]].stem != shape.stem:
                        self._mixed.add(neighbour)
                    self._near.setdefault(neighbour, [earliest]).append(entry)

    def find(self, owner: str, name: str) -> tuple[str, str, Severity] | None:
        """Return (owner, name) that this name imitates and how bad it is, or None."""
        shape = self._shapes[name]
        for other, theirs in sorted(_others(self._looks, shape.skeleton, owner)):
            if _differ(theirs, name) and self._imitates(owner, name, other, theirs):
                return other, theirs, Severity.HIGH
        for neighbour in shape.neighbours:
            if neighbour not in self._mixed:
                continue  # server1 to server9999 are no slips of each other
            for other, theirs in sorted(_others(self._near, neighbour, owner)):
                if self._age[owner] > self._age[other] and _slipped(shape.bare, self._shapes[theirs].bare):
                    return other, theirs, Severity.MEDIUM
        return None

    def _imitates(self, owner: str, name: str, other: str, theirs: str) -> bool:
        mine, other_disguise = _disguised(name), _disguised(theirs)
        return mine > other_disguise or (mine == other_disguise and self._age[owner] > self._age[other])


def _shapes(names: Mapping[str, Sequence[str]], shortest: int, known: Shapes) -> Shapes:
    """Return the shapes of all names, those that are known as they are; what is known and not asked for is forgotten."""
    wanted = {name for theirs in names.values() for name in theirs}
    for name in known.keys() - wanted:
        del known[name]
    for name in wanted - known.keys():
        bare = _bare(name)
        known[name] = Shape(skeleton(name), bare, _stem(bare), _neighbours(bare, shortest))
    return known


def _others(index: Mapping[str, list[tuple[str, str]]], shape: str, owner: str) -> list[tuple[str, str]]:
    found = index.get(shape, ())
    return [entry for entry in found if entry[0] != owner] if len(found) > 1 else []


def imitation(kind: str, path: str, name: str, found: tuple[str, str, Severity]) -> Finding:
    """Return the finding about a name that imitates another."""
    owner, other, severity = found
    of = (
        f"server {visible(owner, MAX_SHOWN)}"
        if kind == "server"
        else f"{visible(owner, MAX_SHOWN)}/{visible(other, MAX_SHOWN)}"
    )
    return Finding(
        f"look-alike-{kind}",
        Category.LOOKALIKE,
        severity,
        path,
        f"{visible(name, MAX_SHOWN)} passes for {of}",
    )


def _bare(name: str) -> str:
    """Return a name without case and separators: `readFile` and `read_file` are one name in two styles."""
    return fold(name).translate(SEPARATORS)


def _differ(name: str, other: str) -> bool:
    """Say whether two names of one shape are two names, not one in two styles."""
    return name != other and (_bare(name) != _bare(other) or not (name + other).isascii())


def _disguised(name: str) -> int:
    """Say how many characters of a name are stand-ins."""
    return sum((not c.isascii()) or c.isdigit() or c in "$@|" for c in name)


def _neighbours(bare: str, shortest: int) -> tuple[str, ...]:
    """Return a name without case and separators, and with one letter less."""
    if not shortest <= len(bare) <= MAX_NEIGHBOURS:
        return ()
    return tuple(sorted({bare, *(bare[:i] + bare[i + 1 :] for i in range(len(bare)))}))


def _stem(bare: str) -> str:
    return bare.rstrip("s0123456789")


def _slipped(name: str, other: str) -> bool:
    """Say whether one slip of the finger leads from a name to the other: a letter doubled, dropped, swapped or beside another.

    A plural or a number at the end is a name of its own, and so is another letter in the same place.
    """
    if _stem(name) == _stem(other):
        return False
    longer, shorter = (name, other) if len(name) > len(other) else (other, name)
    if len(longer) == len(shorter) + 1:
        return any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
    if len(longer) != len(shorter):
        return False
    apart = [i for i, (a, b) in enumerate(zip(name, other, strict=True)) if a != b]
    return (
        len(apart) == 2
        and apart[1] == apart[0] + 1
        and name[apart[0]] == other[apart[1]]
        and name[apart[1]] == other[apart[0]]
    )
