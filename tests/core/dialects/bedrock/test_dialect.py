"""The dialect as the proxy sees it: four operations told apart by path, whole answers, AWS' errors."""

from __future__ import annotations

import json

import pytest
from botocore.eventstream import EventStreamBuffer
from transcripts.bedrock import DELETE, WEATHER, chunk, denying, said

from agentsh_net.core.dialects.bedrock.dialect import CONVERSE_STREAM, DIALECT, INVOKE, INVOKE_STREAM
from agentsh_net.core.framing.event_stream import make

MODEL = "anthropic.claude-sonnet-4-20250514-v1:0"
ALL = {
    "converse": DIALECT,
    "converse-stream": CONVERSE_STREAM,
    "invoke": INVOKE,
    "invoke-with-response-stream": INVOKE_STREAM,
}


@pytest.mark.parametrize("operation", ALL)
@pytest.mark.parametrize(
    "model",
    [MODEL, "us.amazon.nova-pro-v1:0", "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude"],
)
def test_the_path_says_which_operation_it_is(operation: str, model: str) -> None:
    path = f"/bedrock/model/{model}/{operation}"
    assert [name for name, dialect in ALL.items() if dialect.inspects("POST", path)] == [operation]
    assert not any(dialect.inspects("GET", path) for dialect in ALL.values())
    assert ALL[operation].request(b"{}").stream is operation.endswith("stream")
    assert (ALL[operation].framing is not None) is operation.endswith("stream")


@pytest.mark.parametrize(
    "path",
    [
        "/model/m/count-tokens",
        "/guardrail/g/version/1/apply",
        "/async-invoke",
        "/model//converse",
        "/model/converse",
    ],
)
def test_what_carries_no_call_is_not_read(path: str) -> None:
    assert not any(dialect.inspects("POST", path) for dialect in ALL.values())


def test_a_whole_answer_without_a_refusal_leaves_to_the_byte() -> None:
    use = {"toolUse": {"toolUseId": "t", "name": WEATHER, "input": {"n": 1.0}}}
    data = json.dumps(
        {"output": {"message": {"content": [use]}}, "stopReason": "tool_use"}, indent=1
    ).encode()
    step = DIALECT.body(data, denying(DELETE), fail_closed=True)
    assert step.out == data
    assert [j.call.name for j in step.judged] == [WEATHER]
    assert DIALECT.body(b'{"a": 1.0}', denying(), fail_closed=True).out == b'{"a": 1.0}'


def test_a_refused_call_is_text_whole_and_invoked() -> None:
    use = {"toolUse": {"toolUseId": "t", "name": DELETE, "input": {}}}
    data = json.dumps({"output": {"message": {"content": [use]}}, "stopReason": "tool_use"}).encode()
    for dialect in (DIALECT, INVOKE):
        made = json.loads(dialect.body(data, denying(DELETE), fail_closed=True).out)
        assert made == {
            "output": {"message": {"content": [{"text": said(DELETE)}]}},
            "stopReason": "end_turn",
        }


def test_a_stream_where_a_whole_answer_was_asked_for_is_no_json() -> None:
    data = chunk({"type": "message_start"})
    step = INVOKE.body(data, denying(), fail_closed=False)
    assert step.end
    assert [f.cause for f in step.faults] == ["unreadable_json"]


@pytest.mark.parametrize(
    ("status", "code"), [(400, "ValidationException"), (401, "UnrecognizedClientException"), (403, "AccessDeniedException"),
                         (429, "ThrottlingException"), (502, "InternalServerException"), (503, "ServiceUnavailableException")]
)  # fmt: skip
def test_errors_have_the_codes_of_aws(status: int, code: str) -> None:
    assert json.loads(DIALECT.error(status, "why")) == {"__type": code, "message": "why"}


def test_an_error_in_a_stream_is_an_exception() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(CONVERSE_STREAM.error_frame("why"))
    (message,) = buffer
    assert (message.headers[":message-type"], json.loads(message.payload)) == (
        "exception",
        {"message": "why"},
    )


def test_whoever_looks_at_a_streams_frames_sees_what_chunks_wrap() -> None:
    framing = INVOKE_STREAM.framing(1 << 20)
    assert framing is not None
    bad, good = make({":event-type": "chunk"}, b'{"bytes":"?"}'), chunk({"a": 1})
    frames = framing.frames.feed(bad + good)
    assert [frame.data for frame in frames] == [None, b'{"a": 1}']
    (again,) = framing.frames.feed(framing.write(frames[1], b'{"b":2}'))
    assert again.data == b'{"b":2}'
    assert framing.frames.finish() is None
    assert DIALECT.framing is None
