"""What may be executed is known for a call whatever its type, is asked about by the name it is run under, and compared by meaning."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.dialects.openai_responses.items import (
    Call,
    folded,
    is_call,
    message,
    once,
    read_call,
    spelled,
    twice,
)

CALL = {"type": "function_call", "id": "fc", "call_id": "c", "name": "n", "arguments": '{"a": 1}'}


@pytest.mark.parametrize(
    "item",
    [
        CALL,
        {"type": "custom_tool_call"},
        {"type": "mcp_call"},
        {"type": "mcp_approval_request"},
        {"type": "mcp_of_the_future"},
        {"type": "local_shell_call"},
        {"type": "shell_call"},
        {"type": "apply_patch_call"},
        {"type": "computer_call"},
        {"type": "program"},
        {"type": "tool_search_call"},
        {"type": "tool_search_call", "execution": "client"},
        {"type": "Function_Call "},
        {"type": "call_of_the_future"},
        {"type": "surprise", "call_id": "c"},
        {"type": "surprise", "arguments": "{}"},
        {"type": "surprise", "name": "n", "input": "x"},
        {"type": ["function_call"], "arguments": "{}"},
        {"arguments": "{}", "name": "n"},
        {"type": None, "call_id": "c"},
    ],
)
def test_it_is_a_call(item: dict[str, Any]) -> None:
    assert is_call(item)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "name": "n", "input": "x"},
        {"type": "reasoning"},
        {"type": "compaction"},
        {"type": "web_search_call", "call_id": "c"},
        {"type": "file_search_call"},
        {"type": "image_generation_call"},
        {"type": "code_interpreter_call", "code": "1"},
        {"type": "mcp_list_tools"},
        {"type": "multi_agent_call", "call_id": "c", "action": "spawn_agent", "arguments": "{}"},
        {"type": "mcp_approval_response"},
        {"type": "additional_tools"},
        {"type": "tool_search_call", "execution": "server", "arguments": {}},
        {"type": "tool_search_output"},
        {"type": "function_call_output", "call_id": "c"},
        {"type": "surprise"},
        {"type": "surprise", "name": "n"},
        {"type": ["message"]},
        {},
    ],
)
def test_it_is_no_call(item: dict[str, Any]) -> None:
    assert not is_call(item)


def test_a_harmless_type_in_disguise_is_judged_by_the_rest() -> None:
    assert is_call({"type": "Message", "call_id": "c"})
    assert is_call({"type": "web_search_call ", "call_id": "c"})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("local_shell_call", "local_shell"),
        ("shell_call", "shell"),
        ("apply_patch_call", "apply_patch"),
        ("computer_call", "computer"),
        ("tool_search_call", "tool_search"),
        ("program", "program"),
        ("teleport_call", "teleport"),
        ("function_call", ""),
    ],
)
def test_a_call_without_a_name_is_judged_by_the_name_of_its_tool(kind: str, name: str) -> None:
    assert read_call({"type": kind}).asked().name == name


def test_a_name_beside_a_native_tool_counts_for_nothing() -> None:
    assert read_call({"type": "shell_call", "name": "harmless"}).asked().name == "shell"
    assert read_call({"type": "teleport_call", "name": "harmless"}).asked().name == "harmless"


def test_the_judge_sees_all_that_names_a_call() -> None:
    asked = read_call(CALL | {"namespace": "mcp__s"}).asked()
    assert (asked.name, asked.call_id, asked.input, asked.namespace) == ("n", "c", {"a": 1}, "mcp__s")
    asked = read_call({"type": "mcp_call", "id": "m", "server_label": "s", "name": "n"}).asked()
    assert (asked.call_id, asked.server_name) == ("m", "s")


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"arguments": "{"}, "{"),
        ({"arguments": '{"a":1,"a":2}'}, '{"a":1,"a":2}'),
        ({"arguments": "{}"}, {}),
        ({"arguments": {"a": 1}}, {"a": 1}),
        ({"arguments": "[" * 5000}, "[" * 5000),
        ({"arguments": "\ud800"}, "\ud800"),
        ({"type": "custom_tool_call", "arguments": None, "input": "{}"}, "{}"),
        ({"type": "program", "arguments": None, "code": "1"}, "1"),
        ({"type": "shell_call", "arguments": None, "action": {"commands": ["ls"]}}, {"commands": ["ls"]}),
        ({"arguments": "{}", "input": "x"}, {"arguments": "{}", "input": "x"}),
        ({"arguments": None}, None),
    ],
)
def test_arguments_reach_the_judge_parsed_if_they_can_be(given: dict[str, Any], seen: Any) -> None:
    assert read_call(CALL | given).asked().input == seen


@pytest.mark.parametrize("key", ["name", "namespace", "server_label", "call_id", "id"])
@pytest.mark.parametrize("value", [1, ["n"], {}, True])
def test_a_field_that_is_no_string_is_a_flaw(key: str, value: Any) -> None:
    assert key in read_call(CALL | {key: value}).flaw
    assert not read_call(CALL | {key: None}).flaw


def test_a_type_that_is_no_string_is_a_flaw() -> None:
    assert read_call(CALL | {"type": ["function_call"]}).flaw == "the item's type is not a string"


def test_arguments_nested_beyond_measure_are_a_flaw() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert read_call(CALL | {"arguments": deep}).flaw == "arguments nested too deeply"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4))
def test_spacing_and_key_order_make_no_other_arguments(value: dict[str, Any]) -> None:
    turned = json.dumps(dict(reversed(value.items())), separators=(" ,", " : "), ensure_ascii=False)
    one, other = read_call(CALL | {"arguments": json.dumps(value)}), read_call(CALL | {"arguments": turned})
    assert one.differs(other) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1}', '{"a":true}'),
        ('{"a":1}', '{"a":1.0}'),
        ('{"a":1}', '{"a":"1"}'),
        ("[1,2]", "[2,1]"),
        ("{}", "{"),
        ('{"a":1,"a":2}', '{"a":2}'),
        ("null", "{}"),
    ],
)
def test_other_values_are_other_arguments(one: str, other: str) -> None:
    assert read_call(CALL | {"arguments": one}).differs(read_call(CALL | {"arguments": other}))


def test_what_is_empty_contradicts_nothing() -> None:
    call = read_call(CALL)
    assert call.differs(Call()) == ""
    assert Call().differs(call) == ""
    assert Call().joined(call) == call
    assert call.joined(Call()) == call


def test_of_two_that_are_joined_the_first_flaw_stays() -> None:
    one, other = Call(name="a"), Call(name="b", flaw="late")
    assert one.joined(other).flaw == "two different names for one call"
    assert Call(flaw="early").joined(other).flaw == "early"
    assert Call().joined(other).flaw == "late"


def test_custom_input_is_compared_to_the_letter() -> None:
    one, other = Call("custom_tool_call", arguments="{}"), Call("custom_tool_call", arguments="{ }")
    assert one.differs(other)


def test_the_id_of_a_message_follows_from_the_call_it_replaces() -> None:
    ids = [
        message("t", Call(id="a", call_id="b"), 0)["id"],
        message("t", Call(id="a", call_id="c"), 0)["id"],
        message("t", Call(id="ab"), 0)["id"],
        message("t", Call(), 0)["id"],
        message("t", Call(), 1)["id"],
    ]
    assert len(set(ids)) == 5
    assert message("u", Call(id="a", call_id="b"), 7)["id"] == ids[0]
    assert all(made.startswith("msg_") and len(made) <= 64 for made in ids)


def test_a_message_begins_without_its_text() -> None:
    begun, whole = message("t", Call(), 0, begun=True), message("t", Call(), 0)
    assert (begun["status"], begun["content"]) == ("in_progress", [])
    assert (whole["status"], whole["content"][0]["text"]) == ("completed", "t")
    assert {k: begun[k] for k in ("id", "type", "role")} == {k: whole[k] for k in ("id", "type", "role")}


def test_of_keys_that_differ_by_case_the_plain_one_counts_everywhere() -> None:
    for value in ({"Name": 1, "name": 2}, {"name": 2, "Name": 1}):
        assert folded(value) == {"name": 2}
        assert spelled(value, "name") == "name"
        assert once(value) == {"name": 2}
        assert twice(value) == {"name"}
    for value in ({"Name": 1, "NAME": 2},):
        assert folded(value) == {"name": 2}
        assert spelled(value, "name") == "NAME"
        assert once(value) == {"NAME": 2}
    assert folded([1]) == {}
    assert once([1]) == [1]
    assert twice({"x": 1, "X": 2}, {"name": 1}, duplicates={"y"}) == frozenset()
    assert twice(duplicates={"NAME"}) == {"name"}


@pytest.mark.parametrize(
    ("begun", "done"),
    [
        ({}, {"goal": "weather"}),
        ({"commands": [], "timeout_ms": None}, {"commands": ["ls"], "timeout_ms": 5}),
        ({"type": "exec", "command": [], "env": {}}, {"type": "exec", "command": ["ls"], "env": {"A": "1"}}),
        (
            {"type": "create_file", "diff": "", "path": "a"},
            {"type": "create_file", "diff": "+a", "path": "a"},
        ),
    ],
)
def test_a_call_whose_empty_places_are_filled_in_later_is_one_call(begun: dict, done: dict) -> None:
    first, last = Call(kind="shell_call", arguments=begun), Call(kind="shell_call", arguments=done)
    assert first.joined(last) == last


@pytest.mark.parametrize(
    ("begun", "done"),
    [
        ({"commands": ["rm"]}, {"commands": ["ls"]}),
        ({"commands": ["rm"]}, {"timeout_ms": 5}),
        ({"commands": ["rm"]}, {}),
        ({"commands": []}, "{}"),
    ],
)
def test_a_call_that_says_something_else_later_contradicts_itself(begun: dict, done: object) -> None:
    first, last = Call(kind="shell_call", arguments=begun), Call(kind="shell_call", arguments=done)
    assert first.joined(last).flaw == "two different arguments for one call"
