"""Calls of a chat completion within an event of the Responses API: no provider sends any, and LiteLLM runs them."""

from __future__ import annotations

from typing import Final

from agentsh_net.core.dialects.openai_chat.fragments import scan
from agentsh_net.core.dialects.openai_responses.items import Call
from agentsh_net.core.values.strict_json import Reading

_CHAT: Final = "a chat completion's call within a response"


def chat_calls(reading: Reading) -> list[Call]:
    """Return what an event with `choices` says of calls, each with its flaw: pieces of them are not put together."""
    chunk = scan(reading.value, reading.duplicates)
    names = ["".join(name for _, name in piece.names) for piece in chunk.fragments]
    if chunk.hostile and not names:
        return [Call(flaw=chunk.hostile)]
    return [Call(name=name, flaw=_CHAT) for name in names]
