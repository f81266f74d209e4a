"""Every place and spelling of a call that some client reads is found, with the path it is edited at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.openai_chat.fragments import Fragment, fold, number_of, scan
from agentsh_net.core.values.strict_json import Path


def one(delta: dict[str, Any], **choice: Any) -> Fragment:
    (fragment,) = scan({"choices": [{"index": 0, "delta": delta, **choice}]}).fragments
    return fragment


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


ENTRY = {"index": 2, "id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}


def test_an_entry_of_tool_calls_is_found_with_its_paths() -> None:
    chunk = {"choices": [{"index": 1, "delta": {"tool_calls": ["odd", ENTRY]}}]}
    (found,) = scan(chunk).fragments
    assert (found.choice, found.slot, found.id, found.texts) == (1, ("delta", "tool_calls", 2), "c", ("{}",))
    assert at(chunk, found.path) == ENTRY
    assert at(chunk, found.carrier) == chunk["choices"][0]["delta"]
    assert found.keys is not None
    assert [at(chunk, key) for key in found.keys] == [2, "c"]
    assert [(at(chunk, path), name) for path, name in found.names] == [("n", "n")]
    assert found.siblings == 2


@pytest.mark.parametrize(
    "entry",
    [
        {"function": {"name": "n", "arguments": "a"}},
        {"custom": {"name": "n", "input": "a"}},
        {"type": "new", "new": {"name": "n", "input": "a"}},
        {"name": "n", "arguments": "a"},
        {"FUNCTION": {"Name": "n", "aRguments": "a"}},
        {"function": {"name": "n"}, "arguments": "a"},
    ],
)
def test_a_name_is_found_wherever_a_client_looks_for_it(entry: dict[str, Any]) -> None:
    found = one({"tool_calls": [entry]})
    assert [name for _, name in found.names] == ["n"]
    assert found.texts == ("a",)


def test_both_names_of_an_entry_of_two_kinds_are_found() -> None:
    found = one({"tool_calls": [{"function": {"name": "a"}, "custom": {"name": "b"}}]})
    assert [name for _, name in found.names] == ["a", "b"]


def test_a_function_call_has_no_index_and_no_siblings() -> None:
    found = one({"function_call": {"name": "n", "arguments": "a"}})
    assert (found.slot, found.keys, found.siblings) == (("delta", "function_call", 0), None, 0)


def test_arguments_that_are_a_value_stay_one() -> None:
    assert one({"tool_calls": [{"function": {"name": "n", "arguments": {"a": 1}}}]}).value == {"a": 1}


def test_the_namespace_is_found_on_the_entry_and_on_the_function() -> None:
    assert one({"tool_calls": [{"namespace": "mcp__s", "function": {"name": "n"}}]}).namespace == "mcp__s"
    assert one({"tool_calls": [{"function": {"name": "n", "namespace": "mcp__s"}}]}).namespace == "mcp__s"


@pytest.mark.parametrize("spelling", ["Tool_Calls", "TOOL_CALLS", "tool_call\u017f"])
def test_keys_are_found_in_the_spellings_that_gos_parser_folds(spelling: str) -> None:
    assert one({spelling: [ENTRY]}).path[-2] == spelling


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, (None, False)), (0, (0, False)), (-1, (-1, True)), (True, (1, True)), (2.0, (2, True)),
        (1.5, (None, True)), ("3", (3, True)), ("x", (None, True)), ([], (None, True)), (10**400, (10**400, False)),
        (float("inf"), (None, True)), ("9" * 99, (None, True)), ("\u00b2", (None, True)),
    ],
)  # fmt: skip
def test_an_index_is_read_as_the_most_generous_parser_reads_it(
    value: Any, read: tuple[int | None, bool]
) -> None:
    assert number_of(value) == read


def test_a_key_in_two_spellings_is_a_clash() -> None:
    clashes: set[str] = set()
    assert fold({"a": 1, "Id": 2, "id": 3}, clashes) == {"a": "a", "id": "id"}
    assert clashes == {"id"}


def test_a_clash_is_hostile_only_where_it_could_hide_or_change_a_call() -> None:
    call = {"choices": [{"delta": {"tool_calls": [ENTRY]}}]}
    text = {"choices": [{"delta": {"content": "x"}}]}
    assert scan(call, frozenset({"name"})).hostile == "the key 'name' stands twice"
    assert scan(call, frozenset({"created"})).hostile == ""
    assert scan(text, frozenset({"name"})).hostile == ""
    assert scan(text, frozenset({"tool_calls"})).hostile
    assert scan({"choices": [], "Choices": []}).hostile


def test_why_and_that_a_choice_ended_is_read_whatever_its_type() -> None:
    def ended(reason: Any) -> str:
        return scan({"choices": [{"delta": {}, "finish_reason": reason}]}).choices[0].finish

    assert [ended(r) for r in (None, "", "Tool_Calls", 7, {"a": 1})] == ["", "", "tool_calls", "7", '{"a":1}']


def test_choices_of_listed_completions_are_told_apart() -> None:
    item = {"choices": [{"index": 0, "message": {"tool_calls": [ENTRY]}}]}
    assert [f.choice for f in scan({"data": [item, item]}).fragments] == [0, 1]


@pytest.mark.parametrize(
    "value",
    [None, 1, "x", [], [[]], {}, {"choices": 1}, {"choices": [1]}, {"choices": [{"delta": 1}]},
     {"choices": [{"delta": {"tool_calls": 1}}]}, {"choices": [{"delta": {"tool_calls": [1]}}]}, {"data": [1]}],
)  # fmt: skip
def test_what_has_another_shape_has_no_calls(value: Any) -> None:
    assert scan(value).fragments == []


def test_an_error_is_seen_beside_choices() -> None:
    assert scan({"error": {"message": "x"}, "choices": []}).error
    assert not scan({"error": None}).error


def test_what_scan_reads_it_can_be_told_to_edit() -> None:
    value = json.loads(json.dumps({"Choices": [{"Delta": {"Tool_Calls": [{"Function": {"NAME": "n"}}]}}]}))
    (found,) = scan(value).fragments
    assert found.path == ("Choices", 0, "Delta", "Tool_Calls", 0)
    assert found.names == ((("Choices", 0, "Delta", "Tool_Calls", 0, "Function", "NAME"), "n"),)


@pytest.mark.parametrize("key", ["tool_calls", "Tool_Calls", "function_call"])
def test_a_stored_message_stands_in_a_list_without_a_choice_around_it(key: str) -> None:
    page = {"object": "list", "data": [{"id": "m", "content": "a"}, {"role": "assistant", key: [ENTRY]}]}
    found = scan(page)
    (fragment,) = found.fragments
    assert at(page, fragment.carrier) == page["data"][1]
    assert at(page, fragment.path) == ENTRY
    assert [choice.finish_path[:2] for choice in found.choices] == [("data", 1)]
