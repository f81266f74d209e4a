"""Bytes leave when no call can grow any more, in order, and never when the stream ended inside a call."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.openai_chat import (
    DELETE,
    DONE,
    NAMES,
    WEATHER,
    call,
    calls,
    chunk,
    cut_at,
    denying,
    end,
    entry,
    load,
    raw,
    refused,
    run,
    text,
)

from agentsh_net.core.dialects.base import Limits, Stream
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.openai_chat.dialect import DIALECT
from agentsh_net.core.dialects.openai_chat.stream import ChatMachine
from agentsh_net.core.framing.sse import Decoder

CALL = calls(entry(0, name=WEATHER, args="{}", call_id="a"))


def feeding(*denied: str, fail_closed: bool = False, limits: Limits | None = None) -> Stream:
    return DIALECT.stream(denying(*denied), limits=limits or Limits(), fail_closed=fail_closed)


def test_text_flows_until_a_call_begins_and_again_when_its_choice_ended() -> None:
    machine = feeding()
    sent = [text("a"), CALL, text("b"), b": ping\n\n", end(), text("c"), DONE]
    assert [machine.feed(piece).out for piece in sent] == [
        sent[0], b"", b"", b"", b"".join(sent[1:5]), sent[5], sent[6],
    ]  # fmt: skip


def test_a_choice_waits_for_the_calls_of_another() -> None:
    machine = feeding()
    sent = [CALL, calls(entry(0, name="x", call_id="b"), choice=1), end(), end(choice=1)]
    assert [machine.feed(piece).out for piece in sent] == [b"", b"", b"", b"".join(sent)]


@pytest.mark.parametrize("index", [[0], {"0": 0}, "zero", 0.5])
def test_arguments_under_an_index_that_is_no_number_reach_no_call(index: object) -> None:
    first = calls(entry(0, name=WEATHER, args="", call_id="a"), entry(1, name=WEATHER, args="", call_id="b"))
    result = run(first + calls(entry(index, args='{"path":"/etc/x"}')) + end() + DONE, denying(DELETE))
    assert b"/etc/x" not in result.out
    assert "an index that is no number" in [j.call.flaw for j in result.judged]


@pytest.mark.parametrize("names", [[[DELETE]], ["del", ["ete"]], [["mcp__fs__"], "delete"]])
def test_pieces_of_a_name_that_are_no_strings_are_no_name_that_anybody_can_judge(names: list[object]) -> None:
    pieces = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": name, "arguments": ""}}
        for name in names
    ]
    result = run(b"".join(calls(piece) for piece in pieces) + end() + DONE, denying(DELETE))
    assert b"tool_calls" not in result.out
    assert [j.call.flaw for j in result.judged] == ["the tool's name is not a string"]


@pytest.mark.parametrize("name", [WEATHER, DELETE])
def test_arguments_in_an_oversize_event_are_in_doubt_and_pass_only_where_the_call_does(name: str) -> None:
    big = calls(entry(0, args='{"a":"' + "x" * 3000))
    sent = calls(entry(0, name=name, args="", call_id="a")) + big + calls(entry(0, args='"}')) + end() + DONE
    machine = feeding(DELETE, limits=Limits(max_frame=1000))
    steps = [machine.feed(sent[at : at + 500]) for at in range(0, len(sent), 500)]
    out, doubts = b"".join(s.out for s in steps), {j.call.doubt for s in steps for j in s.judged}
    assert doubts == {"an event outgrew proxy.max_frame"}
    assert (out == sent) is (name == WEATHER) is not any(s.end for s in steps)
    assert (b"xxx" in out) is (name == WEATHER)


def test_done_ends_every_call() -> None:
    assert run(CALL + DONE, denying()).out == CALL + DONE


def test_the_end_of_the_stream_inside_a_call_releases_what_is_no_call_and_an_error() -> None:
    result = run(text("a") + CALL + text("b"), denying())
    before, after = result.out.split(b'data: {"error"')
    assert before == text("a") + text("b")
    assert after.endswith(DONE)
    assert [(f.cause, f.cut) for f in result.faults] == [("unfinished_call", True)]
    assert [(j.call.name, j.verdict.rule) for j in result.judged if j.verdict.blocked] == [
        (WEATHER, "protocol")
    ]


def test_an_error_of_the_provider_inside_a_call_is_passed_on_without_the_call() -> None:
    error = raw('{"error":{"message":"overloaded","type":"server_error"}}')
    result = run(CALL + error + DONE, denying())
    assert result.out == error + DONE
    assert result.blocked == [WEATHER]
    assert not result.faults


def test_after_done_no_call_is_relayed_and_everything_else_is() -> None:
    usage = raw('{"choices":[],"usage":{"total_tokens":1},"note":"tool"}')
    result = run(DONE + CALL + usage + end("stop") + DONE, denying())
    assert result.out == DONE + usage + end("stop") + DONE
    assert [(j.call.name, j.verdict.reason) for j in result.judged] == [
        (WEATHER, "a call after the end of the stream")
    ]


def test_what_is_held_is_bounded_and_under_fail_closed_cut() -> None:
    limits = Limits(held=2000)
    sent = CALL + b"".join(calls(entry(0, args=" " * 100)) for _ in range(20)) + end() + DONE
    cut = run(sent, denying(), fail_closed=True, limits=limits)
    assert [(f.cause, f.cut) for f in cut.faults] == [("held_too_long", True)]
    assert WEATHER.encode() not in cut.out
    assert cut.ended


def test_past_the_bound_and_without_fail_closed_a_call_is_judged_by_what_is_there() -> None:
    limits = Limits(held=2000)
    sent = CALL + b"".join(calls(entry(0, args=" " * 100)) for _ in range(20)) + end() + DONE
    passed = run(sent, denying(), limits=limits)
    assert passed.out == sent
    assert {f.cause for f in passed.faults} == {"held_too_long"}
    stopped = run(sent, denying(WEATHER), limits=limits)
    assert WEATHER.encode() + b'"' not in stopped.out
    assert stopped.blocked == [WEATHER]
    contents = [choice["delta"].get("content") for part in stopped.chunks for choice in part["choices"]]
    assert [content for content in contents if content] == [refused(WEATHER)]
    assert stopped.chunks[-1]["choices"][0]["finish_reason"] == "stop"


def test_more_calls_than_can_be_remembered_cut_the_answer() -> None:
    many = b"".join(
        calls(*(entry(n, name="x", call_id=str(n)) for n in range(at, at + 100)))
        for at in range(0, 3000, 100)
    )
    result = run(many + end() + DONE, denying(), limits=Limits(held=1 << 24))
    assert [(f.cause, f.cut) for f in result.faults] == [("too_many_calls", True)]
    assert b'"x"' not in result.out


def test_more_calls_than_can_be_remembered_cut_the_answer_though_each_has_ended() -> None:
    """What is remembered of all of them is gone through for each."""
    sent = [calls(entry(0, name="x", call_id="a"), choice=at) + end(choice=at) for at in range(2000)]
    result = run(b"".join(sent) + DONE, denying(), limits=Limits(held=1 << 24))
    assert [(f.cause, f.cut) for f in result.faults] == [("too_many_calls", True)]
    assert len(result.judged) < 600


def test_an_unreadable_event_behind_a_call_is_held_with_it() -> None:
    broken = raw('{"tool')
    machine = feeding()
    assert machine.feed(CALL + broken).out == b""
    step = machine.feed(end())
    assert step.out == CALL + broken + end()


def test_an_unreadable_event_behind_a_call_cuts_it_off_under_fail_closed() -> None:
    result = run(CALL + raw('{"x') + end() + DONE, denying(), fail_closed=True)
    assert result.out.startswith(b'data: {"error"')
    assert [f.cause for f in result.faults] == ["malformed_json"]


def test_invalid_utf8_in_a_call_is_told_or_cut() -> None:
    broken = CALL.replace(b"gpt-test", b"\xff")
    told = run(broken + end() + DONE, denying())
    assert (told.out, [f.cause for f in told.faults]) == (broken + end() + DONE, ["invalid_utf8"])
    assert run(broken + end() + DONE, denying(), fail_closed=True).out.startswith(b'data: {"error"')


def test_a_whole_answer_under_the_content_type_of_a_stream_is_judged_too() -> None:
    sent = json.dumps(
        {"choices": [{"message": {"tool_calls": [entry(..., name=DELETE, call_id="a")]}}]}
    ).encode()
    assert run(sent, denying()).out == sent
    refusal = run(sent, denying(DELETE))
    assert json.loads(refusal.out) == {"choices": [{"message": {"content": refused(DELETE)}}]}
    assert refusal.blocked == [DELETE]


@pytest.mark.parametrize("fail_closed", [True, False])
def test_text_that_is_no_event_and_no_json_follows_fail_closed(fail_closed: bool) -> None:
    sent = b"<p>tool</p>\n\n" + text("a")
    result = run(sent, denying(), fail_closed=fail_closed)
    assert [f.cause for f in result.faults] == ["malformed_json"]
    assert (result.out == sent) is not fail_closed


def test_comments_that_speak_of_tools_pass() -> None:
    sent = b": the tool_calls follow\nid: 3\nretry: 5\n\n" + CALL + end() + DONE
    assert run(sent, denying(), fail_closed=True).out == sent


def test_a_late_reason_that_promises_a_removed_call_is_taken_back() -> None:
    result = run(call(0, DELETE) + end("stop") + end("tool_calls") + DONE, denying(DELETE))
    assert [part["choices"][0]["finish_reason"] for part in result.chunks[-2:]] == ["stop", "stop"]


def test_what_is_kept_after_a_removal_in_an_earlier_batch_has_dense_indices() -> None:
    sent = call(0, DELETE) + end() + call(1, WEATHER) + end() + DONE
    parts = run(sent, denying(DELETE)).chunks
    found = [c for part in parts for c in part["choices"][0]["delta"].get("tool_calls", [])]
    assert {c["index"] for c in found} == {0}


PIECES = st.sampled_from(
    [text("tool"), text("x"), CALL, calls(entry(1, name=DELETE, args="{}", call_id="b")), calls(entry(0, args="{}")),
     calls(entry(..., name="x")), end(), end("stop"), DONE, raw("{tool"), b": tool\n\n", end(choice=1),
     calls(entry(0, name=DELETE, call_id="c"), choice=1), chunk({"function_call": {"name": DELETE}}),
     raw('{"error":{"message":"tool"}}'), calls(entry(0, name="y", call_id="z"))]
)  # fmt: skip


@given(st.lists(PIECES, max_size=9), st.lists(st.integers(0, 1 << 14), max_size=6), st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_fast_path_gives_what_the_slow_path_gives_under_any_chunking(
    pieces: list[bytes], offsets: list[int], fail_closed: bool
) -> None:
    sent = b"".join(pieces)
    judge = denying(DELETE)
    slow = Inspector(
        lambda: ChatMachine(judge, Limits()),
        limits=Limits(),
        fail_closed=fail_closed,
        error_frame=DIALECT.error_frame,
        fast=False,
    )
    expected = run(sent, judge, stream=slow)
    result = run(cut_at(sent, offsets), judge, fail_closed=fail_closed)
    assert result.out == expected.out
    assert result.judged == expected.judged
    assert result.faults == expected.faults
    if not fail_closed:
        assert DELETE.encode() + b'"' not in result.out


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_cut_short_anywhere_releases_no_unfinished_call(name: str) -> None:
    sent = load(name)
    for length in range(0, len(sent), 7):
        result = run(sent[:length], denying())
        if [f.cause for f in result.faults if f.cut] == ["unfinished_call"]:
            assert f'"{DELETE}"'.encode() not in result.out
            assert f'"{WEATHER}"'.encode() not in result.out
            last = [frame.data for frame in Decoder(1 << 20).feed(result.out)][-2:]
            assert last[0] is not None
            assert "error" in json.loads(last[0])
            assert last[1] == b"[DONE]"


@pytest.mark.parametrize("filler", [b"\n", b": \n\n", b"data: 1\n\n"])
def test_the_smallest_frames_behind_a_call_are_not_remembered_without_end(filler: bytes) -> None:
    machine = DIALECT.stream(denying(), limits=Limits(held=64 << 10), fail_closed=True)
    machine.feed(calls(entry(name=WEATHER, args="", call_id="c")))
    assert not machine.feed(filler * 256).end
    assert machine.feed(filler * 512).end


def test_calls_with_one_id_are_told_apart_by_their_place_and_a_grown_one_keeps_its_own() -> None:
    judge = denying()
    sent = call(0, WEATHER, call_id="same") + call(1, WEATHER, call_id="same") + end()
    run(sent + calls(entry(1, args="x")) + end() + DONE, judge)
    assert [c.ordinal for c in judge.asked if not c.hypothetical] == [1, 2, 2]
