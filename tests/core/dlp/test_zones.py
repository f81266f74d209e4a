"""Words are searched wherever an agent or a tool puts them; what the protocol needs as it is, is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dlp import zones
from agentsh_net.core.dlp.strings import texts

VALUE = "alice@example.com"
BLOB = "QUtJQUlPU0ZPRE5ON0VYQU1QTEU0MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTEx"


def searched(body: Any, value: str = VALUE) -> bool:
    found = [t for t in texts(json.dumps(body), zones.zone) if t.value == value]
    assert found
    return any(zones.is_searched(t) and not zones.is_sealed(t) for t in found)


@pytest.mark.parametrize(
    "body",
    [
        {"system": VALUE},
        {"messages": [{"role": "user", "content": VALUE}]},
        {"messages": [{"content": [{"type": "text", "text": VALUE}]}]},
        {"messages": [{"content": [{"type": "tool_result", "tool_use_id": "t", "content": VALUE}]}]},
        {"messages": [{"content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"name": VALUE}}]}]},
        {"messages": [{"content": [{"type": "tool_use", "input": {"signature": [{"id": VALUE}]}}]}]},
        {"messages": [{"content": [{"type": "tool_use", "input": {VALUE: 1}}]}]},
        {"messages": [{"content": [{"type": "tool_use", "input": {"headers": {"to": VALUE}}}]}]},
        {"messages": [{"content": [{"type": "tool_use", "input": {"type": "base64", "data": VALUE}}]}]},
        {"messages": [{"content": [{"type": "base64", "text": VALUE}]}]},
        {"messages": [{"content": [{"type": "document", "source": {"type": "text", "data": VALUE}}]}]},
        {"input": VALUE, "instructions": ""},
        {"input": [{"type": "message", "content": [{"type": "input_text", "text": VALUE}]}]},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": VALUE}]},
        {"contents": [{"parts": [{"functionResponse": {"name": "n", "response": {"id": VALUE}}}]}]},
        {"contents": [{"parts": [{"functionCall": {"name": "n", "args": {"type": VALUE}}}]}]},
        {"tools": [{"name": "n", "description": VALUE}]},
        {"user": VALUE},
        {"prompt": VALUE},
    ],
)
def test_words_are_searched(body: Any) -> None:
    assert searched(body)


@pytest.mark.parametrize(
    "body",
    [
        {"model": VALUE},
        {"metadata": {"user_id": VALUE}},
        {"messages": [{"content": [{"type": "thinking", "thinking": VALUE, "signature": "x"}]}]},
        {"messages": [{"content": [{"type": "thinking", "thinking": "x", "signature": VALUE}]}]},
        {"messages": [{"content": [{"type": "redacted_thinking", "data": VALUE}]}]},
        {"messages": [{"content": [{"data": VALUE, "type": "redacted_thinking"}]}]},
        {"messages": [{"content": [{"type": "image", "source": {"type": "base64", "data": VALUE}}]}]},
        {"messages": [{"content": [{"type": "tool_use", "id": VALUE, "name": "n"}]}]},
        {"input": [{"type": "reasoning", "encrypted_content": VALUE}]},
        {"contents": [{"parts": [{"text": "x", "thoughtSignature": VALUE}]}]},
        {"tools": [{"name": VALUE, "input_schema": {"enum": [VALUE]}}]},
        {"mcp_servers": [{"url": VALUE, "authorization_token": VALUE}]},
        {"tools": [{"type": "mcp", "server_url": VALUE, "headers": {"description": VALUE}}]},
    ],
)
def test_what_the_protocol_needs_stays(body: Any) -> None:
    assert not searched(body)


def test_images_stay_wherever_they_stand() -> None:
    assert not searched({"contents": [{"parts": [{"inlineData": {"data": BLOB}}]}]}, BLOB)
    assert not searched({"messages": [{"images": [BLOB]}]}, BLOB)
    url = "data:image/png;base64,QWxpY2U="
    assert not searched({"messages": [{"content": [{"image_url": {"url": url}}]}]}, url)
    assert not searched({"messages": [{"content": BLOB * 10}]}, BLOB * 10)
    assert searched({"messages": [{"content": BLOB}]}, BLOB)


def test_a_list_of_keys_is_no_image() -> None:
    lines = "\n".join(["AKIAIOSFODNN7EXAMPLE"] * 40)
    assert searched({"messages": [{"content": lines}]}, lines)
