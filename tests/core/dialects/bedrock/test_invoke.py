"""An invoked model's answer is read in its maker's format, and a stream in a format that nobody reads hands out no call."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import anthropic as messages
from transcripts.bedrock import (
    DELETE,
    WEATHER,
    Result,
    chunk,
    cut_at,
    denying,
    events,
    every_chunking,
    exception,
    message,
    run,
    said,
    wrapped,
)

from agentsh_net.core.dialects.bedrock.dialect import INVOKE_STREAM
from agentsh_net.core.dialects.bedrock.invoke import (
    Family,
    family_of,
    rewrite_whole,
    unwrapped,
)
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values.strict_json import read

STREAM = (
    messages.begin()
    + messages.text(0, "Hel", "lo")
    + messages.call(1, WEATHER, {"city": "Bern"})
    + messages.end()
)


def stream(*denied: str, data: Any = STREAM, **more: Any) -> Result:
    return run(data, denying(*denied), dialect=INVOKE_STREAM, **more)


def inner(data: bytes) -> list[Any]:
    return [json.loads(b64decode(payload["bytes"])) for kind, payload in events(data) if kind == "chunk"]


def test_a_stream_in_which_nothing_is_refused_leaves_to_the_byte_whatever_the_chunks() -> None:
    data = wrapped(STREAM)
    for pieces in every_chunking(wrapped(messages.begin() + messages.call(0, WEATHER, 1) + messages.end())):
        assert stream(data=pieces, fail_closed=True).out == b"".join(pieces)
    result = stream(data=data, fail_closed=True)
    assert result.out == data
    assert [(j.call.name, j.call.input) for j in result.judged] == [(WEATHER, {"city": "Bern"})]


@given(
    st.lists(st.sampled_from(["text", WEATHER, DELETE]), max_size=4),
    st.lists(st.integers(0, 3000), max_size=6),
)
@settings(max_examples=40, deadline=None)
def test_what_leaves_is_what_the_models_own_dialect_lets_leave(blocks: list[str], cuts: list[int]) -> None:
    made = [
        messages.text(n, "a") if b == "text" else messages.call(n, b, {"x": 1}) for n, b in enumerate(blocks)
    ]
    plain = messages.begin() + b"".join(made) + messages.end()
    own = messages.run(plain, denying(DELETE))
    result = stream(DELETE, data=cut_at(wrapped(plain), cuts), fail_closed=True)
    assert inner(result.out) == inner(wrapped(own.out))
    assert [j.call for j in result.judged] == [j.call for j in own.judged]


def nova(kind: str, **value: Any) -> bytes:
    return chunk({kind: value})


def nova_call(index: int, name: str) -> bytes:
    return (
        nova(
            "contentBlockStart", contentBlockIndex=index, start={"toolUse": {"toolUseId": "t", "name": name}}
        )
        + nova("contentBlockDelta", contentBlockIndex=index, delta={"toolUse": {"input": '{"a":1}'}})
        + nova("contentBlockStop", contentBlockIndex=index)
    )


def test_nova_answers_in_the_shape_of_converse() -> None:
    head = nova("messageStart", role="assistant") + nova(
        "contentBlockDelta", contentBlockIndex=0, delta={"text": "a"}
    )
    data = (
        head + nova_call(1, WEATHER) + nova("messageStop", stopReason="tool_use") + nova("metadata", usage={})
    )
    assert stream(data=data).out == data
    result = stream(WEATHER, data=data)
    assert inner(result.out)[2:] == [
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": said(WEATHER)}}},
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": {}}},
    ]
    assert result.judged[0].call.input == {"a": 1}


def test_text_in_a_format_that_nobody_reads_flows_and_a_call_ends_the_answer() -> None:
    said_so = chunk({"choices": [{"delta": {"content": "the tool", "tool_calls": None}}]}) + chunk(
        {"generation": "function_call"}
    )
    assert stream(data=said_so, fail_closed=True).out == said_so
    for hostile in (
        {"choices": [{"delta": {"tool_calls": [{"function": {"name": "x"}}]}}]}, {"tool_calls": [{"name": "x"}]},
        {"event_type": "tool-calls-generation", "tool_calls": [{"name": "x"}]}, {"a": {"type": "tool_use", "name": "x"}},
        {"type": "content_block_start", "contentBlockStart": {"start": {"toolUse": {"name": "x"}}}},
    ):  # fmt: skip
        result = stream(data=said_so + chunk(hostile))
        assert result.out.startswith(said_so)
        assert events(result.out.removeprefix(said_so))[0][0] == "!internalServerException"
        assert [(f.cause, f.cut) for f in result.faults] == [("unknown_format", True)]


def test_a_call_in_another_format_than_the_stream_began_with_ends_it() -> None:
    for first, second in (
        (wrapped(messages.begin() + messages.call(0, WEATHER)), nova_call(0, "x")),
        (nova_call(0, WEATHER), wrapped(messages.call(0, "x"))),
    ):
        result = stream(data=first + second)
        assert result.ended
        assert result.out.startswith(first)
        assert result.faults[0].cause == "unknown_format"


def test_an_exception_inside_a_call_is_passed_on_without_the_call() -> None:
    failed = exception("modelTimeoutException", "x")
    begun = wrapped(messages.begin() + messages.start(0, type="tool_use", id="t", name=WEATHER, input={}))
    result = stream(data=begun + failed)
    assert result.out == wrapped(messages.begin()) + failed
    assert [f.cause for f in result.faults] == ["incomplete_call"]
    again = stream(data=nova("messageStart", role="a") + nova_call(0, WEATHER)[:-150] + b"")
    assert b"toolUse" not in again.out


@pytest.mark.parametrize(
    "payload",
    [
        {}, {"bytes": 5}, {"Bytes": "e30="}, {"bytes": "e30=", "Bytes": "e30="}, '{"bytes":"e30=","bytes":"e30="}', {"bytes": "e30"},
        {"bytes": "e3 0="}, {"bytes": "e30=e30="}, {"bytes": "e31="}, {"bytes": "e30\u00e9"}, [],
    ],
)  # fmt: skip
def test_a_chunk_that_clients_decode_differently_is_none(payload: Any) -> None:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    with pytest.raises(ProtocolError):
        unwrapped(read(text.encode()))
    result = stream(data=message("chunk", text))
    assert result.ended
    assert [f.cause for f in result.faults] == ["malformed_json"]


def test_a_chunk_holds_bytes_and_padding() -> None:
    assert unwrapped(read(b'{"bytes":"e30=","p":"abc"}')) == b"{}"


@pytest.mark.parametrize(
    ("value", "family"),
    [
        ({"type": "ping"}, (Family.ANTHROPIC, "")), ({"messageStop": {}}, (Family.CONVERSE, "messageStop")),
        ({"messageStop": {}, "metadata": {}}, (Family.OTHER, "")), ({"type": "x", "messageStop": {}}, (Family.OTHER, "")),
        ({"choices": []}, (Family.OTHER, "")), ([], (Family.OTHER, "")),
    ],
)  # fmt: skip
def test_the_keys_of_an_event_say_whose_it_is(value: Any, family: tuple[Family, str]) -> None:
    assert family_of(value) == family


# Whole answers.


def whole(value: Any, *denied: str) -> tuple[Any, list[str]]:
    data = json.dumps(value).encode()
    judge = denying(*denied)
    made = rewrite_whole(data, read(data), judge, Output(fail_closed=False, error_frame=str.encode))
    return (value if made is None else json.loads(made)), [call.name for call in judge.asked]


FORMATS: dict[str, Any] = {
    "anthropic": {"type": "message", "content": [{"type": "tool_use", "id": "t", "name": DELETE, "input": {"tool_calls": [1], "toolUse": {}}}], "stop_reason": "tool_use"},
    "nova": {"output": {"message": {"content": [{"toolUse": {"toolUseId": "t", "name": DELETE, "input": {}}}]}}, "stopReason": "tool_use"},
    "openai": {"choices": [{"message": {"content": "", "tool_calls": [{"id": "t", "function": {"name": DELETE, "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]},
    "cohere": {"text": "a", "tool_calls": [{"name": DELETE, "parameters": {}}]},
}  # fmt: skip


@pytest.mark.parametrize("value", FORMATS.values(), ids=FORMATS)
def test_a_whole_answer_is_read_in_every_makers_format(value: Any) -> None:
    assert whole(value) == (value, [DELETE])
    made, asked = whole(value, DELETE)
    assert asked == [DELETE]
    assert said(DELETE) in json.dumps(made)
    assert f'"{DELETE}"' not in json.dumps(made)


def test_an_answer_in_several_formats_at_once_is_read_in_each() -> None:
    made, asked = whole({key: item for value in FORMATS.values() for key, item in value.items()}, DELETE)
    assert asked == [DELETE] * 4
    assert f'"{DELETE}"' not in json.dumps(made)
