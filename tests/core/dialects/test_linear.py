"""What an answer costs to read grows as it does: other streams wait meanwhile, and a quarter of an hour for a hostile one is a stop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from agentsh_net.core.dialects.anthropic import dialect as anthropic
from agentsh_net.core.dialects.base import Dialect
from agentsh_net.core.dialects.bedrock import dialect as bedrock
from agentsh_net.core.dialects.gemini import dialect as gemini
from agentsh_net.core.dialects.gemini.arguments import assembled
from agentsh_net.core.dialects.interactions import dialect as interactions
from agentsh_net.core.dialects.ollama import dialect as ollama
from agentsh_net.core.dialects.openai_chat import dialect as openai_chat
from agentsh_net.core.dialects.openai_responses import dialect as openai_responses
from agentsh_net.core.model import Action, ToolCall, Verdict

TIMES = 8  # longer; what is quadratic costs 64 times as much
MOST = 3 * TIMES
TRIES = 5  # a busy machine is slow now and then, what is quadratic each time


def judge(call: ToolCall) -> Verdict:
    return Verdict(Action.BLOCK if call.ordinal % 2 else Action.ALLOW, "law")


def costs(work: Callable[[int], None], size: int) -> float:
    """Return how many times as long the work takes for what is TIMES as long, in this thread's own time, at the least."""
    least = float("inf")
    for _ in range(TRIES):
        least = min(least, took(work, size * TIMES) / took(work, size))
        if least < MOST:
            break
    return least


def took(work: Callable[[int], None], length: int) -> float:
    began = time.thread_time()
    work(length)
    return time.thread_time() - began


def use(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"t{number}", "name": "a", "input": {}}


def chat(number: int) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": "a", "arguments": "{}"}}


WHOLE: dict[str, tuple[Dialect, Callable[[range], Any]]] = {
    "anthropic": (anthropic.DIALECT, lambda n: {"content": [use(i) for i in n]}),
    "chat": (openai_chat.DIALECT, lambda n: {"choices": [{"message": {"tool_calls": [chat(i) for i in n]}}]}),
    "responses": (
        openai_responses.DIALECT,
        lambda n: {"output": [{"type": "function_call", "call_id": f"c{i}", "name": "a", "arguments": "{}"} for i in n]},
    ),
    "gemini": (
        gemini.DIALECT,
        lambda n: {"candidates": [{"content": {"parts": [{"functionCall": {"name": "a", "args": {"i": i}}} for i in n]}}]},
    ),
    "interactions": (
        interactions.DIALECT,
        lambda n: {"steps": [{"type": "function_call", "id": f"c{i}", "name": "a", "arguments": {}} for i in n]},
    ),
    "ollama": (ollama.DIALECT, lambda n: {"message": {"tool_calls": [chat(i) for i in n]}}),
    "bedrock": (
        bedrock.DIALECT,
        lambda n: {"output": {"message": {"content": [{"toolUse": {"name": "a", "toolUseId": f"t{i}", "input": {}}} for i in n]}}},
    ),
}  # fmt: skip


# Entries at which what was quadratic showed.
SIZES = {"interactions": 100, "gemini": 1500, "bedrock": 1500}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_answer_of_many_calls_costs_what_it_is_long(name: str) -> None:
    dialect, make = WHOLE[name]

    def work(length: int) -> None:
        dialect.body(json.dumps(make(range(length))).encode(), judge, fail_closed=False)

    assert costs(work, SIZES.get(name, 300)) < MOST


def test_strings_whose_pieces_take_turns_cost_what_they_are_long() -> None:
    def work(length: int) -> None:
        assembled(None, [{"jsonPath": "$." + "ab"[at % 2], "stringValue": "x" * 500} for at in range(length)])

    assert costs(work, 500) < MOST
