"""What this version does not do is refused when it is switched on, in one line each, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.config import parse
from agentsh_net.core.errors import ConfigError
from agentsh_net.core.not_yet import NOT_YET, NotYet, among, filled, refusals, true

# For every row: a value that switches it on, and one that does not.
CASES: dict[str, tuple[Any, Any]] = {
    "proxy.providers.*.dialect": ("bedrock", "gemini"),
}


def mapping_of(path: str, value: Any) -> dict[str, Any]:
    if "*" in path:
        return {"proxy": {"providers": {"mine": {"dialect": value, "base_url": "https://llm.corp"}}}}
    for step in reversed(path.split(".")):
        value = {step: value}
    return value


@pytest.mark.parametrize("row", NOT_YET, ids=lambda row: row.path)
def test_switched_on_it_is_one_refusal_that_names_the_way_out(row: NotYet) -> None:
    mapping = mapping_of(row.path, CASES[row.path][0])
    with pytest.raises(ConfigError) as caught:
        parse(mapping)
    (problem,) = caught.value.problems
    assert problem.path == row.path.replace("*", "mine")
    assert "not available in this version" in problem.found
    assert problem.expected == row.instead
    assert parse(mapping, allow_unavailable=True)


@pytest.mark.parametrize("row", NOT_YET, ids=lambda row: row.path)
def test_switched_off_it_is_no_refusal(row: NotYet) -> None:
    off = CASES[row.path][1]
    assert parse({} if off is None else mapping_of(row.path, off))


def test_the_built_in_default_switches_on_nothing_that_is_missing() -> None:
    assert parse({})
    assert not list(refusals({}))


def test_a_table_of_ones_own_is_walked_with_any_key() -> None:
    rows = (NotYet("a.*.b", true, "x"),)
    tree = {"a": {"one": {"b": True}, "two": {"b": False}, "three": 5, 4: {"b": True}}}
    assert [p.path for p in refusals(tree, rows)] == ["a.one.b"]
    assert not list(refusals({"a": []}, rows))


def test_what_counts_as_on() -> None:
    assert among("x")("x")
    assert not among("x")(["x"])
    assert not true(1)
    assert filled({"a": 1})
    assert not filled([])
    assert not filled(None)
