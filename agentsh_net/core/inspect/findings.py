"""What a detector found: which pattern, how bad, where, and a visible, bounded excerpt.

How bad the worst of them is decides a verdict elsewhere (core.verdicts.steps); here severities only have an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agentsh_net.core.naming.folding import visible

BEFORE, AFTER = 40, 120  # characters of context in an excerpt: a line or two of a terminal
MAX_EXCERPT = 400  # characters; escapes such as <U+200B> make text longer than it was
MAX_FINDINGS = 32  # of one definition, call or result: more of them say nothing new, and an event stays small


class Severity(StrEnum):
    """How sure and how bad; the order is that of SEVERITIES."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Category(StrEnum):
    """What a finding is about; MEANING says it in words."""

    INSTRUCTION = "instruction"
    SECRECY = "secrecy"
    EXFILTRATION = "exfiltration"
    EXECUTION = "execution"
    CREDENTIALS = "credentials"
    PREFERENCE = "preference"
    SHADOWING = "shadowing"
    INVISIBLE = "invisible"
    CONTROL = "control"
    LOOKALIKE = "look-alike"
    NAME = "name"
    REFERENCE = "reference"
    OVERSIZE = "oversize"
    POISONING = "poisoning"
    CUSTOM = "custom"


# What a text does in which something of a category was found, as a user is told.
MEANING: Mapping[str, str] = {
    Category.INSTRUCTION: "gives orders to the model",
    Category.SECRECY: "wants something kept from the user",
    Category.EXFILTRATION: "wants data handed over or sent away",
    Category.EXECUTION: "wants something run, granted or destroyed",
    Category.CREDENTIALS: "reaches for secrets, or holds one",
    Category.PREFERENCE: "wants to be used instead of other tools",
    Category.SHADOWING: "steers the calls of other tools",
    Category.INVISIBLE: "holds text that people do not see and models read",
    Category.CONTROL: "holds control characters or terminal escapes",
    Category.LOOKALIKE: "has letters or a name that pass for others",
    Category.NAME: "has a name outside the protocol's alphabet",
    Category.REFERENCE: "leads elsewhere by a schema, link or icon",
    Category.OVERSIZE: "is longer than what is inspected",
    Category.POISONING: "joins several kinds of poison",
    Category.CUSTOM: "matches a pattern of the policy",
}

SEVERITIES = tuple(Severity)
_RANK: dict[str, int] = {severity: rank for rank, severity in enumerate(SEVERITIES)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a detector found. `path` is JSONPath from the inspected value; a key's own text is under its own path."""

    pattern: str
    category: Category
    severity: Severity
    path: str
    excerpt: str

    def to_json(self) -> dict[str, Any]:
        """Return it as an event carries it."""
        return {
            "pattern": self.pattern,
            "category": self.category.value,
            "severity": self.severity.value,
            "path": self.path,
            "excerpt": self.excerpt,
        }


def worst(findings: Iterable[Finding]) -> str:
    """Return the highest severity among findings; empty where there are none."""
    ranks = [_RANK[finding.severity] for finding in findings]
    return SEVERITIES[max(ranks)].value if ranks else ""


def worse(left: str, right: str) -> str:
    """Return the higher of two severities as text; empty is none."""
    return max(left, right, key=lambda s: _RANK[Severity(s)] if s else -1)


def at_least(severity: str, bound: str) -> bool:
    """Say whether a severity is `bound` or worse; one that nobody knows counts as the worst."""
    return _RANK.get(severity, len(_RANK) - 1) >= _RANK[bound]


def bounded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings without repetitions, the worst first, at most MAX_FINDINGS of them."""
    unique: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.pattern, finding.path), finding)
    return tuple(sorted(unique.values(), key=lambda f: -_RANK[f.severity])[:MAX_FINDINGS])


def excerpt(text: str, start: int, end: int, note: str = "") -> str:
    """Return the neighbourhood of a match with everything in it made visible, and a note behind it."""
    first, last = max(0, start - BEFORE), min(len(text), max(end, start) + AFTER, start + AFTER)
    shown = visible(text[first:last])[: MAX_EXCERPT - min(len(note), MAX_EXCERPT // 2)]
    whole = f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}"
    return f"{whole} = {note}"[: MAX_EXCERPT + 4] if note else whole
