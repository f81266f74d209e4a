"""An event says the same to us as to the most lenient client; a stream differs in its refused calls alone, however it is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.interactions import (
    DELETE,
    DONE,
    WEATHER,
    answer,
    begin,
    call,
    cut_at,
    denying,
    end,
    event,
    events,
    every_chunking,
    raw,
    refused,
    run,
    streamed,
    told,
)

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.block_stream import Part
from agentsh_net.core.dialects.interactions.dialect import DIALECT
from agentsh_net.core.dialects.interactions.events import read
from agentsh_net.core.values import strict_json

CITY = {"city": "Bern", "n": 1.5}
SEARCH = {"type": "google_search_call", "id": "g", "arguments": {"queries": ["x"]}}


def reading(value: Any) -> strict_json.Reading:
    return strict_json.read((value if isinstance(value, str) else json.dumps(value)).encode())


def test_the_parts_of_a_start_a_piece_and_an_end() -> None:
    begun = read("step.start", reading({"event_type": "step.start", "index": 1, "step": call(WEATHER, CITY)}))
    assert (begun.part, begun.index, begun.call, begun.given, begun.flaw) == (
        Part.START,
        1,
        call(WEATHER, CITY),
        CITY,
        "",
    )
    delta = {"type": "arguments_delta", "arguments": "{"}
    piece = read("step.delta", reading({"event_type": "step.delta", "index": 1, "delta": delta}))
    assert (piece.part, piece.piece, piece.text, piece.flaw, piece.hidden) == (
        Part.DELTA,
        delta,
        "{",
        "",
        False,
    )
    assert read("", reading({"event_type": "interaction.completed"})).part is Part.END
    assert read("", reading({"event_type": "error", "error": {}})).part is Part.ERROR
    assert read("", reading({"error": {"code": "x"}})).part is Part.ERROR
    beside = {
        "event_type": "step.delta",
        "index": 1,
        "delta": {"type": "text", "text": "a"},
        "error": {"code": "x"},
    }
    assert read("step.delta", reading(beside)).part is Part.DELTA  # the answer goes on


@pytest.mark.parametrize(
    ("name", "value", "flaw"),
    [
        (
            "step.start",
            {"event_type": "step.stop", "step": call("x")},
            "the event's type and its content differ",
        ),
        (
            "step.stop",
            {"event_type": "step.start", "step": call("x")},
            "the event's name and its type differ",
        ),
        ("", {"event_type": "step.start", "step": call("x"), "Step": {}}, "the key 'step' stands twice"),
        ("", {"event_type": "step.start", "step": call("x") | {"Name": "y"}}, "the key 'name' stands twice"),
        (
            "",
            {"event_type": "step.start", "step": call("x", type=["function_call"])},
            "the call's type is not a string",
        ),
    ],
)
def test_an_event_that_clients_read_differently_has_a_flaw_or_hides_a_call(
    name: str, value: Any, flaw: str
) -> None:
    found = read(name, reading(value))
    assert found.flaw == flaw or found.hidden


@given(
    st.lists(st.sampled_from(["text", WEATHER, DELETE]), max_size=5),
    st.lists(st.integers(0, 10**6), max_size=8),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_a_stream_differs_in_its_refused_calls_alone(
    blocks: list[str], cuts: list[int], pieces: bool, closed: bool
) -> None:
    steps = [told("hello") if b == "text" else call(b, CITY, call_id=f"c{n}") for n, b in enumerate(blocks)]
    stream = answer(*steps, pieces=pieces)
    result = run(cut_at(stream, cuts), denying(DELETE), fail_closed=closed)
    left = [refused(DELETE) if step.get("name") == DELETE else step for step in steps]
    over = DELETE in blocks and WEATHER not in blocks
    want = begin() + b"".join(streamed(at, step, pieces=pieces) for at, step in enumerate(left))
    want += end(*left, status="completed" if over else "requires_action")
    assert events(result.out) == events(want)
    assert result.out == stream or DELETE in blocks
    assert [(j.call.name, j.call.input) for j in result.judged] == [(b, CITY) for b in blocks if b != "text"]
    assert not result.faults


def test_an_allowed_stream_leaves_to_the_byte_whatever_the_chunks() -> None:
    stream = answer(told("a"), call(WEATHER, CITY), SEARCH | {}, call(WEATHER, call_id="c2"))
    for chunks in every_chunking(stream):
        assert run(chunks, denying(DELETE), fail_closed=True).out == stream


def test_arguments_of_what_the_provider_runs_pass_and_those_of_no_step_do_not() -> None:
    delta = {"type": "arguments_delta", "arguments": "{}"}
    provided = (
        event("step.start", index=1, step=SEARCH)
        + event("step.delta", index=1, delta=delta)
        + event("step.stop", index=1)
    )
    stream = begin() + streamed(0, call(WEATHER, CITY)) + provided + end()
    assert run([stream], denying()).out == stream
    lost = run(
        [begin() + streamed(0, call(WEATHER)) + event("step.delta", index=7, delta=delta) + end()], denying()
    )
    assert [fault.cause for fault in lost.faults] == ["event_out_of_place"]
    assert b'"index": 7' not in lost.out


def test_a_call_is_held_until_its_verdict_and_its_text_flows_before() -> None:
    machine = DIALECT.stream(denying(DELETE), limits=Limits(), fail_closed=True)
    assert machine.feed(begin() + streamed(0, told("a"))).out == begin() + streamed(0, told("a"))
    whole = streamed(1, call(WEATHER, CITY))
    assert machine.feed(whole[:-5]).out == b""
    assert machine.holding
    assert machine.keep_alive() == b": \n\n"
    assert machine.feed(whole[-5:]).out == whole


def test_a_call_before_2026s_words_is_read_and_replaced_in_them() -> None:
    stream = (
        event("content.start", index=0, content={"type": "function_call"})
        + event(
            "content.delta",
            index=0,
            delta={"type": "function_call", "id": "c", "name": DELETE, "arguments": CITY},
        )
        + event("content.stop", index=0)
        + event(
            "interaction.complete",
            interaction={
                "id": "i",
                "status": "requires_action",
                "outputs": [call(DELETE, CITY, call_id="c")],
            },
        )
    )
    result = run([stream], denying(DELETE))
    assert [(j.call.name, j.call.call_id, j.call.input) for j in result.judged] == [(DELETE, "c", CITY)]
    assert [e["event_type"] for e in events(result.out)] == [
        "content.start",
        "content.delta",
        "content.stop",
        "interaction.complete",
    ]
    assert events(result.out)[-1]["interaction"]["outputs"] == refused(DELETE)["content"]
    assert run([stream], denying()).out == stream


ODD_START = {"a": "b"}  # of no type that anybody knows
PIECE = {"type": "arguments_delta", "arguments": '{"a": 1}'}


@pytest.mark.parametrize("heeded", [False, True])
@pytest.mark.parametrize("spelled", ["step.start", "step\\u002estart"])
def test_a_call_at_the_index_of_another_step_is_refused_be_frames_skipped_or_not(
    heeded: bool, spelled: str
) -> None:
    before = event("step.start", index=0, step={"type": "model_output"}).replace(
        b'"step.start"', f'"{spelled}"'.encode()
    )
    machine = DIALECT.stream(denying(), limits=Limits(), fail_closed=True)
    if heeded:
        machine.heed()  # type: ignore[attr-defined] # every frame is read, as none is skipped
    result = run(begin() + before + streamed(0, call(WEATHER, CITY)) + DONE, denying(), stream=machine)
    assert result.reasons == ["two blocks at one index"]
    assert b"function_call" not in result.out


@pytest.mark.parametrize("heeded", [False, True])
@pytest.mark.parametrize(
    "over",
    [
        event("interaction.completed", interaction={"status": "done"}),
        event("interaction.complete").replace(b".", b"\\u002e"),
        event("error", code="x"),
    ],
)
def test_a_call_behind_the_end_is_refused_be_frames_skipped_or_not(heeded: bool, over: bytes) -> None:
    machine = DIALECT.stream(denying(), limits=Limits(), fail_closed=True)
    if heeded:
        machine.heed()  # type: ignore[attr-defined] # every frame is read, as none is skipped
    result = run(begin() + over + streamed(0, call(WEATHER, CITY)) + DONE, denying(), stream=machine)
    assert result.reasons == ["a call after the end of the message"]
    assert b"function_call" not in result.out


@pytest.mark.parametrize("heeded", [False, True])
def test_text_without_a_start_takes_no_index(heeded: bool) -> None:
    stream = begin() + event("step.delta", index=0, delta={"type": "text", "text": "a"})
    stream += streamed(0, call(WEATHER, CITY)) + DONE
    machine = DIALECT.stream(denying(), limits=Limits(), fail_closed=True)
    if heeded:
        machine.heed()  # type: ignore[attr-defined] # every frame is read, as none is skipped
    assert run(stream, denying(), stream=machine).out == stream


@pytest.mark.parametrize("heeded", [False, True])
def test_pieces_of_a_step_of_no_known_type_pass_be_frames_skipped_or_not(heeded: bool) -> None:
    stream = (
        begin() + event("step.start", index=0, step=ODD_START) + event("step.delta", index=0, delta=PIECE)
    )
    machine = DIALECT.stream(denying(), limits=Limits(), fail_closed=True)
    if heeded:
        machine.heed()  # type: ignore[attr-defined] # every frame is read, as none is skipped
    result = run(stream, denying(), stream=machine)
    assert (result.out, result.faults) == (stream, [])


@pytest.mark.parametrize("before", ["step.delta", "step.stop"])
def test_pieces_of_a_step_that_never_began_do_not_pass(before: str) -> None:
    machine = DIALECT.stream(denying(), limits=Limits(), fail_closed=True)
    machine.heed()  # type: ignore[attr-defined] # every frame is read, as none is skipped
    fields = {"delta": {"type": "text", "text": "a"}} if before == "step.delta" else {}
    passed = begin() + event(before, index=0, **fields)
    result = run(passed + event("step.delta", index=0, delta=PIECE), denying(), stream=machine)
    assert (result.out, [f.cause for f in result.faults]) == (passed, ["event_out_of_place"])


START = json.dumps({"event_type": "step.start", "index": 0, "step": call(DELETE)})
STOP = event("step.stop", index=0)
HOSTILE: dict[str, bytes] = {
    "no event line": raw("", START) + STOP,
    "another event line": raw("ping", START) + STOP,
    "under delta": raw("step.delta", START.replace("step.start", "step.delta")) + STOP,
    "under an event nobody knows": raw("x", START.replace("step.start", "x")),
    "in a list": raw("step.start", f"[{START}]"),
    "escaped": raw("step.start", START.replace("function_call", "function\\u005fcall").replace('step"', 'st\\u0065p"')) + STOP,
    "step twice": raw("step.start", START[:-1] + ', "step": {}}') + STOP,
    "step twice but for its case": raw("step.start", START[:-1] + ', "STEP": null}') + STOP,
    "no index": raw("step.start", START.replace('"index": 0, ', "")) + STOP,
    "a name in the piece": event("step.start", index=0, step=call(WEATHER)) + event("step.delta", index=0, delta=call(DELETE)) + STOP,
    "in a piece of the provider's own step": event("step.start", index=0, step=SEARCH) + event("step.delta", index=0, delta=call(DELETE)) + STOP,
    "only listed": end(call(DELETE)),
    "listed under one id with another": streamed(0, call(WEATHER)) + end(call(DELETE)),
    "listed in a first event": event("interaction.created", interaction={"steps": [call(DELETE)]}),
    "listed in a delta": event("step.delta", index=0, delta={"type": "text", "text": "a"}, interaction={"steps": [call(DELETE)]}),
    "listed in a status update": event("interaction.status_update", steps=[call(DELETE)]),
    "within a call": event("step.start", index=0, step=call(WEATHER)) + raw("step.start", START.replace(": 0", ": 1")) + STOP,
    "behind the end": end() + raw("step.start", START) + STOP,
    "a mark before its line": b": \n\n\xef\xbb\xbf" + raw("", START) + STOP,
    "without an end": raw("step.start", START),
    "with an error behind it": raw("step.start", START) + event("error", error={"code": "x"}),
}  # fmt: skip


@pytest.mark.parametrize("fail_closed", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_shape_hides_a_denied_call(name: str, fail_closed: bool) -> None:
    stream = begin() + HOSTILE[name] + DONE
    result = run([stream], denying(DELETE, ""), fail_closed=fail_closed)
    left = (
        result.out.decode()
        .replace("\\u005f", "_")
        .replace(f"Tool '{DELETE}'", "")
        .replace(f"of '{DELETE}'", "")
    )
    assert DELETE not in left
    assert result.faults or any(j.verdict.blocked for j in result.judged)


def test_an_error_ends_a_stream_as_the_api_tells_of_one() -> None:
    machine = DIALECT.stream(denying(), limits=Limits(), fail_closed=True)
    (told_,) = events(machine.fail("gone"))
    assert (told_["event_type"], told_["error"]["message"]) == ("error", "gone")


def test_arguments_that_come_whole_and_in_pieces_are_in_doubt() -> None:
    delta = event("step.delta", index=0, delta={"type": "arguments_delta", "arguments": '{"city": "Rome"}'})
    result = run([event("step.start", index=0, step=call(WEATHER, CITY)) + delta + STOP], denying())
    (judged,) = result.judged
    assert judged.call.doubt == "they came both whole and in pieces"
    assert judged.call.input == {"whole": CITY, "pieces": {"city": "Rome"}}
