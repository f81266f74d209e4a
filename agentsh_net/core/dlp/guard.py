"""What a request holds that must not leave, replaced in place: each find by a marker, or by a token that the answer brings back.

Pure: the policy and a body go in, a body and counts come out. It never tells what it found, only how many of what kind.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple, Self

from agentsh_net.core.configuration.settings import CustomPattern, Dlp
from agentsh_net.core.dlp import escapes, shapes, zones
from agentsh_net.core.dlp.shapes import Hit
from agentsh_net.core.dlp.strings import Cut, Text, edited, texts, unescaped
from agentsh_net.core.dlp.tokens import SIGN, TOKEN
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.inspect import regex_cost

# Steps of the operator's own patterns over one body (core.inspect.regex_cost): some two seconds on a slow machine, at the worst.
MAX_STEPS: Final = 200_000_000
_MAX_DEPTH: Final = 64  # of an event's input that is searched; what is deeper is not recorded
_MAX_NESTED: Final = 4  # JSON in a string of JSON in a string ...; behind it, a string like any other
_SHORTEST: Final = 6  # characters; nothing that is searched for by shape is shorter

# What is written for a find: its text and its kind.
Replace = Callable[[str, str], str]


class Scrubbed(NamedTuple):
    """A body as it may leave, and how many finds of what kind were replaced in it."""

    body: bytes
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Custom:
    kind: str
    pattern: re.Pattern[str]
    window: int
    steps: int  # a character, at most
    shown: str


class _TooLongError(ProtocolError):
    """The patterns would take too long."""


@dataclass(slots=True)
class _Budget:
    steps: int

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise _TooLongError("too long for the patterns of dlp.custom_patterns")


@dataclass(slots=True)
class _Work:
    """What goes along through one body."""

    replace: Replace
    counts: Counter[str]
    budget: _Budget
    # How many were replaced: one count for a body and what is nested in it.
    keys: list[int] = field(default_factory=lambda: [0])

    def within(self, counts: Counter[str]) -> _Work:
        return _Work(self.replace, counts, self.budget, self.keys)

    def number(self) -> str:
        self.keys[0] += 1
        return f" {self.keys[0]}" if self.keys[0] > 1 else ""


@dataclass(frozen=True, slots=True)
class Guard:
    """`dlp` of the configuration, ready to search."""

    mode: str
    searches: tuple[tuple[str, shapes.Search], ...]
    customs: tuple[_Custom, ...] = ()

    @classmethod
    def of(cls, settings: Dlp) -> Self | None:
        """Return the guard that settings ask for; None where DLP is off."""
        if settings.mode == "disabled":
            return None
        wanted = (
            (kind, search) for kind, search in shapes.BUILT_IN.items() if settings.patterns.get(kind, True)
        )
        return cls(settings.mode, tuple(wanted), tuple(map(_custom, settings.custom_patterns)))

    def marker(self, value: str, kind: str) -> str:  # noqa: ARG002 - it says nothing of the value
        """Return what is written for a find that does not come back."""
        shown = next((c.shown for c in self.customs if c.kind == kind), kind)
        return f"[REDACTED:{shown}]"

    def scrub(self, body: bytes, replace: Replace | None = None) -> Scrubbed:
        """Return a request's body without what must not leave. Raises ProtocolError where it cannot be read.

        All but the strings that hold a find keeps its bytes, and so does what is around a find in its string.
        """
        if b"\0" in body:
            raise ProtocolError("not UTF-8: there are NUL bytes in it")
        counts: Counter[str] = Counter()
        document = body.decode("utf-8", "surrogateescape")
        work = _Work(replace or self.marker, counts, _Budget(MAX_STEPS))
        done = self._document(document, work, zones.PROTOCOL)
        return Scrubbed(done.encode("utf-8", "surrogateescape"), counts) if counts else Scrubbed(body, {})

    def masked(self, value: Any) -> Any:
        """Return a JSON value with markers in the place of finds: what an event may record of a call's input."""
        try:
            return self._masked(value, _Budget(MAX_STEPS), _MAX_DEPTH)
        except ProtocolError:
            return "[REDACTED:too long to be searched]"

    def _masked(self, value: Any, budget: _Budget, depth: int) -> Any:
        if isinstance(value, str):
            return self._replaced(value, budget)
        if not depth:
            return "[REDACTED:nested too deeply to be searched]"
        if isinstance(value, Mapping):
            return {
                self._replaced(key, budget) if isinstance(key, str) else key: self._masked(
                    item, budget, depth - 1
                )
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._masked(item, budget, depth - 1) for item in value]
        return value

    def _replaced(self, text: str, budget: _Budget) -> str:
        out, at = [], 0
        for hit in self._hits(text, budget):
            out += [text[at : hit.start], self.marker("", hit.kind)]
            at = hit.end
        return "".join([*out, text[at:]]) if out else text

    def _document(self, document: str, work: _Work, first: int, depth: int = _MAX_NESTED) -> str:
        """Return a JSON text without what must not leave."""
        changes: list[tuple[Text, str, Counter[str]]] = []
        for text in texts(document, zones.zone, first):
            if zones.is_searched(text):
                found: Counter[str] = Counter()
                literal = self._literal(document[text.start : text.end], text, work, found, depth)
                if found:
                    changes.append((text, literal, found))
        out, at = [], 0
        for text, literal, found in changes:
            if not zones.is_sealed(text):
                work.counts.update(found)
                out += [document[at : text.start], literal]
                at = text.end
        return "".join([*out, document[at:]]) if out else document

    def _literal(self, literal: str, text: Text, work: _Work, found: Counter[str], depth: int) -> str:
        """Return a string's literal with its finds replaced, and count them in `found`."""
        value = text.value
        if text.key in zones.NESTED and not text.is_key and depth and value[:1] in {"{", "["}:
            inner = work.within(found)
            try:
                plain = self._document(value, inner, zones.FREE, depth - 1)
            except _TooLongError:
                raise
            except ProtocolError:
                found.clear()  # no JSON: text like any other
            else:
                return encode_basestring_ascii(plain)
        hits = self._hits(value, work.budget)
        if not hits:
            return literal
        if "\\" in literal:
            value, _ = unescaped(literal)  # by whose positions it is edited
            hits = self._hits(value, work.budget)
        found.update(hit.kind for hit in hits)
        cuts = [Cut(h.start, h.end, work.replace(value[h.start : h.end], h.kind)) for h in hits]
        if text.is_key and self.mode == "redact":
            cuts[-1] = cuts[-1]._replace(text=cuts[-1].text + work.number())  # two keys must not become one
        return edited(literal, cuts)

    def _hits(self, text: str, budget: _Budget) -> list[Hit]:
        """Return what is found, in order; finds that overlap are one, and a token of ours is none."""
        found = self._found(text, budget, _MAX_NESTED)
        if not found:
            return []
        ours = [match.span() for match in TOKEN.finditer(text)] if SIGN in text else []
        merged: list[Hit] = []
        for hit in sorted(found):
            before = bisect_right(ours, (hit.end,)) - 1
            if before >= 0 and ours[before][1] > hit.start:
                continue
            if merged and hit.start < merged[-1].end:
                merged[-1] = merged[-1]._replace(end=max(merged[-1].end, hit.end))
            else:
                merged.append(hit)
        return merged

    def _found(self, text: str, budget: _Budget, depth: int) -> list[Hit]:
        """Return what is found in a text, as it is written and as it reads, `depth` escapes deep."""
        if len(text) < _SHORTEST and not self.customs:
            return []
        found = [Hit(start, end, kind) for kind, search in self.searches for start, end in search(text)]
        for custom in self.customs:
            budget.spend(len(text) * custom.steps)
            found += [Hit(start, end, custom.kind) for start, end in _windows(custom, text)]
        reading = escapes.undone(text) if depth else text
        inner = self._found(reading, budget, depth - 1) if reading != text else []
        if not inner:
            return found
        at = escapes.places(text)
        # What begins within an escape begins behind it: `\nalice@...` is nobody's address but alice's.
        found = [hit._replace(start=at.outside(hit.start)) for hit in found]
        found += [Hit(at.written(hit.start), at.written(hit.end), hit.kind) for hit in inner]
        return [hit for hit in found if hit.start < hit.end]


def _custom(pattern: CustomPattern) -> _Custom:
    window = regex_cost.window(pattern.regex) or min(regex_cost.WINDOWS)
    steps = 2 * regex_cost.ways(pattern.regex, window)
    return _Custom(
        pattern.name, regex_cost.compiles(pattern.regex), window, steps, pattern.display or pattern.name
    )


def _windows(custom: _Custom, text: str) -> Iterator[tuple[int, int]]:
    """Yield all matches, searched by windows that overlap by half: none is longer than half of one."""
    at, half = 0, custom.window // 2
    while at < len(text):
        end = min(len(text), at + custom.window)
        match = custom.pattern.search(text, at, end)
        if match is None or match.end() == match.start():
            at += half if end < len(text) else len(text)
        elif match.start() >= at + half and end < len(text):
            at += half  # it may go on behind this window
        else:
            yield match.span()
            at = match.end()
