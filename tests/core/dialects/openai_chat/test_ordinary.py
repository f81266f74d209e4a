"""What passes as prose of a chat completion is what the machine, reading it in full, lets pass without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transcripts.openai_chat import denying

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.openai_chat.dialect import DIALECT
from agentsh_net.core.dialects.openai_chat.ordinary import PROSE
from agentsh_net.core.dialects.prose import Prose


def chunk(text: str, *, more: dict[str, Any] | None = None, **top: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}} | ({"logprobs": None} if more is None else more)
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1753171000, "model": "gpt-x"}
    value = head | top.pop("head", {}) | {"choices": [choice | {"finish_reason": None}]} | top
    return f"data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


OPENAI = chunk(
    "a tool", head={"service_tier": "default", "system_fingerprint": None}, usage=None, obfuscation="aB3x"
)
OTHERS = chunk("a function_call of tools", more={})
KNOWN = (OPENAI, OTHERS)


@pytest.mark.parametrize("frame", KNOWN)
def test_what_a_model_says_is_known_whatever_its_words_are(frame: bytes) -> None:
    prose = Prose(PROSE)
    prose.learn(frame)
    assert prose.goes_on(frame.replace(b"tool", b"tool_calls"))
    assert prose.goes_on(frame.replace(b"aB3x", b"x"))


def reader(*, fast: bool) -> Inspector:
    stream = DIALECT.stream(denying("bad"), limits=Limits(), fail_closed=True)
    assert isinstance(stream, Inspector)
    if not fast:
        stream.heed()
    return stream


PIECES = st.sampled_from(
    [b'"', b"\\", b",", b"{", b"}", b"[", b"]", b" ", b"\n", b"\r", b"\0", b"\x0b", b"0", b"a", b"\xff", b'"tool_calls":[],',
     b'"tool_calls":[{"index":0,"id":"c","function":{"name":"bad","arguments":"{}"}}],', b'"index":1,', b'"delta":{},', b'"choices":[],',
     b'"content":"b",', b'"function_call":{"name":"bad","arguments":""},', b"\ndata: {}", b"null", b'"role":"assistant",']
)  # fmt: skip
EDITS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), PIECES | st.just(b"")), max_size=3)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(KNOWN), EDITS)
@example(OPENAI, [])
@example(OTHERS, [])
def test_what_passes_as_prose_passes_when_it_is_read(
    frame: bytes, edits: list[tuple[int, int, bytes]]
) -> None:
    for at, gone, put in edits:
        at %= len(frame) - 2  # noqa: PLW2901 - within the frame, before its end
        frame = frame[:at] + put + frame[at + gone :]
    prose = Prose(PROSE)
    for known in (*KNOWN, frame):
        prose.learn(known)
        if prose.goes_on(frame):
            slow = reader(fast=False)
            step = slow.feed(frame)
            assert (step.out, step.judged, step.faults, step.end) == (frame, (), (), False)
            assert slow._machine.idle


def test_a_call_behind_prose_is_judged() -> None:
    stream = reader(fast=True)
    said = [chunk("a"), chunk("b"), chunk("tool_calls")]
    assert b"".join(stream.feed(frame).out for frame in said) == b"".join(said)
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "bad", "arguments": "{}"}}
    value = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    step = stream.feed(f"data: {json.dumps(value)}\n\n".encode())
    assert [judged.verdict.blocked for judged in step.judged] == [True]
    assert b'"bad"' not in step.out
