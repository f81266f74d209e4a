"""A machine that knows no frame by heart is shown each that may speak of a call, and a wire of which nothing is said is SSE."""

from __future__ import annotations

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.inspection import Inspector
from agentsh_net.core.dialects.machine import EVENTS, never
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values.strict_json import Reading


class Reader:
    """A machine that remembers what it was shown."""

    idle = True
    holding = False
    knows = holds = never

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        self.seen.append(frame.raw)
        out.write(frame.raw)

    def release(self, out: Output, doubt: str) -> None:
        """Hold nothing."""

    def finish(self, out: Output) -> None:
        """Hold nothing."""


def test_frames_that_may_speak_of_a_call_are_all_read() -> None:
    reader = Reader()
    machine = Inspector(lambda: reader, EVENTS, limits=Limits(), fail_closed=True, error_frame=str.encode)
    frames = [b'data: {"tool": 1}\n\n', b'data: {"text": 1}\n\n', b'data: {"tool": 1}\n\n']
    for frame in frames:
        assert machine.feed(frame).out == frame
    assert reader.seen == [frames[0], frames[2]]


def test_what_is_said_to_nobody_is_a_comment_of_sse() -> None:
    assert EVENTS.frames is None
    assert EVENTS.comment.startswith(b":")
    assert EVENTS.comment.endswith(b"\n\n")
