"""What cannot hide a call passes at once, what can goes frame by frame, and where nothing is enforced every byte leaves."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts.ollama import WEATHER, answer, denying, entry, line

from agentsh_net.core.dialects.base import Enforce, Fault, Limits, always
from agentsh_net.core.dialects.inspection import MAX_CALLS, Inspector
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.ollama.dialect import DIALECT as OLLAMA
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.prose import Shape
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.model import Action, ToolCall, Verdict
from agentsh_net.core.values.strict_json import Reading


class Echo:
    """A machine that remembers what it saw; a frame that contains `hold` is held until one that contains `free`."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.readings: list[object] = []
        self.held: list[bytes] = []
        self.known = 0
        self.idle = True
        self.holding = False

    def knows(self, frame: bytes) -> bool:
        known = frame == b"data: tool known\n\n"
        if known:
            self.known += 1
        return known

    def holds(self, frame: bytes) -> bool:
        more = self.holding and frame == b"data: more\n\n"
        if more:
            self.held.append(frame)
        return more

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        self.seen.append(frame.raw)
        self.readings.append(None if reading is None else reading.value)
        if b"tool hold" in frame.raw:
            self.holding, self.idle = True, False
            self.held.append(frame.raw)
            return
        if b"free" in frame.raw:
            self.holding, self.idle = False, True
            self.held.append(frame.raw)
            out.write(b"".join(self.held))
            self.held.clear()
        elif b"tool drop" in frame.raw:
            out.dropped("dropped", "left out")
        elif b"tool lose" in frame.raw:
            if out.fault("lost", "no way on", must_cut=True):
                self.held.clear()
        elif self.holding:
            self.held.append(frame.raw)
        else:
            out.write(frame.raw)

    def release(self, out: Output, doubt: str) -> None:
        if b"tool hold fast" in self.seen[-1]:
            return
        action = Action.BLOCK if b"tool hold bad" in self.seen[-1] else Action.ALLOW
        out.judged(ToolCall("held", doubt=doubt), Verdict(action, "said"))
        out.write(b"".join(self.held))
        self.held.clear()
        self.holding = False

    def finish(self, out: Output) -> None:
        if self.held:
            out.fault("incomplete", "held at the end", must_cut=True)
        self.held.clear()


def inspector(
    machine: Echo | None = None,
    *,
    fail_closed: bool = False,
    max_frame: int = 1 << 20,
    fast: bool = True,
    enforce: Enforce = always,
) -> Inspector:
    first = [machine or Echo()]
    return Inspector(
        lambda: first.pop() if first else Echo(),
        limits=Limits(max_frame=max_frame),
        fail_closed=fail_closed,
        error_frame=lambda m: b"error: " + m.encode() + b"\n\n",
        enforce=enforce,
        fast=fast,
    )


def test_a_chunk_of_plain_frames_never_reaches_the_machine() -> None:
    machine = Echo()
    step = inspector(machine).feed(b"data: a\n\ndata: b\r\n\r\n")
    assert step.out == b"data: a\n\ndata: b\r\n\r\n"
    assert machine.seen == []


@pytest.mark.parametrize(
    "sign",
    [b"tool_use", b"Tool_Calls", b"function_call", b"t\\u006Fol", b"\\u0046unction_call", b"t\0o\0o\0l\0"],
)
def test_a_frame_with_the_sign_of_a_call_reaches_the_machine(sign: bytes) -> None:
    machine = Echo()
    frame = b'data: {"x":"' + sign + b'"}\n\n'
    inspector(machine, enforce=lambda: False).feed(b"data: a\n\n" + frame)
    assert machine.seen == [frame]


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
            b"data: t\\u006FOL\n\n",
            b"data: \\\\u0074ool hold\n\n",
            b"data: " + b"x" * 3000 + b"\\u0041\n\n",
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


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\n\r\n"])
def test_in_one_read_the_machine_sees_the_frames_that_may_hide_a_call_and_no_others(end: bytes) -> None:
    machine = Echo()
    frames = [
        b"data: %b" % text + end
        for text in (
            b"a",
            b"tool 1",
            b"b",
            b"TOOL 2",
            b"function",
            b"\\u0041",
            b"\\u0041 \\u0054ool",
            b"\\\\u0041",
        )
    ]
    step = inspector(machine).feed(b"".join(frames))
    assert step.out == b"".join(frames)
    assert machine.seen == [frames[1], frames[3], frames[6], frames[7]]


