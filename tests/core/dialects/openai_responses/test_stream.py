"""No order, shape or disguise of events makes the machine release a call unjudged, or one event tell of another call than the next."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from transcripts.openai_responses import (
    DELETE,
    DONE,
    WEATHER,
    Event,
    Item,
    added,
    arguments,
    arguments_done,
    begin,
    call,
    denying,
    done,
    end,
    frame,
    function_call,
    load,
    message_item,
    notice,
    numbered,
    raw,
    refused,
    refused_item,
    response,
    run,
    text,
)

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.openai_responses.dialect import DIALECT
from agentsh_net.core.dialects.openai_responses.stream import SIGNS, ResponsesMachine
from agentsh_net.core.model import Action, ToolCall, Verdict

GET = function_call(WEATHER, {"city": "Bern"})
RM = function_call(DELETE, {"path": "/x"})
SAID = message_item("Hello.")
EMPTY = {"arguments": "", "status": "in_progress"}
LATE = "a call after the end of the response"


def stream(*parts: Event | list[Event] | bytes, first: list[Event] | None = None) -> bytes:
    flat: list[Event | bytes] = list(begin() if first is None else first)
    for part in parts:
        flat += part if isinstance(part, list) else [part]
    return numbered(flat)


def replaced(index: int, item: Item, reason: str = "denied") -> list[Event]:
    return refused(index, item, reason, frames=len(call(index, item)))


# Holding.


def test_nothing_of_a_call_leaves_before_its_verdict_and_what_follows_waits_for_it() -> None:
    judge = denying()
    machine = DIALECT.stream(judge, limits=Limits(), fail_closed=False)
    events = call(1, GET)
    start, last = numbered(events[:-1]), numbered(events[-1:])
    between = numbered(text(0, SAID)) + b": comment\n\n"
    assert machine.feed(numbered(begin())).out == numbered(begin())
    assert not machine.holding
    assert machine.feed(start + between).out == b""
    assert machine.holding
    assert not judge.asked
    assert machine.feed(last).out == start + between + last
    assert not machine.holding


def test_a_call_is_judged_once_with_its_complete_arguments_whatever_repeats_it() -> None:
    judge = denying()
    item = function_call(WEATHER, {"city": "Zürich", "n": [1, 2]}, namespace="mcp__w")
    sent = stream(call(0, item), done(0, item), end(item), end(item))
    assert run(sent, judge).out == sent
    assert [(c.name, c.namespace, c.call_id, c.input, c.dialect) for c in judge.asked] == [
        (WEATHER, "mcp__w", "call_0", {"city": "Zürich", "n": [1, 2]}, "openai_responses")
    ]


def test_an_output_that_repeats_a_call_under_new_ids_is_not_judged_again() -> None:
    judge = denying()
    again = GET | {"id": "fc_new", "call_id": "call_new"}
    sent = stream(call(0, GET), end(again))
    assert run(sent, judge).out == sent
    assert len(judge.asked) == 1


def test_two_equal_calls_are_judged_twice() -> None:
    judge = denying()
    twin = GET | {"id": "fc_1", "call_id": "call_1"}
    sent = stream(call(0, GET), call(1, twin), end(GET, twin))
    assert run(sent, judge).out == sent
    assert [c.call_id for c in judge.asked] == ["call_0", "call_1"]


def test_interleaved_calls_each_get_their_own_verdict_and_numbers_stay_dense() -> None:
    bad = function_call(DELETE, {}, at=1)
    sent = stream(
        added(0, GET | EMPTY), added(1, bad | EMPTY), arguments(1, "fc_1", "{}"),
        arguments(0, "fc_0", GET["arguments"]), done(1, bad), done(0, GET), end(GET, bad),
    )  # fmt: skip
    result = run(sent, denying(DELETE))
    assert result.out == stream(
        added(0, GET | EMPTY), refused(1, bad, frames=3), arguments(0, "fc_0", GET["arguments"]), done(0, GET),
        end(GET, refused_item(bad)),
    )  # fmt: skip
    assert {c.call.name: c.call.input for c in result.judged} == {WEATHER: {"city": "Bern"}, DELETE: {}}


@pytest.mark.parametrize("pieces", [1, 2, 3, 10, 63, 64, 65, 200])
def test_a_notice_takes_as_many_events_as_the_call_had_if_these_were_6_to_69(pieces: int) -> None:
    item = function_call(DELETE, "x" * pieces)
    events = call(0, item, piece=1)
    assert len(events) == pieces + 3
    result = run(stream(events, text(1, SAID), end(item, SAID)), denying(DELETE))
    assert result.numbers == list(range(len(result.numbers)))
    shift = len(result.numbers) - len(begin() + events + text(1, SAID) + end())
    assert shift == (3 - pieces if pieces < 3 else 0 if pieces < 67 else 66 - pieces)


def test_without_numbers_nothing_is_numbered() -> None:
    events = [frame(event) for event in [*begin(), *call(0, RM), *text(1, SAID), *end(RM, SAID)]]
    result = run(b"".join(events), denying(DELETE))
    assert b"sequence_number" not in result.out
    assert result.out.endswith(
        b"".join(frame(event) for event in [*text(1, SAID), *end(refused_item(RM), SAID)])
    )


# Every consumer acts on another event.

CONTRADICTIONS: dict[str, tuple[list[Event], str]] = {
    "name": ([added(0, GET | EMPTY), done(0, GET | {"name": "rm"})], "names"),
    "namespace": ([added(0, GET | EMPTY | {"namespace": "a"}), done(0, GET | {"namespace": "b"})], "namespaces"),
    "call id": ([added(0, GET | EMPTY), done(0, GET | {"call_id": "other"})], "call ids"),
    "type": ([added(0, GET | EMPTY), done(0, GET | {"type": "custom_tool_call"})], "types"),
    "server": ([added(0, GET | EMPTY | {"server_label": "a"}), done(0, GET | {"server_label": "b"})], "servers"),
    "arguments in deltas": ([added(0, GET | EMPTY), arguments(0, "fc_0", "{}"), done(0, GET)], "arguments"),
    "arguments repeated": ([added(0, GET | EMPTY), arguments_done(0, "fc_0", "{}"), done(0, GET)], "arguments"),
    "arguments in added": ([added(0, GET | {"arguments": "{}"}), done(0, GET)], "arguments"),
    "arguments repeated, with a name": (
        [added(0, GET | EMPTY), arguments_done(0, "fc_0", GET["arguments"], name="rm"), done(0, GET)],
        "names",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "what"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
@pytest.mark.parametrize("fail_closed", [False, True])
def test_events_that_tell_of_two_calls_are_refused_unheard(
    events: list[Event], what: str, *, fail_closed: bool
) -> None:
    judge = denying()
    item = events[-1]["item"]
    result = run(stream(events, end(item)), judge, fail_closed=fail_closed)
    assert not judge.asked
    assert result.reasons == [f"two different {what} for one call"]
    assert b'"call_id"' not in result.out
    assert result.out.count(b"blocked by policy") == 5  # two deltas would cut it


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ({"arguments": ""}, {}),
        ({"name": ""}, {}),
        ({"call_id": ""}, {}),
        ({}, {"name": "", "arguments": ""}),
        ({"namespace": None}, {"namespace": "mcp__w"}),
        ({"arguments": '{"city":"Bern"}'}, {"arguments": '{ "city" : "Bern" }'}),
        ({"status": "in_progress"}, {"status": "completed"}),
    ],
)
def test_what_one_event_leaves_out_contradicts_nothing(first: Item, last: Item) -> None:
    judge = denying()
    sent = stream(added(0, GET | first), done(0, GET | last), end(GET))
    assert run(sent, judge).out == sent
    assert [(c.name, c.call_id, c.input) for c in judge.asked] == [(WEATHER, "call_0", {"city": "Bern"})]


def test_a_name_in_added_alone_is_judged() -> None:
    assert run(stream(added(0, RM | EMPTY), done(0, RM | {"name": ""}), end()), denying(DELETE)).blocked == [
        DELETE
    ]


def test_arguments_that_begin_in_added_and_are_repeated_by_deltas_pass_if_twice_they_parse_as_nothing() -> (
    None
):
    sent = stream(added(0, GET), arguments(0, "fc_0", GET["arguments"]), done(0, GET), end(GET))
    assert run(sent, denying()).out == sent
    custom = {"type": "custom_tool_call", "id": "c", "call_id": "c", "name": "sh", "input": "ls "}
    sent = stream(
        added(0, custom), arguments(0, "c", "ls ", "custom_tool_call_input"), done(0, custom), end()
    )
    assert run(sent, denying()).reasons == ["arguments in the item's start and in deltas"]


def test_a_call_that_only_done_brings_is_replaced_by_a_whole_message() -> None:
    assert run(stream(done(0, RM), text(1, SAID)), denying(DELETE)).out == stream(
        refused(0, RM), text(1, SAID)
    )
    assert run(stream(done(0, GET)), denying(DELETE)).out == stream(done(0, GET))


def test_a_call_that_only_the_last_output_brings_is_replaced_in_it() -> None:
    sent = stream(text(0, SAID), end(SAID, RM, output_text="Hello."))
    want = stream(text(0, SAID), end(SAID, refused_item(RM), output_text="Hello." + notice(DELETE)))
    assert run(sent, denying(DELETE)).out == want


@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_a_held_call_without_a_done_is_judged_with_what_the_last_output_says(status: str) -> None:
    judge = denying()
    sent = stream(added(0, GET | EMPTY), end(GET, status=status))
    assert run(sent, judge).out == sent
    assert [c.input for c in judge.asked] == [{"city": "Bern"}]
    evil = GET | {"arguments": '{"city":"evil"}'}
    result = run(stream(added(0, GET | EMPTY), end(evil, status=status)), denying())
    assert result.out == stream(refused(0, GET), end(refused_item(GET), status=status))


def test_a_held_call_that_the_last_output_contradicts_is_refused() -> None:
    result = run(stream(added(0, GET), end(GET | {"name": "rm"})), denying())
    assert result.reasons == ["two different names for one call"]
    assert b"call_id" not in result.out


def test_an_output_that_contradicts_a_released_call_loses_it() -> None:
    result = run(stream(call(0, GET), end(GET | {"name": "rm"})), denying())
    assert result.out.startswith(stream(call(0, GET)))
    assert result.reasons == ["two different names for one call"]
    assert b'"rm"' not in result.out


def test_a_second_done_that_contradicts_the_first_is_left_out() -> None:
    result = run(stream(call(0, GET), done(0, GET | {"name": "rm"}), text(1, SAID)), denying())
    assert result.out == stream(call(0, GET), text(1, SAID))
    assert result.reasons == ["two different names for one call"]


def test_a_call_inside_created_is_replaced_in_every_event_that_lists_it() -> None:
    judge = denying(DELETE)
    sent = stream(done(0, RM), end(RM), first=begin(RM))
    assert run(sent, judge).out == stream(end(refused_item(RM)), first=begin(refused_item(RM)))
    assert len(judge.asked) == 1


def test_a_call_inside_created_gets_no_arguments_behind_its_verdict() -> None:
    first = begin(GET | {"arguments": ""})
    result = run(stream(arguments(0, "fc_0", '{"city":"evil"}'), end(), first=first), denying())
    assert result.out == stream(end(), first=first)
    assert [f.cause for f in result.faults] == ["event_out_of_place"]
    grown = GET | {"arguments": '{"city":"evil"}'}
    assert run(stream(done(0, grown), end(grown), first=first), denying()).blocked == [WEATHER]


# Ends.


def test_a_stream_that_ends_inside_a_call_never_releases_it_and_the_client_is_told() -> None:
    result = run(stream(call(0, GET)[:-1]), denying())
    assert result.out.startswith(stream() + b"event: error\n")
    assert WEATHER.encode() in result.out
    assert b"call_id" not in result.out
    assert [(f.cause, f.cut) for f in result.faults] == [("incomplete_call", True)]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "x", "message": "m"},
        {"type": "error", "error": {"message": "m"}},
        *end(status="failed"),
        *end(status="cancelled"),
    ],
)
def test_an_error_inside_a_call_drops_it(event: Event) -> None:
    result = run(stream(text(0, SAID), call(1, GET)[:-1], event), denying())
    assert result.out == stream(text(0, SAID), event)
    assert [f.cause for f in result.faults] == ["incomplete_call"]


def test_a_call_after_the_end_is_refused_unheard() -> None:
    for last in (end(), [{"type": "error", "code": "x", "message": "m"}], [DONE]):
        judge = denying()
        result = run(stream(last, call(0, GET)), judge)
        assert result.out == stream(last, replaced(0, GET, LATE))
        assert not judge.asked


def test_a_call_still_held_at_done_marker_is_judged_by_what_is_there() -> None:
    sent = stream(added(0, GET), DONE)
    assert run(sent, denying()).out == sent
    assert run(stream(added(0, RM), DONE), denying(DELETE)).out == stream(refused(0, RM), DONE)


def test_a_second_end_may_repeat_what_was_allowed() -> None:
    sent = stream(call(0, GET), end(GET), end(GET))
    assert run(sent, denying()).out == sent


# Indices and ids.


def test_an_output_index_of_another_call_is_not_used_again() -> None:
    second = function_call(WEATHER, {}, at=1)
    result = run(stream(call(0, GET), call(0, second), end(GET, second)), denying())
    assert result.reasons == ["its output_index is another call's"]
    assert result.out.startswith(stream(call(0, GET)))
    assert b"call_1" not in result.out


def test_a_second_call_at_an_index_brings_the_first_its_verdict() -> None:
    judge = denying()
    second = function_call(WEATHER, {}, at=1)
    result = run(stream(added(0, GET), call(0, second), end()), judge)
    assert [c.call_id for c in judge.asked] == ["call_0"]
    assert result.out.startswith(stream(added(0, GET)))


def test_a_gateway_that_sends_done_alone_and_counts_nothing_is_read() -> None:
    second = function_call(DELETE, {}, at=1)
    sent = [done(..., GET), done(..., second), done(..., SAID)]
    result = run(stream(*sent, end(GET, second)), denying(DELETE))
    message = [{k: v for k, v in event.items() if k != "output_index"} for event in refused(9, second)]
    assert result.out == stream(sent[0], message, sent[2], end(GET, refused_item(second)))


def test_a_call_behind_a_message_of_the_same_index_is_judged_on_its_own() -> None:
    sent = stream(text(0, SAID), call(0, GET), end(SAID, GET))
    assert run(sent, denying()).out == sent


@pytest.mark.parametrize("index", ["0", True, -1, 0.5, [0]])
def test_an_index_that_parsers_coerce_makes_a_call_refused(index: Any) -> None:
    result = run(stream(added(index, GET), done(index, GET), end()), denying())
    assert result.reasons == ["the item's output_index is no plain number"]
    assert b'"call_id"' not in result.out


def test_arguments_under_two_addresses_make_their_calls_refused() -> None:
    other = function_call(WEATHER, {}, at=1)
    both = stream(
        added(0, GET | EMPTY), added(1, other | EMPTY), arguments(0, "fc_1", '{"city":"Bern"}'),
        done(0, GET), done(1, other), end(),
    )  # fmt: skip
    assert run(both, denying()).reasons == ["arguments for two calls, by index and by id"]
    custom = {"type": "custom_tool_call", "id": "c", "call_id": "c", "name": "sh", "input": ""}
    kind = "custom_tool_call_input"
    mixed = stream(
        added(0, custom), arguments(0, "", "rm ", kind), arguments(0, "c", "-h", kind), done(0, custom), end()
    )
    assert run(mixed, denying()).reasons == ["deltas under two addresses"]


OUT_OF_PLACE = {
    "no call": [arguments(0, "fc_0", "{}")],
    "no address": [*call(0, GET), arguments(..., "", "{}")],
    "odd index": [*call(0, GET), arguments("0", "fc_0", "{}")],
    "a message": [*text(0, SAID), arguments(0, "msg_0", "{}")],
    "a call that ended": [*call(0, GET), arguments(0, "fc_0", "{}")],
    "a call that ended, repeated": [*call(0, GET), arguments_done(0, "fc_0", "{}")],
    "a call that ended, by the event's name": [
        *call(0, GET),
        raw("response.function_call_arguments.delta", '{"type":"response.web_search_call.x","output_index":0,"delta":"{}"}'),
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", OUT_OF_PLACE.values(), ids=OUT_OF_PLACE)
def test_arguments_that_belong_to_no_held_call_are_left_out(events: list[Event]) -> None:
    result = run(stream(events, end()), denying())
    assert result.out == stream(events[:-1], end())
    assert [(f.cause, f.cut) for f in result.faults] == [("event_out_of_place", True)]


def test_events_of_a_refused_call_are_left_out_whenever_they_come() -> None:
    late = [
        arguments(0, "fc_0", "{}"),
        {"type": "response.function_call.in_progress", "output_index": 0},
        done(0, RM),
    ]
    result = run(stream(call(0, RM), *late, text(1, SAID)), denying(DELETE))
    assert result.out == stream(replaced(0, RM), text(1, SAID))


# What is a call.


@pytest.mark.parametrize("name", ["provider_tools", "text_only"])
def test_what_the_provider_runs_itself_is_neither_judged_nor_touched(name: str) -> None:
    judge = denying()
    assert run(load(name), judge, fail_closed=True).out == load(name)
    assert not judge.asked


def own(kind: str, begun: Item, rest: Item) -> list[Event]:
    """A call of a client's own tool as OpenAI streams it: with empty places at first."""
    item = {"type": f"{kind}_call", "id": f"{kind}_0", "call_id": "c0", "status": "in_progress"}
    return [added(0, item | begun), done(0, item | rest | {"status": "completed"})]


