"""A call is held from its start to its stop, and what is released is it or text in its place; everything else keeps its bytes and order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.bedrock import (
    DELETE,
    WEATHER,
    begin,
    call,
    cut_at,
    denying,
    end,
    events,
    every_chunking,
    exception,
    message,
    piece,
    refused,
    run,
    say,
    start,
    stop,
    text,
)

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.bedrock.dialect import CONVERSE_STREAM
from agentsh_net.core.dialects.block_stream import MAX_BLOCKS

TWICE = '{"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}", "input": "{\\"x\\": 1}"}}}'
STREAM = (
    begin() + text(0, "Hel", "lo") + call(1, WEATHER, {"city": "Bern", "n": 1.5}) + call(2, "Bash") + end()
)


def test_a_stream_in_which_nothing_is_refused_leaves_to_the_byte_whatever_the_chunks() -> None:
    for chunks in every_chunking(STREAM):
        result = run(chunks, denying(DELETE), fail_closed=True)
        assert result.out == STREAM
    assert [(j.call.name, j.call.input, j.call.call_id) for j in result.judged] == [
        (WEATHER, {"city": "Bern", "n": 1.5}, "tooluse_1"), ("Bash", {}, "tooluse_2"),
    ]  # fmt: skip


def test_text_flows_while_no_call_is_held() -> None:
    machine = CONVERSE_STREAM.stream(denying(), limits=Limits(), fail_closed=True)
    sent = [
        begin(),
        say(0, "a"),
        start(1, "x"),
        piece(1, "{"),
        message("metadata", {}),
        piece(1, "}"),
        stop(1),
        end(),
    ]
    assert [machine.feed(one).out for one in sent] == [
        sent[0], sent[1], b"", b"", b"", b"", b"".join(sent[2:7]), sent[7],
    ]  # fmt: skip


def test_a_client_that_waits_on_a_held_call_is_kept_alive_by_what_it_skips() -> None:
    machine = CONVERSE_STREAM.stream(denying(), limits=Limits(), fail_closed=True)
    assert machine.keep_alive() == b""
    machine.feed(start(1, "x"))
    assert events(machine.keep_alive()) == [("ping", {})]


BLOCKS = st.sampled_from(["text", WEATHER, DELETE])


@given(st.lists(BLOCKS, max_size=5), st.lists(st.integers(0, 3000), max_size=8), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_rewritten_stream_differs_in_its_refused_calls_alone(
    blocks: list[str], cuts: list[int], enforce: bool
) -> None:
    made = [text(n, "a", "b") if b == "text" else call(n, b, {"x": "y"}) for n, b in enumerate(blocks)]
    stream = begin() + b"".join(made) + end()
    result = run(cut_at(stream, cuts), denying(DELETE), fail_closed=True, enforce=enforce)
    if not enforce:
        assert result.out == stream
        return
    calls = [b for b in blocks if b != "text"]
    reason = "end_turn" if calls and set(calls) == {DELETE} else "tool_use"
    want = [events(begin())]
    want += [refused(n, b) if b == DELETE else events(made[n]) for n, b in enumerate(blocks)]
    want.append([(k, v | ({"stopReason": reason} if "stopReason" in v else {})) for k, v in events(end())])
    assert events(result.out) == [one for block in want for one in block]
    assert len(result.judged) == len(calls)


def test_what_came_in_between_stays_where_a_call_is_refused() -> None:
    result = run(
        start(1, DELETE) + message("metadata", {"a": 1}) + piece(1, "{}") + stop(1) + end(), denying(DELETE)
    )
    kinds = [kind for kind, _ in events(result.out)]
    assert kinds == ["contentBlockDelta", "contentBlockStop", "metadata", "messageStop", "metadata"]


@pytest.mark.parametrize(
    ("stream", "flaw"),
    [
        (start(1, "a") + start(2, "b") + piece(2, "{}") + stop(2) + stop(1), "calls within each other"),
        (start(1, "a") + piece(2, "{}") + stop(1), "arguments of another block within the call"),
        (start(1, "a") + stop(2) + stop(1), "the end of another block within the call"),
        (call(1, "a") + call(1, "b"), "two blocks at one index"),
        (text(1, "a") + call(1, "b"), "two blocks at one index"),
        (start(None, "a") + stop(None), "the block has no index"),
        (start("1", "a") + stop("1"), "the block has no index"),
        (start(1, "a") + piece(1, ["x"]) + stop(1), "arguments of an odd type"),
        (start(1, "a") + say(1, "x") + stop(1), "something else within the call"),
        (start(1, "a") + message("contentBlockDelta", TWICE) + stop(1), "the key 'input' stands twice"),
        (start(1, ["a"]) + stop(1), "a call without a name"),
        (end() + call(1, "a"), "a call after the end of the message"),
        (exception("throttlingException", "x") + call(1, "a"), "a call after the end of the message"),
    ],
)
def test_what_clients_add_up_in_different_ways_is_refused(stream: bytes, flaw: str) -> None:
    result = run(begin() + stream, denying())
    assert flaw in [j.call.flaw for j in result.judged]
    left = [v["start"]["toolUse"]["name"] for k, v in events(result.out) if k == "contentBlockStart"]
    assert not [
        j.call.name for j in result.judged if j.call.flaw and j.call.name in left and j.call.name != "a"
    ]
    assert len(left) == len([j for j in result.judged if not j.verdict.blocked])


def test_arguments_that_belong_to_no_call_are_dropped() -> None:
    result = run(
        begin() + call(1, WEATHER) + piece(1, '{"evil":1}') + piece(7, "{}") + stop(1) + end(), denying()
    )
    assert result.out == begin() + call(1, WEATHER) + end()
    assert {f.cause for f in result.faults} == {"event_out_of_place"}


def test_a_call_elsewhere_in_an_event_does_not_leave() -> None:
    odd = message(
        "messageStart", {"role": "assistant", "content": [{"toolUse": {"name": DELETE, "input": {}}}]}
    )
    result = run(odd + text(0, "a") + end("end_turn"), denying(DELETE))
    assert result.out == text(0, "a") + end("end_turn")
    assert [j.verdict.blocked for j in result.judged] == [True]
    assert [(f.cause, f.cut) for f in result.faults] == [("event_out_of_place", True)]


@pytest.mark.parametrize("fail_closed", [False, True])
def test_the_end_inside_a_call_releases_nothing_of_it_and_tells_of_an_error(fail_closed: bool) -> None:
    result = run(begin() + start(1, WEATHER) + piece(1, "{"), denying(), fail_closed=fail_closed)
    assert result.out.startswith(begin())
    ((kind, told),) = events(result.out.removeprefix(begin()))
    assert kind == "!internalServerException"
    assert "ended within a call" in told["message"]
    assert [(j.call.flaw, j.verdict.blocked) for j in result.judged] == [
        ("the answer ended inside the call", True)
    ]


def test_an_exception_inside_a_call_is_passed_on_without_the_call() -> None:
    failed = exception("modelStreamErrorException", "broken")
    result = run(begin() + start(1, WEATHER) + failed, denying())
    assert result.out == begin() + failed
    assert [f.cause for f in result.faults] == ["incomplete_call"]


def test_a_call_without_a_stop_is_judged_at_the_end_of_the_message() -> None:
    stream = begin() + start(1, WEATHER) + piece(1, "{}") + end()
    assert run(stream, denying()).out == stream
    assert b"toolUse" not in run(stream, denying(WEATHER)).out


def test_what_is_held_is_bounded_and_under_fail_closed_cut() -> None:
    stream = begin() + start(1, WEATHER) + b"".join(piece(1, " " * 50) for _ in range(50)) + stop(1) + end()
    closed = run(stream, denying(), fail_closed=True, limits=Limits(held=3000))
    assert closed.ended
    assert b"toolUse" not in closed.out
    # The audit hears of the call that the client does not.
    assert [(j.call.name, j.verdict.reason) for j in closed.judged] == [
        (WEATHER, f"a call of {WEATHER!r} outgrew 3000 bytes")
    ]
    open_ = run(stream, denying(), limits=Limits(held=3000))
    assert open_.out == stream
    assert [f.cause for f in open_.faults] == ["held_too_long"]
    denied = run(stream, denying(WEATHER), limits=Limits(held=3000))
    assert b"toolUse" not in denied.out
    more = run(stream + piece(1, "{}") + stop(1), denying(), limits=Limits(held=3000))
    assert more.out == stream
    assert [f.cause for f in more.faults] == ["held_too_long", "event_out_of_place", "event_out_of_place"]


def test_padding_and_unknown_fields_survive_where_the_reason_is_changed() -> None:
    result = run(
        call(0, DELETE) + message("messageStop", '{"p" : "abc", "stopReason" : "tool_use", "n": 1.0}'),
        denying(DELETE),
    )
    assert events(result.out)[-1] == ("messageStop", {"p": "abc", "stopReason": "end_turn", "n": 1.0})
    assert b'{"p" : "abc", "stopReason" : "end_turn", "n": 1.0}' in result.out
    assert json.loads(b"1.0") == 1


def test_its_framing_is_messages() -> None:
    framing = CONVERSE_STREAM.framing(1 << 20)
    assert framing is not None
    (frame,) = framing.frames.feed(say(0, "a"))
    assert frame.data is not None
    assert events(framing.write(frame, b'{"b":1}')) == [("contentBlockDelta", {"b": 1})]


ANY: list[Any] = [
    begin(),
    text(0, "a"),
    call(1, WEATHER),
    start(1, DELETE),
    piece(1, "{}"),
    stop(1),
    end(),
    exception("x", "y"),
]


@given(st.lists(st.sampled_from(ANY), max_size=7), st.lists(st.integers(0, 3000), max_size=6))
@settings(max_examples=80, deadline=None)
def test_chunks_decide_nothing(soup: list[bytes], cuts: list[int]) -> None:
    data = b"".join(soup)
    whole, pieces = run(data, denying(DELETE)), run(cut_at(data, cuts), denying(DELETE))
    assert (whole.out, whole.judged, whole.faults) == (pieces.out, pieces.judged, pieces.faults)
    assert DELETE not in json.dumps([v for k, v in events(whole.out) if k == "contentBlockStart"])


@pytest.mark.parametrize("fail_closed", [True, False])
def test_an_answer_has_so_many_blocks_and_a_call_beyond_them_ends_it(fail_closed: bool) -> None:
    texts = [say(at, "x") for at in range(MAX_BLOCKS)]
    last = MAX_BLOCKS - 1
    fits = begin() + b"".join(texts[:last]) + call(last, WEATHER) + end()
    result = run(fits, denying(), fail_closed=fail_closed)
    assert (result.out, result.faults) == (fits, [])
    over = run(
        begin() + b"".join(texts) + call(MAX_BLOCKS, WEATHER) + end(), denying(), fail_closed=fail_closed
    )
    assert [(f.cause, f.cut) for f in over.faults] == [("too_many_blocks", True)]
    assert (over.ended, over.judged) == (True, [])
    assert b"toolUse" not in over.out


LONG = say(0, "x" * 5000)
HELD = begin() + start(1, WEATHER) + piece(1, '{"city":')


@pytest.mark.parametrize("size", [300, 100_000])
def test_a_message_above_the_bound_passes_behind_a_held_call_that_is_allowed(size: int) -> None:
    sent = HELD + LONG + piece(1, '"Bern"}') + stop(1) + end()
    result = run(cut_at(sent, range(0, len(sent), size)), denying(DELETE), limits=Limits(max_frame=1000))
    assert (result.out, result.ended) == (sent, False)
    assert [(j.call.name, j.call.doubt) for j in result.judged] == [
        (WEATHER, "an event outgrew proxy.max_frame")
    ]
    assert [(f.cause, f.cut) for f in result.faults] == [("frame_too_long", False)]


@pytest.mark.parametrize("size", [300, 100_000])
def test_a_message_above_the_bound_passes_behind_a_blocked_call_and_releases_nothing_of_it(size: int) -> None:
    sent = HELD + LONG + piece(1, '"Bern"}') + stop(1) + end()
    result = run(cut_at(sent, range(0, len(sent), size)), denying(WEATHER), limits=Limits(max_frame=1000))
    assert not result.ended
    assert LONG in result.out
    assert b"toolUse" not in result.out
    assert [j.verdict.blocked for j in result.judged] == [True]


def test_a_message_above_the_bound_that_may_be_the_rest_of_a_blocked_call_ends_the_answer() -> None:
    sent = HELD + piece(1, "x" * 5000) + stop(1) + end()
    result = run(cut_at(sent, range(0, len(sent), 300)), denying(WEATHER), limits=Limits(max_frame=1000))
    assert result.ended
    assert b"toolUse" not in result.out
    assert [f.cut for f in result.faults] == [False, True]


def test_a_message_above_the_bound_behind_a_held_call_is_replaced_by_an_error_under_fail_closed() -> None:
    result = run(HELD + LONG, denying(), limits=Limits(max_frame=1000), fail_closed=True)
    assert result.ended
    assert (b"toolUse" in result.out, b"xxx" in result.out) == (False, False)
    assert [f.cause for f in result.faults] == ["frame_too_long"]
