"""What cannot hide a call passes at once; what can goes frame by frame; what outgrows the bound is told and never truncated."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.dialects.base import Fault, Limits
from agentsh_net.core.dialects.inspection import Inspector, Output, may_hide_call, notice
from agentsh_net.core.sse import Frame


class Echo:
    """A machine that remembers what it saw; a frame that contains `hold` is held until one that contains `free`."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.held: list[bytes] = []
        self.idle = True
        self.holding = False

    def frame(self, frame: Frame, out: Output) -> None:
        self.seen.append(frame.raw)
        if b"tool hold" in frame.raw:
            self.holding, self.idle = True, False
        if b"free" in frame.raw:
            self.holding, self.idle = False, True
            self.held.append(frame.raw)
            out.write(b"".join(self.held))
            self.held.clear()
        elif self.holding:
            self.held.append(frame.raw)
        else:
            out.write(frame.raw)

    def finish(self, out: Output) -> None:
        self.held.clear()


def inspector(
    machine: Echo, *, fail_closed: bool = False, max_frame: int = 1 << 20, fast: bool = True
) -> Inspector:
    return Inspector(
        machine,
        limits=Limits(max_frame=max_frame),
        fail_closed=fail_closed,
        error_frame=lambda m: b"error: " + m.encode() + b"\n\n",
        fast=fast,
    )


def test_a_chunk_of_plain_frames_never_reaches_the_machine() -> None:
    machine = Echo()
    step = inspector(machine).feed(b"data: a\n\ndata: b\r\n\r\n")
    assert step.out == b"data: a\n\ndata: b\r\n\r\n"
    assert machine.seen == []


@pytest.mark.parametrize(
    "sign", [b"tool_use", b"Tool_Calls", b"function_call", b"t\\u006Fol", b"\\u0046unction_call"]
)
def test_a_frame_with_the_sign_of_a_call_reaches_the_machine(sign: bytes) -> None:
    machine = Echo()
    frame = b'data: {"x":"' + sign + b'"}\n\n'
    assert inspector(machine).feed(b"data: a\n\n" + frame).out == b"data: a\n\n" + frame
    assert frame in machine.seen


@given(st.text(alphabet="tolTOLus_efncia\\06fF4", max_size=40))
def test_no_spelling_of_a_marker_in_json_is_overlooked(text: str) -> None:
    decoded = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text).lower()
    if "tool" in decoded or "function_call" in decoded:
        assert may_hide_call(text.encode())


STREAMS = st.lists(
    st.sampled_from(
        [
            b"data: a\n\n",
            b"data: tool\n\n",
            b"data: tool hold\n\n",
            b"data: free\r\n\r\n",
            b": c\n\n",
            b"data: b\r\r",
            b"data: \\u0041\n\n",
        ]
    )
).map(b"".join)


@given(STREAMS, st.lists(st.integers(0, 300)), st.booleans())
def test_the_fast_path_changes_nothing(stream: bytes, cuts: list[int], ended: bool) -> None:
    def run(*, fast: bool) -> bytes:
        stream_machine = inspector(Echo(), fast=fast)
        out, at = b"", 0
        for cut in [*sorted(c % (len(stream) + 1) for c in cuts), len(stream)]:
            out += stream_machine.feed(stream[at:cut]).out
            at = cut
        return out + (stream_machine.finish().out if ended else b"")

    assert run(fast=True)[: len(run(fast=False))] == run(fast=False)
    if ended:
        assert run(fast=True) == run(fast=False)


def test_an_unfinished_frame_waits_and_then_passes_whole() -> None:
    machine = Echo()
    stream = inspector(machine)
    assert stream.feed(b"data: a\n\ndata: b").out == b"data: a\n\n"
    assert stream.feed(b"c\n").out == b""
    assert stream.feed(b"\n").out == b"data: bc\n\n"


def test_an_oversize_event_is_cut_under_fail_closed_and_nothing_of_it_leaves() -> None:
    stream = inspector(Echo(), fail_closed=True, max_frame=50)
    step = stream.feed(b"data: " + b"x" * 100)
    assert step.end
    assert b"xx" not in step.out
    assert step.out.startswith(b"error: ")
    assert [f.cut for f in step.faults] == [True]
    assert stream.feed(b"data: tool\n\n").out == b""


def test_an_oversize_event_passes_whole_under_fail_open_and_is_told_once() -> None:
    stream = inspector(Echo(), max_frame=50)
    data = b"data: " + b"x" * 100 + b"\n\ndata: a\n\n"
    steps = [stream.feed(data[i : i + 7]) for i in range(0, len(data), 7)]
    assert b"".join(s.out for s in steps) == data
    assert [f for s in steps for f in s.faults] == [
        Fault("frame_too_long", "an event outgrew proxy.max_frame", cut=False)
    ]


def test_an_oversize_event_behind_a_held_call_ends_the_answer_even_under_fail_open() -> None:
    stream = inspector(Echo(), max_frame=50)
    stream.feed(b"data: tool hold\n\n")
    step = stream.feed(b"data: " + b"x" * 100)
    assert step.end
    assert b"hold" not in step.out


def test_a_held_call_is_not_released_by_the_end() -> None:
    stream = inspector(Echo())
    stream.feed(b"data: tool hold\n\n")
    assert stream.finish().out == b""


def test_a_machine_sees_the_frames_that_it_asked_for() -> None:
    machine = Echo()
    stream = Inspector(
        machine, limits=Limits(), fail_closed=False, error_frame=str.encode, signs=(b"_start", b"error")
    )
    for data in (b"data: a\n\n", b"data: Content_START\n\n", b"data: error\n\n"):
        assert stream.feed(data).out == data
    assert machine.seen == [b"data: Content_START\n\n", b"data: error\n\n"]


def test_what_is_left_out_is_told_and_ends_nothing() -> None:
    out = Output(fail_closed=True, error_frame=str.encode)
    out.dropped("event_out_of_place", "a stop")
    out.write(b"x")
    assert out.step() == (b"x", (), (Fault("event_out_of_place", "a stop", cut=True),), False)


def test_the_notice_is_the_documented_text() -> None:
    assert notice("rm", "denied_tools") == "[agentsh] Tool 'rm' blocked by policy: denied_tools"