OWN = {
    "local_shell": own(
        "local_shell",
        {"action": {"type": "exec", "command": [], "env": {}}},
        {"action": {"type": "exec", "command": ["ls"], "env": {"A": "1"}}},
    ),
    "apply_patch": own(
        "apply_patch",
        {"operation": {"type": "create_file", "path": "a", "diff": ""}},
        {"operation": {"type": "create_file", "path": "a", "diff": "+a"}},
    ),
    "tool_search": own("tool_search", {"arguments": {}}, {"arguments": {"goal": "weather"}}),
}


@pytest.mark.parametrize("name", OWN)
def test_a_call_of_a_clients_own_tool_whose_places_are_filled_in_is_judged_as_it_ends(name: str) -> None:
    judge = denying()
    sent = stream(OWN[name], end(OWN[name][-1]["item"]))
    assert run(sent, judge).out == sent
    assert [(c.name, c.flaw) for c in judge.asked] == [(name, "")]
    assert b"agentsh" in run(sent, denying(name)).out


def test_what_a_shell_of_the_providers_own_prints_is_no_argument() -> None:
    told = {"type": "shell_call", "id": "sh", "call_id": "c0"}
    printed = {"type": "shell_call_output", "id": "sho", "call_id": "c0"}
    sent = stream(
        added(0, told | {"action": {"commands": [], "timeout_ms": None}}),
        {"type": "response.shell_call_command.added", "output_index": 0, "command_index": 0, "command": ""},
        {"type": "response.shell_call_command.delta", "output_index": 0, "command_index": 0, "delta": "ls"},
        {"type": "response.shell_call_command.done", "output_index": 0, "command_index": 0, "command": "ls"},
        done(0, told | {"action": {"commands": ["ls"], "timeout_ms": 9}}),
        added(1, printed | {"output": []}),
        {
            "type": "response.shell_call_output_content.delta",
            "output_index": 1,
            "item_id": "sho",
            "delta": {"stdout": "a"},
        },
        {
            "type": "response.shell_call_output_content.done",
            "output_index": 1,
            "item_id": "sho",
            "output": [{"stdout": "a"}],
        },
        done(1, printed | {"output": [{"stdout": "a"}]}),
        *call(2, GET),
        end(),
    )
    judge = denying()
    result = run(sent, judge)
    assert result.out == sent
    assert not result.faults
    assert [(c.name, c.flaw) for c in judge.asked] == [("shell", ""), (WEATHER, "")]


