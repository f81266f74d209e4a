"""Which block is a call, what it says, and when two parsers would not agree on that."""

from __future__ import annotations

from typing import Any

import pytest
from transcripts.anthropic import denying

from agentsh_net.core.dialects.anthropic.blocks import (
    Rulings,
    arguments,
    flaw_of,
    folded,
    is_call,
    spelled,
    twice,
)
from agentsh_net.core.dialects.output import Output


def output() -> Output:
    return Output(fail_closed=False, error_frame=str.encode)


@pytest.mark.parametrize(
    ("block", "call"),
    [
        ({"type": "tool_use", "name": "x"}, True),
        ({"type": "mcp_tool_use"}, True),
        ({"type": "TOOL_USE "}, True),
        ({"type": "client_tool_use"}, True),
        ({"type": ["tool_use"], "name": "x"}, True),
        ({"name": "x"}, True),
        ({"input": {}}, True),
        ({"type": "server_tool_use", "name": "web_search", "input": {}}, False),
        ({"type": "server_tool_use", "name": "mcp__fs__delete", "input": {}}, True),
        ({"type": "server_tool_use", "name": ["web_search"]}, True),
        ({"type": "mcp_tool_result"}, False),
        ({"type": "text", "text": "tool_use"}, False),
        ({"type": "thinking", "name": "x"}, False),
        ({}, False),
    ],
)
def test_a_block_that_some_client_would_execute_is_a_call(block: dict[str, Any], *, call: bool) -> None:
    assert is_call(block) is call


def test_keys_are_folded_as_go_folds_them() -> None:
    assert folded({"Name": 1, "content_bloc\u212a": 2, "\u017ferver_name": 3}) == {
        "name": 1, "content_block": 2, "server_name": 3,
    }  # fmt: skip
    assert folded("no object") == {}
    assert spelled({"Name": 1}, "name") == "Name"
    assert spelled({}, "name") == "name"


def test_only_keys_that_decide_something_count_as_standing_twice() -> None:
    assert twice({"Name": 1, "name": 2}, {"X": 1, "x": 2}) == {"name"}
    assert twice(None, [], duplicates=frozenset({"Type", "usage"})) == {"type"}


@pytest.mark.parametrize(
    ("start", "text", "value", "flawed"),
    [
        ({}, "", {}, False),
        ({"a": 1}, "", {"a": 1}, False),
        (None, "", None, False),
        ({}, '{"a":1}', {"a": 1}, False),
        ({}, '{"a":', '{"a":', False),
        ({}, '{"a":1,"a":2}', '{"a":1,"a":2}', False),
        ({}, '{"a":"\ud800"}', {"a": "\ufffd\ufffd\ufffd"}, False),
        ({"a": 1}, '{"a":1}', {"a": 1}, False),
        ({"a": 1}, '{"a":2}', {"a": 2}, True),
        ({"a": 1}, "{}", {}, True),
    ],
)
def test_the_input_is_what_the_deltas_spell_or_what_the_start_holds(
    start: Any, text: str, value: Any, *, flawed: bool
) -> None:
    assert arguments({"input": start}, text) == (value, "two different inputs" if flawed else "")


@pytest.mark.parametrize(
    ("block", "flawed"),
    [
        ({"type": "tool_use", "name": ""}, False),
        ({"type": "mcp_tool_use", "name": "x", "server_name": "s"}, False),
        ({"type": "tool_use", "name": 5}, True),
        ({"type": "tool_use"}, True),
        ({"type": ["tool_use"], "name": "x"}, True),
        ({"type": "mcp_tool_use", "name": "x", "server_name": None}, True),
    ],
)
def test_a_name_type_or_server_that_is_no_string_is_a_flaw(block: dict[str, Any], *, flawed: bool) -> None:
    assert bool(flaw_of(block)) is flawed


def test_the_turn_ends_where_every_call_of_the_client_was_refused() -> None:
    rulings = Rulings(denying("bad"))
    bad, good = {"type": "tool_use", "name": "bad"}, {"type": "tool_use", "name": "good"}
    assert not rulings.ends_turn
    assert rulings.decide(bad | {"type": "mcp_tool_use"}, {}, "", output())
    assert not rulings.ends_turn
    assert rulings.decide(bad, {}, "", output()) == "[agentsh] Tool 'bad' blocked by policy: denied"
    assert rulings.ends_turn
    assert rulings.decide(good, {}, "", output()) == ""
    assert not rulings.ends_turn


def test_the_judge_hears_of_a_calls_flaw_and_of_its_place_in_the_answer() -> None:
    judge, out = denying(), output()
    rulings = Rulings(judge)
    assert rulings.decide({"type": "tool_use", "name": "good"}, {}, "a flaw", out).endswith("a flaw")
    rulings.decide({"type": "mcp_tool_use", "name": "good"}, {}, "", out)
    assert [(c.flaw, c.ordinal) for c in judge.asked] == [("a flaw", 1), ("", 2)]
    assert [(j.verdict.rule, j.verdict.reason) for j in out.step().judged] == [
        ("protocol", "a flaw"),
        ("", "allowed"),
    ]


def test_the_result_of_a_refused_call_is_withheld() -> None:
    rulings = Rulings(denying("bad"))
    result = {"type": "mcp_tool_result", "tool_use_id": "t1"}
    assert rulings.withheld(result) == ""
    rulings.decide({"type": "mcp_tool_use", "id": "t1", "name": "bad"}, {}, "", output())
    assert rulings.withheld(result) == "[agentsh] Tool 'bad' blocked by policy: denied"
    assert rulings.withheld(result | {"tool_use_id": "t2"}) == ""
    assert rulings.withheld({"type": "text", "tool_use_id": "t1"}) == ""
