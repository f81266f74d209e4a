"""What is known by heart is exactly what the machine, reading it in full, lets pass without a word and without holding a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transcripts.anthropic import denying

from agentsh_net.core.dialects.anthropic.dialect import DIALECT
from agentsh_net.core.dialects.anthropic.ordinary import (
    PROSE,
    begins_message,
    ends_content,
    ends_message,
    opened_block,
    piece_of_arguments,
)
from agentsh_net.core.dialects.anthropic.stream import AnthropicMachine
from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.prose import Prose
from agentsh_net.core.framing import sse


def event(name: str, value: Any, pad: int = 0) -> bytes:
    text = json.dumps(value, separators=(",", ":"))
    return f"event: {name}\ndata: {text[:-1]}{' ' * pad}{text[-1]}\n\n".encode()


def message(**more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 3,
        "cache_creation": {"ephemeral_5m_input_tokens": 0},
        "service_tier": "standard",
    }
    inner = {"model": "claude-x", "id": "msg_01", "type": "message", "role": "assistant", "content": []}
    return {"type": "message_start", "message": inner | {"stop_reason": None, "usage": usage} | more}


def block(kind: str = "text", index: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, kind: "", **more}}


def text(said: str, kind: str = "text") -> bytes:
    delta = {"type": f"{kind}_delta", kind: said}
    return event("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta})


BEGIN = event("message_start", message(), pad=5)
OPEN = event("content_block_start", block(), pad=7)
STOP = event("message_stop", {"type": "message_stop"}, pad=3)
KNOWN = (BEGIN, OPEN, STOP, text("a tool of an error"), text("_json", "thinking"))


def arguments(piece: str, index: int = 0) -> bytes:
    delta = {"type": "input_json_delta", "partial_json": piece}
    return event(
        "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}, pad=2
    )


def call(name: str, index: int = 0) -> bytes:
    block = {"type": "tool_use", "id": f"t{index}", "name": name, "input": {}}
    return event(
        "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}
    )


def closed(index: int) -> bytes:
    return event("content_block_stop", {"type": "content_block_stop", "index": index})


def ended(reason: str, **more: Any) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event(
        "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9, **more}}
    )


OF_A_CALL = (
    arguments('{"a": "'),
    arguments("\u00e9\n"),
    arguments('\\"x'),
    arguments('"}'),
    ended("tool_use"),
)


def test_the_frames_that_every_answer_has_are_known() -> None:
    assert begins_message(BEGIN)
    assert begins_message(event("message_start", message(usage={}, container=None, n=[][:0] or 0)))
    assert opened_block(OPEN) == 0
    assert opened_block(event("content_block_start", block("thinking", 12, signature=""))) == 12
    assert ends_message(STOP)
    assert ends_content(ended("end_turn", server_tool_use={"web_search_requests": 0}))
    assert piece_of_arguments(arguments('{"a":\n"é', 3)) == (3, '{"a":\n"é')


@pytest.mark.parametrize(
    "frame",
    [
        event("message_start", message(content=[{"type": "tool_use", "name": "x"}])),
        event("message_start", message(content=[{}])),
        event("message_start", message(content="x")),
        event("message_start", message(Content=[])),
        event("message_start", message(model="a\\b")),
        event("message_start", message(model="ä")),
        event("message_start", message(name="x")),
        event("message_start", message() | {"content_block": {}}),
        event("message_start", message(usage={"content": [1]})),
        event("message_start", message(usage={"a": {"b": {"c": 1}}})),
        BEGIN.replace(b'"content":[]', b'"content":[],"content":[]'),
        BEGIN.replace(b'"id":"msg_01"', b'"id":"msg_01","id":"msg_02"'),
        BEGIN.replace(b'"role"', b'"type":"x","role"'),
        BEGIN.replace(b'"input_tokens":3', b'"input_tokens":03'),
        BEGIN.replace(b'"input_tokens":3', b'"input_tokens":1234567890123456'),
        BEGIN.replace(b"\n\n", b"\r\n\r\n"),
        BEGIN.replace(b"event: message_start", b"event: error"),
        BEGIN.replace(b"claude-x", b"claude\x0bx"),
        BEGIN + BEGIN,
        b"\xef\xbb\xbf" + BEGIN,
        event("content_block_start", block("tool_use")),
        event("content_block_start", block(text="a")),
        event("content_block_start", block(name="x")),
        OPEN.replace(b'"index":0', b'"index":00'),
        OPEN.replace(b'"index":0', b'"index":-1'),
        OPEN.replace(b'"index":0', b'"index":0,"index":1'),
        OPEN.replace(b'"text":""', b'"text":"","text":""'),
        OPEN.replace(b"content_block_start\n", b"content_block_start\ndata: {}\n"),
        event("message_stop", {"type": "message_stop", "x": 1}),
    ],
)
def test_what_is_not_exactly_so_is_not_known(frame: bytes) -> None:
    assert not begins_message(frame)
    assert opened_block(frame) is None
    assert not ends_message(frame)


def by_reading(frame: bytes, before: bytes = b"") -> tuple[AnthropicMachine, Any]:
    """Feed a frame to a machine that reads each in full; return the machine, and what the frame led to."""
    machine = AnthropicMachine(denying(), Limits())
    reader = Inspector(
        lambda: machine, limits=Limits(), fail_closed=True, error_frame=DIALECT.error_frame, fast=False
    )
    reader.feed(before)
    return machine, reader.feed(frame)


def mutations(frames: tuple[bytes, ...] = KNOWN) -> st.SearchStrategy[bytes]:
    """Frames that are known, and what becomes of them by a few small changes, each of which matters to some parser."""
    pieces = st.sampled_from(
        [b'"', b"\\", b",", b"{", b"}", b"[", b"]", b" ", b"\n", b"\r", b"\0", b"\x0b", b"0", b"1", b"a", b"\xff",
         b'"type":"tool_use",', b'"name":"x",', b'"id":"y",', b'"content":[],', b'"content":[{"type":"tool_use"}],', b'"index":1,',
         b'"Type":"tool_use",', b'"content_block":{},', b'"message":{},', b'"input":{},', b'"usage":{"a":1},', b"\ndata: {}", b"null"]
    )  # fmt: skip
    changes = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), pieces | st.just(b"")), max_size=3)

    def changed(frame: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
        for at, gone, put in edits:
            at %= len(frame) - 2  # noqa: PLW2901 - within the frame, before its end
            frame = frame[:at] + put + frame[at + gone :]
        return frame

    return st.builds(changed, st.sampled_from(frames), changes)


@settings(max_examples=600, deadline=None)
@given(mutations())
@example(BEGIN)
@example(OPEN)
@example(STOP)
def test_what_is_known_says_to_the_machine_what_reading_it_says(frame: bytes) -> None:
    known = AnthropicMachine(denying(), Limits())
    if not known.knows(frame):
        return
    assert len(sse.Decoder(1 << 20).feed(frame)) == 1
    machine, step = by_reading(frame)
    assert (step.out, step.judged, step.faults, step.end) == (frame, (), (), False)
    assert machine.idle
    assert known.idle
    assert not machine.holding
    assert (known._over, known._begun) == (machine._over, machine._begun)
    assert [b.index for b in known._roster._positions] == [b.index for b in machine._roster._positions]


@settings(max_examples=600, deadline=None)
@given(mutations())
@example(KNOWN[3])
@example(KNOWN[4])
def test_what_passes_as_prose_passes_when_it_is_read(frame: bytes) -> None:
    prose = Prose(PROSE)
    for known in KNOWN:
        prose.learn(known)
        if prose.goes_on(frame):
            machine, step = by_reading(frame, BEGIN + OPEN)
            assert (step.out, step.judged, step.faults, step.end) == (frame, (), (), False)
            assert machine.idle


ANSWERS = st.lists(
    st.sampled_from(
        (*KNOWN, *OF_A_CALL, call("good"), call("bad"), call("good", 1), closed(0), closed(1), arguments("{}", 1), ended("end_turn"))
    )
    | mutations((*KNOWN, *OF_A_CALL)),
    max_size=14,
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(ANSWERS, st.booleans(), st.booleans())
@example([BEGIN, call("good"), *OF_A_CALL, closed(0), ended("tool_use"), STOP], True, True)
@example([BEGIN, call("bad"), *OF_A_CALL, closed(0), ended("tool_use"), STOP], True, True)
@example([call("bad"), closed(0), event("message_start", message(stop_reason="tool_use"))], True, True)
def test_an_answer_with_calls_leaves_as_it_does_where_each_frame_is_read(
    frames: list[bytes], fail_closed: bool, enforced: bool
) -> None:
    def steps(*, fast: bool) -> list[Any]:
        stream = DIALECT.stream(
            denying("bad"), limits=Limits(), fail_closed=fail_closed, enforce=lambda: enforced
        )
        assert isinstance(stream, Inspector)
        if not fast:
            stream.heed()
        return [*map(stream.feed, frames), stream.finish()]

    slow = steps(fast=False)
    if not any(step.faults for step in slow):  # what is broken passes unread where no call can be in it
        assert steps(fast=True) == slow


def test_arguments_that_outgrow_what_may_be_held_are_told_by_reading() -> None:
    piece = arguments("x" * 400)
    limits = Limits(held=len(call("good")) + 3 * len(piece))
    machine = AnthropicMachine(denying(), limits)
    stream = Inspector(lambda: machine, limits=limits, fail_closed=True, error_frame=DIALECT.error_frame)
    stream.feed(BEGIN + call("good"))
    held = [stream.feed(piece) for _ in range(3)]
    assert [(step.out, step.faults) for step in held] == [(b"", ())] * 3
    assert [fault.cause for fault in stream.feed(piece).faults] == ["held_too_long"]


def test_a_machine_whose_roster_is_full_reads_what_opens_one_more_block() -> None:
    machine = AnthropicMachine(denying(), Limits())
    taken = 0
    while machine.knows(event("content_block_start", block(index=taken))):
        taken += 1
    assert taken == 1 << 12