@given(
    st.lists(
        st.sampled_from(
            [b"a", b"b" * 700, b"tool", b"\\u0041", b"\\u0074\\u006f\\u006f\\u006c", b"\\\\u0074ool", b"\\u00e9", b"\\u005fx",
             b"functional", b"function\\u005fcall", b"\\u0045rror", b"\\u007", b"\\u005cu0074ool"]
        ),
        max_size=24,
    )
)  # fmt: skip
def test_a_long_read_is_parted_as_its_frames_are(texts: list[bytes]) -> None:
    frames = [b"data: %b\n\n" % text for text in texts]
    alone, together = Echo(), Echo()
    for machine, reads in ((alone, frames), (together, [b"".join(frames)])):
        stream = Inspector(
            lambda machine=machine: machine,
            Wire(signs=(b"error",)),
            limits=Limits(),
            fail_closed=False,
            error_frame=str.encode,
        )
        for read in reads:
            stream.feed(read)
    assert together.seen == alone.seen


def test_a_read_full_of_marks_costs_what_it_is_long() -> None:
    def seconds(frames: int) -> float:
        data = b"data: tool\n\n" * frames
        stream = inspector(Echo())
        began = time.process_time()
        stream.feed(data)
        return time.process_time() - began

    short = min(seconds(500) for _ in range(3))
    # Eight times as long; its square would be sixty-four.
    assert min(seconds(4000) for _ in range(3)) < 24 * short


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


@pytest.mark.parametrize("size", [1, 7, 60, 200])
@pytest.mark.parametrize("word", [b"x", b"tool"])
def test_the_bound_does_not_depend_on_how_an_event_comes_in(size: int, word: bytes) -> None:
    data = b"data: a\n\ndata: " + word * 50 + b"\n\ndata: b\n\n"
    stream = inspector(Echo(), fail_closed=True, max_frame=50)
    out = b"".join(stream.feed(data[i : i + size]).out for i in range(0, len(data), size))
    assert out.startswith(b"data: a\n\nerror: ")
    assert word * 3 not in out


@pytest.mark.parametrize("size", [7, 500])
def test_an_oversize_event_passes_whole_under_fail_open_and_is_told_once(size: int) -> None:
    stream = inspector(Echo(), max_frame=50)
    data = b"data: " + b"x" * 100 + b"\n\ndata: a\n\n"
    steps = [stream.feed(data[i : i + size]) for i in range(0, len(data), size)]
    assert b"".join(s.out for s in steps) == data
    assert [f for s in steps for f in s.faults] == [
        Fault("frame_too_long", "an event outgrew proxy.max_frame", cut=False)
    ]


def test_an_oversize_event_passes_behind_a_held_call_that_is_allowed_with_its_arguments_in_doubt() -> None:
    stream = inspector(Echo(), max_frame=50)
    data = b"data: tool hold\n\ndata: " + b"x" * 100 + b"\n\n"
    steps = [stream.feed(data[:30]), stream.feed(data[30:])]
    assert b"".join(s.out for s in steps) == data
    assert [j.call.doubt for s in steps for j in s.judged] == ["an event outgrew proxy.max_frame"]
    told = [(f.cause, f.cut) for f in steps[-1].faults]
    assert told == [("frame_too_long", False)]


