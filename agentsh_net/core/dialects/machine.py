"""What a dialect gives the loop that reads its streams: a machine that takes whole frames, and how these are cut and read.

The loop is core.dialects.inspection. What a call looks like is each dialect's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

from agentsh_net.core.dialects.base import FrameDecoder
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.prose import Shape
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values.strict_json import Reading

DONE: Final = b"[DONE]"  # OpenAI's end of a stream; no JSON
INCOMPLETE: Final = "the answer ended inside the call"


class State(Enum):
    """What became of a part of an answer."""

    PLAIN = auto()  # no call
    HELD = auto()
    PASSING = auto()  # released before its end: it outgrew the bound and nothing said to cut
    STOPLESS = auto()  # released without its stop: nothing but that may follow
    DONE = auto()  # released, and its stop with it
    REPLACED = auto()


class Machine(Protocol):
    """What a dialect writes: it sees whole frames, in order, and writes what the client gets."""

    @property
    def idle(self) -> bool:
        """Say whether a frame without any sign of a call would leave as it came: nothing held, nothing to amend."""
        ...

    @property
    def holding(self) -> bool:
        """Say whether bytes are held back for a verdict."""
        ...

    def knows(self, frame: bytes) -> bool:
        """Take a frame by its bytes alone, if it is known by heart: it leaves as it came. Asked only while nothing is held."""
        ...

    def holds(self, frame: bytes) -> bool:
        """Hold a frame that is known by heart for more of a held call; nothing leaves, and there is nothing to tell."""
        ...

    def frame(self, frame: Frame, reading: Reading | None, out: Output) -> None:
        """Take a whole frame and what its data says; None where it says nothing: no data, `[DONE]`, or no JSON.

        Raises ProtocolError where what it has to rewrite cannot be written: then the answer ends.
        """
        ...

    def release(self, out: Output, doubt: str) -> None:
        """Judge held calls by what is there of them, their arguments in doubt, and let go of all; or go on holding them."""
        ...

    def finish(self, out: Output) -> None:
        """Take the end of the stream; what is held is never released."""
        ...


def never(_machine: object, _frame: bytes) -> bool:
    """Know no frame by heart, where each that may speak of a call has to be read."""
    return False


@dataclass(frozen=True, slots=True)
class Wire:
    """How the frames of a dialect are cut and read; as it stands, server-sent events."""

    # Makes what cuts other framings, by the bound of a frame.
    frames: Callable[[int], FrameDecoder] | None = None
    signs: tuple[bytes, ...] = ()  # frames the machine must see besides those that may hide a call
    prose: Shape | None = None  # frames that pass whatever their text says
    strict: bool = False  # some clients cut broken JSON in other ways, and find some that is whole
    joins: bool = False  # some join the lines of a frame by nothing, so that a line end in a string is none of its characters
    wraps: bool = False  # what a frame says is not to be seen in its bytes
    comment: bytes = b": \n\n"  # what says nothing to a client (WHATWG HTML section 9.2.7)


EVENTS: Final = Wire()
