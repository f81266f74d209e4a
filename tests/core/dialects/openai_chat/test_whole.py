"""In a whole answer every entry is judged by itself and with those of its index, and what is kept keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts.openai_chat import DELETE, WEATHER, completion, denying, entry, knowing, refused

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.openai_chat.whole import rewrite_whole
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import ToolCall, Verdict
from agentsh_net.core.values.strict_json import read


def rewritten(data: bytes, judge: Judge) -> tuple[bytes, list[tuple[ToolCall, Verdict]]]:
    out = Output(fail_closed=False, error_frame=str.encode)
    made = rewrite_whole(data, read(data), judge, out)
    return data if made is None else made, [(judged.call, judged.verdict) for judged in out.step().judged]


@pytest.mark.parametrize(("index", "gone"), [(-1, True), (0, True), (..., False)])
def test_names_of_entries_are_added_up_where_they_share_an_index_alone(index: Any, gone: bool) -> None:
    calls = [entry(index, name="del", call_id="a"), entry(index, name="ete", call_id="b")]
    out, told = rewritten(completion({"tool_calls": calls}), denying("delete"))
    assert ("tool_calls" in json.loads(out)["choices"][0]["message"]) is not gone
    assert [verdict.blocked for _, verdict in told] == [gone, gone]


def test_calls_of_a_provider_that_numbers_all_alike_stay() -> None:
    data = completion({"tool_calls": [entry(0, name=WEATHER, call_id=text) for text in "ab"]})
    out, told = rewritten(data, knowing(WEATHER))
    assert out == data
    assert len(told) == 2


def test_names_of_a_whole_answer_without_indices_are_never_joined() -> None:
    data = completion(
        {"tool_calls": [entry(..., name="del", call_id="a"), entry(..., name="ete", call_id="b")]}
    )
    out, told = rewritten(data, denying("delete"))
    assert out == data
    assert [call.name for call, _ in told] == ["del", "ete"]


def test_entries_that_share_an_id_are_judged_each() -> None:
    data = completion({"tool_calls": [entry(..., name=n, call_id="a") for n in (WEATHER, DELETE, WEATHER)]})
    out, told = rewritten(data, denying(DELETE))
    names = [c["function"]["name"] for c in json.loads(out)["choices"][0]["message"]["tool_calls"]]
    assert names == [WEATHER, WEATHER]
    assert [verdict.blocked for _, verdict in told] == [False, True, False]


def test_every_choice_gets_its_own_notice_and_reason() -> None:
    whole = json.loads(completion({"content": "a", "tool_calls": [entry(..., name=WEATHER, call_id="a")]}))
    second = json.loads(completion({"content": None, "tool_calls": [entry(..., name=DELETE, call_id="b")]}))
    whole["choices"] += [second["choices"][0] | {"index": 1}]
    out = json.loads(rewritten(json.dumps(whole).encode(), knowing(WEATHER))[0])
    assert out["choices"][0] == whole["choices"][0]
    assert out["choices"][1]["message"] == {"role": "assistant", "content": refused(DELETE)}
    assert out["choices"][1]["finish_reason"] == "stop"


def test_a_call_hidden_by_a_key_that_stands_twice_is_recorded_though_nobody_sees_its_name() -> None:
    data = b'{"choices":[{"message":{"tool_calls":[{"function":{"name":"x"}}],"tool_calls":null}}]}'
    out, told = rewritten(data, denying())
    assert json.loads(out) == {"choices": [{"message": {}}]}
    assert b"tool_calls" not in out
    assert [(call.name, verdict.rule) for call, verdict in told] == [("", "protocol")]


@pytest.mark.parametrize("depth", [10, 300])
def test_what_nests_deeply_is_left_alone_or_told(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    data = b'{"tool":%s,"choices":[{"message":{"tool_calls":[{"function":{"name":"x"}}]}}]}' % deep
    try:
        out, _ = rewritten(data, denying("x"))
    except ProtocolError:
        return
    assert deep in out
    assert b'"x"' not in out


NAMED = {"name": DELETE, "arguments": "{}"}
TWO_NAMES = {
    "beside the function": {"tool_calls": [{"id": "a", "type": "function", "name": "x", "function": NAMED}]},
    "in a function and a custom tool": {"tool_calls": [{"id": "a", "type": "custom", "function": {"name": "x"}, "custom": NAMED}]},
    "within a legacy call": {"function_call": {**NAMED, "extra": {"name": "x"}}},
}  # fmt: skip


@pytest.mark.parametrize("place", TWO_NAMES)
def test_a_call_with_two_names_is_neither_and_leaves(place: str) -> None:
    out, told = rewritten(completion({"content": None, **TWO_NAMES[place]}), denying(DELETE))
    assert DELETE not in json.dumps(json.loads(out)["choices"][0]["message"]).replace(
        json.loads(out)["choices"][0]["message"]["content"], ""
    )
    assert [call.flaw for call, _ in told] == ["a call with two names"]


def test_a_call_with_two_arguments_is_neither_and_leaves() -> None:
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": WEATHER, "arguments": {"a": 1}},
        "custom": {"name": WEATHER, "input": {"a": 2}},
    }
    _, told = rewritten(completion({"content": None, "tool_calls": [call]}), denying())
    assert [c.flaw for c, _ in told] == ["a call with two different arguments"]
    same = {"id": "a", "name": WEATHER, "arguments": "{}", "function": {"name": WEATHER, "arguments": "{}"}}
    out, told = rewritten(data := completion({"content": None, "tool_calls": [same]}), denying())
    assert (out, [c.flaw for c, _ in told]) == (data, [""])


def test_a_name_among_the_arguments_is_none_of_the_calls() -> None:
    data = completion({"content": None, "function_call": {"name": WEATHER, "arguments": {"name": DELETE}}})
    out, told = rewritten(data, denying(DELETE))
    assert (out, [(c.name, c.input, c.flaw) for c, _ in told]) == (data, [(WEATHER, {"name": DELETE}, "")])


@pytest.mark.parametrize("name", [[DELETE], [[DELETE]], {"x": DELETE}, 3, True])
def test_a_name_that_is_no_string_is_no_name_that_anybody_can_judge(name: object) -> None:
    out, told = rewritten(
        completion(
            {
                "content": None,
                "tool_calls": [entry(..., name=WEATHER, call_id="a") | {"function": {"name": name}}],
            }
        ),
        denying(DELETE),
    )
    assert "tool_calls" not in json.loads(out)["choices"][0]["message"]
    assert [call.flaw for call, _ in told] == ["the tool's name is not a string"]
