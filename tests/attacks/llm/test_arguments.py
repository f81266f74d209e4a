"""Rules over arguments hold in every dialect: for complete arguments only, and never by half a text or a key twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from situations import situation, unlimited
from transcripts import anthropic, openai_chat, openai_responses

from agentsh_net.core.configuration.settings import ArgumentMatch
from agentsh_net.core.dialects.anthropic import dialect as messages
from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.openai_chat import dialect as chat
from agentsh_net.core.dialects.openai_responses import dialect as responses

ETC = {"server": "fs", "tool": "write", "args": (ArgumentMatch("path", "glob", "/etc/*"),)}
SRV = {"server": "fs", "tool": "write", "args": (ArgumentMatch("path", "glob", "/srv/*"),)}
DENYING = situation(["fs"], {"fs": ["write"]}, denied_tools=[ETC])
ALLOWING = situation(["fs"], {"fs": ["write"]}, tool_policy="allowlist", allowed_tools=[SRV])
NAME = "mcp__fs__write"

CASES = [
    (DENYING, '{"path":"/srv/x"}', False),
    (DENYING, '{"path":"/etc/x"}', True),
    (DENYING, '{"p\\u0061th":"/\\u0065tc/x"}', True),
    (DENYING, '{"path":"/srv/x","path":"/etc/x"}', True),
    (DENYING, '{"path":"/etc/x","path":"/srv/x"}', True),  # the first key wins for some
    (DENYING, '{"other":{"a":1,"a":2},"path":"/srv/x"}', True),
    (DENYING, '{"path":"/srv/x"', True),  # a lenient client closes it
    (DENYING, '"/etc/x"', True),
    (ALLOWING, '{"path":"/srv/x"}', False),
    (ALLOWING, '{"path":"/etc/x"}', True),
    (ALLOWING, '{"path":"/srv/x"', True),
    (ALLOWING, "{}", True),
]


def _run(dialect: Any, snapshot: Any, sent: bytes) -> list[bool]:
    judged = []

    def judge(call: Any) -> Any:
        return snapshot.judge(call, session_id="default", charge=unlimited)

    machine = dialect.stream(judge, limits=Limits(), fail_closed=False)
    for at in range(0, len(sent), 7):
        judged += machine.feed(sent[at : at + 7]).judged
    judged += machine.finish().judged
    return [one.verdict.blocked for one in judged]


@pytest.mark.parametrize(("snapshot", "text", "blocked"), CASES)
def test_arguments_are_judged_in_anthropic_streams(snapshot: Any, text: str, blocked: bool) -> None:
    middle = len(text) // 2
    sent = (
        anthropic.begin()
        + anthropic.start(0, type="tool_use", id="t", name=NAME, input={})
        + anthropic.arguments(0, text[:middle])
        + anthropic.arguments(0, text[middle:])
        + anthropic.stop(0)
        + anthropic.end()
    )
    assert _run(messages.DIALECT, snapshot, sent) == [blocked]


@pytest.mark.parametrize(("snapshot", "text", "blocked"), CASES)
def test_arguments_are_judged_in_chat_streams(snapshot: Any, text: str, blocked: bool) -> None:
    middle = len(text) // 2
    first = {
        "index": 0,
        "id": "t",
        "type": "function",
        "function": {"name": NAME, "arguments": text[:middle]},
    }
    sent = (
        openai_chat.chunk({"tool_calls": [first]})
        + openai_chat.chunk({"tool_calls": [{"index": 0, "function": {"arguments": text[middle:]}}]})
        + openai_chat.chunk({}, "tool_calls")
        + openai_chat.DONE
    )
    assert _run(chat.DIALECT, snapshot, sent) == [blocked]


@pytest.mark.parametrize(("snapshot", "text", "blocked"), CASES)
def test_arguments_are_judged_in_whole_answers(snapshot: Any, text: str, blocked: bool) -> None:
    function = {"name": NAME, "arguments": text}
    bodies = [
        (chat.DIALECT, {"choices": [{"index": 0, "message": {"tool_calls": [{"id": "t", "type": "function", "function": function}]}}]}),
        (responses.DIALECT, {"id": "r", "output": [{"type": "function_call", "id": "f", "call_id": "t", **function}]}),
    ]  # fmt: skip
    for dialect, body in bodies:
        step = dialect.body(
            json.dumps(body).encode(),
            lambda call: snapshot.judge(call, session_id="default", charge=unlimited),
            fail_closed=False,
        )
        assert [one.verdict.blocked for one in step.judged] == [blocked], dialect.name
        assert (NAME.encode() + b'"' in step.out) is not blocked


@pytest.mark.parametrize(("snapshot", "text", "blocked"), CASES)
def test_an_anthropic_answer_that_holds_the_arguments_as_an_object(
    snapshot: Any, text: str, blocked: bool
) -> None:
    if not text.startswith("{") or not text.endswith("}"):
        text = "[]" if blocked else "{}"
    block = f'{{"type":"tool_use","id":"t","name":"{NAME}","input":{text}}}'
    body = f'{{"type":"message","content":[{block}]}}'
    step = messages.DIALECT.body(
        body.encode(),
        lambda call: snapshot.judge(call, session_id="default", charge=unlimited),
        fail_closed=False,
    )
    assert [one.verdict.blocked for one in step.judged] == [blocked]


def test_responses_streams_are_judged_by_the_whole_text() -> None:
    item = {"type": "function_call", "id": "f", "call_id": "t", "name": NAME, "arguments": ""}
    text = '{"path":"/etc/x"}'
    sent = openai_responses.numbered(
        [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            *(
                {
                    "type": "response.function_call_arguments.delta",
                    "item_id": "f",
                    "output_index": 0,
                    "delta": part,
                }
                for part in text
            ),
            {"type": "response.output_item.done", "output_index": 0, "item": {**item, "arguments": text}},
        ]
    )
    assert _run(responses.DIALECT, DENYING, sent) == [True]


def test_a_held_call_that_outgrows_the_bound_is_not_let_go_on_half_its_arguments() -> None:
    sent = (
        anthropic.begin()
        + anthropic.start(0, type="tool_use", id="t", name=NAME, input={})
        + anthropic.arguments(0, '{"fill":"' + "x" * 5000)
        + anthropic.arguments(0, '","path":"/etc/x"}')
        + anthropic.stop(0)
    )
    judged = []

    def judge(call: Any) -> Any:
        verdict = DENYING.judge(call, session_id="default", charge=unlimited)
        judged.append(verdict.blocked)
        return verdict

    machine = messages.DIALECT.stream(judge, limits=Limits(held=2000), fail_closed=False)
    out = machine.feed(sent).out + machine.finish().out
    assert judged == [True]
    assert b"/etc/x" not in out


@pytest.mark.parametrize("whole", [False, True])
def test_a_rule_against_a_family_of_anthropics_tools_holds_for_its_members(*, whole: bool) -> None:
    typed = {"tool": "computer", "args": (ArgumentMatch("text", "glob", "*evil*"),)}
    for policy, said, blocked in (
        (situation(denied_tools=["computer"]), "a", True),
        (situation(denied_tools=["browser"]), "a", False),
        (situation(denied_tools=[typed]), "a", True),  # a family has no arguments that could be judged
        (situation(denied_tools=[typed]), "evil", True),
    ):
        block = {"type": "tool_use", "id": "t", "name": "type", "toolset_name": "computer"}
        if whole:
            body = json.dumps({"type": "message", "content": [{**block, "input": {"text": said}}]}).encode()
            step = messages.DIALECT.body(
                body,
                lambda call, by=policy: by.judge(call, session_id="default", charge=unlimited),
                fail_closed=False,
            )
            found = [one.verdict.blocked for one in step.judged]
        else:
            sent = anthropic.begin() + anthropic.start(0, **block, input={})
            sent += anthropic.arguments(0, json.dumps({"text": said})) + anthropic.stop(0) + anthropic.end()
            found = _run(messages.DIALECT, policy, sent)
        assert found == [blocked]


@pytest.mark.parametrize("end", [{"finish_reason": "tool_calls"}, {"content": "Well."}, {}])
def test_a_name_that_grows_behind_the_arguments_gets_none_that_were_judged_under_the_shorter_one(
    end: dict[str, Any],
) -> None:
    first = {
        "index": 0,
        "id": "t",
        "type": "function",
        "function": {"name": NAME[:-2], "arguments": '{"path":"/etc/x"}'},
    }
    sent = openai_chat.chunk({"tool_calls": [first]})
    sent += openai_chat.chunk({"content": end.get("content")}, end.get("finish_reason"))
    sent += openai_chat.chunk(
        {"tool_calls": [{"index": 0, "function": {"name": NAME[-2:], "arguments": ""}}]}
    )
    sent += openai_chat.chunk({}, "tool_calls") + openai_chat.DONE
    assert _run(chat.DIALECT, DENYING, sent)[-1]
    assert NAME[-2:] + '"' not in _left(chat.DIALECT, DENYING, sent)


def test_arguments_that_come_behind_the_end_of_a_call_that_had_none_are_judged_whole() -> None:
    first = {"index": 0, "id": "t", "type": "function", "function": {"name": NAME, "arguments": ""}}
    for path, blocked in (("/srv/x", False), ("/etc/x", True)):
        more = {"index": 0, "function": {"arguments": json.dumps({"path": path})}}
        sent = openai_chat.chunk({"tool_calls": [first]}) + openai_chat.chunk({}, "tool_calls")
        sent += openai_chat.chunk({"tool_calls": [more]}) + openai_chat.DONE
        assert _run(chat.DIALECT, DENYING, sent) == [False, blocked]


def _left(dialect: Any, snapshot: Any, sent: bytes) -> str:
    machine = dialect.stream(
        lambda call: snapshot.judge(call, session_id="default", charge=unlimited),
        limits=Limits(),
        fail_closed=False,
    )
    return (machine.feed(sent).out + machine.finish().out).decode()
