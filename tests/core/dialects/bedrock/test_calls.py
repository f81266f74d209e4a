"""Every call of a whole Converse answer is judged; a refused one is text in its place, and the reason follows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts.bedrock import DELETE, WEATHER, denying, said

from agentsh_net.core.dialects.bedrock.calls import rewrite_whole
from agentsh_net.core.dialects.block_stream import arguments
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.values.strict_json import read


def use(name: Any, value: Any = None, **more: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": "t1", "name": name, "input": {} if value is None else value} | more}


def answer(*content: Any, reason: str = "tool_use", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": list(content)}
    return {
        "output": {"message": message},
        "stopReason": reason,
        "usage": {"inputTokens": 1, "ratio": 1.0},
    } | more


class Answer:
    def __init__(self, *denied: str) -> None:
        self.judge = denying(*denied)
        self.out = Output(fail_closed=False, error_frame=str.encode)

    def take(self, value: Any) -> Any:
        data = (value if isinstance(value, str) else json.dumps(value)).encode()
        made = rewrite_whole(data, read(data), self.judge, self.out)
        return None if made is None else json.loads(made)


def test_an_answer_without_a_refusal_stays() -> None:
    here = Answer()
    assert here.take(answer({"text": "a"}, use(WEATHER, {"n": 1}))) is None
    assert [(c.name, c.call_id, c.input, c.ordinal, c.dialect) for c in here.judge.asked] == [
        (WEATHER, "t1", {"n": 1}, 1, "bedrock")
    ]


def test_a_refused_call_is_text_in_its_place_and_the_reason_stays_while_a_call_does() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
    made = Answer(DELETE).take(answer(thought, use(DELETE), use(WEATHER)))
    assert made == answer(thought, {"text": said(DELETE)}, use(WEATHER))
    assert Answer(DELETE).take(answer(use(DELETE))) == answer({"text": said(DELETE)}, reason="end_turn")


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "malformed_tool_use", "guardrail_intervened"])
def test_no_reason_lets_a_call_pass_or_is_changed(reason: str) -> None:
    made = Answer(DELETE).take(answer(use(DELETE), reason=reason))
    assert made == answer({"text": said(DELETE)}, reason=reason)


def test_a_call_that_says_it_is_the_providers_is_judged_all_the_same() -> None:
    made = Answer(DELETE).take(answer(use(DELETE, type="server_tool_use")))
    assert made["output"]["message"]["content"] == [{"text": said(DELETE)}]


def test_what_a_tool_returned_is_no_call() -> None:
    here = Answer()
    assert here.take(answer({"toolResult": {"content": [{"json": {"toolUse": {"name": "x"}}}]}})) is None
    assert here.judge.asked == []


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ({"toolUse": {"name": "x"}}, "outside of the message"),
        ({"output": {"content": [use("x")]}}, "outside of the message"),
        (answer({"toolUse": ["x"]}), "no object"),
        (answer({"toolUse": {"name": ["x"]}}), "without a name"),
        (answer({"toolUse": {"name": "x", "Name": "y"}}), "'name' stands twice"),
        (answer(use("x") | {"tool_use": {"name": "y"}}), "two calls in one block"),
    ],
)
def test_a_call_that_clients_read_differently_is_refused(value: Any, flaw: str) -> None:
    here = Answer()
    assert "oolUse" not in json.dumps(here.take(value))
    assert all(flaw in call.flaw for call in here.judge.asked)
    assert here.judge.asked


def test_a_key_that_stands_twice_hides_no_call() -> None:
    here = Answer()
    text = '{"output":{"message":{"content":[{"toolUse":{"name":"x"}}]}},"output":{"message":{"content":[]}}}'
    assert here.take(text) == {"output": {"message": {"content": []}}}
    assert [c.flaw for c in here.judge.asked] == ["the key 'output' stands twice"]


@pytest.mark.parametrize(
    ("text", "value", "doubt"),
    [
        ("", {}, ""),
        ('{"a":1}', {"a": 1}, ""),
        ('{"a"', '{"a"', ""),
        ('{"a":1,"a":2}', '{"a":1,"a":2}', "a key stands twice in them"),
    ],
)
def test_arguments_are_what_the_pieces_spell(text: str, value: Any, doubt: str) -> None:
    assert arguments(text) == (value, doubt)
