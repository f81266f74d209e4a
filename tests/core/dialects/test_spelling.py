"""A key of a format in another case puts arguments in doubt from then on; keys of somebody's data, and unknown ones, do not."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.dialects import spelling
from agentsh_net.core.dialects.spelling import Spelling
from agentsh_net.core.model import Action, ToolCall, Verdict


def doubt(*events: Any, of: str = "") -> str:
    asked: list[ToolCall] = []

    def judge(each: ToolCall) -> Verdict:
        asked.append(each)
        return Verdict(Action.ALLOW, "allowed")

    told = Spelling(judge)
    for event in events:
        told.note(event)
    told.judge(ToolCall("get", doubt=of))
    return asked[0].doubt


@pytest.mark.parametrize(
    "event",
    [
        {"Choices": []},
        {"choices": [{"delta": {"tool_calls": [{"function": {"Arguments": "x"}}]}}]},
        {"type": "content_block_delta", "delta": {"partialJson": "x"}},
        {"output_\u0130ndex": 0, "\u017ferver_name": "x"},
        {"contentblockindex": 0},
    ],
)
def test_a_key_in_another_case_puts_arguments_in_doubt_from_then_on(event: Any) -> None:
    assert "only some clients read" in doubt(event)
    assert "only some clients read" in doubt(event, {"type": "ping"})
    assert doubt(event, of="another") == "another"


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [{"delta": {"content": "Type"}, "index": 0}], "systemFingerprint": "x"},
        {"item": {"type": "shell_call", "action": {"Type": "x", "Index": 1}}, "Usage": {"Input": 1}},
        {"response": {"tools": [{"parameters": {"properties": {"Name": {}}}}], "output": []}},
        {"content_block": {"type": "tool_use", "input": {"ID": 1}}},
        [{"type": 1}],
        None,
        7,
    ],
)
def test_other_keys_do_not(event: Any) -> None:
    assert doubt(event) == ""


def test_a_key_as_long_as_a_frame_is_not_remembered() -> None:
    spelling._kind.cache_clear()
    assert doubt({"choices": [{"x" * 10_000: 1, "_" * 10_000 + "arguments": 1}]}) == ""
    assert spelling._kind.cache_info().currsize == 1
