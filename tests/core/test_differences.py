"""A difference names its field by path and shows what changed, also what was meant not to be seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core import canonical
from agentsh_net.core.differences import MAX_DIFFERENCES, MAX_SHOWN, Difference, between


def test_each_field_has_its_path():
    old = {"name": "get", "inputSchema": {"required": ["a", "b"], "properties": {"a": {"type": "string"}}}}
    new = {
        "name": "get",
        "inputSchema": {"required": ["a"], "properties": {"a": {"type": "number"}, "x y": {}}},
    }
    assert between(old, new) == (
        Difference("$.inputSchema.required[1]", "removed", old='"b"'),
        Difference("$.inputSchema.properties.a.type", "changed", '"string"', '"number"'),
        Difference('$.inputSchema.properties["x y"]', "added", new="{}"),
    )


def test_invisible_characters_are_shown():
    (found,) = between({"description": "Get"}, {"description": "Get\u200b\U000e0041"})
    assert found.new == '"Get<U+200B><U+E0041>"'
    (key,) = between({}, {"na\u200bme": 1})
    assert key.path == '$["na<U+200B>me"]'


def test_a_change_of_type_is_one_difference():
    assert between({"a": [1]}, {"a": {"0": 1}}) == (Difference("$.a", "changed", "[1]", '{"0":1}'),)


def test_what_is_shown_is_bounded():
    (found,) = between({"a": "x"}, {"a": "y" * 10_000})
    assert len(found.new) < MAX_SHOWN + 50
    assert "more characters" in found.new
    assert len(between({}, {str(i): i for i in range(1000)})) == MAX_DIFFERENCES


def test_a_difference_goes_into_an_event_as_json():
    (found,) = between({"a": 1}, {"a": 2})
    assert found.to_json() == {"path": "$.a", "kind": "changed", "old": "1", "new": "2"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
def test_there_is_a_difference_exactly_where_the_canonical_texts_differ(old, new):
    assert bool(between(old, new)) is (canonical.text(old) != canonical.text(new))
