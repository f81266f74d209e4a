"""YAML means what it shows: YAML 1.2 scalars, no key twice, bounded aliases and depth, and the line of every value."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.config.strict_yaml import MAX_ALIASES, MAX_DEPTH, read
from agentsh_net.core.errors import ConfigError, Problem


def refusal(text: str) -> Problem:
    with pytest.raises(ConfigError) as caught:
        read(text)
    (problem,) = caught.value.problems
    assert str(problem).isprintable()
    return problem


def only_problem(text: str) -> Problem:
    (problem,) = read(text).problems
    assert str(problem).isprintable()
    return problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("yes", "yes"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("010", 10),
        ("0o10", 8),
        ("0x00A50000", 0x00A50000),
        ("-5", -5),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ("2024-01-01", "2024-01-01"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("30s", "30s"),
        ("127.0.0.1", "127.0.0.1"),
        ("=", "="),
        ("|\n  a\n  b\n", "a\nb\n"),
    ],
)
def test_a_scalar_follows_yaml_1_2(text: str, value: Any) -> None:
    document = read(f"key: {text}")
    assert document.value == {"key": value}
    assert type(document.value["key"]) is type(value)
    assert not document.problems


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "---\n...\n"])
def test_an_empty_text_is_nothing(text: str) -> None:
    assert read(text).value is None


def test_every_value_has_its_line() -> None:
    document = read("a: 1\nb:\n  - x\n  -\n    c.d: 2\n")
    assert document.value == {"a": 1, "b": ["x", {"c.d": 2}]}
    assert document.lines == {"": 1, "a": 1, "b": 2, "b[0]": 3, "b[1]": 5, "b[1]['c.d']": 5}


def test_a_key_twice_is_a_problem_on_its_line_and_the_first_counts() -> None:
    document = read("a: 1\nb:\n  c: 1\n  d: 2\n  'c': 3\n")
    assert document.value == {"a": 1, "b": {"c": 1, "d": 2}}
    assert document.problems == (
        Problem("b.c", "the key a second time (first on line 3)", "each key once", 5),
    )


def test_a_tab_is_told_with_its_place() -> None:
    problem = refusal("a:\n  b:\n\t  c: 1\n")
    assert problem.path == "line 3, column 1"
    assert problem.found == "a tab"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: b: c", "line 1, column 5"),
        ("a: [1", "line 2, column 1"),
        ("a: 1\nb: *nowhere", "line 2, column 4"),
        ("a: 'x", "line 1, column 6"),
        ("a: 1\n---\nb: 2", "line 2, column 1"),
        ("a: 1\nb: \x01", "line 2, column 4"),
        ("a: 1\x85b: : c\n", "line 2, column 4"),
        ("- a\nb: 1", "line 2, column 1"),
        ("a: @x", "line 1, column 4"),
        ("%YAML 3.0\n---\na", "line 1, column 1"),
    ],
)
def test_text_that_is_no_yaml_is_told_with_its_place(text: str, path: str) -> None:
    assert refusal(text).path == path


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        ("1: x", "", "a key that is no text"),
        ("true: x", "", "a key that is no text"),
        ("~: x", "", "a key that is no text"),
        ("? [a]\n: x", "", "a key that is no text"),
        ("a: {<<: {b: 1}}", "a['<<']", "a merge key"),
        (
            "a: !!python/object/apply:os.system ['id']",
            "a",
            "the tag 'tag:yaml.org,2002:python/object/apply:os.system'",
        ),
        ("a: !secret x", "a", "the tag '!secret'"),
        ("a: !!binary aGk=", "a", "the tag 'tag:yaml.org,2002:binary'"),
        ("a: !!set {b, c}", "a", "the tag 'tag:yaml.org,2002:set'"),
        ("a: !!int x", "a", "the tag 'tag:yaml.org,2002:int'"),
        ("a: !!bool 1", "a", "the tag 'tag:yaml.org,2002:bool'"),
        ("a: " + "1" * 5000, "a", "a huge number"),
    ],
    ids=lambda v: v[:20],
)
def test_what_is_more_than_plain_data_is_a_problem(text: str, path: str, found: str) -> None:
    problem = only_problem(text)
    assert (problem.path, problem.found) == (path, found)


def test_a_quoted_merge_key_is_a_key() -> None:
    assert read("a: {'<<': 1}").value == {"a": {"<<": 1}}


def test_aliases_are_followed_and_counted() -> None:
    assert read("a: &x [1, 2]\nb: *x\n").value == {"a": [1, 2], "b": [1, 2]}
    uses = ", ".join(["*x"] * MAX_ALIASES)
    assert len(read(f"a: &x 1\nb: [{uses}]").value["b"]) == MAX_ALIASES
    assert "aliases" in refusal(f"a: &x 1\nb: [{uses}, *x]").found


def test_aliases_of_aliases_do_not_explode() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 30)]
    assert "expand to more" in refusal("\n".join(lines)).found


def test_an_anchor_within_itself_ends() -> None:
    assert "expand to more" in refusal("&a [*a]").found


def test_depth_is_bounded() -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH).value
    assert "levels" in refusal("[" * 100_000).found


def test_text_values_are_expanded_with_their_path_and_nothing_else_is() -> None:
    seen: list[tuple[str, str]] = []

    def expand(text: str, path: str) -> str:
        seen.append((text, path))
        return text.upper()

    assert read("a: [x, 1, true, ~]\nb: {c: 'y'}", expand).value == {
        "a": ["X", 1, True, None],
        "b": {"c": "Y"},
    }
    assert seen == [("x", "a[0]"), ("y", "b.c")]


@given(
    st.text(
        st.sampled_from("ab:-[]{}&*!|>'\"%@`#, \t\n\r\x85\u2028?~0.<")
        | st.characters(exclude_categories=["Cs"])
    )
)
def test_any_text_is_a_document_or_printable_problems(text: str) -> None:
    try:
        problems = read(text).problems
    except ConfigError as error:
        problems = error.problems
    assert all(str(p).isprintable() for p in problems)


DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(DATA)
def test_what_is_dumped_with_quoted_text_reads_back(data: Any) -> None:
    assert read(yaml.safe_dump(data, default_style='"', allow_unicode=True)).value == data or data in (
        None,
        {},
        [],
    )


@pytest.mark.parametrize(
    ("text", "where", "mended"),
    [
        ("a: 1\n---\nb: 2\n", "line 2", "one document: a policy has no second `---`"),
        ("a: 1\nb: {c: [{id: x\n", "line 3", "a comma, or the `}` of the `{` on line 2"),
        ("a: 1\nb: [x\nc: d\n", "line 3", "a comma, or the `]` of the `[` on line 2"),
        ("a:\n  b: 1\n c: 2\n", "line 3", "a `key: value` indented as the mapping that begins on line 1"),
        ("a:\n  - b\n  c: d\n", "line 3", "a `- ` indented as the list that begins on line 2"),
        ('a: "b\nc: d\n', "line 3", "the quote that ends the text on line 1"),
        ("a: {tool: *}\n", "line 1", "quotes around text that begins with `*` or `!`"),
        ("a: {b: [{tool: *_x}]}\n", "line 1", "quotes around text that begins with `*` or `!`"),
        ("a: {b: !x}\n", "line 1", "quotes around text that begins with `*` or `!`"),
        ('a: "\\d+"\n', "line 1", "single quotes around text with a `\\`, or each `\\` doubled"),
        ('a: "\\ud83d\\ude00"\n', "line 1", "the letter itself, or `\\U` and its 8 hex digits"),
        ("a: b: c\n", "line 1", "quotes around text with `: ` in it, and each key on a line of its own"),
        ("a: @b\n", "line 1", "quotes around text that begins with this character"),
        ("a: [b,\n", "line 2", "a value here, or the `]` or `}` of what begins before"),
    ],
)
def test_what_is_no_yaml_is_told_with_what_would_mend_it(text: str, where: str, mended: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(text)
    [problem] = refused.value.problems
    assert problem.path.startswith(f"{where}, column")
    assert problem.expected == mended
