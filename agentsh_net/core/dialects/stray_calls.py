"""Calls of one API's format within an event of another's: no provider sends any, and LiteLLM runs some.

It reads Chat Completions where it asked for Responses, and at Snowflake's endpoints those or Messages, event by event.
"""

from __future__ import annotations

from typing import Any, Final

from agentsh_net.core.dialects.anthropic.blocks import folded, is_call
from agentsh_net.core.dialects.openai_chat.fragments import scan
from agentsh_net.core.values.strict_json import Reading

OF_CHAT: Final = "a chat completion's call in another API's answer"
OF_MESSAGES: Final = "a call of Anthropic's format in another API's answer"


def chat_calls(reading: Reading) -> list[str]:
    """Return the names of a chat completion's calls in an event, empty for a piece without one, or that may hide in it."""
    chunk = scan(reading.value, reading.duplicates)
    names = ["".join(name for _, name in piece.names) for piece in chunk.fragments]
    return names or [""] * bool(chunk.hostile)


def has_message_call(event: Any) -> bool:
    """Say whether an event brings a call as Anthropic's do. Every piece of a chat's call is asked about: no key is folded for it."""
    return isinstance(event, dict) and "content_block" in event and is_call(folded(event["content_block"]))
