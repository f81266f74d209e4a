"""An event belongs to the item that every parser takes it for, and all events of a call add up to one call."""

from __future__ import annotations

from typing import Any

import pytest
from transcripts.openai_responses import (
    WEATHER,
    added,
    arguments,
    arguments_done,
    done,
    frame,
    function_call,
    message_item,
)
from transcripts.openai_responses import Event as Sent

from agentsh_net.core.dialects.machine import State
from agentsh_net.core.dialects.openai_responses.event import Event, read
from agentsh_net.core.dialects.openai_responses.items import folded, read_call
from agentsh_net.core.dialects.openai_responses.slots import MAX_SLOTS, Slot, Slots
from agentsh_net.core.framing.sse import parse
from agentsh_net.core.values.strict_json import read as read_json

ITEM = function_call(WEATHER, '{"a":1}')


def event(sent: Sent) -> Event:
    whole = parse(frame(sent))
    found = read(whole, read_json(whole.data or b""))
    assert found is not None
    return found


def opened(slots: Slots, index: Any, item: Any, state: State = State.HELD) -> Slot:
    begun = event(added(index, item))
    slot = slots.add(begun, begun.item or {})
    slot.state, slot.call = state, read_call(folded(item) | {"arguments": ""})
    return slot


def grown(*sent: Sent, start: str = "", whole: str = "") -> Slot:
    slot = opened(Slots(), 0, ITEM)
    slot.start = start
    for one in sent:
        slot.grow(event(one))
    if whole:
        slot.view(read_call(ITEM | {"arguments": whole}))
    return slot


@pytest.mark.parametrize(
    "slot",
    [
        grown(arguments(0, "fc_0", '{"a"'), arguments(0, "fc_0", ":1}")),
        grown(arguments_done(0, "fc_0", '{"a":1}')),
        grown(whole='{"a":1}'),
        grown(arguments(0, "fc_0", '{"a":1}'), arguments_done(0, "fc_0", '{"a": 1}'), whole='{ "a":1}'),
        grown(arguments(0, "fc_0", '{"a":1}'), start='{"a":1}'),
    ],
)
def test_what_events_say_adds_up(slot: Slot) -> None:
    assert slot.whole().asked().input == {"a": 1}
    assert not slot.whole().flaw


@pytest.mark.parametrize(
    ("slot", "flaw"),
    [
        (grown(arguments(0, "fc_0", "{}"), arguments_done(0, "fc_0", '{"a":1}')), "two different arguments for one call"),
        (grown(arguments(0, "fc_0", "{}"), whole='{"a":1}'), "two different arguments for one call"),
        (grown(arguments_done(0, "fc_0", "{}"), whole='{"a":1}'), "two different arguments for one call"),
        (grown(arguments(0, "fc_0", "1"), start="1"), "arguments in the item's start and in deltas"),
        (grown(arguments_done(0, "fc_0", "{}", name="rm")), "two different names for one call"),
        (grown(arguments_done(0, "fc_0", "{}", call_id="other")), "two different call ids for one call"),
        (grown(arguments(0, "fc_0", "{"), arguments(0, "", "}")), "deltas under two addresses"),
        (grown(arguments(0, "fc_0", "{"), arguments(..., "fc_0", "}")), "deltas under two addresses"),
        (grown(arguments(0, "fc_0", "x") | {"delta": {"a": 1}}), "arguments of an odd type"),
        (grown(arguments_done(0, "fc_0", "x") | {"name": 1}), "arguments of an odd type"),
    ],
)  # fmt: skip
def test_events_that_tell_of_two_calls_are_a_flaw(slot: Slot, flaw: str) -> None:
    assert slot.whole().flaw == flaw


def test_the_first_flaw_stays() -> None:
    slot = grown()
    slot.flag("one")
    slot.flag("two")
    assert slot.whole().flaw == "one"


def test_events_that_bring_no_arguments_as_text_are_not_added() -> None:
    slot = grown(
        {"type": "response.shell_call_command.delta", "output_index": 0, "delta": "ls"}, whole='{"a":1}'
    )
    assert not slot.whole().flaw


def test_an_event_without_an_item_is_found_by_index_or_by_id() -> None:
    slots = Slots()
    first, second = opened(slots, 0, ITEM), opened(slots, 1, function_call("b", at=1))
    assert slots.of_detail(event(arguments(0, "fc_0", "x"))) == (first, "")
    assert slots.of_detail(event(arguments(1, "nobody", "x"))) == (second, "")
    assert slots.of_detail(event(arguments(..., "fc_1", "x"))) == (second, "")
    assert slots.of_detail(event(arguments(5, "nobody", "x"))) == (None, "")
    assert slots.of_detail(event(arguments(0, "fc_1", "x"))) == (
        first,
        "arguments for two calls, by index and by id",
    )
    assert slots.of_detail(event(arguments(5, "fc_1", "x")))[1]
    assert slots.of_detail(event(arguments("0", "fc_0", "x")))[1] == "arguments with an odd output_index"


def test_two_items_that_are_no_calls_may_be_mixed_up() -> None:
    slots = Slots()
    first = opened(slots, 0, message_item("a", at=0), State.PLAIN)
    opened(slots, 1, message_item("b", at=1), State.PLAIN)
    assert slots.of_detail(event(arguments(0, "msg_1", "x"))) == (first, "")


def test_a_whole_item_is_found_by_its_index_if_it_has_one() -> None:
    slots = Slots()
    first, nowhere = opened(slots, 0, ITEM), opened(slots, ..., function_call("b", at=1))

    def found(sent: Sent) -> Slot | None:
        one = event(sent)
        return slots.of_item(one, one.item or {})

    assert found(done(0, function_call("b", at=1))) is first
    assert found(done(7, ITEM)) is None
    assert found(done(..., ITEM)) is first
    assert found(done(..., function_call("x", at=9))) is nowhere


def test_only_what_was_ever_held_is_a_call() -> None:
    assert [state for state in State if not Slot(0, state).is_call] == [State.PLAIN]


def test_more_items_than_any_answer_has_are_noticed() -> None:
    slots = Slots()
    for at in range(MAX_SLOTS + 1):
        assert not slots.full
        slots.place(Slot(0), str(at))
    assert slots.full
