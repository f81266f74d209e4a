"""A pattern that cannot be one is refused with its fault, never taken as a literal."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.configuration import patterns
from agentsh_net.core.configuration.schema import At, Reader, Refused
from agentsh_net.core.errors import Problem


def problem(reader: Reader[Any], value: Any) -> Problem:
    problems: list[Problem] = []
    with pytest.raises(Refused):
        reader(At("here", problems), value)
    assert len(problems) == 1
    return problems[0]


@pytest.mark.parametrize("value", ["*", "a*b?", "[a-z]*", "[!a]", "[]a]", "weather/*", "ａ*"])
def test_globs_with_stars_question_marks_and_sets_are_patterns(value: str) -> None:
    assert patterns.glob(At("here", []), value) == value


@pytest.mark.parametrize(
    "value", ["", " ", "[", "a[b", "[]", "[!]", "[z-a]", "a\nb", "a\u200bb", "x" * 513, 5, None]
)
def test_what_cannot_be_a_pattern_is_refused(value: Any) -> None:
    assert problem(patterns.glob, value).path == "here"


def test_a_bad_glob_says_what_is_accepted() -> None:
    found = problem(patterns.glob, "a[b")
    assert "without its `]`" in found.found
    assert all(token in found.expected for token in ("`*`", "`?`", "`[...]`"))


def test_a_regular_expression_compiles() -> None:
    assert patterns.regex(At("here", []), r"B-\d{6}") == r"B-\d{6}"


@pytest.mark.parametrize("value", ["(", "[z-a]", "a{99999999999}", "(?P<x", "\\", "(?\x07)", "x" * 513, ""])
def test_a_regular_expression_that_does_not_compile_is_one_printable_problem(value: str) -> None:
    assert str(problem(patterns.regex, value)).isprintable()


def test_a_hash_is_kept_as_pins_write_it() -> None:
    for value in ("AB" * 32, "sha256:" + "ab" * 32):
        assert patterns.content_hash(At("here", []), value) == "sha256:" + "ab" * 32
    assert problem(patterns.content_hash, "ab").path == "here"


def test_an_agents_own_tools_are_globs_or_a_preset() -> None:
    assert patterns.native_tool(At("here", []), "Web*") == "Web*"
    assert patterns.native_tool(At("here", []), "preset:claude-code") == "preset:claude-code"
    assert problem(patterns.native_tool, "a[").path == "here"


def test_a_preset_of_no_known_agent_names_the_known_ones() -> None:
    found = problem(patterns.native_tool, "preset:claude")
    assert "claude-code" in found.found
    assert "preset:" in found.expected
