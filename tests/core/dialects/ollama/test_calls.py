"""Every call that some parser may find in an answer is judged, and a refused one leaves with no more than must follow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts.ollama import DELETE, WEATHER, answer, denying, entry, said

from agentsh_net.core.dialects.ollama.calls import Rulings
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.values.strict_json import read


class Answer:
    def __init__(self, *denied: str) -> None:
        self.judge = denying(*denied)
        self.rulings = Rulings(self.judge)
        self.out = Output(fail_closed=False, error_frame=str.encode)

    def take(self, value: Any) -> Any:
        data = (value if isinstance(value, str) else json.dumps(value)).encode()
        made = self.rulings.rewrite(data, read(data), self.out)
        return None if made is None else json.loads(made)


def test_a_call_is_judged_with_its_arguments_and_its_id() -> None:
    here = Answer()
    assert here.take(answer("a", entry(WEATHER, {"n": 1}, id="call_1"), entry("b"))) is None
    assert [(c.name, c.input, c.call_id, c.ordinal, c.dialect) for c in here.judge.asked] == [
        (WEATHER, {"n": 1}, "call_1", 1, "ollama"), ("b", {}, "", 2, "ollama"),
    ]  # fmt: skip


def test_a_refused_call_is_removed_and_the_content_says_so() -> None:
    made = Answer(DELETE).take(answer("Look:", entry(DELETE), entry(WEATHER), done=True))
    assert made == answer(f"Look:\n\n{said(DELETE)}", entry(WEATHER), done=True)


def test_with_its_last_call_the_list_goes() -> None:
    made = Answer(DELETE).take(answer("", entry(DELETE), entry(DELETE)))
    assert made == answer(said(DELETE) + "\n" + said(DELETE))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"message": {"tool_calls": [{"name": DELETE, "arguments": {}}]}}, "content"),
        ({"Message": {"Tool_Calls": [{"Function": {"Name": DELETE}}]}}, "content"),
        ({"message": {"toolCalls": [entry(DELETE)]}}, "content"),
        ({"message": {"content": None, "tool_calls": [entry(DELETE)]}}, "content"),
    ],
)
def test_any_spelling_of_a_call_is_one(value: Any, name: str) -> None:
    made = Answer(DELETE).take(value)
    assert "ool" not in "".join(next(iter(made.values())))
    assert next(iter(made.values()))[name] == said(DELETE)


def test_a_call_in_the_answer_to_a_prompt_leaves_a_notice_there() -> None:
    made = Answer(DELETE).take({"model": "m", "response": "", "tool_calls": [entry(DELETE)]})
    assert made == {"model": "m", "response": said(DELETE)}


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ({"tool_calls": {"0": entry("x")}}, "no list"),
        ({"messages": [{"tool_calls": [entry("x")]}]}, "outside of the message"),
        ({"message": {"function_call": {"name": "x"}}}, "outside of the message"),
        (answer("", {"name": "y", "function": {"name": "x"}}), "two names"),
        (answer("", {"function": {"name": "x", "Name": "y"}}), "'name' stands twice"),
        (answer("", {"function": {"name": ["x"]}}), "without a name"),
        (answer("", "x"), "without a name"),
    ],
)
def test_a_call_that_clients_read_differently_has_a_flaw(value: Any, flaw: str) -> None:
    here = Answer()
    made = here.take(value)
    assert all(flaw in call.flaw for call in here.judge.asked)
    assert here.judge.asked
    assert "tool_calls" not in json.dumps(made)
    assert "function_call" not in json.dumps(made)


def test_a_key_that_stands_twice_hides_no_call() -> None:
    here = Answer()
    made = here.take('{"message":{"tool_calls":[{"function":{"name":"x"}}]},"message":{"content":"a"}}')
    assert made == {"message": {"content": "a"}}
    assert [call.flaw for call in here.judge.asked] == ["the key 'message' stands twice"]
    assert Answer().take('{"message":{"content":"a"},"done":1,"done":2}') is None


@pytest.mark.parametrize(
    ("told", "value", "doubt"),
    [
        ({"arguments": '{"a":1}'}, {"a": 1}, ""),
        ({"arguments": "a"}, "a", ""),
        ({"arguments": '{"a":1,"a":2}'}, '{"a":1,"a":2}', "twice"),
        ({"parameters": {"a": 1}}, {"a": 1}, ""),
        ({"arguments": {"a": 1}, "parameters": {}}, {"a": 1}, "two keys"),
    ],
)
def test_arguments_may_be_text_and_what_is_uncertain_about_them_is_told(
    told: Any, value: Any, doubt: str
) -> None:
    here = Answer()
    here.take({"message": {"tool_calls": [{"function": {"name": "x", **told}}]}})
    (call,) = here.judge.asked
    assert call.input == value
    assert doubt in call.doubt
    assert bool(doubt) == bool(call.doubt)
