"""In a whole message refused calls become text in place, other bytes stay, and what parsers read differently is written anew."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts.anthropic import denying

from agentsh_net.core.dialects.anthropic.blocks import Rulings
from agentsh_net.core.dialects.anthropic.message import Rewriting, rewritten
from agentsh_net.core.dialects.base import Step
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.values import strict_json

BAD = '{"type":"tool_use","id":"t","name":"bad","input":{"a":1.50}}'
GOOD = '{"type":"tool_use","id":"u","name":"good","input":{"a":1.50}}'
NOTICE = '{"type":"text","text":"[agentsh] Tool \'bad\' blocked by policy: denied"}'


def rewrite(text: str, **options: Any) -> tuple[Rewriting, Step]:
    out = Output(fail_closed=False, error_frame=str.encode)
    data = text.encode()
    result = rewritten(data, strict_json.read(data), Rulings(denying("bad")), out, **options)
    return result, out.step()


def test_a_message_without_a_refusal_is_left_alone() -> None:
    result, step = rewrite(f'{{"content":[{GOOD}],"stop_reason":"tool_use"}}')
    assert result == Rewriting(None, ("",), frozenset({0}))
    assert [j.call.name for j in step.judged] == ["good"]


def test_a_refused_call_becomes_text_where_it_stood() -> None:
    result, _ = rewrite(f'{{ "x":1.50, "content":[ {GOOD}, {BAD} ], "stop_reason":"tool_use" }}')
    assert result.data == f'{{ "x":1.50, "content":[ {GOOD}, {NOTICE} ], "stop_reason":"tool_use" }}'.encode()
    assert result.calls == {0, 1}
    assert [bool(became) for became in result.content] == [False, True]


def test_a_message_inside_an_event_is_found_under_its_key() -> None:
    result, _ = rewrite(f'{{"Message":{{"Content":[{BAD}],"Stop_Reason":"tool_use"}}}}', key="message")
    assert result.data == f'{{"Message":{{"Content":[{NOTICE}],"Stop_Reason":"end_turn"}}}}'.encode()


@pytest.mark.parametrize(
    "text",
    [
        f'{{"content":[{BAD}],"content":[]}}',
        f'{{"Content":[{BAD}],"content":[]}}',
        '{"content":[{"type":"tool_use","name":"bad","type":"text","text":"a"}]}',
        '{"content":[{"Type":"tool_use","name":"good","type":"text","text":"a"}]}',
    ],
)
def test_a_call_that_only_some_parsers_see_is_gone_for_all(text: str) -> None:
    result, step = rewrite(text)
    assert result.data is not None
    assert b"tool_use" not in result.data
    assert not strict_json.read(result.data).duplicates
    assert [fault.cause for fault in step.faults] == ["duplicate_keys"]


def test_every_call_of_an_ambiguous_message_is_refused_unheard() -> None:
    result, step = rewrite(f'{{"type":"message","type":"error","content":[{GOOD}],"usage":{{"a":1}}}}')
    assert [(j.call.name, j.verdict.rule) for j in step.judged] == [("good", "protocol")]
    answer = json.loads(result.data or b"")
    assert answer["content"][0]["type"] == "text"
    assert answer["usage"] == {"a": 1}


def test_an_ambiguous_event_keeps_nothing_but_its_type_and_its_message() -> None:
    result, _ = rewrite(
        '{"type":"message_start","message":{"content":[]},"content_block":{}}', key="message", flaw="two"
    )
    assert json.loads(result.data or b"") == {"type": "message_start", "message": {"content": []}}


def test_a_call_that_comes_too_late_is_refused_for_that() -> None:
    _, step = rewrite(f'{{"content":[{GOOD}]}}', late="too late")
    assert [j.verdict.reason for j in step.judged] == ["too late"]
    result, _ = rewrite('{"content":[]}', late="too late")
    assert result.data is None


@pytest.mark.parametrize("content", ["null", "{}", '"tool_use"', "[null,1,[]]"])
def test_content_without_blocks_is_left_alone(content: str) -> None:
    result, step = rewrite(f'{{"content":{content}}}')
    assert result.data is None
    assert not step.judged