@pytest.mark.parametrize("size", [7, 500])
def test_an_oversize_event_passes_behind_a_call_that_is_blocked_if_it_does_not_speak_of_calls(
    size: int,
) -> None:
    stream = inspector(Echo(), max_frame=50)
    steps = [stream.feed(b"data: tool hold bad\n\n")]
    long = b"data: " + b"x" * 200 + b"\n\n"
    steps += [stream.feed(long[at : at + size]) for at in range(0, len(long), size)]
    out = b"".join(step.out for step in steps)
    assert out.endswith(long)
    assert not any(step.end for step in steps)
    assert [j.verdict.blocked for step in steps for j in step.judged] == [True]


@pytest.mark.parametrize("size", [7, 500])
@pytest.mark.parametrize("word", [b"tool", b"\\u0074\\u006f\\u006f\\u006c"])
def test_an_oversize_event_that_may_be_the_rest_of_a_blocked_call_ends_the_answer_where_it_speaks_of_one(
    size: int, word: bytes
) -> None:
    stream = inspector(Echo(), max_frame=50)
    stream.feed(b"data: tool hold bad\n\n")
    long = b"data: " + b"x" * 100 + word + b"x" * 100
    steps = [stream.feed(long[at : at + size]) for at in range(0, len(long), size)]
    out = b"".join(step.out for step in steps)
    assert any(step.end for step in steps)
    assert b"x" + word not in out
    assert out.endswith(
        b"error: response cut by agentsh-net: frame_too_long: an event of a blocked call outgrew proxy.max_frame\n\n"
    )
    assert [f.cut for step in steps for f in step.faults] == [False, True]


def test_an_oversize_event_behind_a_call_that_is_held_on_ends_the_answer_even_under_fail_open() -> None:
    stream = inspector(Echo(), max_frame=50)
    stream.feed(b"data: tool hold fast\n\n")
    step = stream.feed(b"data: " + b"x" * 100)
    assert step.end
    assert b"xx" not in step.out


def test_an_oversize_event_behind_a_held_call_releases_nothing_under_fail_closed() -> None:
    stream = inspector(Echo(), fail_closed=True, max_frame=50)
    stream.feed(b"data: tool hold\n\n")
    step = stream.feed(b"data: " + b"x" * 100)
    assert step.end
    assert step.end
    assert b"hold" not in step.out


def test_a_held_call_is_not_released_by_the_end() -> None:
    stream = inspector(Echo())
    stream.feed(b"data: tool hold\n\n")
    assert stream.finish().out.startswith(b"error: ")


def test_a_machine_sees_the_frames_that_it_asked_for() -> None:
    machine = Echo()
    stream = Inspector(
        lambda: machine,
        Wire(signs=(b"_start", b"error")),
        limits=Limits(),
        fail_closed=False,
        error_frame=str.encode,
    )
    for data in (b"data: a\n\n", b"data: Content_START\n\n", b"data: error\n\n"):
        assert stream.feed(data).out == data
    assert machine.seen == [b"data: Content_START\n\n", b"data: error\n\n"]


def test_a_frame_that_the_machine_knows_by_heart_passes_unread_alone_and_in_company() -> None:
    known = b"data: tool known\n\n"
    machine = Echo()
    stream = inspector(machine)
    for data in (known, b"data: a\n\n" + known + b"data: b\n\n" + known, known[:7], known[7:]):
        assert stream.feed(data).out == (b"" if data == known[:7] else known if data == known[7:] else data)
    assert machine.known == 4
    assert machine.seen == []


def test_where_the_machine_is_to_see_every_frame_it_sees_those_that_it_knows() -> None:
    machine = Echo()
    stream = inspector(machine)
    stream.feed(b"data: tool known\n\n")
    stream.heed()
    stream.feed(b"data: tool known\n\n")
    assert (machine.known, len(machine.seen)) == (1, 1)


