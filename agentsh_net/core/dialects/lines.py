"""Streams of lines that each stand for themselves: a line is judged as it comes, and none is held.

What a line says, and what becomes of it, is the dialect's business.
"""

from __future__ import annotations

from collections.abc import Callable

from agentsh_net.core.dialects.base import Framing
from agentsh_net.core.dialects.inline_edits import in_place
from agentsh_net.core.dialects.machine import never
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.framing.ndjson import LineDecoder
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values.strict_json import Reading


class LinesMachine:
    """A `machine.Machine`. `rewrite` judges the calls of a line, and returns what the client may have of it; None: all."""

    __slots__ = ("_rewrite",)

    idle = True
    holding = False
    knows = holds = never

    def __init__(self, rewrite: Callable[[bytes, Reading, Output], bytes | None]) -> None:
        self._rewrite = rewrite

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a line."""
        data = None if reading is None else self._rewrite(frame.data or b"", reading, out)
        out.write(frame.raw if data is None else in_place(frame, data))

    def release(self, out: Output, doubt: str) -> None:
        """Nothing is held."""

    def finish(self, out: Output) -> None:
        """Nothing is held."""


def by_lines(max_frame: int) -> Framing:
    """Cut lines, and write others in their place."""
    return Framing(LineDecoder(max_frame), in_place)
