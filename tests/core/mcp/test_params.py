"""Arguments that are repeated as header fields are what the body says, or the call is refused; other arguments have no field."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.mcp.params import MAX_ANNOTATED, MAX_DEPTH, annotated, disagreement

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "plain": {"type": "string"},
        "in": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
    },
}


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({}, {}),
        ({"plain": "x"}, {}),
        ({"region": None}, {}),
        ({"region": "eu"}, {"mcp-param-region": "eu"}),
        ({"region": "Grüße"}, {"mcp-param-region": "=?base64?R3LDvMOfZQ==?="}),
        ({"region": "=?base64?SGk="}, {"mcp-param-region": "=?base64?SGk="}),
        ({"count": 42}, {"mcp-param-count": "42"}),
        ({"count": 42.0}, {"mcp-param-count": "42"}),
        ({"count": 42}, {"mcp-param-count": "42.0"}),
        ({"count": 9007199254740993}, {"mcp-param-count": "9007199254740993"}),
        ({"dry": True}, {"mcp-param-dry": "true"}),
        ({"in": {"zone": "a"}}, {"mcp-param-zone": "a"}),
        ({"region": ["eu"]}, {}),
        ({}, {"mcp-param-other": "x"}),
    ],
)
def test_fields_that_agree_pass(arguments: Any, fields: dict[str, str]) -> None:
    assert disagreement(annotated(SCHEMA), arguments, fields, ()) == ""


@pytest.mark.parametrize(
    ("arguments", "fields", "why"),
    [
        ({"region": "eu"}, {}, "missing"),
        ({"region": "eu"}, {"mcp-param-region": "us"}, "is not the argument"),
        ({"region": "eu"}, {"mcp-param-region": "EU"}, "is not the argument"),
        ({"region": "1"}, {"mcp-param-region": "1.0"}, "is not the argument"),
        ({}, {"mcp-param-region": "eu"}, "not there"),
        ({"region": ["eu"]}, {"mcp-param-region": "eu"}, "not there"),
        ("no object", {"mcp-param-region": "eu"}, "not there"),
        ({"region": "Hello"}, {"mcp-param-region": "=?base64?SGVsbG8?="}, "is not the argument"),
        ({"region": "Hello"}, {"mcp-param-region": "=?base64?SGVs!!!bG8=?="}, "is not the argument"),
        ({"region": "\ufffd"}, {"mcp-param-region": "=?base64?/w==?="}, "is not the argument"),
        ({"count": 42}, {"mcp-param-count": "42.5"}, "is not the argument"),
        ({"count": 42}, {"mcp-param-count": "4e1"}, "is not the argument"),
        ({"dry": True}, {"mcp-param-dry": "1"}, "is not the argument"),
        ({"in": {"zone": "a"}}, {}, "missing"),
    ],
)
def test_fields_that_contradict_the_body_do_not(arguments: Any, fields: dict[str, str], why: str) -> None:
    assert why in disagreement(annotated(SCHEMA), arguments, fields, ())


def test_a_field_that_is_missing_is_no_contradiction_where_they_need_not_all_be_there() -> None:
    mirrored = annotated(SCHEMA)
    assert disagreement(mirrored, {"region": "eu"}, {}, (), complete=False) == ""
    found = disagreement(mirrored, {"region": "eu"}, {"mcp-param-region": "us"}, (), complete=False)
    assert "is not the argument" in found


def test_a_field_that_stands_twice_is_refused_whatever_it_says() -> None:
    fields = {"mcp-param-region": "eu, eu"}
    assert "twice" in disagreement(annotated(SCHEMA), {"region": "eu, eu"}, fields, {"mcp-param-region"})


@pytest.mark.parametrize(
    "schema", [None, [], {}, {"properties": []}, {"properties": {"a": 1}}, {"x-mcp-header": "A"}]
)
def test_a_schema_that_names_none_asks_for_none(schema: Any) -> None:
    assert annotated(schema) == ()


@pytest.mark.parametrize("mark", [1, "", "a b", "a\r\nb", "ü"])
def test_an_annotation_that_is_no_field_name_counts_for_nothing(mark: Any) -> None:
    assert annotated({"properties": {"a": {"type": "string", "x-mcp-header": mark}}}) == ()


@pytest.mark.parametrize("kind", ["number", "object", ["string"], None])
def test_what_two_programs_may_write_in_two_ways_is_not_repeated(kind: Any) -> None:
    assert annotated({"properties": {"a": {"type": kind, "x-mcp-header": "A"}}}) == ()


def test_a_name_that_stands_for_two_arguments_stands_for_none() -> None:
    both = {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}
    assert annotated({"properties": both}) == ()


def test_depth_and_number_are_bounded() -> None:
    deep: dict[str, Any] = {"type": "string", "x-mcp-header": "A"}
    for _ in range(MAX_DEPTH + 1):
        deep = {"properties": {"a": deep}}
    assert annotated(deep) == ()
    many = {f"p{n}": {"type": "string", "x-mcp-header": f"H{n}"} for n in range(MAX_ANNOTATED + 1)}
    assert annotated({"properties": many}) == ()
