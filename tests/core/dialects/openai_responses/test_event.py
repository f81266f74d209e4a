"""An event is read as its most lenient client reads it, and a message takes an item's place in whole events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcripts.openai_responses import (
    DELETE,
    added,
    arguments,
    arguments_done,
    begin,
    done,
    end,
    frame,
    function_call,
    notice,
    raw,
    refused,
)

from agentsh_net.core.dialects.openai_responses.event import (
    Event,
    message_frames,
    read,
    renumbered,
)
from agentsh_net.core.dialects.openai_responses.items import Call
from agentsh_net.core.framing.sse import parse
from agentsh_net.core.values.strict_json import read as read_json

ITEM = function_call(DELETE)


def event(data: bytes) -> Event:
    whole = parse(data)
    found = read(whole, read_json(whole.data or b""))
    assert found is not None
    return found


def test_the_parts_of_an_item_event() -> None:
    found = event(frame(added(3, ITEM), 9))
    assert (found.kind, found.index, found.odd, found.number) == ("response.output_item.added", 3, False, 9)
    assert found.item == ITEM
    assert found.adds_item
    assert not event(frame(done(3, ITEM))).adds_item
    assert not found.lists
    assert not found.flaw


@pytest.mark.parametrize(
    ("index", "read_as", "odd"),
    [
        (0, 0, False), (2.0, 2, False), (None, None, False), (..., None, False), (-1, None, True), ("0", None, True),
        (True, None, True), (0.5, None, True), ([0], None, True),
    ],
)  # fmt: skip
def test_an_index_is_a_plain_number_or_odd_or_not_there(
    index: Any, read_as: int | None, *, odd: bool
) -> None:
    found = event(frame(added(index, ITEM)))
    assert (found.index, found.odd) == (read_as, odd)


@pytest.mark.parametrize("value", ["1", None, True, -1, 1.5])
def test_a_number_that_is_not_plain_is_left_alone(value: Any) -> None:
    assert event(raw("", json.dumps({"type": "x", "sequence_number": value}))).number is None


@pytest.mark.parametrize(
    ("sent", "ends", "fails"),
    [
        (begin()[0], False, False),
        *((end(status=status)[0], True, status in {"failed", "cancelled"}) for status in ("completed", "incomplete", "failed", "cancelled")),
        ({"type": "error", "message": "m"}, False, True),
        ({"type": "x", "error": {"message": "m"}}, False, True),
        ({"type": "response.mcp_call.failed"}, False, False),
        ({"type": "response.mcp_call.completed"}, False, False),
        ({"type": "response.output_text.done", "text": "x"}, False, False),
    ],
)  # fmt: skip
def test_it_is_known_what_ends_an_answer_and_what_fails_it(sent: Any, *, ends: bool, fails: bool) -> None:
    found = event(frame(sent))
    assert (found.ends_answer, found.fails_answer) == (ends, fails)


@pytest.mark.parametrize(
    ("sent", "brings"),
    [
        (arguments(0, "a", "x"), True),
        (arguments(0, "a", "x", "custom_tool_call_input"), True),
        (arguments_done(0, "a", "x"), True),
        ({"type": "response.shell_call_command.done", "command": "ls"}, True),
        ({"type": "response.apply_patch_call_operation_diff.delta", "delta": "x"}, True),
        ({"type": "response.web_search_call.searching"}, False),
        ({"type": "response.output_text.delta", "delta": "x"}, False),
    ],
)
def test_it_is_known_what_brings_arguments(sent: Any, *, brings: bool) -> None:
    assert event(frame(sent)).brings is brings


def test_it_is_known_what_tells_of_the_providers_own_tools() -> None:
    code = {"type": "response.code_interpreter_call_code.delta", "delta": "x"}
    assert event(frame(code)).providers
    assert event(raw("", json.dumps(code))).providers
    assert not event(raw("response.function_call_arguments.delta", json.dumps(code))).providers
    assert not event(frame(arguments(0, "a", "x"))).providers


def test_the_name_of_an_event_counts_where_it_has_no_type() -> None:
    assert (
        event(raw("response.output_item.done", json.dumps({"item": ITEM}))).kind
        == "response.output_item.done"
    )
    assert event(raw("error", "{}")).error


@pytest.mark.parametrize(
    ("name", "sent", "flaw"),
    [
        ("response.output_item.done", added(0, ITEM), True),
        ("response.function_call_arguments.done", {"type": "x", "arguments": "x"}, True),
        ("response.x", {"type": "response.y"}, False),
        ("message", added(0, ITEM), False),
        ("", added(0, ITEM), False),
    ],
)
def test_a_name_that_contradicts_the_type_is_a_flaw_where_a_call_may_be(
    name: str, sent: Any, *, flaw: bool
) -> None:
    assert bool(event(raw(name, json.dumps(sent))).flaw) is flaw


@pytest.mark.parametrize("data", [b"data: []\n\n", b"data: 1\n\n", b'data: "tool"\n\n'])
def test_what_is_no_object_is_no_event(data: bytes) -> None:
    whole = parse(data)
    assert read(whole, read_json(whole.data or b"")) is None


@pytest.mark.parametrize("pieces", [1, 2, 7, 64])
def test_a_message_is_five_events_and_its_pieces(pieces: int) -> None:
    made = b"".join(message_frames(notice(DELETE), Call(id="fc_0", call_id="call_0"), 2, 5, pieces))
    assert made == b"".join(
        frame(event, 5 + at) for at, event in enumerate(refused(2, ITEM, frames=5 + pieces))
    )
    assert made.count(b"event: ") == 5 + pieces
    deltas = [
        json.loads(line[6:])["delta"] for line in made.split(b"\n") if b'output_text.delta","seq' in line
    ]
    assert "".join(deltas) == notice(DELETE)


def test_a_message_has_no_number_and_no_index_where_there_was_none() -> None:
    made = b"".join(message_frames("t", Call(), None, None, 1))
    assert b"sequence_number" not in made
    assert b"output_index" not in made


@pytest.mark.parametrize(
    ("data", "out"),
    [
        ('{"type":"x","sequence_number":7}', '{"type":"x","sequence_number":99}'),
        ('{"sequence_number" :\t7 ,"type":"x"}', '{"sequence_number" :\t99 ,"type":"x"}'),
        (
            '{"x":{"sequence_number":7},"sequence_number":7}',
            '{"x":{"sequence_number":7},"sequence_number":99}',
        ),
        (
            '{"x":{"sequence_number":1},"sequence\\u005fnumber":7}',
            '{"x":{"sequence_number":1},"sequence\\u005fnumber":99}',
        ),
        (
            '{"x":"\\"sequence_number\\":7","sequence_number":7}',
            '{"x":"\\"sequence_number\\":7","sequence_number":99}',
        ),
        ('{"Sequence_Number":7}', '{"Sequence_Number":99}'),
        ('{"sequence_number":7.0}', '{"sequence_number":99}'),
        ('{"sequence_number":0.7e1}', '{"sequence_number":99}'),
    ],
)
def test_only_the_number_of_an_event_changes(data: str, out: str) -> None:
    assert renumbered(data.encode(), event(raw("", data)), 99).decode() == out
