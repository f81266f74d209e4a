"""Bytes leave at once unless a call goes on; events and arrays alike; what stands beside the events is no way around."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.gemini import (
    DELETE,
    WEATHER,
    Result,
    answer,
    array,
    candidate,
    cut_at,
    denying,
    event,
    events,
    every_chunking,
    part,
    piece,
    raw,
    refused,
    run,
    text,
)

from agentsh_net.core.dialects.base import Limits, Stream
from agentsh_net.core.dialects.gemini.dialect import STREAMED
from agentsh_net.core.dialects.gemini.stream import GeminiMachine, strays
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.machine import Wire

WRITTEN = pytest.mark.parametrize("write", [events, array])


def feeding(*denied: str, fail_closed: bool = False, enforce: Any = lambda: True) -> Stream:
    return STREAMED.stream(denying(*denied), limits=Limits(), fail_closed=fail_closed, enforce=enforce)


def answers(data: bytes) -> list[Any]:
    if data.startswith(b"["):
        return list(json.loads(data))
    return [
        json.loads(one.removeprefix(b"data: ")) for one in data.split(b"\r\n\r\n") if one.startswith(b"data")
    ]


def parts(result: Result) -> list[Any]:
    return [
        p for one in answers(result.out) for c in one.get("candidates", []) for p in c["content"]["parts"]
    ]


PLAIN = (
    answer(text("Hello ")),
    answer(text("\u2028 thinking", thought=True)),
    answer(part(WEATHER, {"city": "Bern"}, thoughtSignature="c2ln")),
    answer(piece("f"), piece(jsonPath="$.a", stringValue="x", willContinue=True)),
    answer(piece(jsonPath="$.a", stringValue="y")),
    answer(piece(more=False)),
    answer(text(""), finish="STOP"),
    {"candidates": [candidate(text("b"), index=1), candidate(part(WEATHER), index=0)]},
    {"promptFeedback": {"blockReason": "SAFETY"}},
)


@WRITTEN
def test_a_stream_in_which_nothing_is_refused_leaves_to_the_byte_whatever_the_chunks(write: Any) -> None:
    stream = write(*PLAIN)
    for chunks in (
        every_chunking(stream) if write is events else ([stream], cut_at(stream, range(len(stream))))
    ):
        result = run(chunks, denying(DELETE), fail_closed=True)
        assert result.out == stream
    assert [j.call.name for j in result.judged] == [WEATHER, "f", WEATHER]
    assert result.judged[1].call.input == {"a": "xy"}


@given(
    st.lists(st.sampled_from(PLAIN[:3] + PLAIN[6:]), max_size=5),
    st.lists(st.integers(0, 3000), max_size=8),
    st.booleans(),
    st.sampled_from([events, array]),
)
@settings(max_examples=60, deadline=None)
def test_a_rewritten_stream_differs_in_its_refused_calls_alone(
    some: list[Any], cuts: list[int], enforced: bool, write: Any
) -> None:
    mixed = [entry for one in some for entry in (one, answer(part(DELETE, {"a": ["]}"]}), text("b")))]
    stream = write(*mixed)
    machine = feeding(DELETE, fail_closed=True, enforce=lambda: enforced)
    result = run(cut_at(stream, cuts), denying(), stream=machine)
    want = [
        answer(refused(DELETE), text("b")) if entry["candidates"][0]["content"]["parts"][0] == part(DELETE, {"a": ["]}"]})
        else entry
        for entry in mixed if "candidates" in entry or not enforced
    ] if enforced and all("candidates" in entry for entry in mixed) else None  # fmt: skip
    if not enforced:
        assert result.out == stream
    elif want is not None:
        assert answers(result.out) == want
    assert len([j for j in result.judged if j.call.name == DELETE]) == len(some)


@WRITTEN
def test_a_refused_call_is_replaced_in_its_own_frame_and_the_others_keep_their_bytes(write: Any) -> None:
    before, after = answer(text("a")), answer(part(WEATHER), finish="STOP")
    result = run(write(before, answer(part(DELETE, {"x": 1})), after), denying(DELETE))
    assert answers(result.out) == [before, answer(refused(DELETE)), after]
    if write is events:
        assert result.out.startswith(event(before))
        assert result.out.endswith(event(after))


def test_text_flows_while_no_call_goes_on_and_waits_while_one_does() -> None:
    machine = feeding()
    sent = [
        event(a)
        for a in (answer(text("a")), answer(piece("f")), answer(text("b")), answer(piece(more=False)))
    ]
    assert [machine.feed(one).out for one in sent[:2]] == [sent[0], b""]
    assert machine.holding
    assert machine.keep_alive() == b"\r\n"
    assert [machine.feed(one).out for one in sent[2:]] == [b"", b"".join(sent[1:])]
    assert machine.keep_alive() == b""


@WRITTEN
def test_a_refused_call_in_pieces_leaves_one_notice(write: Any) -> None:
    result = run(
        write(
            answer(piece(DELETE)),
            answer(text("b"), piece(jsonPath="$.a", numberValue=1)),
            answer(piece(more=False)),
        ),
        denying(DELETE),
    )
    assert parts(result) == [refused(DELETE), text("b")]


@WRITTEN
@pytest.mark.parametrize("fail_closed", [False, True])
def test_the_end_inside_a_call_releases_nothing_of_it_and_tells_of_an_error(
    write: Any, fail_closed: bool
) -> None:
    whole = write(answer(text("a")), answer(piece(WEATHER)))
    stream = whole.removesuffix(b"\n]\n")
    result = run(stream, denying(), fail_closed=fail_closed)
    assert WEATHER not in json.dumps([p for p in parts(result) if "functionCall" in p])
    last = answers(result.out)[-1]
    assert last["error"]["status"] == "INTERNAL"
    assert [(f.cause, f.cut) for f in result.faults] == [("incomplete_call", True)]


def test_an_error_of_the_provider_inside_a_call_ends_it() -> None:
    error = event({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})
    result = run(event(answer(piece(WEATHER))) + error, denying())
    assert result.out.endswith(error)
    assert parts(Result(result.out.removesuffix(error), [], [], ended=False)) == [
        refused(WEATHER, "the answer ended inside the call")
    ]


def test_what_is_held_is_bounded_and_under_fail_closed_cut() -> None:
    sent = event(answer(piece(WEATHER))) + b"".join(
        event(answer(piece(jsonPath="$.a", stringValue="x" * 100))) for _ in range(20)
    )
    sent += event(answer(piece(more=False)))
    closed = run(sent, denying(), fail_closed=True, limits=Limits(held=2000))
    assert closed.ended
    assert b"functionCall" not in closed.out
    open_ = run(sent, denying(), limits=Limits(held=2000))
    assert open_.out == sent
    assert [f.cause for f in open_.faults][:1] == ["held_too_long"]


@pytest.mark.parametrize("sent", [0, 1])
def test_an_error_closes_the_array_it_stands_in(sent: int) -> None:
    machine = feeding()
    head = array(answer(text("a"))).removesuffix(b"\n]\n") if sent else b"["
    out = machine.feed(head).out + machine.fail("gone")
    assert [set(one) & {"candidates", "error"} for one in json.loads(out)] == [{"candidates"}] * sent + [
        {"error"}
    ]


@pytest.mark.parametrize("sent", [0, 1])
def test_an_array_that_is_cut_is_one_that_every_parser_reads(sent: int) -> None:
    bad = b'{"candidates":[{"content":{"parts":[{"functionCall":}]}}]}'
    head = array(answer(text("a"))).removesuffix(b"\n]\n") + b"\n,\r\n" if sent else b"["
    for chunks in ([head + bad + b"]"], [head, bad, b"]"]):
        result = run(chunks, denying())
        assert result.ended
        assert len(json.loads(result.out)) == sent + 1
        assert "error" in json.loads(result.out)[-1]


def test_an_empty_answer_and_white_space_stay() -> None:
    for data in (b"", b" \r\n", b"[]", b"[\n]\n", b"\xef\xbb\xbf[]"):
        assert run([data[:1], data[1:]], denying()).out == data


# What the official SDK finds in lines that are no field.

CALL = json.dumps(answer(part(DELETE)))
SPLIT = CALL.replace("functionCall", "functionC\nall")


@pytest.mark.parametrize("fail_closed", [False, True])
@pytest.mark.parametrize(
    "stray",
    [
        CALL + "\n\n", " " + CALL + "\r\n\r\n", SPLIT + "\n\n", SPLIT.replace("\n", "\r\n") + "\r\n\r\n",
        SPLIT.replace("\n", "\n\n") + "\n\n", '{"a":1,\n' + CALL[1:] + "\n\n", 'data: {"a":1}\n' + CALL + "\n\n",
        json.dumps(answer(part(DELETE)), indent=1) + "\n",
    ],
)  # fmt: skip
def test_json_beside_the_events_is_no_way_around(stray: str, fail_closed: bool) -> None:
    stream = event(answer(text("a"))) + stray.encode()
    for chunks in every_chunking(stream):
        result = run(chunks, denying(DELETE), fail_closed=fail_closed)
        assert result.ended
        assert b"functionC" not in result.out
        assert {f.cause for f in result.faults} == {"ambiguous_lines"}


@pytest.mark.parametrize("fail_closed", [False, True])
@pytest.mark.parametrize("begin", ["", "[", "[\n" + json.dumps(answer(text("a"))) + ",\n"])
@pytest.mark.parametrize(
    "made",
    [
        CALL.replace("functionCall", "func\ntionCall"), CALL.replace("functionCall", "func\r\ntion\\u0043all"), CALL.replace(DELETE, DELETE[:4] + "\n" + DELETE[4:]),
        CALL.replace("functionCall", "func\\u00\n74ionCall"), CALL.replace("functionCall", "function\\u00\n43all"), CALL.replace("functionCall", "fun\u2028ctionCall"),
        CALL.replace('"functionCall"', '"x":tr\nue,"func\ntionCall"'),
    ],
)  # fmt: skip
def test_a_word_on_two_lines_is_no_way_around_in_a_stream_without_events(
    begin: str, made: str, fail_closed: bool
) -> None:
    stream = (begin + made + ("]" if begin else "") + "\n").encode()
    for chunks in every_chunking(stream):
        result = run(chunks, denying(DELETE), fail_closed=fail_closed)
        assert result.ended
        assert b"on\\u00" not in result.out
        assert b"onCall" not in result.out
        assert {f.cause for f in result.faults} <= {"ambiguous_lines", "malformed_json"}
        assert all(f.cut for f in result.faults)


def test_lines_of_an_honest_array_may_be_anywhere_but_in_a_string() -> None:
    stream = (
        json.dumps([answer(text("func")), answer(part(WEATHER))], indent=1).replace("\n", "\r\n").encode()
    )
    result = run(stream, denying(DELETE))
    assert result.out == stream
    assert not result.faults


def test_an_error_beside_the_events_is_passed_on() -> None:
    stream = event(answer(text("a"))) + b'{\n  "error": {"code": 503, "message": "tool"}\n}\n'
    assert run(stream, denying(DELETE)).out == stream


def test_what_could_begin_json_in_a_line_of_its_own_is_told_by_its_first_character() -> None:
    assert not strays(b'data: {"a": 1}\r\n\r\ndata: {}\r\n\r\n', begins_line=True)
    assert strays(b"{", begins_line=True)
    assert not strays(b"{", begins_line=False)
    assert all(
        strays(b"data: 1" + end + begin, begins_line=False)
        for end in (b"\n", b"\r")
        for begin in (b"{", b" ", b"\t", b"[")
    )


# For whoever looks at the frames besides the machine.


@given(st.lists(st.integers(0, 3000), max_size=6), st.sampled_from([events, array]))
@settings(max_examples=20, deadline=None)
def test_the_frames_are_those_of_events_or_of_an_array(cuts: list[int], write: Any) -> None:
    data = b" \r\n" + write(*PLAIN)
    framing = STREAMED.framing(1 << 20)
    assert framing is not None
    found = [frame for piece in cut_at(data, cuts) for frame in framing.frames.feed(piece)]
    rest = framing.frames.finish()
    found += [rest] if rest else []
    assert b"".join(frame.raw for frame in found) == data
    assert [json.loads(frame.data) for frame in found if frame.data is not None] == list(PLAIN)


# The fast path.


@given(
    st.lists(
        st.sampled_from(
            [*(event(one) for one in PLAIN), event(answer(part(DELETE))), raw("{"), raw("[DONE]"), b": c\n\n", b"\r\n",
             raw('{"candidates":[{"content":{"parts":[{"\\u0066unctionCall":{"name":"' + DELETE + '"}}]}}]}')]
        ),
        max_size=6,
    ).map(b"".join),
    st.lists(st.integers(0, 3000), max_size=6),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_the_fast_path_changes_nothing(stream: bytes, cuts: list[int]) -> None:
    def machine(*, fast: bool) -> Inspector:
        return Inspector(
            lambda: GeminiMachine(denying(DELETE), Limits(), events=True),
            limits=Limits(), fail_closed=False, error_frame=STREAMED.error_frame, fast=fast, wire=Wire(strict=True),
        )  # fmt: skip

    results = [run(cut_at(stream, cuts), denying(), stream=machine(fast=fast)) for fast in (True, False)]
    assert results[0].out == results[1].out
    assert [j.call for j in results[0].judged] == [j.call for j in results[1].judged]
    assert f'"{DELETE}"'.encode() not in results[0].out


# Events above the bound.

BEGUN = answer(piece(WEATHER, jsonPath="$.city", stringValue="Be", willContinue=True))
REST = answer(piece(jsonPath="$.city", stringValue="rn"), piece(more=False))
LONG = answer(text("x" * 5000))


@WRITTEN
@pytest.mark.parametrize("size", [300, 100_000])
def test_an_event_above_the_bound_passes_behind_a_call_that_is_allowed(write: Any, size: int) -> None:
    sent = write(BEGUN, LONG, REST, answer(text("end")))
    result = run(cut_at(sent, range(0, len(sent), size)), denying(DELETE), limits=Limits(max_frame=1000))
    assert (result.out, result.ended) == (sent, False)
    assert [(j.call.name, j.call.doubt) for j in result.judged] == [
        (WEATHER, "an event outgrew proxy.max_frame")
    ]
    assert [(f.cause, f.cut) for f in result.faults] == [("frame_too_long", False)]


@WRITTEN
@pytest.mark.parametrize("size", [300, 100_000])
def test_an_event_above_the_bound_passes_behind_a_call_that_is_blocked_and_releases_nothing_of_it(
    write: Any, size: int
) -> None:
    sent = write(BEGUN, LONG, REST, answer(text("end")))
    result = run(cut_at(sent, range(0, len(sent), size)), denying(WEATHER), limits=Limits(max_frame=1000))
    assert not result.ended
    assert [[*p] for p in parts(result)] == [["text"]] * 3
    assert [p["text"][:3] for p in parts(result)] == ["[ag", "xxx", "end"]
    assert [j.verdict.blocked for j in result.judged] == [True]


@WRITTEN
@pytest.mark.parametrize("size", [300, 100_000])
def test_an_event_above_the_bound_that_may_be_the_rest_of_a_blocked_call_ends_the_answer(
    write: Any, size: int
) -> None:
    sent = write(
        BEGUN, answer(text("x" * 2000), piece(jsonPath="$.city", stringValue="rn"), text("y" * 2000))
    )
    result = run(cut_at(sent, range(0, len(sent), size)), denying(WEATHER), limits=Limits(max_frame=1000))
    assert result.ended
    assert b"functionCall" not in result.out
    assert [f.cut for f in result.faults] == [False, True]


@WRITTEN
def test_an_event_above_the_bound_behind_a_call_is_replaced_by_an_error_under_fail_closed(write: Any) -> None:
    result = run(write(BEGUN, LONG), denying(), limits=Limits(max_frame=1000), fail_closed=True)
    assert result.ended
    assert b"functionCall" not in result.out
    assert b"xxx" not in result.out
    assert [f.cause for f in result.faults] == ["frame_too_long"]
