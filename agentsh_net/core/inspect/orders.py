"""Orders to the model, found by what their words are for and not by which words they are: rules over core.inspect.letters.

How rules are written and looked for. Which there are is said in core.inspect.order_rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from agentsh_net.core.inspect import regex_cost
from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.letters import letters, place, words
from agentsh_net.core.inspect.phrases import mentioned
from agentsh_net.core.inspect.strings import Text

SHORTEST = 16  # characters: a shorter string holds no order
SHORTEST_OTHER = 6  # in scripts in which a character may be a word
COMMON = "oidbWTYXRLFOuGNhUP"  # letters that most texts have
MAX_TRIES = 8  # matches of one rule in one string that are looked at for one that is not negated
NEGATED_BEFORE = re.compile(r"N[^|:]{0,2}\Z")
NEGATED_WITHIN = re.compile(r"N[^|]?[RGPwV]")

# What several letters mean together. A gap is written ~n~: up to n words within a sentence; ^n^ goes on into the next one.
PARTS = {
    "ORDER": "(?:[OTA!]|ho)",
    "MUST": "(?:O|ho|bo|bO)",
    "TAKE": "[Rwj]",
    "SECRET": "(?<!Y)(?<!Y[^|])(?:[Ss]|j{1,2}k|ev)",  # not `your key`, which honest tools ask for
    "CHAT": "(?:[WY][^|]{0,2}C[mHu]?|[WY][^|]{0,2}m|[WY]?ym|Y[^|]?H|W[^|]?U[^|]{0,3}P|C[mH]|C[^|]?W|W[^|]?H[^|]{0,2}C|[HC][^|]{1,3}C)",
    "SLOT": "[zqt]",
    "BEGIN": r"(?:\A|[|:])",
}


# What is meant as all of it may be meant as what came before; who is to act may be to answer or to destroy; a response is a result.
FAMILIES = {"W": "W5", "X": "X68", "u": "u7"}
MEMBER = re.compile(r"\[[^\]]*\]|[WXu]")


@dataclass(frozen=True, slots=True)
class Pattern:
    """An expression over letters. Of each of `needs` one letter is in every match: a text without is not searched."""

    expression: re.Pattern[str]
    needs: tuple[frozenset[str], ...]
    knows_no: bool  # it says itself where a negation stands


@dataclass(frozen=True, slots=True)
class Rule:
    """Patterns of which one is enough."""

    name: str
    category: Category
    severity: Severity
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """Each pattern with its rule, and for each letter the numbers of those that a text may match because it has that letter."""

    patterns: tuple[tuple[Rule, Pattern], ...]
    by_letter: Mapping[str, frozenset[int]]


def rules(*listed: Rule) -> Rules:
    """Return rules whose patterns are found by the rarest letter that each of them needs."""
    patterns = tuple((one, pattern) for one in listed for pattern in one.patterns)
    by_letter: dict[str, set[int]] = {}
    for number, (_, pattern) in enumerate(patterns):
        for letter in min(pattern.needs, key=_commonness):
            by_letter.setdefault(letter, set()).add(number)
    return Rules(patterns, {letter: frozenset(numbers) for letter, numbers in by_letter.items()})


def _commonness(letters_of_one_place: frozenset[str]) -> int:
    return sum(1 + COMMON.count(letter) * 3 for letter in letters_of_one_place)


def rule(name: str, category: Category, severity: Severity, *patterns: str) -> Rule:
    """Return a rule of patterns in which PARTS stand for what they mean; spaces mean nothing."""
    return Rule(name, category, severity, tuple(map(_compiled, patterns)))


def _spelled(pattern: str) -> str:
    for part, meaning in PARTS.items():
        pattern = pattern.replace(part, meaning)
    pattern = MEMBER.sub(_family, pattern)
    pattern = re.sub(r"~(\d+)~", r"[^|]{0,\1}?", pattern)
    pattern = re.sub(r"\^(\d+)\^", r".{0,\1}?", pattern)
    return pattern.replace(" ", "")


def _compiled(pattern: str) -> Pattern:
    spelled = _spelled(pattern)
    return Pattern(re.compile(spelled), tuple(regex_cost.needed(spelled)), knows_no="N" in spelled)


def _family(match: re.Match[str]) -> str:
    """Return a letter or a class of letters with all members of their families."""
    letters_of_it = "".join(FAMILIES.get(letter, letter) for letter in match[0])
    return letters_of_it if match[0][0] == "[" else f"[{letters_of_it}]"


def orders(looked_for: Rules, texts: Iterable[Text], of_parameters: Rules | None = None) -> Iterator[Finding]:
    """Find orders in texts, each rule once per string; more of them in descriptions of parameters. Keys are names, not sentences."""
    for text in texts:
        if text.key or len(text.raw) < (SHORTEST if text.raw.isascii() else SHORTEST_OTHER):
            continue
        read = words(text.raw)
        spelled = letters(read)
        yield from _found(looked_for, text, read, spelled)
        if of_parameters is not None and _describes_parameter(text):
            yield from _found(of_parameters, text, read, spelled)


def _found(looked_for: Rules, text: Text, read: str, spelled: str) -> Iterator[Finding]:
    there = frozenset(spelled)
    numbers: set[int] = set()
    for letter in there:
        numbers |= looked_for.by_letter.get(letter, frozenset())
    told: set[str] = set()
    for number in sorted(numbers):
        one, pattern = looked_for.patterns[number]
        if one.name in told or any(map(there.isdisjoint, pattern.needs)):
            continue
        span = _match(pattern, spelled)
        if span is not None:
            told.add(one.name)
            start, end = place(read, *span)
            spoken_of = one.category is Category.INSTRUCTION and mentioned(read, start)
            severity = Severity.LOW if spoken_of else one.severity
            yield Finding(one.name, one.category, severity, text.path, excerpt(read, start, end))


def _describes_parameter(text: Text) -> bool:
    return "properties" in text.steps and text.steps[-1] in ("description", "title")


def _match(pattern: Pattern, spelled: str) -> tuple[int, int] | None:
    for tried, match in enumerate(pattern.expression.finditer(spelled)):
        start = match.start()
        if not NEGATED_BEFORE.search(spelled, max(0, start - 4), start) and (
            pattern.knows_no or not NEGATED_WITHIN.search(match[0])
        ):
            return match.span()
        if tried >= MAX_TRIES:
            break
    return None