def test_once_prose_was_seen_its_words_are_no_signs_of_calls_but_what_ends_the_string_is_read() -> None:
    machine = Echo()
    stream = Inspector(
        lambda: machine,
        Wire(prose=Shape(re.compile(rb'data: \{"say":"'), re.compile(rb'"\}\n\n'))),
        limits=Limits(max_frame=60),
        fail_closed=False,
        error_frame=str.encode,
    )
    for text in (b"first", b"a tool", b"function_call"):
        data = b'data: {"say":"%b"}\n\n' % text
        assert stream.feed(data).out == data
    assert machine.seen == []
    for text in (b'", "tool":"', b"\\u0074ool", b"tool" * 20):
        stream.feed(b'data: {"say":"%b"}\n\n' % text)
    assert len(machine.seen) == 2  # the last is longer than any frame may be
    stream.finish()
    assert stream.feed(b'data: {"say":"behind the end"}\n\n').out == b""


# What the loop reads for every machine.


def test_a_machine_gets_what_the_data_says_and_nothing_where_it_says_nothing() -> None:
    machine = Echo()
    frames = [b'data: {"tool":1}\n\n', b": tool\n\n", b"data: [DONE] more\n\n", b"data: {tool\n\n"]
    step = inspector(machine, fast=False).feed(b"".join(frames))
    assert step.out == b"".join(frames)
    assert machine.readings == [{"tool": 1}, None, None, None]
    assert [f.cause for f in step.faults] == ["malformed_json"]


def test_what_may_hide_a_call_behind_the_word_for_the_end_is_no_end() -> None:
    frame = b'data: [DONE]data: {"tool":1}\n\n'
    told = inspector(Echo()).feed(frame)
    assert (told.out, [(f.cause, f.cut) for f in told.faults]) == (frame, [("malformed_json", False)])
    cut = inspector(Echo(), fail_closed=True).feed(frame)
    assert cut.out.startswith(b"error: ")
    assert [(f.cause, f.cut) for f in cut.faults] == [("malformed_json", True)]


UNREADABLE = {
    "a line that is an event": b'data: {"a":\ndata: {"tool":1}\ndata: }\n\n',
    "a line by U+2028": 'data: {"a":"tool\u2028data: {}\u2028"}\n\n'.encode(),
    "UTF-16": b"data: " + '{"tool":1}'.encode("utf-16-le") + b"\n\n",
    "UTF-32": b"data: " + '{"tool":1}'.encode("utf-32-be") + b"\n\n",
    "more behind the value": b'data: {"tool":1} more\n\n',
    "odd white space": b'data: \xc2\xa0{"tool":1}\n\n',
    "nested deeper than ours": b'data: {"tool":' + b"[" * 300 + b"]" * 300 + b"}\n\n",
}


