"""Readers go on after a problem, tell each one with its path, and never show what is secret or not printable."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration.schema import (
    At,
    Refused,
    Required,
    checked,
    describe,
    hidden,
    items,
    key_path,
    mapping,
    meant,
    nearest,
    quoted,
    record,
    secret,
    section,
    table,
)
from agentsh_net.core.errors import Problem


def number(at: At, value: Any) -> int:
    if not isinstance(value, int):
        at.refuse(value, "a number")
    return value


def name(at: At, value: Any) -> str:
    if value == "bad":
        at.refuse(value, "another name")
    return str(value).casefold()


def run(reader: Any, value: Any) -> tuple[Any, list[Problem]]:
    problems: list[Problem] = []
    try:
        return reader(At("root", problems), value), problems
    except Refused:
        return None, problems


def test_a_record_holds_what_could_be_read_and_notes_the_rest() -> None:
    result, problems = run(record({"a": number, "b": number, "label": number}), {"a": 1, "b": "x", "labl": 2})
    assert result == {"a": 1}
    assert [str(p) for p in problems] == [
        "root.b: found 'x'; expected a number",
        "root.labl: found the unknown key 'labl'; expected `label`",
    ]


def test_a_record_without_its_required_key_cannot_be_used() -> None:
    reader = record({"a": Required(number), "b": number})
    result, problems = run(reader, {"b": "x"})
    assert result is None
    assert [p.path for p in problems] == ["root.b", "root.a"]
    assert run(reader, {"a": "x"})[1] == [Problem("root.a", "'x'", "a number")]


def test_a_section_calls_its_maker_with_what_was_given() -> None:
    assert run(section(dict, {"a": number}), {"a": 1}) == ({"a": 1}, [])
    assert run(section(dict, {"a": number}), {}) == ({}, [])


def test_a_list_goes_on_past_a_bad_item() -> None:
    result, problems = run(items(number), [1, "x", 3, None])
    assert result == (1, 3)
    assert [p.path for p in problems] == ["root[1]", "root[3]"]


def test_a_list_is_no_text_and_no_mapping() -> None:
    for value in ("abc", {"a": 1}, None):
        assert run(items(number), value)[1] == [Problem("root", describe(value), "a list")]


def test_a_key_with_nothing_below_it_may_be_left_out() -> None:
    problems = run(record({"a": items(number), "b": mapping}), {"a": None, "b": None})[1]
    assert [p.expected for p in problems] == ["a list, or no key `a`", "a mapping, or no key `b`"]


def test_items_that_are_the_same_name_the_first() -> None:
    result, problems = run(items(name, same=str), ["a", "b", "A"])
    assert result == ("a", "b")
    assert [(p.path, p.found) for p in problems] == [("root[2]", "a second one of root[0]")]


def test_a_table_refuses_keys_and_values_and_doubles() -> None:
    result, problems = run(table(name, number), {"a": 1, "bad": 2, "c": "x", "A": 3})
    assert result == {"a": 1}
    assert [p.path for p in problems] == ["root.bad", "root.c", "root.A"]


def test_what_stands_under_a_bad_key_is_read_for_its_problems_too() -> None:
    result, problems = run(table(name, number), {"bad": "x"})
    assert result == {}
    assert [(p.path, p.expected) for p in problems] == [
        ("root.bad", "another name"),
        ("root.bad", "a number"),
    ]


def test_keys_that_are_no_text_are_told() -> None:
    result, problems = run(table(name, number), {1: 2, None: 3, "a": 4})
    assert result == {"a": 4}
    assert [p.found for p in problems] == ["a key that is the number 1", "a key that is nothing (null)"]


def test_checks_run_one_after_the_other_on_what_was_read() -> None:
    reader = checked(number, lambda at, n: n + 1, lambda at, n: n * 2)
    assert run(reader, 3) == (8, [])


def test_a_secret_value_is_told_by_its_length() -> None:
    problems = run(secret(items(number)), ["hunter2", {"k": "hunter2"}])[1]
    assert [p.found for p in problems] == ["a string of 7 characters", "a mapping of 1 key"]


def test_a_path_quotes_keys_that_are_not_plain() -> None:
    assert key_path("", "a-b_1") == "a-b_1"
    assert key_path("a", "b") == "a.b"
    assert key_path("a", "b.c") == "a['b.c']"
    assert key_path("a", "") == "a['']"
    assert len(key_path("a", "x" * 1000)) < 100


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing (null)"),
        (True, "true"),
        (5, "the number 5"),
        (1.5, "the number 1.5"),
        pytest.param(10**5000, "a huge number", id="huge"),
        (float("inf"), "a huge number"),
        ("a\x1b[2J\n", r"'a\x1b[2J\n'"),
        ("x" * 1000, f"'{'x' * 57}...'"),
        ({"a": 1}, "a mapping of 1 key"),
        ([1, 2], "a list of 2 items"),
        (b"", "a value of type bytes"),
    ],
)
def test_a_value_is_described_on_one_line(value: Any, words: str) -> None:
    assert describe(value) == words


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans()))
def test_a_secret_is_never_described_by_its_content(value: Any) -> None:
    words = describe(value, secret=True)
    assert words in {"a number", "true or false"} or words == hidden(len(value))


def test_of_what_is_hidden_the_length_is_told() -> None:
    assert (hidden(1), hidden(2)) == ("a string of 1 character", "a string of 2 characters")


@given(st.text(st.characters()))
def test_quoted_text_is_short_and_printable(text: str) -> None:
    assert quoted(text).isprintable()
    assert len(quoted(text)) <= 10 * 60 + 2


def test_the_nearest_key_is_named_or_all_of_them() -> None:
    assert nearest("alowed", ["allowed", "denied"]) == "`allowed`"
    assert nearest("zzz", ["b", "a"]) == "one of a, b"
    assert nearest("zzz", ["only"]) == "`only`"
    assert nearest("zzz", []) == "no key here"


def test_a_section_that_is_written_down_is_meant() -> None:
    read = section(meant(dict), {"enabled": lambda _, value: value, "n": lambda _, value: value})
    assert read(At("", []), {"n": 1}) == {"enabled": True, "n": 1}
    assert read(At("", []), {"enabled": False}) == {"enabled": False}