def test_a_call_among_what_a_shell_printed_is_judged() -> None:
    printed = {
        "type": "response.shell_call_output_content.done",
        "output_index": 0,
        "output": [function_call(DELETE)],
    }
    result = run(stream(printed), denying(DELETE))
    assert b"function_call" not in result.out


def test_a_call_that_the_provider_ran_on_an_mcp_server_takes_its_result_with_it() -> None:
    judge = denying("delete")
    result = run(load("provider_mcp"), judge)
    assert [(c.name, c.server_name, c.input) for c in judge.asked] == [("delete", "fs", {"path": "/tmp/x"})]
    assert b"secret" not in result.out
    assert b"mcp_call" not in result.out
    assert b"mcp_list_tools" in result.out
    assert b'"text": "Done."' in result.out


def test_an_approval_of_a_denied_call_is_never_asked_for() -> None:
    result = run(load("approval"), denying("delete"))
    assert b"mcp_approval_request" not in result.out
    assert [(j.call.call_id, j.call.server_name) for j in result.judged] == [("mcpr_68aa", "fs")]


def test_the_result_of_a_refused_call_is_withheld_with_it() -> None:
    output = {"type": "function_call_output", "id": "o", "call_id": "call_0", "output": "secret"}
    sent = stream(call(0, RM), added(1, output), done(1, output), end(RM, output))
    result = run(sent, denying(DELETE))
    assert b"secret" not in result.out
    made = refused_item(output, name=DELETE)
    assert result.out == stream(replaced(0, RM), refused(1, output, name=DELETE), end(refused_item(RM), made))
    other = output | {"call_id": "call_9"}
    sent = stream(call(0, GET), added(1, other), done(1, other), end(GET, other))
    assert run(sent, denying(DELETE)).out == sent


