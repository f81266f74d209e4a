"""A denied call leaves an answer wherever in a JSON text the answer stands, and what speaks of calls beside it goes by fail_closed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.embedded import rewritten
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.model import Action, ToolCall, Verdict
from agentsh_net.core.values.strict_json import read


def judge(call: ToolCall) -> Verdict:
    return Verdict(Action.BLOCK if call.name == "rm" or call.flaw else Action.ALLOW, "no")


def take(value: Any, *, fail_closed: bool = False) -> tuple[Any, Output]:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    out = Output(fail_closed=fail_closed, error_frame=lambda told: told.encode())
    made = rewritten(text, read(text), judge, out)
    return (None if made is None else json.loads(made)), out


def chat(*names: str) -> dict[str, Any]:
    calls = [{"id": n, "type": "function", "function": {"name": n, "arguments": "{}"}} for n in names]
    return {"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]}  # fmt: skip


def responses(*names: str) -> dict[str, Any]:
    return {"object": "response", "output": [{"type": "function_call", "id": n, "call_id": n, "name": n, "arguments": "{}"} for n in names]}  # fmt: skip


def messages(*names: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [{"type": "tool_use", "id": n, "name": n, "input": {}} for n in names]}  # fmt: skip


def gemini(*names: str) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": n, "args": {}}} for n in names]}}]}  # fmt: skip


ANSWERS = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}
PLACES: dict[str, Any] = {
    "alone": lambda a: a,
    "OpenAI's line": lambda a: {"id": "b", "custom_id": "c", "response": {"status_code": 200, "body": a}, "error": None},
    "Anthropic's line": lambda a: {"custom_id": "c", "result": {"type": "succeeded", "message": a}},
    "Gemini's line": lambda a: {"key": "k", "response": a},
    "in lists": lambda a: {"x": [1, [{"y": a}]]},
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ANSWERS)
def test_a_denied_call_leaves_and_an_allowed_one_stays(place: str, kind: str) -> None:
    made, out = take(PLACES[place](ANSWERS[kind]("get", "rm")))
    assert '"rm"' not in json.dumps(made)
    assert '"get"' in json.dumps(made)
    assert [(j.call.name, j.verdict.blocked) for j in out.step().judged] == [("get", False), ("rm", True)]
    assert out.step().faults == ()


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_allowed_leaves_as_it_came(kind: str) -> None:
    made, out = take(PLACES["OpenAI's line"](ANSWERS[kind]("get")), fail_closed=True)
    assert (made, out.step().faults) == (None, ())


def test_everything_beside_a_denied_call_keeps_its_bytes() -> None:
    line = (
        b'{"id" : "b", "n": 12345678901234567890, "response": {"body": %s}, "z":1.0e5}'
        % json.dumps(messages("rm")).encode()
    )
    out = Output(fail_closed=False, error_frame=lambda told: told.encode())
    made = rewritten(line, read(line), judge, out) or b""
    assert made.startswith(b'{"id" : "b", "n": 12345678901234567890, "response": {"body": {')
    assert made.endswith(b'}}, "z":1.0e5}')


def test_an_answer_that_could_be_in_two_formats_is_read_in_each() -> None:
    both = {**chat("rm"), **messages("rm")}
    made, _ = take({"response": {"body": both}})
    assert '"rm"' not in json.dumps(made)


@pytest.mark.parametrize(
    "beside",
    [{"tool_calls": [{"name": "rm"}]}, {"message": {"tool_calls": [{"function": {"name": "rm"}}]}}, {"type": "tool-call", "name": "rm"},
     {"messages": [{"role": "assistant", "tool_calls": [{}]}]}],
)  # fmt: skip
def test_a_call_in_an_unknown_format_goes_by_fail_closed(beside: dict[str, Any]) -> None:
    for value in (beside, {"a": beside, "response": {"body": chat("get")}}):
        _, open_ = take(value)
        assert [(f.cause, f.cut) for f in open_.step().faults] == [("unknown_format", False)]
        _, closed = take(value, fail_closed=True)
        assert [(f.cause, f.cut) for f in closed.step().faults] == [("unknown_format", True)]


def test_a_key_that_stands_twice_beside_a_call_stops_the_text() -> None:
    text = json.dumps(messages("get")).replace('"name"', '"name": "rm", "name"').encode()
    made, out = take(text)
    assert (made, [f.cause for f in out.step().faults], out.end) == (None, ["duplicate_keys"], True)


@pytest.mark.parametrize(
    "value", [[], {}, 1, "tool_calls", {"choices": 3}, {"output": [1]}, [{"content": "x"}]]
)
def test_what_speaks_of_no_call_is_none_of_its_business(value: Any) -> None:
    made, out = take(value, fail_closed=True)
    assert (made, out.step().faults, out.step().judged) == (None, (), ())
