"""Lines stand for themselves: each is judged as it comes, however the bytes are cut, and what nobody rewrites leaves as it came."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.base import Judge, Limits
from agentsh_net.core.dialects.inspection import streamed
from agentsh_net.core.dialects.lines import LinesMachine, by_lines
from agentsh_net.core.dialects.machine import Wire
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.framing.ndjson import LineDecoder
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.values.strict_json import Reading

SENT = b'{"tool": 1}\n{"text": "a"}\r\n{"tool": 2}'


def second_gone(data: bytes, reading: Reading, _: Output) -> bytes | None:
    return b"{}" if reading.value == {"tool": 2} else None


def machine(_: Judge, __: Limits) -> LinesMachine:
    return LinesMachine(second_gone)


@pytest.mark.parametrize("size", [1, 7, len(SENT)])
def test_a_line_that_is_rewritten_changes_no_other_and_keeps_its_end(size: int) -> None:
    begin = streamed(machine, Wire(LineDecoder, strict=True), str.encode)
    stream = begin(lambda _: Verdict(Action.ALLOW, "yes"), limits=Limits(), fail_closed=True)
    steps = [stream.feed(SENT[at : at + size]) for at in range(0, len(SENT), size)]
    assert not stream.holding
    out = b"".join(step.out for step in [*steps, stream.finish()])
    assert out == SENT.replace(b'{"tool": 2}', b"{}")


def test_lines_are_cut_and_others_put_in_their_place() -> None:
    framing = by_lines(100)
    first, second = framing.frames.feed(SENT)
    assert framing.write(first, b"{}") + framing.write(second, b"[]") == b"{}\n[]\r\n"
    assert framing.frames.finish().data == b'{"tool": 2}'
