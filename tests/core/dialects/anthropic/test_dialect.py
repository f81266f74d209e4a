"""A refused Anthropic call leaves as text in a well-formed answer, streamed or whole; everything else leaves byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.anthropic import (
    NAMES,
    begin,
    call,
    cut_at,
    denying,
    end,
    event,
    every_chunking,
    load,
    raw,
    refused,
    run,
    text,
)

from agentsh_net.core.dialects.anthropic.dialect import DIALECT
from agentsh_net.core.model import ToolCall, Verdict

WEATHER, DELETE = "mcp__weather__get", "mcp__fs__delete"
TWO = begin() + text(0, "Two things.") + call(1, WEATHER, {"city": "Bern"}) + call(2, DELETE, {"path": "/x"})


# The unit cases of the original design, each whole, byte by byte, and cut in two at every offset.
CASES = {
    "single blocked": (
        begin() + text(0, "I'll check.") + call(1, DELETE, {"path": "/tmp/x"}) + end(),
        begin() + text(0, "I'll check.") + refused(1, DELETE) + end("end_turn"),
        [DELETE],
    ),
    "single allowed": (begin() + call(0, WEATHER, {"city": "Bern"}) + end(),) * 2 + ([],),
    "partial": (TWO + end(), TWO.partition(call(2, DELETE, {"path": "/x"}))[0] + refused(2, DELETE) + end(), [DELETE]),
    "all blocked": (
        begin() + call(0, DELETE, {"path": "a"}) + call(1, DELETE, {"path": "b"}) + end(),
        begin() + refused(0, DELETE) + refused(1, DELETE) + end("end_turn"),
        [DELETE, DELETE],
    ),
    "unregistered": (begin() + call(0, "nobody_knows_it", {"a": 1}) + end(),) * 2 + ([],),
    "malformed JSON": (begin() + raw("content_block_start", '{"type":"tool_use",') + end("end_turn"),) * 2 + ([],),
    "text only": (load("text_only"),) * 2 + ([],),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "received", "blocked"), CASES.values(), ids=CASES)
def test_each_unit_case_comes_out_the_same_however_it_is_cut(
    sent: bytes, received: bytes, blocked: list[str]
) -> None:
    for chunks in every_chunking(sent):
        result = run(chunks, denying(DELETE))
        assert result.out == received
        assert result.blocked == blocked


def test_malformed_json_is_told_and_under_fail_closed_cut_with_an_error_event() -> None:
    sent, _, _ = CASES["malformed JSON"]
    told = run(sent, denying())
    assert [(f.cause, f.cut) for f in told.faults] == [("malformed_json", False)]
    cut = run(sent, denying(), fail_closed=True)
    assert [(f.cause, f.cut) for f in cut.faults] == [("malformed_json", True)]
    assert cut.ended
    assert cut.out.startswith(begin() + b'event: error\ndata: {"type":"error"')
    assert b"message_stop" not in cut.out


def cut_at_line_ends(data: bytes) -> Iterator[list[bytes]]:
    """Return `data` byte by byte, and cut in two around every line ending."""
    yield [data[at : at + 1] for at in range(len(data))]
    for match in re.finditer(rb"[\r\n]", data):
        for at in range(match.start(), match.end() + 1):
            yield [data[:at], data[at:]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_a_transcript_without_a_refusal_leaves_byte_for_byte(name: str, ending: bytes) -> None:
    sent = load(name).replace(b"\n", ending)
    everywhere = ending == b"\n" or name == "single_call"
    for chunks in every_chunking(sent) if everywhere else cut_at_line_ends(sent):
        assert b"".join(chunks) == sent
        result = run(chunks, denying(), fail_closed=True)
        assert result.out == sent
        assert not result.faults


def by_name(tool_call: ToolCall) -> Verdict:
    """Judge without a look at the input."""
    return denying(DELETE)(ToolCall(name=tool_call.name))


WORDS = st.text(max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
TOOLS = st.sampled_from([WEATHER, DELETE, "Bash"])
BLOCKS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), WORDS, st.just(None)),
        st.tuples(st.just("call"), TOOLS, st.dictionaries(WORDS, VALUES, max_size=3)),
        st.tuples(st.just("ping"), st.just(""), st.just(None)),
    ),
    max_size=5,
)
ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\r"])
Blocks = list[tuple[str, str, Any]]


def written(blocks: Blocks, *, refuse: str = "", reason: str = "tool_use") -> bytes:
    """Return the stream of `blocks`, or what should become of it where a tool is refused."""
    out, index = begin(), 0
    for kind, name, value in blocks:
        if kind == "ping":
            out += event("ping")
            continue
        if kind == "text":
            out += text(index, name)
        else:
            out += refused(index, name) if name == refuse else call(index, name, value)
        index += 1
    return out + end(reason)


@given(BLOCKS, ENDINGS, st.lists(st.integers(0, 10**6), max_size=12))
def test_a_stream_without_a_refusal_leaves_byte_for_byte_under_any_chunking(
    blocks: Blocks, ending: bytes, cuts: list[int]
) -> None:
    sent = written(blocks).replace(b"\n", ending)
    result = run(cut_at(sent, cuts), denying(), fail_closed=True)
    assert result.out == sent


@given(BLOCKS, st.lists(st.integers(0, 10**6), max_size=12))
def test_a_rewritten_stream_differs_only_in_the_refused_call_and_the_stop_reason(
    blocks: Blocks, cuts: list[int]
) -> None:
    calls = [name for kind, name, _ in blocks if kind == "call"]
    reason = "end_turn" if calls and set(calls) == {DELETE} else "tool_use"
    result = run(cut_at(written(blocks), cuts), by_name)
    assert result.out == written(blocks, refuse=DELETE, reason=reason)
    assert [j.call.name for j in result.judged] == calls
    assert json.dumps([j.call.input for j in result.judged]) == json.dumps(
        [json.loads(json.dumps(value)) for kind, _, value in blocks if kind == "call"]
    )


MESSAGE = (
    '{ "id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a"},\n'
    ' {"type":"tool_use","id":"t1","name":"%s","input":{"n":1e400,"big":123456789012345678901234567890}} ],'
    '"stop_reason":"tool_use", "stop_sequence":null,"usage":{"input_tokens":1.50},"extra":{"kept":[ ]}}'
)


def test_a_whole_answer_without_a_refusal_is_the_very_same_bytes() -> None:
    data = (MESSAGE % WEATHER).encode()
    step = DIALECT.body(data, denying(DELETE), fail_closed=True)
    assert step.out == data
    assert [j.call.input["big"] for j in step.judged] == [123456789012345678901234567890]


def test_a_refused_call_in_a_whole_answer_becomes_text_and_all_else_keeps_its_bytes() -> None:
    step = DIALECT.body((MESSAGE % DELETE).encode(), denying(DELETE), fail_closed=False)
    was = '{"type":"tool_use","id":"t1","name":"%s","input":{"n":1e400,"big":123456789012345678901234567890}}'
    notice = json.dumps(
        {"type": "text", "text": f"[agentsh] Tool '{DELETE}' blocked by policy: denied"},
        separators=(",", ":"),
    )
    expected = (
        (MESSAGE % DELETE)
        .replace(was % DELETE, notice)
        .replace('"stop_reason":"tool_use"', '"stop_reason":"end_turn"')
    )
    assert step.out == expected.encode()


def test_a_partly_refused_answer_keeps_its_stop_reason() -> None:
    content = [
        {"type": "tool_use", "id": str(at), "name": name, "input": {}}
        for at, name in enumerate([WEATHER, DELETE])
    ]
    data = json.dumps({"type": "message", "content": content, "stop_reason": "tool_use"}).encode()
    answer = json.loads(DIALECT.body(data, denying(DELETE), fail_closed=False).out)
    assert answer["stop_reason"] == "tool_use"
    assert [block["type"] for block in answer["content"]] == ["tool_use", "text"]


@pytest.mark.parametrize("reason", ["pause_turn", "max_tokens", "end_turn", None])
def test_no_other_stop_reason_is_touched(reason: str | None) -> None:
    sent = begin() + call(0, DELETE) + end(reason)
    assert run(sent, denying(DELETE)).out == begin() + refused(0, DELETE) + end(reason)


@pytest.mark.parametrize("status", [400, 429, 529])
def test_an_error_answer_passes_untouched(status: int) -> None:
    data = DIALECT.error(status, "a tool is missing")
    assert DIALECT.body(data, denying(), fail_closed=True).out == data


def test_an_unreadable_answer_passes_or_becomes_an_error_as_configured() -> None:
    data = b'{"content":[{"type":"tool_use","name":'
    passed = DIALECT.body(data, denying(), fail_closed=False)
    assert (passed.out, passed.end) == (data, False)
    assert [(f.cause, f.cut) for f in passed.faults] == [("malformed_json", False)]
    cut = DIALECT.body(data, denying(), fail_closed=True)
    assert cut.end
    assert json.loads(cut.out)["error"]["type"] == "api_error"


def test_a_byte_order_mark_hides_no_call_and_stays() -> None:
    data = b"\xef\xbb\xbf" + (MESSAGE % DELETE).encode()
    step = DIALECT.body(data, denying(DELETE), fail_closed=False)
    assert [j.verdict.blocked for j in step.judged] == [True]
    assert step.out.startswith(b"\xef\xbb\xbf{ ")
    assert b'tool_use","id' not in step.out


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_an_encoding_that_only_some_clients_detect_never_passes(encoding: str) -> None:
    step = DIALECT.body((MESSAGE % DELETE).encode(encoding), denying(DELETE), fail_closed=False)
    assert step.end
    assert json.loads(step.out)["type"] == "error"
    assert [(f.cause, f.cut) for f in step.faults] == [("unreadable_json", True)]


def test_an_answer_nested_deeper_than_we_read_never_passes() -> None:
    data = (MESSAGE % DELETE).replace('"extra":{', '"extra":{"x":' + "[" * 3000 + "]" * 3000 + ",").encode()
    step = DIALECT.body(data, denying(DELETE), fail_closed=False)
    assert [(f.cause, f.cut) for f in step.faults] == [("unreadable_json", True)]


def test_an_answer_that_is_not_utf8_is_judged_as_browsers_read_it() -> None:
    data = (MESSAGE % DELETE).encode().replace(b'"a"', b'"\xff"')
    step = DIALECT.body(data, denying(DELETE), fail_closed=False)
    assert DELETE.encode() + b'","input"' not in step.out
    assert b'"\xff"' in step.out
    assert [f.cause for f in step.faults] == ["invalid_utf8"]
    assert json.loads(DIALECT.body(data, denying(), fail_closed=True).out)["type"] == "error"


@pytest.mark.parametrize(
    ("path", "inspected"),
    [
        ("/v1/messages", True),
        ("/messages", True),
        ("/anthropic/messages", True),
        ("/v1/messages?beta=true", True),
        ("/v1/messages/", True),
        ("/V1/Messages", True),
        ("/v1/messages/count_tokens", False),
        ("/v1/messages/batches", False),
        ("/v1/messages/batches/b1/results", False),
        ("/v1/models", False),
        ("/v1/messagesx", False),
    ],
)
def test_answers_to_requests_for_a_message_are_inspected(path: str, *, inspected: bool) -> None:
    assert DIALECT.inspects("POST", path) is inspected
    assert DIALECT.inspects("GET", path) is False


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_error_has_the_type_that_the_api_gives_its_status(status: int, kind: str) -> None:
    answer = json.loads(DIALECT.error(status, 'a "quoted"\nword \ud800'))
    assert answer == {"type": "error", "error": {"type": kind, "message": 'a "quoted"\nword \ud800'}}


def test_an_error_event_is_one_frame_of_two_lines() -> None:
    frame = DIALECT.error_frame("line\none")
    assert (
        frame
        == b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"line\\none"}}\n\n'
    )


BODY_BLOCKS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("text"), "text": WORDS}),
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["tool_use", "mcp_tool_use", "server_tool_use"]),
                "id": st.sampled_from("abc"),
                "name": TOOLS,
                "input": VALUES,
            }
        ),
    ),
    max_size=4,
)


@settings(max_examples=200)
@given(BODY_BLOCKS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_stream_and_whole_answer_come_to_the_same_verdicts(
    content: list[dict[str, Any]], indent: int | str | None, ascii_only: bool
) -> None:
    message = {
        "type": "message",
        "content": content,
        "stop_reason": "tool_use",
        "usage": {"output_tokens": 1.0},
    }
    data = json.dumps(message, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    whole = DIALECT.body(data, by_name, fail_closed=False)
    streamed = run(
        begin()
        + b"".join(
            call(at, block["name"], block["input"], call_id=block["id"], kind=block["type"])
            if "name" in block
            else text(at, block["text"])
            for at, block in enumerate(content)
        )
        + end(),
        by_name,
    )
    assert [(j.call.name, j.verdict) for j in whole.judged] == [
        (j.call.name, j.verdict) for j in streamed.judged
    ]
    if not any(j.verdict.blocked for j in whole.judged):
        assert whole.out == data
    else:
        answer = json.loads(whole.out)
        assert not [
            b for b in answer["content"] if b.get("name") == DELETE and b["type"] != "server_tool_use"
        ]
        assert (answer["stop_reason"] == "end_turn") is (
            b'"stop_reason": "end_turn"' in streamed.out or b'"stop_reason":"end_turn"' in streamed.out
        )
