"""The operator's patterns find what they name in every string, at their severity, within bounds."""

from __future__ import annotations

import time

from agentsh_net.core.configuration.settings import CustomPattern
from agentsh_net.core.inspect import custom, regex_cost
from agentsh_net.core.inspect.custom import MAX_SEARCHED, Custom
from agentsh_net.core.inspect.findings import Finding, Severity
from agentsh_net.core.inspect.strings import strings


def find(value: object, *patterns: CustomPattern) -> list[Finding]:
    return list(custom.find(custom.compiled(patterns), strings(value, 1 << 20).texts))


CODENAME = CustomPattern("codename", r"project\s+falcon", "a secret project", "medium")


def test_a_pattern_is_found_in_any_string_whatever_the_case() -> None:
    (found,) = find({"a": {"b": "About PROJECT\nFalcon"}}, CODENAME)
    assert (found.pattern, found.category, found.severity, found.path) == (
        "codename",
        "custom",
        "medium",
        "$.a.b",
    )
    assert found.excerpt.endswith("= a secret project")


def test_it_is_found_under_a_disguise() -> None:
    assert find(["pro\u200bject f\u0430lcon"], CODENAME)


def test_other_text_is_no_finding() -> None:
    assert not find({"falcon": "project"}, CODENAME)


def test_it_is_found_across_the_windows_of_a_long_text() -> None:
    size = regex_cost.window(CODENAME.regex)
    for at in range(size - 20, size + 20):
        assert find(["x" * at + " project falcon"], CODENAME), at


def test_what_is_searched_is_bounded() -> None:
    assert find(["x" * (MAX_SEARCHED - 100) + " project falcon"], CODENAME)
    many = ["x" * 4000 for _ in range(MAX_SEARCHED // 4000 + 1)]
    for texts in (["x" * MAX_SEARCHED + " project falcon"], [*many, "project falcon"]):
        (told,) = find(texts, CODENAME)
        assert (told.pattern, told.severity, told.category) == ("not-searched", "low", "oversize")
        assert f"codename searched the first {MAX_SEARCHED} characters" in told.excerpt


def test_one_that_can_match_in_few_ways_searches_much_more() -> None:
    plain = CustomPattern("plain", "project falcon")
    assert [f.pattern for f in find(["x" * 500_000 + " project falcon"], plain)] == ["plain"]


def test_a_pattern_that_was_never_checked_is_not_run() -> None:
    evil = custom.compiled([CustomPattern("evil", "(a+)+$")])
    assert evil[0].window == 0
    assert not list(custom.find(evil, strings(["a" * 64 + "b"], 1000).texts))


def test_the_dearest_pattern_that_is_accepted_ends_soon_on_the_worst_text() -> None:
    pattern = r"a.{0,50}b.{0,50}c"
    assert regex_cost.window(pattern)
    began = time.process_time()
    (told,) = find(["ab" * 60_000], CustomPattern("dear", pattern))
    assert told.pattern == "not-searched"
    assert time.process_time() - began < 5.0


def test_a_compiled_pattern_keeps_what_it_shows() -> None:
    (made,) = custom.compiled([CODENAME])
    assert isinstance(made, Custom)
    assert made.severity is Severity.MEDIUM
