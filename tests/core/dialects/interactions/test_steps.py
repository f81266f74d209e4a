"""Steps that are calls are known from those that are none, judged once however often they are listed, and replaced by text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts.interactions import DELETE, WEATHER, call, denying, interaction, refused, told

from agentsh_net.core.dialects.interactions.dialect import DIALECT
from agentsh_net.core.dialects.interactions.steps import Rulings, flaw_of, is_call, strays
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.model import ToolCall, Verdict


@pytest.mark.parametrize(
    "step",
    [
        {"type": "function_call", "name": "x"}, {"type": " Function_Call"}, {"type": "mcp_server_tool_call"}, {"type": "new_call"},
        {"name": "x", "arguments": {}}, {"type": 3, "name": "x", "arguments": {}},
        {"type": [["function_call"]], "name": "x"},
    ],
)  # fmt: skip
def test_what_a_client_may_run_is_a_call(step: Any) -> None:
    assert is_call(step)


@pytest.mark.parametrize(
    "step",
    [
        {"type": "model_output"}, {"type": "thought"}, {"type": "google_search_call", "arguments": {}},
        {"type": "function_result", "call_id": "c", "name": "x"}, {"type": "mcp_server_tool_result"}, {"type": "arguments_delta"}, {},
    ],
)  # fmt: skip
def test_what_nobody_runs_is_none(step: Any) -> None:
    assert not is_call(step)


def test_a_call_with_two_names_or_odd_ones_has_a_flaw() -> None:
    assert flaw_of({"name": "x", "Name": "y"}) == "the key 'name' stands twice"
    assert flaw_of({"type": "function_call", "name": ["x"]}) == "the call's name is not a string"
    assert flaw_of(call("x")) == ""


def test_a_whole_interaction_loses_its_refused_calls_and_keeps_every_other_byte() -> None:
    steps = [told("a"), call(DELETE, {"x": 1}), call(WEATHER, {"city": "Bern"}, call_id="c1")]
    data = json.dumps(interaction(*steps)).encode()
    step = DIALECT.body(data, denying(DELETE), fail_closed=False)
    assert json.loads(step.out) == interaction(steps[0], refused(DELETE), steps[2])
    assert b"12345678901234567890" in step.out
    assert [(j.call.name, j.call.input, j.call.call_id, j.verdict.blocked) for j in step.judged] == [
        (DELETE, {"x": 1}, "c0", True),
        (WEATHER, {"city": "Bern"}, "c1", False),
    ]
    assert DIALECT.body(data, denying(), fail_closed=True).out == data


def test_nothing_waits_for_a_client_all_of_whose_calls_were_refused() -> None:
    data = json.dumps(interaction(call(DELETE))).encode()
    left = json.loads(DIALECT.body(data, denying(DELETE), fail_closed=False).out)
    assert (left["status"], left["steps"]) == ("completed", [refused(DELETE)])
    old = json.dumps({"id": "i", "status": "requires_action", "outputs": [call(DELETE)]}).encode()
    assert json.loads(DIALECT.body(old, denying(DELETE), fail_closed=False).out) == {
        "id": "i",
        "status": "completed",
        "outputs": refused(DELETE)["content"],
    }


def test_a_call_that_was_answered_in_an_earlier_turn_is_judged_and_not_charged() -> None:
    seen: list[ToolCall] = []

    def judge(asked: ToolCall) -> Verdict:
        seen.append(asked)
        return denying(DELETE)(asked)

    result = {
        "type": "function_result",
        "call_id": "c0",
        "name": WEATHER,
        "result": {"name": "x", "arguments": 1},
    }
    data = json.dumps(interaction(call(WEATHER), result, call(DELETE, call_id="c1"))).encode()
    step = DIALECT.body(data, judge, fail_closed=False)
    assert [(one.name, one.stored) for one in seen] == [(WEATHER, True), (DELETE, False)]
    assert [j.call.name for j in step.judged] == [DELETE]


def test_what_is_listed_twice_is_judged_once_unless_it_says_something_else() -> None:
    rulings, out = Rulings(denying("x")), Output(fail_closed=False, error_frame=str.encode)
    block = {"name": "y", "id": "c"}
    assert [rulings.decide(block, {"a": 1}, "", out) for _ in range(2)] == ["", ""]
    rulings.decide(block, {"a": 2}, "", out)
    rulings.decide(block | {"name": "z"}, {"a": 1}, "", out)
    flaws = [j.call.flaw for j in out.step().judged]
    assert flaws == ["", "two different calls of one id", "two different calls of one id"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"id": "i", "data": call(DELETE)}),
        json.dumps(interaction({"type": "model_output", "content": [call(DELETE)]})),
        json.dumps(interaction(call(DELETE))).replace('"usage"', '"steps": [], "usage"'),
        json.dumps(interaction(call(DELETE))).replace('"usage"', '"Steps": [], "usage"'),
        json.dumps(interaction(call(DELETE))).replace('"name"', '"name": "ok", "name"'),
        json.dumps(interaction(call(DELETE))).replace('"name"', '"NAME": "ok", "name"'),
        json.dumps(interaction(call(DELETE))).replace("function_call", "function\\u005fcall"),
        json.dumps(interaction(call(DELETE, call_id=["c"]))),  # type: ignore[arg-type]
        json.dumps([interaction(call(DELETE))]),
    ],
)
@pytest.mark.parametrize("fail_closed", [True, False])
def test_no_place_and_no_spelling_hides_a_denied_call(text: str, fail_closed: bool) -> None:
    step = DIALECT.body(text.encode(), denying(DELETE, ""), fail_closed=fail_closed)
    assert step.end or json.dumps(call(DELETE))[1:40] not in step.out.decode()
    assert any(j.verdict.blocked for j in step.judged) or step.faults


def test_what_a_tool_returned_is_nobodys_call() -> None:
    value = {"steps": [{"type": "function_result", "call_id": "c", "result": [call(DELETE)]}]}
    assert not strays(value, frozenset())
    assert strays({"x": [call(DELETE)]}, frozenset())
