"""A pattern that a text could make run for ever is refused before it runs; what people write to match tokens is not."""

from __future__ import annotations

import re
import time

import pytest

from agentsh_net.core.inspect import regex_cost

CHEAP = [
    r"\bACME-[0-9]{6}\b", r"internal only", r"(?:foo|bar)baz", r"project[ _-]?x", r"sk_[A-Za-z0-9]{20,40}", r"secret.*", r"[a-z]+@corp\.example",
    r"^\s*TODO", r"a.{0,50}b.{0,40}c", r"(?i:confidential)", r"(?P<id>\d+)", r"x(?=y)", r"(a|b|c)+z",
]  # fmt: skip
DEAR = [
    r"(a+)+$", r"(a*)*b", r"(a|a)+$", r"(a|aa)+$", r"([a-z]+)*\d", r"(.*)*x", r".*.*.*=", r"\s*\s*\s*x", r"(\w+\s?)*$", r"(?:a?){40}a{40}",
    r"(x+x+)+y", r"(.+)+\1", r"((a{0,100}){0,100}){0,100}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", CHEAP)
def test_ordinary_patterns_are_accepted(pattern: str) -> None:
    assert regex_cost.window(pattern) in regex_cost.WINDOWS


@pytest.mark.parametrize("pattern", DEAR)
def test_patterns_that_explode_are_refused(pattern: str) -> None:
    assert regex_cost.window(pattern) == 0


@pytest.mark.parametrize("pattern", CHEAP)
def test_what_is_accepted_runs_in_no_time_on_text_made_for_it(pattern: str) -> None:
    compiled, size = regex_cost.compiles(pattern), regex_cost.window(pattern)
    for unit in ("a", "ab", "x ", "secret", "sk_A", "foo", "a" * 49 + "b", "a@corp."):
        text = (unit * size)[:size]
        began = time.process_time()
        compiled.search(text)
        assert time.process_time() - began < 0.25


def test_possessive_and_atomic_repeats_do_not_count() -> None:
    assert regex_cost.window(r"(?:[a-z]++\.)++com")
    assert regex_cost.window(r"(?>a+)+b") == regex_cost.window(r"a*b")


def test_no_regular_expression_is_an_error() -> None:
    with pytest.raises(re.error):
        regex_cost.window("(")


@pytest.mark.parametrize(
    ("pattern", "sets"),
    [
        ("ab?[cd]+", ["a", "cd"]),
        ("a*", []),
        ("x{0,3}y{1,3}", ["y"]),
        ("(?:a|[bc]d)(?:d|e?)", ["ad"]),
        ("[^a](?=b)(?!c).", []),
    ],
)
def test_letters_are_needed_where_no_match_is_without_them(pattern: str, sets: list[str]) -> None:
    assert sorted("".join(sorted(letters)) for letters in regex_cost.needed(pattern)) == sets
