"""An event is read as the most lenient client reads it, and a replacement frame is one that every client can read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.anthropic.event import Event, read, text_frames
from agentsh_net.core.framing import sse
from agentsh_net.core.values import strict_json


def reading(data: str, event: str = "") -> Event:
    found = read(sse.Frame(b"", event, data.encode()), strict_json.read(data.encode()))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "index"),
    [(0, 0), (7, 7), (1.0, 1), (-1, None), (True, None), ("1", None), (None, None), (0.5, None), ([0], None)],
)
def test_an_index_counts_where_every_parser_reads_the_same_number(value: Any, index: int | None) -> None:
    assert reading(json.dumps({"index": value})).index == index


def test_what_is_no_object_is_no_event() -> None:
    for data in (b"[]", b"1", b"null", b'"x"'):
        assert read(sse.Frame(b"", "x", data), strict_json.read(data)) is None


def test_the_type_in_the_data_counts_and_the_name_of_the_event_only_without_it() -> None:
    assert reading('{"type":"Message_Stop"}', "ping").kind == "message_stop"
    assert reading('{"type":1}', "ping").kind == "ping"
    assert reading("{}", "ping").kind == "ping"


@pytest.mark.parametrize(
    ("data", "opens"),
    [
        ('{"type":"content_block_start"}', True),
        ('{"type":"ping","content_block":{"type":"text"}}', True),
        ('{"type":"ping","content_block":{"type":"text"},"content_block":null}', True),
        ('{"type":"ping","message":{"content":[]},"message":null}', True),
        ('{"type":"message_start","message":{"content":[]}}', False),
        ('{"type":"content_block_delta","delta":{"type":"text_delta","text":"content_block"}}', False),
    ],
)
def test_an_event_opens_a_block_if_it_does_for_some_parser(data: str, *, opens: bool) -> None:
    assert reading(data).opens_block is opens


@pytest.mark.parametrize(
    ("data", "flaw"),
    [
        ('{"type":"ping","type":"x"}', "the key 'type' stands twice"),
        ('{"Index":0,"index":1}', "the key 'index' stands twice"),
        ('{"delta":{"partial_json":"a","Partial_JSON":"b"}}', "the key 'partial_json' stands twice"),
        ('{"delta":{"partial_json":"a"},"content_block":{}}', "one event brings content_block and delta"),
        ('{"delta":{"text":"a"},"usage":{"x":1,"x":2}}', ""),
        ('{"type":"message_delta","delta":{"stop_reason":null}}', ""),
    ],
)
def test_an_event_that_parsers_read_differently_says_so(data: str, flaw: str) -> None:
    assert reading(data).flaw == flaw


def test_a_text_block_is_three_whole_frames_of_two_lines() -> None:
    frames = sse.Decoder(1 << 20).feed(text_frames(3, "a\n\n\u2028b\ud800"))
    assert [frame.event for frame in frames] == [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    ]
    values = [json.loads(frame.data or b"") for frame in frames]
    assert [value["type"] for value in values] == [frame.event for frame in frames]
    assert {value["index"] for value in values} == {3}
    assert values[1]["delta"] == {"type": "text_delta", "text": "a\n\n\u2028b\ud800"}
    assert all(frame.raw.count(b"\n") == 3 for frame in frames)
