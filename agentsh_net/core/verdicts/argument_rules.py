"""The `args` of a tool rule: what the arguments of a call must be like for the rule to hold.

Both lists err on the side of refusing. A denied rule holds where any value that its path selects (or one within it) matches, in any
spelling a server may take for the same, and where the arguments cannot be judged; an allowed rule where every one matches as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from agentsh_net.core.configuration.settings import ArgumentMatch
from agentsh_net.core.inspect import regex_cost
from agentsh_net.core.naming import globs
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.core.values import json_path
from agentsh_net.core.values.json_path import JsonPath, Node, TooMuchError
from agentsh_net.core.verdicts.given import Given

# Characters of text that one rule compares with globs and values in one call: linear work, some ten milliseconds at most.
MAX_COMPARED = 4 << 20
# Steps of regular expressions (core.inspect.regex_cost) for one rule and call: a few tenths of a second for a text made to be slow.
MAX_STEPS = 10_000_000
MAX_SHOWN = 80  # characters of a matcher in a reason

_NUL = re.compile("\0|%00")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


class _Purse:
    """What one rule may still spend on one call."""

    __slots__ = ("characters", "steps")

    def __init__(self) -> None:
        self.characters = MAX_COMPARED
        self.steps = MAX_STEPS

    def compare(self, text: str) -> None:
        """Spend on a linear comparison. Raises TooMuchError."""
        self.characters -= len(text) + 1
        if self.characters < 0:
            raise TooMuchError

    def visit(self) -> None:
        """Spend on a look at a value, which costs what comparing some characters does. Raises TooMuchError."""
        self.characters -= 16
        if self.characters < 0:
            raise TooMuchError

    def search(self, length: int, ways: int) -> None:
        """Spend on a regular expression. Raises TooMuchError."""
        self.steps -= length * ways
        if self.steps < 0:
            raise TooMuchError


Test = Callable[[Any, _Purse], bool]


@dataclass(frozen=True, slots=True)
class _Condition:
    path: JsonPath
    said: str  # the matcher, as a reason quotes it
    denied: Test
    allowed: Test


class ArgumentRule:
    """All conditions of one rule. Raises ConfigError for what core.configuration.config has told already."""

    __slots__ = ("_conditions",)

    def __init__(self, matches: Iterable[ArgumentMatch]) -> None:
        self._conditions = tuple(map(_condition, matches))

    @property
    def shown(self) -> str:
        """Return the conditions as a reason quotes the rule."""
        return " and ".join(f"{c.path.shown} {c.said}" for c in self._conditions)

    def denies(self, given: Given) -> str:
        """Say why a denied rule holds for these arguments; empty where it does not."""
        if given.doubt:
            return f"its arguments cannot be judged: {given.doubt}"
        purse = _Purse()
        try:
            if all(_any(c, given.value, purse) for c in self._conditions):
                return f"its argument {self.shown}"
        except TooMuchError:
            return f"its arguments cannot be judged: they are too large to compare with {self.shown}"
        return ""

    def allows(self, given: Given) -> bool:
        """Say whether an allowed rule holds for these arguments."""
        if given.doubt:
            return False
        purse = _Purse()
        try:
            return all(_every(c, given.value, purse) for c in self._conditions)
        except TooMuchError:
            return False


def _any(condition: _Condition, value: Any, purse: _Purse) -> bool:
    nodes = condition.path.select(value)
    return any(condition.denied(leaf, purse) for node in nodes for leaf in _leaves(node.value, purse))


def _leaves(value: Any, purse: _Purse) -> Iterator[Any]:
    """Yield what stands in a value, however deep: a lenient server takes `["/etc/passwd"]` for the path in it."""
    waiting = [value]
    while waiting:
        purse.visit()
        match waiting.pop():
            case Mapping() as members:
                waiting += members.values()
            case list() as items:
                waiting += items
            case leaf:
                yield leaf


def _every(condition: _Condition, value: Any, purse: _Purse) -> bool:
    nodes: list[Node] = condition.path.select(value)
    return any(node.exact for node in nodes) and all(condition.allowed(node.value, purse) for node in nodes)


def _condition(match: ArgumentMatch) -> _Condition:
    path = json_path.parse(match.path)
    denied, allowed = _tests(match)
    shown = visible(str(match.value), MAX_SHOWN)
    said = {
        "equals": f"equals {shown!r}",
        "in": f"is one of {shown}",
        "glob": f"matches the glob {shown!r}",
        "regex": f"matches the regex {shown!r}",
    }[match.kind]
    return _Condition(path, said, denied, allowed)


def _tests(match: ArgumentMatch) -> tuple[Test, Test]:
    match match.kind:
        case "glob":
            return _glob(str(match.value))
        case "regex":
            return _regex(str(match.value))
        case "in":
            return _one_of(tuple(match.value))
        case _:
            return _one_of((match.value,))


def _one_of(wanted: tuple[Any, ...]) -> tuple[Test, Test]:
    texts = {fold(_text(item)) for item in wanted}

    def denied(value: Any, purse: _Purse) -> bool:
        forms = _forms(value)
        purse.compare("".join(forms))
        return not texts.isdisjoint(map(fold, forms))

    def allowed(value: Any, purse: _Purse) -> bool:
        purse.compare(value if isinstance(value, str) else "")
        return any(_same(value, item) for item in wanted)

    return denied, allowed


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: true is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _glob(pattern: str) -> tuple[Test, Test]:
    folded = globs.parse(pattern)
    plain = globs.parse(pattern, exact=True)
    is_path = "/" in pattern

    def denied(value: Any, purse: _Purse) -> bool:
        forms = _forms(value)
        purse.compare("".join(forms))
        return any(folded.matches(fold(form)) for form in forms)

    def allowed(value: Any, purse: _Purse) -> bool:
        if not isinstance(value, str):
            return False
        purse.compare(value)
        return plain.matches(value) and not _ends_early(value) and (not is_path or _is_clean(value))

    return denied, allowed


def _regex(pattern: str) -> tuple[Test, Test]:
    loose, strict = regex_cost.compiles(pattern), re.compile(pattern)
    window = regex_cost.window(pattern)
    ways, widest = regex_cost.ways(pattern, window), regex_cost.widest(pattern)

    def denied(value: Any, purse: _Purse) -> bool:
        for form in _forms(value):
            if len(form) <= window:
                purse.search(len(form), ways)
                if loose.search(form):
                    return True
                continue
            if widest > window // 2:
                raise TooMuchError  # what lies between two windows could match
            for start in range(0, len(form) - window // 2, window // 2):
                purse.search(window, ways)
                if loose.search(form, start, start + window):
                    return True
        return False

    def allowed(value: Any, purse: _Purse) -> bool:
        if not isinstance(value, str) or len(value) > window or _ends_early(value):
            return False
        purse.search(1, ways)
        return strict.fullmatch(value) is not None

    return denied, allowed


def _text(value: Any) -> str:
    """Return a scalar as text: lenient servers take "5" for 5 and "true" for true."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        case int() if abs(value) >= 1 << 1024:
            return hex(value)  # decimal digits of such a number cost quadratic time
        case _:
            return str(value)


