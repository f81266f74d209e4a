"""A call is judged once: what repeats it gets its verdict, what contradicts it is refused unheard, what adds to it is judged anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from transcripts.openai_responses import denying, notice

from agentsh_net.core.dialects.openai_responses.items import Call
from agentsh_net.core.dialects.openai_responses.rulings import MAX_CALLS, Place, Rulings
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.model import ToolCall, Verdict

GET = Call("function_call", "get", call_id="c1", id="f1", arguments='{"a":1}')
RM = replace(GET, name="rm")


def output() -> Output:
    return Output(fail_closed=True, error_frame=lambda message: message.encode())


def test_what_repeats_a_call_gets_its_verdict() -> None:
    for call, text in ((GET, ""), (RM, notice("rm"))):
        judge, out = denying("rm"), output()
        rulings = Rulings(judge)
        places = [call, replace(call, id=""), replace(call, call_id=""), call]
        assert [rulings.decide(place, out) for place in places] == [text] * 4
        assert len(judge.asked) == len(out.step().judged) == 1


def test_a_place_without_the_arguments_is_judged_as_a_client_runs_it_and_changes_none_of_the_others() -> None:
    judge, out = denying(), output()
    rulings = Rulings(judge)
    for call in (GET, replace(GET, arguments=""), GET, replace(GET, arguments='{"a":2}')):
        rulings.decide(call, out)
    assert [(j.call.input, j.call.flaw) for j in out.step().judged] == [
        ({"a": 1}, ""),
        (None, ""),
        ({"a": 2}, "two different arguments for one call"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"name": "got"},
        {"kind": "custom_tool_call"},
        {"namespace": "mcp__x", "name": "got"},
        {"arguments": '{"a":2}'},
        {"call_id": "c2"},
        {"id": "f2", "arguments": "{}"},
    ],
)
def test_what_contradicts_an_allowed_call_is_refused_unheard(change: dict[str, Any]) -> None:
    judge, out = denying(), output()
    rulings = Rulings(judge)
    assert rulings.decide(GET, out) == ""
    assert "two different" in rulings.decide(replace(GET, **change), out)
    assert len(judge.asked) == 1
    assert [j.verdict.rule for j in out.step().judged] == ["", "protocol"]
    assert rulings.decide(GET, out) == ""


def test_what_was_refused_once_stays_refused_under_its_call_id() -> None:
    rulings, out = Rulings(denying("rm")), output()
    assert rulings.decide(RM, out) == notice("rm")
    assert rulings.decide(GET, out) == notice("rm")
    assert len(out.step().judged) == 1


def test_another_call_under_the_item_id_of_a_refused_one_is_refused_and_recorded() -> None:
    rulings, out = Rulings(denying("rm")), output()
    rulings.decide(RM, out)
    assert "two different" in rulings.decide(replace(GET, call_id="c2"), out)
    assert [j.call.name for j in out.step().judged] == ["rm", "get"]


@pytest.mark.parametrize(
    "first", [{"arguments": ""}, {"name": ""}, {"namespace": ""}, {"server_label": "", "arguments": None}]
)
def test_what_adds_to_an_allowed_call_is_judged_with_it(first: dict[str, Any]) -> None:
    whole = replace(GET, namespace="n", server_label="s")
    judge, out = denying(), output()
    rulings = Rulings(judge)
    assert rulings.decide(replace(whole, **first), out) == ""
    assert rulings.decide(whole, out) == ""
    assert rulings.decide(whole, out) == ""
    assert len(judge.asked) == 2
    asked = judge.asked[1]
    assert (asked.name, asked.namespace, asked.server_name, asked.input) == ("get", "n", "s", {"a": 1})


def test_the_rest_of_a_partial_call_is_judged() -> None:
    judge, out = denying(), output()
    rulings = Rulings(judge)
    assert rulings.decide(replace(GET, arguments='{"a":"ev'), out, Place(partial=True)) == ""
    assert rulings.decide(replace(GET, arguments='{"a":"evil"}'), out) == notice("get")


def test_a_flawed_call_is_refused_with_its_flaw() -> None:
    judge, out = denying(), output()
    assert Rulings(judge).decide(replace(GET, flaw="a flaw"), out) == notice("get", "a flaw")
    assert not judge.asked


def test_late_is_a_reason_only_for_what_is_news() -> None:
    rulings, out = Rulings(denying()), output()
    assert rulings.decide(GET, out) == ""
    assert rulings.decide(GET, out, Place(late="late")) == ""
    assert rulings.decide(replace(GET, call_id="c2", id="f2"), out, Place(late="late")) == notice(
        "get", "late"
    )


def test_a_list_of_repeats_is_known_by_content() -> None:
    judge, out = denying("rm"), output()
    rulings = Rulings(judge)
    for call, text in ((GET, ""), (replace(RM, call_id="c2", id="f2"), notice("rm"))):
        assert rulings.decide(call, out) == text
        renamed = replace(call, call_id="new" + call.call_id, id="new" + call.id)
        assert rulings.decide(renamed, out, Place(repeats=True)) == text
        assert rulings.decide(renamed, out, Place(repeats=True)) == text
    assert len(judge.asked) == 2


def test_of_equal_calls_with_two_verdicts_a_list_repeats_the_refusal() -> None:
    judges = iter([denying(), denying("get"), denying()])

    def judge(call: ToolCall) -> Verdict:
        return next(judges)(call)

    rulings, out = Rulings(judge), output()
    found = [rulings.decide(replace(GET, call_id=str(at), id=""), out) for at in range(3)]
    assert found == ["", notice("get"), ""]
    assert rulings.decide(replace(GET, call_id="new", id=""), out, Place(repeats=True)) == notice("get")


def test_calls_without_ids_are_judged_each() -> None:
    judge, out = denying(), output()
    rulings = Rulings(judge)
    nameless = replace(GET, call_id="", id="")
    assert rulings.decide(nameless, out) == rulings.decide(nameless, out) == ""
    assert len(judge.asked) == 2


def test_the_result_of_a_refused_call_is_withheld() -> None:
    rulings, out = Rulings(denying("rm")), output()
    result = {"type": "function_call_output", "call_id": "c1"}
    assert rulings.withheld(result) == ""
    rulings.decide(RM, out)
    assert rulings.withheld(result) == notice("rm")
    assert rulings.withheld(result | {"call_id": "c2"}) == ""
    assert rulings.withheld(result | {"call_id": ["c1"]}) == ""
    assert rulings.withheld({"type": "message", "call_id": "c1"}) == ""


def test_more_calls_than_any_answer_has_are_noticed() -> None:
    rulings, out = Rulings(denying()), output()
    for at in range(MAX_CALLS + 1):
        assert not rulings.full
        rulings.decide(replace(GET, call_id=str(at), id="f" + str(at)), out)
    assert rulings.full
