"""The counts of tokens are read from an answer's bytes, however it is cut, and text in it cannot fake them."""

from __future__ import annotations

import json

import pytest

from agentsh_net.core.limits.usage import Usage

ANTHROPIC = (
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":25,"cache_creation_input_tokens":5,'
    b'"cache_read_input_tokens":900,"output_tokens":1}}}\n\ndata: {"type":"message_delta","usage":{"output_tokens":15}}\n\n'
)
CASES = [
    (ANTHROPIC, 30, 15),
    (
        b'data: {"choices":[],"usage":{"prompt_tokens": 7,"completion_tokens" : 8,"total_tokens":15}}\n\n',
        7,
        8,
    ),
    (
        b'{"response":{"usage":{"input_tokens":3,"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2}}}}',
        3,
        4,
    ),
    (b'{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":6,"thoughtsTokenCount":2}}', 5, 8),
    (b'{"done":true,"prompt_eval_count":26,"eval_count":298}\n', 26, 298),
    (b'{"usage":{"inputTokens":1,"outputTokens":2}}', 1, 2),
]


@pytest.mark.parametrize(("body", "asked", "answered"), CASES)
def test_counts_are_read_in_every_dialect_for_any_cut(body: bytes, asked: int, answered: int) -> None:
    for size in (1, 7, len(body)):
        usage = Usage()
        for at in range(0, len(body), size):
            usage.feed(body[at : at + size])
        assert (usage.known, usage.input, usage.output) == (True, asked, answered)


def test_text_cannot_fake_them() -> None:
    usage = Usage()
    usage.feed(json.dumps({"text": '"output_tokens": 999999 }'}).encode())
    assert not usage.known


def test_events_are_counted_where_nothing_better_is_told() -> None:
    usage = Usage()
    usage.feed(b"data: 1\n\ndata: 2\n\n")
    usage.feed(b"event: x\ndata: 3\n\n")
    assert (usage.known, usage.events) == (False, 3)
