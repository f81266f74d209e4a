"""Findings are ordered by severity, told once, bounded, and show what they found without hiding any of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.inspect import findings
from agentsh_net.core.inspect.findings import MAX_EXCERPT, MAX_FINDINGS, Category, Finding, Severity, excerpt


def finding(severity: Severity = Severity.LOW, pattern: str = "p", path: str = "$") -> Finding:
    return Finding(pattern, Category.CUSTOM, severity, path, "e")


def test_a_severity_is_as_bad_as_itself_and_one_that_nobody_knows_as_the_worst() -> None:
    assert tuple(findings.SEVERITIES) == ("low", "medium", "high", "critical")
    assert [findings.at_least(s, "high") for s in findings.SEVERITIES] == [False, False, True, True]
    assert findings.at_least("dreadful", "critical")


def test_the_worst_of_none_is_none() -> None:
    assert findings.worst(()) == ""
    assert findings.worst([finding(Severity.MEDIUM), finding(Severity.HIGH), finding()]) == "high"


def test_the_worse_of_two_counts_nothing_as_least() -> None:
    assert findings.worse("", "low") == findings.worse("low", "") == "low"
    assert findings.worse("critical", "high") == "critical"
    assert findings.worse("", "") == ""


def test_what_is_at_least_a_bound_includes_the_bound() -> None:
    assert findings.at_least(Severity.HIGH, Severity.HIGH)
    assert not findings.at_least(Severity.MEDIUM, Severity.HIGH)


def test_repetitions_go_and_the_worst_stand_first() -> None:
    low, high = finding(Severity.LOW, "a"), finding(Severity.HIGH, "b")
    assert findings.bounded([low, high, low]) == (high, low)
    assert len(findings.bounded(finding(pattern=str(i)) for i in range(100))) == MAX_FINDINGS


def test_a_critical_finding_survives_any_number_of_lesser_ones() -> None:
    many = [finding(pattern=str(i)) for i in range(100)]
    assert findings.bounded([*many, finding(Severity.CRITICAL, "c")])[0].pattern == "c"


@given(st.text(max_size=600), st.integers(0, 600), st.integers(0, 600), st.text(max_size=600))
def test_an_excerpt_is_bounded_and_wholly_visible(text: str, start: int, length: int, note: str) -> None:
    shown = excerpt(text, min(start, len(text)), min(start + length, len(text)), ascii(note))
    assert shown.isprintable()
    assert len(shown) <= MAX_EXCERPT + 10


def test_an_excerpt_shows_what_was_hidden_and_what_it_says() -> None:
    assert excerpt("a\u200bb", 1, 2, "'hi'") == "a<U+200B>b = 'hi'"


def test_a_finding_is_an_object_in_an_event() -> None:
    assert finding().to_json() == {
        "pattern": "p",
        "category": "custom",
        "severity": "low",
        "path": "$",
        "excerpt": "e",
    }
