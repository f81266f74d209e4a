"""A refused call leaves as a message in a well-formed response, streamed or whole; everything else leaves byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.openai_responses import (
    DELETE,
    NAMES,
    WEATHER,
    Event,
    Item,
    begin,
    call,
    cut_at,
    denying,
    end,
    every_chunking,
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

from agentsh_net.core.dialects.openai_responses.dialect import DIALECT
from agentsh_net.core.model import ToolCall, Verdict

SAID = message_item("Two things.")
GET = function_call(WEATHER, {"city": "Bern"}, at=1)
RM = function_call(DELETE, {"path": "/tmp/x"}, at=2)


def replaced(index: int, item: Item) -> list[Event]:
    return refused(index, item, frames=len(call(index, item)))


# The unit cases of the original design, each whole, byte by byte, and cut in two at every offset.
CASES = {
    "single blocked": (
        numbered(begin() + call(0, RM) + end(RM)),
        numbered(begin() + replaced(0, RM) + end(refused_item(RM))),
        [DELETE],
    ),
    "single allowed": (numbered(begin() + call(0, GET) + end(GET)),) * 2 + ([],),
    "partial": (
        numbered(begin() + text(0, SAID) + call(1, GET, piece=9) + call(2, RM, piece=9) + end(SAID, GET, RM)),
        numbered(begin() + text(0, SAID) + call(1, GET, piece=9) + refused(2, RM, frames=len(call(2, RM, piece=9))) + end(SAID, GET, refused_item(RM))),
        [DELETE],
    ),
    "unregistered": (numbered(begin() + call(0, GET | {"name": "nobody_knows_it"}) + end(GET | {"name": "nobody_knows_it"})),) * 2 + ([],),
    "malformed JSON": (numbered([*begin(), raw("response.output_item.added", '{"item":{"type":"function_call"')]),) * 2 + ([],),
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


def test_all_blocked_leaves_a_response_of_messages() -> None:
    second = function_call(DELETE, {"path": "b"}, at=3)
    sent = begin() + call(0, RM) + call(1, second) + end(RM, second, output_text="")
    said = notice(DELETE) * 2
    assert run(numbered(sent), denying(DELETE)).out == numbered(
        begin()
        + replaced(0, RM)
        + replaced(1, second)
        + end(refused_item(RM), refused_item(second), output_text=said)
    )


def test_malformed_json_is_told_and_under_fail_closed_cut_with_an_error_event() -> None:
    sent, _, _ = CASES["malformed JSON"]
    told = run(sent, denying())
    assert [(f.cause, f.cut) for f in told.faults] == [("malformed_json", False)]
    cut = run(sent, denying(), fail_closed=True)
    assert [(f.cause, f.cut) for f in cut.faults] == [("malformed_json", True)]
    assert cut.ended
    assert cut.out.startswith(numbered(begin()) + b'event: error\ndata: {"type":"error"')
    assert b"output_item" not in cut.out


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_a_transcript_without_a_refusal_leaves_byte_for_byte(name: str, ending: bytes) -> None:
    sent = load(name).replace(b"\n", ending)
    offsets = range(0, len(sent), 31)
    for chunks in (
        [sent],
        [sent[at : at + 1] for at in range(len(sent))],
        *(cut_at(sent, [o]) for o in offsets),
    ):
        result = run(chunks, denying(), fail_closed=True)
        assert result.out == sent
        assert not result.faults


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_of_a_rewritten_transcript_have_no_gap(name: str) -> None:
    result = run(load(name), denying(DELETE, WEATHER, "delete", "local_shell"))
    assert result.numbers == list(range(len(result.numbers)))
    assert bool(result.blocked) == (name not in {"text_only", "provider_tools", "provider_error"})


def by_name(tool_call: ToolCall) -> Verdict:
    """Judge without a look at the input."""
    return denying(DELETE)(ToolCall(name=tool_call.name))


WORDS = st.text(max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
TOOLS = st.sampled_from([WEATHER, DELETE, "shell"])
KINDS = st.sampled_from(["function_call", "custom_tool_call", "mcp_call"])
ITEMS = st.lists(
    st.one_of(
        st.tuples(st.just("message"), WORDS, st.none()),
        st.tuples(KINDS, TOOLS, st.dictionaries(WORDS, VALUES, max_size=3)),
    ),
    max_size=5,
)
ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\r"])
Items = list[tuple[str, str, Any]]


def written(items: Items, *, refuse: str = "", piece: int = 3) -> bytes:
    """Return the stream of `items`, or what should become of it where a tool is refused."""
    events, output = begin(), []
    for index, (kind, name, value) in enumerate(items):
        if kind == "message":
            item = message_item(name, at=index)
            events += text(index, item)
        else:
            item = function_call(name, value, at=index, type=kind, server_label="s", output="x")
            if kind == "custom_tool_call":
                item["input"] = item.pop("arguments")
            sent = call(index, item, piece=piece)
            events += refused(index, item, frames=len(sent)) if name == refuse else sent
            item = refused_item(item) if name == refuse else item
        output.append(item)
    return numbered(events + end(*output))


@settings(deadline=None)
@given(ITEMS, ENDINGS, st.lists(st.integers(0, 10**6), max_size=12))
def test_a_stream_without_a_refusal_leaves_byte_for_byte_under_any_chunking(
    items: Items, ending: bytes, cuts: list[int]
) -> None:
    sent = written(items).replace(b"\n", ending)
    result = run(cut_at(sent, cuts), denying(), fail_closed=True)
    assert result.out == sent
    assert not result.faults


@given(ITEMS, st.integers(1, 40), st.lists(st.integers(0, 10**6), max_size=12))
def test_a_rewritten_stream_differs_only_in_the_refused_items_and_in_numbers_that_must_follow(
    items: Items, piece: int, cuts: list[int]
) -> None:
    result = run(cut_at(written(items, piece=piece), cuts), by_name)
    assert result.out == written(items, refuse=DELETE, piece=piece)
    calls = [(kind, name, value) for kind, name, value in items if kind != "message"]
    assert [j.call.name for j in result.judged] == [name for _, name, _ in calls]
    assert json.dumps([j.call.input for j in result.judged]) == json.dumps(
        [
            json.dumps(value) if kind == "custom_tool_call" else json.loads(json.dumps(value))
            for kind, _, value in calls
        ]
    )


# Whole answers.

WHOLE = (
    '{ "id":"resp_1","object":"response","created_at":1.0,"output":[{"type":"message","id":"m","content":[{"type":"output_text","text":"a"}]},\n'
    ' {"type":"function_call","id":"fc_1","call_id":"c1","name":"%s","arguments":"{\\"n\\": 1}"} ],"output_text" : "a",'
    '"x":1e400,"big":123456789012345678901234567890,"tools":[]}\n'
)


def test_a_whole_answer_without_a_refusal_leaves_byte_for_byte() -> None:
    data = (WHOLE % WEATHER).encode()
    step = DIALECT.body(data, denying(), fail_closed=True)
    assert step.out == data
    assert [(j.call.name, j.call.input, j.call.call_id) for j in step.judged] == [(WEATHER, {"n": 1}, "c1")]


def test_a_refused_call_of_a_whole_answer_becomes_a_message_in_its_place() -> None:
    data = (WHOLE % DELETE).encode()
    step = DIALECT.body(data, denying(DELETE), fail_closed=True)
    item = refused_item({"id": "fc_1", "call_id": "c1", "name": DELETE})
    made = json.dumps({k: v for k, v in item.items() if k != "@ours@"}, separators=(",", ":"))
    was = data[data.index(b'{"type":"function_call"') : data.index(b' ],"output_text')].decode()
    want = (
        data.decode()
        .replace(was, made)
        .replace('"output_text" : "a"', f'"output_text" : "a{notice(DELETE)}"')
    )
    assert step.out.decode() == want


@settings(max_examples=50)
@given(ITEMS)
def test_a_stored_response_says_what_its_stream_said(items: Items) -> None:
    streamed = run(written(items), by_name).out
    last = json.loads(streamed.rstrip().rpartition(b"data: ")[2])["response"]
    stored = json.loads(written(items).rstrip().rpartition(b"data: ")[2])["response"]
    step = DIALECT.body(json.dumps(stored).encode(), by_name, fail_closed=True)
    assert json.dumps(json.loads(step.out)["output"]) == json.dumps(last["output"])


def test_a_list_of_stored_responses_is_read_too() -> None:
    data = json.dumps({"object": "list", "data": [response(GET), response(RM)]}).encode()
    step = DIALECT.body(data, denying(DELETE), fail_closed=True)
    outputs = [entry["output"][0] for entry in json.loads(step.out)["data"]]
    assert outputs[0] == GET
    assert outputs[1]["content"][0]["text"] == notice(DELETE)


@pytest.mark.parametrize(
    "data",
    [
        b'{"error":{"message":"no such call"}}',
        b'{"id":"r","deleted":true}',
        b"[]",
        b'"call"',
        b'{"output":"call"}',
        b'{"response":{"output":{"call":1}}}',
    ],
)
def test_what_is_no_response_leaves_byte_for_byte(data: bytes) -> None:
    step = DIALECT.body(data, denying(), fail_closed=True)
    assert step.out == data
    assert not step.judged
    assert not step.faults


@pytest.mark.parametrize("data", [b'{"output":[', b"oops", b"", b'{"output":[{"type":"function_call"'])
def test_a_whole_answer_that_is_no_json_follows_fail_closed(data: bytes) -> None:
    told = DIALECT.body(data, denying(), fail_closed=False)
    assert told.out == data
    assert [(f.cause, f.cut) for f in told.faults] == [("malformed_json", False)]
    cut = DIALECT.body(data, denying(), fail_closed=True)
    assert [(f.cause, f.cut) for f in cut.faults] == [("malformed_json", True)]
    assert json.loads(cut.out)["error"]["type"] == "server_error"


def test_a_whole_answer_that_only_other_parsers_read_is_cut() -> None:
    data = (WHOLE % DELETE).encode("utf-16")
    step = DIALECT.body(data, denying(), fail_closed=False)
    assert step.end
    assert b"d\0e\0l\0" not in step.out


def test_a_whole_answer_in_broken_utf_8_follows_fail_closed() -> None:
    data = (WHOLE % WEATHER).encode().replace(b'"a"', b'"\xff"')
    assert DIALECT.body(data, denying(), fail_closed=False).out == data
    cut = DIALECT.body(data, denying(), fail_closed=True)
    assert [f.cause for f in cut.faults] == ["invalid_utf8"]
    assert WEATHER.encode() not in cut.out


# Requests, and errors.


@pytest.mark.parametrize(
    ("method", "path", "read"),
    [
        ("POST", "/v1/responses", True),
        ("POST", "/responses", True),
        ("POST", "/V1/Responses/", True),
        ("POST", "/openai/responses?api-version=1", True),
        ("POST", "/backend-api/codex/responses", True),
        ("POST", "/v1/responses/resp_1/cancel", True),
        ("GET", "/v1/responses/resp_1", True),
        ("GET", "/v1/responses", True),
        ("GET", "/v1/conversations/conv_1/items", True),
        ("GET", "/v1/conversations/conv_1", False),
        ("GET", "/v1/conversations/conv_1/items/msg_1", True),
        ("GET", "/openai/v1/responses/resp_1/input_items?limit=3", True),
        ("POST", "/v1/conversations/conv_1/items", True),
        ("POST", "/v1/conversations", True),
        ("POST", "/v1/conversations/conv_1", True),  # Mistral's goes on there, OpenAI's is renamed
        ("POST", "/v1/conversations/conv_1/restart", True),
        ("GET", "/v1/conversations/conv_1/history", True),
        ("GET", "/v1/conversations/conv_1/messages", True),
        ("POST", "/v1/conversations/conv_1/else", False),
        ("GET", "/v1/responses/resp_1/input_items", True),
        ("POST", "/v1/responses/input_tokens", False),
        ("POST", "/v1/responses/compact", True),
        ("DELETE", "/v1/responses/resp_1", False),
        ("POST", "/v1/chat/completions", False),
        ("POST", "/v1/messages", False),
        ("GET", "/v1/models/responses-1", False),
    ],
)
def test_it_reads_the_answers_that_may_bring_calls(method: str, path: str, *, read: bool) -> None:
    assert DIALECT.inspects(method, path) is read


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 502, 503, 504])
def test_errors_have_the_shape_that_all_apis_of_openai_share(status: int) -> None:
    error = json.loads(DIALECT.error(status, "a reason"))["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["message"] == "a reason"


def test_the_error_event_speaks_to_the_sdks_to_flat_readers_and_to_codex() -> None:
    first, second = DIALECT.error_frame("a\nreason").decode().removesuffix("\n\n").split("\n\n")
    assert first.startswith("event: error\ndata: ")
    assert second.startswith("event: response.failed\ndata: ")
    flat = json.loads(first.partition("data: ")[2])
    assert (flat["message"], flat["error"]["message"]) == ("a\nreason", "a\nreason")
    failed = json.loads(second.partition("data: ")[2])
    assert failed["response"]["error"] == {"code": "server_error", "message": "a\nreason"}
    assert failed["response"]["output"] == []