def _forms(value: Any) -> tuple[str, ...]:
    """Return the texts a server may take a value for: as it is, decoded, up to a NUL as C does, and as the path that it comes to."""
    if isinstance(value, Mapping | list):
        return ()
    text = _text(value)
    if isinstance(value, str) and _ends_early(text):
        return (*_spellings(text), *_spellings(_NUL.split(text, 1)[0]))
    return _spellings(text) if isinstance(value, str) else (text,)


def _spellings(text: str) -> tuple[str, ...]:
    if "/" in text or "%" in text:
        plain = unquote(text) if "%" in text else text
        local = plain[7:] if plain[:7].lower() == "file://" else plain
        return tuple(dict.fromkeys((text, plain, local, _cleaned(plain), _cleaned(local))))
    return (text,)


def _ends_early(text: str) -> bool:
    """Say whether a text holds a NUL, at which it ends for a server in C; decoded, perhaps."""
    return _NUL.search(text) is not None


def _is_clean(text: str) -> bool:
    """Say whether a path means what it says: `/srv/*` must not let `/srv/../etc` pass, nor `/srv/%2e%2e/etc`."""
    return all(_cleaned(form) == form.rstrip("/") for form in (text, unquote(text)))


def _cleaned(text: str) -> str:
    """Return a path or URL without empty and dot segments, and without a slash at its end."""
    origin = _ORIGIN.match(text)
    head = origin[0] if origin else ""
    rest = text[len(head) :]
    kept: list[str] = []
    rooted = rest.startswith("/")
    for segment in rest.split("/"):
        if segment == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif segment not in ("", ".") and not (segment == ".." and rooted):
            kept.append(segment)
    return head + ("/" if rooted else "") + "/".join(kept)
