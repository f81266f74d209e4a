"""A schema takes only numbers where it says so plainly of every argument; whatever else it says, it may take a text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.flows.tool_numbers import MAX_PARAMETERS, takes_only_numbers

NUMBER, TEXT = {"type": "number"}, {"type": "string"}


def declares(**properties: Any) -> dict[str, Any]:
    return {"inputSchema": {"type": "object", "properties": properties}}


@pytest.mark.parametrize(
    "properties",
    [
        {"a": NUMBER, "b": {"type": "integer", "title": "B"}},
        {"a": {"type": ["number", "null"]}, "round": {"type": "boolean"}},
        {"values": {"type": "array", "items": NUMBER}},
        {"a": {"anyOf": [NUMBER, {"type": "null"}], "default": None}},
        {"a": {"type": "array", "items": {"type": "array", "items": NUMBER}}},
        {f"p{n}": NUMBER for n in range(MAX_PARAMETERS)},
    ],
)
def test_numbers_lists_of_them_and_switches_are_numbers(properties: Any) -> None:
    assert takes_only_numbers(declares(**properties))


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"a": NUMBER, "b": TEXT},
        {"a": {"type": ["number", "string"]}},
        {"a": {"anyOf": [NUMBER, TEXT]}},
        {"a": {"anyOf": [NUMBER, {}]}},
        {"a": {"type": "number", "anyOf": [TEXT]}, "b": TEXT},
        {"a": {"type": "array", "items": TEXT}},
        {"a": {"type": "array"}},
        {"a": {"type": "number", "oneOf": [TEXT]}},
        {"a": {"anyOf": []}, "b": NUMBER},
        {"deep": {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": NUMBER}}}},
        {"a": {"type": "object"}},
        {"a": {"$ref": "#/$defs/a"}},
        {"a": {}},
        {"a": True},
        {"a": {"type": [1]}},
        {"on": {"type": "boolean"}},
        {f"p{n}": NUMBER for n in range(MAX_PARAMETERS + 1)},
    ],
)
def test_what_may_be_a_text_is_no_number(properties: Any) -> None:
    assert not takes_only_numbers(declares(**properties))


@pytest.mark.parametrize(
    "more",
    [{"additionalProperties": True}, {"additionalProperties": {}}, {"oneOf": []}, {"patternProperties": {}}],
)
def test_a_schema_that_says_more_than_its_properties_may_take_a_text(more: dict[str, Any]) -> None:
    definition = declares(a=NUMBER)
    assert takes_only_numbers(definition)
    definition["inputSchema"] |= more
    assert not takes_only_numbers(definition)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["type", "items", "anyOf", "a"]), inner),
)


@given(JSON)
def test_anything_is_read_without_a_fault(schema: Any) -> None:
    assert takes_only_numbers({"inputSchema": schema}) in (True, False)
    assert takes_only_numbers(declares(a=schema)) in (True, False)
