"""What this version does not do is refused when it is switched on, in one line each, and only then."""

from __future__ import annotations

from agentsh_net.core.config import parse
from agentsh_net.core.not_yet import NOT_YET, NotYet, among, filled, refusals, true


def test_what_is_switched_on_is_one_refusal_that_names_the_way_out() -> None:
    rows = (NotYet("a.mode", among("later"), "`now`"),)
    (problem,) = refusals({"a": {"mode": "later"}}, rows)
    assert (problem.path, problem.expected) == ("a.mode", "`now`")
    assert problem.found == "'later', which is not available in this version"
    assert not list(refusals({"a": {"mode": "now"}}, rows))


def test_every_switch_of_the_schema_is_there() -> None:
    assert NOT_YET == ()


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