# Disguises.


def bare(item: Item = RM) -> str:
    return json.dumps({"type": "response.output_item.done", "output_index": 0, "item": item})


HOSTILE = {
    "name twice": bare().replace('"name": ', '"name": "ls", "name": '),
    "type twice": bare().replace('"type": "function_call"', '"type": "function_call", "type": "message"'),
    "item twice": bare()[:-1] + ', "item": {"type": "message", "id": "m"}}',
    "item in two cases": bare()[:-1] + ', "Item": {"type": "message", "id": "m"}}',
    "index twice": bare()[:-1] + ', "output_index": 1}',
    "type missing": bare({k: v for k, v in RM.items() if k != "type"}),
    "type a list": bare(RM | {"type": ["function_call"]}),
    "name a list": bare(RM | {"name": [DELETE]}),
    "call id a number": bare(RM | {"call_id": 7}),
    "namespace an object": bare(RM | {"namespace": {}}),
    "item and response": bare()[:-1] + ', "response": {"id": "r"}}',
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("fail_closed", [False, True])
def test_a_call_that_parsers_read_differently_is_refused_unheard(data: str, *, fail_closed: bool) -> None:
    judge = denying()
    sent = stream() + raw("response.output_item.done", data)
    result = run(sent, judge, fail_closed=fail_closed)
    assert not judge.asked
    assert [j.verdict.rule for j in result.judged] == ["protocol"]
    assert b'"function_call"' not in result.out


def test_an_event_whose_name_and_type_differ_brings_no_call() -> None:
    for name, kind in (("added", "done"), ("done", "added")):
        item = {"type": f"response.output_item.{kind}", "output_index": 0, "item": GET}
        result = run(
            stream() + raw(f"response.output_item.{name}", json.dumps(item)) + numbered(end()), denying()
        )
        assert result.reasons == ["the event's name and its type differ"]


@pytest.mark.parametrize("name", ["", "message"])
def test_the_name_of_an_event_may_say_nothing(name: str) -> None:
    sent = stream() + raw(name, bare(GET))
    assert run(sent, denying()).out == sent


def test_keys_in_another_case_are_read_as_go_reads_them() -> None:
    data = (
        bare()
        .replace('"item"', '"ITEM"')
        .replace('"name"', '"Name"')
        .replace('"output_index"', '"Output_Index"')
    )
    assert run(stream() + raw("", data), denying(DELETE)).blocked == [DELETE]
    sent = stream() + raw("", data)
    assert run(sent, denying()).out == sent


def test_escapes_in_keys_types_and_names_hide_nothing() -> None:
    data = bare().replace("item", "it\\u0065m").replace("_", "\\u005F").replace("call", "c\\u0061ll")
    assert run(stream() + raw("", data), denying(DELETE)).blocked == [DELETE]


def test_a_response_with_a_decisive_key_twice_is_written_anew_without_a_call() -> None:
    data = json.dumps({"type": "response.completed", "response": {"id": "r", "output": [RM]}})
    result = run(raw("", data[:-2] + ', "output": []}}'), denying())
    assert json.loads(result.out[6:]) == {"type": "response.completed", "response": {"id": "r", "output": []}}
    assert result.reasons == ["the key 'output' stands twice"]
    hidden = data[:-2] + ', "Output": []}}'
    result = run(raw("", hidden), denying())
    assert result.reasons == ["the key 'output' stands twice"]
    assert b'"Output"' not in result.out
    assert b'"function_call"' not in result.out


@pytest.mark.parametrize(
    "sent",
    [
        b"data: {}\n" + raw("", bare()),
        f": \u2028data: {bare()}\n\n".encode(),
        f"id: \x85data: {bare()}\ndata: {{}}\n\n".encode(),
    ],
)
def test_an_event_that_others_read_as_several_cuts_the_answer(sent: bytes) -> None:
    result = run(stream() + sent + numbered(end(), 2), denying())
    assert result.out.startswith(stream() + b"event: error\n")
    assert b"call_id" not in result.out
    assert [(f.cause, f.cut) for f in result.faults] == [("ambiguous_lines", True)]


def test_a_text_that_looks_like_an_event_is_text() -> None:
    item = message_item(f'\u2028data: {bare()}\n\ndata: {{"tool": 1}}')
    sent = stream(text(0, item), end(item))
    assert run(sent, denying()).out == sent


# Bounds.


def test_a_call_that_outgrows_the_bound_is_cut_under_fail_closed() -> None:
    events = call(0, function_call(WEATHER, {"text": "a" * 3000}))
    result = run(stream(events), denying(), fail_closed=True, limits=Limits(held=2000))
    assert result.ended
    assert [f.cause for f in result.faults] == ["held_too_long"]
    assert b"call_id" not in result.out


def test_a_call_that_outgrows_the_bound_is_judged_by_what_is_there_and_again_at_its_end() -> None:
    item = function_call(WEATHER, {"text": "a" * 3000})
    sent = stream(call(0, item), end(item))
    judge = denying()
    assert run(sent, judge, limits=Limits(held=2000)).out == sent
    assert [c.name for c in judge.asked] == [WEATHER] * 2
    assert judge.asked[1].input == {"text": "a" * 3000}
    long = function_call(DELETE, {"text": "a" * 3000})
    assert run(stream(call(0, long), end(long)), denying(DELETE), limits=Limits(held=2000)).blocked == [
        DELETE
    ]


def test_more_items_than_any_answer_has_end_it() -> None:
    one = frame(done(..., message_item("x")))
    result = run(one * 17000, denying())
    assert result.ended
    assert [f.cause for f in result.faults] == ["too_many_items"]


# The fast path.


@pytest.mark.parametrize("name", ["text_only", "two_calls", "provider_mcp", "provider_error"])
def test_the_fast_path_changes_nothing(name: str) -> None:
    sent = load(name)
    for refuse in ((), (DELETE, "delete")):
        slow = Inspector(
            partial(ResponsesMachine, denying(*refuse), Limits()), limits=Limits(), fail_closed=True,
            error_frame=DIALECT.error_frame, fast=False, wire=Wire(signs=SIGNS),
        )  # fmt: skip
        pieces = [sent[at : at + 50] for at in range(0, len(sent), 50)]
        assert run(pieces, denying(), stream=slow) == run(pieces, denying(*refuse), fail_closed=True)


@pytest.mark.parametrize(
    "beside",
    [
        {"output": []},
        {"output": [SAID]},
        {"response": {"id": "r", "output": []}},
        {"item": SAID},
        {"Output": []},
    ],
    ids=["empty output", "output", "response", "message", "case"],
)
@pytest.mark.parametrize("name", ["delta", "done"])
def test_arguments_that_come_with_something_else_reach_no_client(beside: dict[str, Any], name: str) -> None:
    said = {"delta": "{}"} if name == "delta" else {"arguments": "{}", "name": DELETE}
    event = {
        "type": f"response.function_call_arguments.{name}",
        "output_index": 0,
        "item_id": "fc_1",
        **said,
        **beside,
    }
    for sent in (stream(event), stream(added(0, RM | EMPTY), event, done(0, RM))):
        result = run(sent, denying(DELETE))
        assert b"function_call_arguments" not in result.out
        assert "one event brings two of an item, a response and arguments" in [
            j.call.flaw for j in result.judged
        ]
        assert run(sent, denying(DELETE), enforce=False).out == sent


def test_an_oversize_event_lets_go_of_a_held_call_that_is_allowed_and_puts_its_arguments_in_doubt() -> None:
    sent = stream(added(0, GET | EMPTY)) + b"data: " + b"x" * 5000 + b"\n\n"
    judge = denying()
    result = run(sent, judge, limits=Limits(max_frame=1000))
    assert (result.out, result.ended) == (sent, False)
    assert [call.doubt for call in judge.asked] == ["an event outgrew proxy.max_frame"]


def test_an_oversize_event_behind_a_held_call_is_cut_under_fail_closed() -> None:
    sent = stream(added(0, GET | EMPTY)) + b"data: " + b"x" * 5000
    result = run(sent, denying(GET["name"]), limits=Limits(max_frame=1000), fail_closed=True)
    assert result.ended
    assert [f.cause for f in result.faults] == ["frame_too_long"]
    assert b"call_id" not in result.out


@pytest.mark.parametrize("event", [done(0, GET), end([GET])[-1]])
def test_an_oversize_event_that_repeats_a_blocked_call_does_not_pass_under_fail_open(
    event: dict[str, Any],
) -> None:
    long = frame({**event, "padding": "x" * 5000})
    sent = stream(added(0, GET | EMPTY)) + long
    for pieces in (sent, [sent[at : at + 700] for at in range(0, len(sent), 700)]):
        result = run(pieces, denying(GET["name"]), limits=Limits(max_frame=1000))
        assert result.ended
        assert b"call_id" not in result.out
        assert [f.cut for f in result.faults] == [False, True]


def test_an_oversize_text_behind_a_blocked_call_passes_under_fail_open() -> None:
    text = {
        "type": "response.output_text.delta",
        "item_id": "m",
        "output_index": 1,
        "content_index": 0,
        "delta": "x" * 5000,
    }
    sent = stream(added(0, GET | EMPTY))
    result = run(sent + frame(text), denying(GET["name"]), limits=Limits(max_frame=1000))
    assert result.out.endswith(frame(text))
    assert b"call_id" not in result.out
    assert not result.ended


# What policy only watches.


class Watching:
    """A judge in audit mode."""

    def __call__(self, call: ToolCall) -> Verdict:
        would = denying(DELETE)(call)
        return Verdict(Action.ALLOW, would.reason, would.rule, would=would.action)


@pytest.mark.parametrize(("events", "what"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_in_audit_mode_a_flawed_call_passes_untouched(events: list[Event], what: str) -> None:
    sent = stream(events, end(events[-1]["item"]))
    result = run(sent, Watching())
    assert result.out == sent
    assert [(j.call.flaw, j.verdict.denied) for j in result.judged] == [
        (f"two different {what} for one call", True)
    ]


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_in_audit_mode_a_call_with_two_readings_passes_untouched(data: str) -> None:
    sent = stream() + raw("response.output_item.done", data)
    result = run(sent, Watching())
    assert result.out == sent
    assert result.judged[0].call.flaw


def test_each_call_of_an_answer_has_its_own_ordinal_whatever_its_ids() -> None:
    first, second = GET | {"id": "", "call_id": ""}, function_call(WEATHER, {}, at=1)
    sent = stream(call(0, first), call(1, second), end(first, second))
    result = run(sent, denying())
    assert [j.call.ordinal for j in result.judged] == [1, 2]
    grown = stream(done(0, GET), end(GET), first=begin(GET | {"arguments": ""}))
    assert [j.call.ordinal for j in run(grown, denying()).judged] == [1, 1]


def test_an_item_that_repeats_the_ids_of_another_is_charged_again_and_the_places_of_one_are_not() -> None:
    judge = denying()
    run(stream(call(0, GET), call(1, GET), call(2, GET), end(GET, GET | {"id": "x"})), judge)
    assert [c.ordinal for c in judge.asked][:3] == [1, 2, 3]
    judge = denying()
    DIALECT.body(json.dumps(response(GET, GET, status="completed")).encode(), judge, fail_closed=False)
    assert [c.ordinal for c in judge.asked] == [1, 2]
    judge = denying()
    run(stream(call(0, GET), end(GET)), judge)
    assert [c.ordinal for c in judge.asked] == [1]


@pytest.mark.parametrize("filler", [b"\n", b": \n\n", b"data: 1\n\n"])
def test_the_smallest_frames_behind_a_call_are_not_remembered_without_end(filler: bytes) -> None:
    machine = DIALECT.stream(denying(), limits=Limits(held=64 << 10), fail_closed=True)
    machine.feed(stream(added(0, GET | EMPTY)))
    assert not machine.feed(filler * 256).end
    assert machine.feed(filler * 512).end
