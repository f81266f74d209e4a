"""An event says the same to us as to the most lenient client, and what is written is what the service writes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer
from transcripts.bedrock import piece, start

from agentsh_net.core.dialects.bedrock.events import Event, error, make, put, read
from agentsh_net.core.framing.event_stream import EventStreamDecoder
from agentsh_net.core.values.strict_json import Path
from agentsh_net.core.values.strict_json import read as parse


def event(kind: str, value: Any, prefix: Path = ()) -> Event:
    return read(kind, parse((value if isinstance(value, str) else json.dumps(value)).encode()), prefix)


USE = {"toolUse": {"name": "x", "toolUseId": "t"}}


def test_the_parts_of_a_start_a_piece_and_an_end() -> None:
    begun = event("contentBlockStart", {"contentBlockIndex": 1, "start": USE})
    assert (begun.index, begun.call, begun.piece, begun.flaw, begun.hidden) == (
        1,
        USE["toolUse"],
        None,
        "",
        False,
    )
    went_on = event("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{"}}})
    assert (went_on.call, went_on.piece, went_on.flaw) == (None, {"input": "{"}, "")
    assert event("messageStop", {"stopReason": "tool_use"}).reason == ("stopReason",)
    assert event("messageStop", {"stopReason": "end_turn"}).reason is None


def test_an_event_in_a_chunk_is_read_alike() -> None:
    wrapped = event(
        "contentBlockStart",
        {"contentBlockStart": {"contentBlockIndex": 1, "start": USE}},
        ("contentBlockStart",),
    )
    assert (wrapped.call, wrapped.flaw, wrapped.hidden) == (USE["toolUse"], "", False)
    assert event("messageStop", {"messageStop": {"stopReason": "tool_use"}}, ("messageStop",)).reason == (
        "messageStop",
        "stopReason",
    )


@pytest.mark.parametrize("index", [None, "1", -1, True, 1.0, [1]])
def test_an_index_that_clients_coerce_differently_is_none(index: Any) -> None:
    assert event("contentBlockStop", {"contentBlockIndex": index}).index is None


@pytest.mark.parametrize(
    ("kind", "value", "flaw"),
    [
        ("contentBlockDelta", {"start": USE}, "type and its content differ"),
        ("messageStart", {"start": USE}, "type and its content differ"),
        ("contentBlockStart", {"delta": {"toolUse": {"input": ""}}}, "type and its content differ"),
        (
            "contentBlockStart",
            {"start": USE, "delta": {"toolUse": {"input": ""}}},
            "type and its content differ",
        ),
        ("contentBlockStart", {"start": USE, "Start": {}}, "'start' stands twice"),
        (
            "contentBlockStart",
            '{"start":{"toolUse":{"name":"x"}},"contentBlockIndex":1,"contentBlockIndex":2}',
            "stands twice",
        ),
    ],
)
def test_an_event_that_clients_read_differently_has_a_flaw(kind: str, value: Any, flaw: str) -> None:
    assert flaw in event(kind, value).flaw


@pytest.mark.parametrize(
    "value",
    [
        {"message": {"content": [USE]}}, {"toolUse": {}}, {"start": [USE]},
        '{"start":{"toolUse":{"name":"x"}},"start":{}}', '{"delta":{"toolUse":{"input":"x"}},"delta":{"text":"a"}}',
        '{"start":{"toolUse":{"name":"x"}},"START":""}', '{"start":{"toolUse":{"name":"x"},"tooluse":null}}',
        '{"delta":{"toolUse":{"input":"x"}},"Delta":{"text":"a"}}',
    ],
)  # fmt: skip
def test_a_call_where_none_belongs_is_told(value: Any) -> None:
    assert event("contentBlockStart", value).hidden


def test_what_is_written_is_what_botocore_reads() -> None:
    buffer = EventStreamBuffer()
    (frame,) = EventStreamDecoder(1000).feed(start(1, "x"))
    buffer.add_data(make("contentBlockStop", {"contentBlockIndex": 1}) + put(frame, b"{}") + error("why"))
    made = [(m.headers, m.payload) for m in buffer]
    kinds = {":content-type": "application/json", ":message-type": "event"}
    assert made[:2] == [
        (kinds | {":event-type": "contentBlockStop"}, b'{"contentBlockIndex":1}'),
        (kinds | {":event-type": "contentBlockStart"}, b"{}"),
    ]
    assert made[2][0][":message-type"] == "exception"
    assert json.loads(made[2][1]) == {"message": "why"}
    assert piece(1, "x")
