"""What a phrase detector is, and how many of them are run over many strings in little time.

Phrases match core.inspect.plain's form of a text. Which phrases there are is said in the files of their families.
Every gap is bounded and no quantifier is nested, so that the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from agentsh_net.core.inspect.anchors import Anchors
from agentsh_net.core.inspect.findings import AFTER, BEFORE, Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.plain import plain
from agentsh_net.core.inspect.strings import Text
from agentsh_net.core.naming.folding import visible

# Words before a match that turn it into its opposite: `never bypass authentication`.
NEGATED = re.compile(
    r"(?:\b(?:whether|never|not|cannot|avoid|without|prevents?|detects?|blocks?|stops?|against)|n't)\b[^.!?]{0,24}$"
)
REACH = 40  # characters before a match in which such a word counts
# Words before a match that speak of it: `detects prompts that ignore ...`, `Sample response: reveal ...`. No order, but told of.
MENTIONED = re.compile(
    r"""\b(?:(?:detect|scan|flag|analy[sz]e|classif(?:y|ie)|identif(?:y|ie)|recogni[sz]e|check|block|catch|report|test|look)(?:e?s|ing)?\b[^.!?:;]{0,70}
          \b(?:such\ as|like|that|which|whether|attempts?|phrases?|patterns?|injections?|prompts?|strings?)\b[^.!?:;]{0,40}
        | (?:sample|example|expected|mock|canned|test)\ (?:response|output|text|input|string|prompt|payload|reply|replies)s?\ ?:\ ?
        | (?:explain(?:s|ing)?|describ(?:es?|ing)|document(?:s|ing|ation)?)\b[^.!?:;]{0,60}\b(?:such\ as|like|how)\b[^.!?:;]{0,20}
        | \b(?:e\.g\.|i\.e\.|such\ as|for\ example)[,:]?\ \(?)'?\Z""",
    re.VERBOSE,
)
MENTION_REACH = 120  # characters before a match in which they count
# What a sentence, a line or a field begins behind: written `~|~` in a pattern.
BEGINS = r"(?:\A'?|[.!?:>|\])*-]\ '?)"
MAX_TRIES = 8  # matches of one phrase in one string that are looked at for one that is not negated
SHORTEST = 10  # ASCII characters: a shorter string holds no phrase, and most strings are short


@dataclass(frozen=True, slots=True)
class Phrase:
    """A pattern over plain text. Of each group of `anchors` one is in every match: a text without them is not searched.

    `unless_negated` ones mean nothing bad after `never` and the like; `begins` ones are looked for where lines begin, too.
    """

    name: str
    category: Category
    severity: Severity
    anchors: tuple[tuple[str, ...], ...]
    expression: str
    flags: int = 0
    unless_negated: bool = False
    begins: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled when a text has its anchors for the first time: all of them take 0.1 s of each start."""
        return _compiled(self.expression, self.flags)


@cache
def _compiled(expression: str, flags: int) -> re.Pattern[str]:
    return re.compile(expression, flags)


def phrase(
    name: str,
    category: Category,
    severity: Severity,
    anchors: str,
    pattern: str,
    *,
    unless_negated: bool = False,
) -> Phrase:
    """Return a phrase; `~n~` in the pattern is a gap of up to n characters within a sentence, anchors stand between commas, groups of them between semicolons."""
    begins = "~|~" in pattern
    gaps = re.sub(r"~(\d+)~", r"(?:(?![.!?;] | \\| ).){0,\1}?", pattern.replace("~|~", BEGINS))
    rarest_first = sorted((tuple(group.split(",")) for group in anchors.split(";")), key=len)
    flags = re.VERBOSE | re.DOTALL
    return Phrase(name, category, severity, tuple(rarest_first), gaps, flags, unless_negated, begins)


class Index:
    """Phrases by the anchors that each of them cannot be without: of its groups the smallest."""

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        self.phrases = tuple(phrases)
        self._by_anchor: dict[str, list[int]] = {}
        self._others: list[tuple[tuple[str, ...], ...]] = []  # groups besides the smallest, the longest last
        for number, each in enumerate(self.phrases):
            smallest, *others = each.anchors
            for anchor in smallest:
                self._by_anchor.setdefault(anchor, []).append(number)
            self._others.append(tuple(others))
        self._anchors = Anchors(self._by_anchor)

    def candidates(self, text: str, words: Iterable[str] | None = None) -> list[Phrase]:
        """Return the phrases of whose anchors a plain text has one of each group, in their order; `words`: as of Anchors."""
        there = self._anchors.there(text, words)
        numbers = sorted({number for anchor in there for number in self._by_anchor[anchor]})
        return [self.phrases[number] for number in numbers if _anchored(self._others[number], text)]


def find(phrases: Sequence[Phrase], texts: Sequence[Text], index: Index | None = None) -> Iterator[Finding]:
    """Yield each phrase that a text holds, once per phrase and string; `index` is of the phrases."""
    texts = [text for text in texts if len(text.plain) >= SHORTEST or not text.plain.isascii()]
    whole = "\n".join(text.plain for text in texts)
    lined: dict[int, str] = {}
    for candidate in (index or Index(phrases)).candidates(whole):
        for number, text in enumerate(texts):
            read, span = text.plain, matches(candidate, text.plain)
            if span is None and candidate.begins and _anchored(candidate.anchors, text.plain):
                read = lined[number] = lined.get(number) or by_lines(text.raw)
                span = matches(candidate, read)
            if span is not None:
                yield _finding(candidate, text, read, span)


def _anchored(groups: tuple[tuple[str, ...], ...], text: str) -> bool:
    """Say whether a text has an anchor of each group."""
    for group in groups:
        for anchor in group:  # a loop, since this is where the time goes
            if anchor in text:
                break
        else:
            return False
    return True


def matches(candidate: Phrase, text: str) -> tuple[int, int] | None:
    """Return where a plain text holds a phrase."""
    if not _anchored(candidate.anchors, text):
        return None
    for tried, match in enumerate(candidate.pattern.finditer(text)):
        before = text[max(0, match.start() - REACH) : match.start()]
        if not (candidate.unless_negated and NEGATED.search(before)):
            return match.span()
        if tried >= MAX_TRIES:
            break
    return None


def by_lines(raw: str) -> str:
    """Return a text as `plain` does, with ` | ` where a line begins anew and was not only too long; in JSON in a string, too."""
    lines = map(str.strip, raw.replace("\\n", "\n").split("\n"))
    return plain("".join(f" {line}" if line[:1].islower() else f" | {line}" for line in lines if line))


def mentioned(text: str, start: int) -> bool:
    """Say whether what stands at a place of a text in lower case is spoken of there, not said."""
    return MENTIONED.search(text, max(0, start - MENTION_REACH), start) is not None


def _finding(candidate: Phrase, text: Text, read: str, span: tuple[int, int]) -> Finding:
    shown = excerpt(read, *span)
    if len(text.raw) <= BEFORE + AFTER:  # short enough to be shown as it was written
        shown = visible(text.raw)
    spoken_of = candidate.category is Category.INSTRUCTION and mentioned(read, span[0])
    severity = Severity.LOW if spoken_of else candidate.severity
    return Finding(candidate.name, candidate.category, severity, text.path, shown)