@pytest.mark.parametrize("frame", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("enforce", [True, False])
@pytest.mark.parametrize("fail_closed", [True, False])
def test_what_only_some_clients_read_never_passes_as_merely_broken(
    frame: bytes, enforce: bool, fail_closed: bool
) -> None:
    step = inspector(fail_closed=fail_closed, enforce=lambda: enforce).feed(b"data: a\n\n" + frame)
    if enforce:
        assert step.out.startswith(b"data: a\n\nerror: response cut by agentsh-net: ")
        assert [(f.cut, f.would) for f in step.faults] == [(True, False)]
        assert step.end
    else:
        assert step.out == b"data: a\n\n" + frame
        assert [(f.cut, f.would) for f in step.faults] == [(False, True)]


@pytest.mark.parametrize("frame", UNREADABLE.values(), ids=UNREADABLE)
def test_behind_a_call_such_a_frame_needs_no_sign_of_its_own(frame: bytes) -> None:
    stream = inspector()
    stream.feed(b"data: tool hold\n\n")
    step = stream.feed(frame.replace(b"tool", b"text").replace(b"t\0o\0o\0l", b"t\0e\0x\0t"))
    assert step.end
    assert b"hold" not in step.out


@pytest.mark.parametrize("fail_closed", [True, False])
def test_a_frame_that_is_not_utf8_goes_by_fail_closed(fail_closed: bool) -> None:
    frame = b'data: {"tool":"\xff"}\n\n'
    step = inspector(fail_closed=fail_closed).feed(frame)
    assert (step.out == frame) is not fail_closed
    assert [(f.cause, f.cut) for f in step.faults] == [("invalid_utf8", fail_closed)]


# Where nothing is enforced.


def never() -> bool:
    return False


@given(
    st.lists(
        st.sampled_from(
            [b"data: a\n\n", b"data: tool\r\r", b"data: tool hold\n\n", b"data: tool drop\n\n", b"data: tool lose\n\n",
             b"data: free\r\n\r\n", b"\n", b"data: tool " + b"x" * 70 + b"\n\n", b"data: tool", *UNREADABLE.values()]
        )
    ).map(b"".join),
    st.lists(st.integers(0, 2000)),
    st.booleans(),
)  # fmt: skip
def test_every_byte_leaves_whatever_the_machine_makes_of_it(
    stream: bytes, cuts: list[int], fast: bool
) -> None:
    watching = inspector(max_frame=64, fast=fast, enforce=never)
    out, at = b"", 0
    for cut in [*sorted(c % (len(stream) + 1) for c in cuts), len(stream)]:
        step = watching.feed(stream[at:cut])
        assert not step.end
        assert not watching.holding
        assert not any(fault.cut for fault in step.faults)
        out, at = out + step.out, cut
    assert out + watching.finish().out == stream


def test_what_is_held_in_the_machine_has_left_already() -> None:
    machine = Echo()
    stream = inspector(machine, enforce=never)
    assert stream.feed(b"data: tool hold\n\n").out == b"data: tool hold\n\n"
    assert machine.holding
    assert not stream.holding
    step = stream.finish()
    fault = Fault("incomplete", "held at the end", cut=False, would=True, always=True)
    assert step == (b"", (), (fault,), False)


@pytest.mark.parametrize("enforced", [True, False])
def test_an_endless_number_of_calls_ends_the_answer(*, enforced: bool) -> None:
    sent = [line(answer("", entry(WEATHER))) for _ in range(MAX_CALLS + 2)]
    stream = OLLAMA.stream(
        denying(), limits=Limits(), fail_closed=False, enforce=always if enforced else never
    )
    steps = [stream.feed(each) for each in sent]
    assert b"".join(s.out for s in steps[:MAX_CALLS]) == b"".join(sent[:MAX_CALLS])
    faults = [(f.cause, f.cut, f.would) for s in steps for f in s.faults]
    assert faults == [("too_many_calls", enforced, not enforced)]
    assert (steps[MAX_CALLS].end, steps[-1].judged == ()) == (enforced, enforced)


def test_a_machine_that_gives_up_is_followed_by_another() -> None:
    machine = Echo()
    stream = inspector(machine, enforce=never)
    step = stream.feed(b"data: tool lose\n\ndata: tool drop\n\n")
    assert step.out == b"data: tool lose\n\ndata: tool drop\n\n"
    told = [f for f in step.faults if f.cause != "malformed_json"]
    assert [(f.cause, f.cut, f.would) for f in told] == [
        ("lost", False, True),
        ("dropped", False, True),
    ]
    assert machine.seen == [b"data: tool lose\n\n"]


def test_enforcing_begins_in_mid_stream_once_no_call_is_leaving() -> None:
    enforced = False
    stream = inspector(enforce=lambda: enforced)
    assert stream.feed(b"data: tool hold\n\n").out == b"data: tool hold\n\n"
    enforced = True
    assert stream.feed(b"data: tool drop\n\n").out == b"data: tool drop\n\n"  # of the call that is leaving
    assert stream.feed(b"data: free\n\n").out == b"data: free\n\n"
    assert stream.feed(b"data: tool drop\n\n").out == b""
    enforced = False
    assert stream.feed(b"data: tool drop\n\n").out == b""  # an answer is never half of each


def test_a_read_of_nothing_does_not_begin_the_stream() -> None:
    stream = inspector()
    assert stream.feed(b"") == (b"", (), (), False)
    step = stream.feed(b"\xef\xbb\xbfdata: {tool\n\n")
    # The byte order mark was skipped, and the event read.
    assert [f.cause for f in step.faults] == ["malformed_json"]
