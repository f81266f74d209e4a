"""Running a stream through a dialect's machine, however it is cut, and the judges that it meets there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from agentsh_net.core.dialects.base import Dialect, Fault, FrameDecoder, Judge, Judged, Limits, Stream
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.model import Action, ToolCall, Verdict


@dataclass
class Denying:
    """A judge that refuses some names, every flaw, and every input that contains `evil`; it remembers what it was asked."""

    names: frozenset[str]
    asked: list[ToolCall] = field(default_factory=list)

    def __call__(self, tool_call: ToolCall) -> Verdict:
        self.asked.append(tool_call)
        if tool_call.flaw:
            return Verdict(Action.BLOCK, tool_call.flaw, "protocol")
        bad = tool_call.name in self.names or "evil" in json.dumps(tool_call.input)
        return Verdict(Action.BLOCK, "denied", "denied_tools") if bad else Verdict(Action.ALLOW, "allowed")


def denying(*names: str) -> Denying:
    """Return a judge that refuses these."""
    return Denying(frozenset(names))


@dataclass
class Result:
    """What a stream came to."""

    out: bytes = b""
    judged: list[Judged] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    ended: bool = False

    @property
    def blocked(self) -> list[str]:
        return [j.call.name for j in self.judged if j.verdict.blocked]

    @property
    def reasons(self) -> list[str]:
        return [j.verdict.reason for j in self.judged if j.verdict.blocked]


AnyResult = TypeVar("AnyResult", bound=Result)


def play(machine: Stream, chunks: bytes | Iterable[bytes], result: AnyResult) -> AnyResult:
    """Feed an answer through a machine, to its end; return what it came to, in `result`."""
    steps = [machine.feed(chunk) for chunk in ([chunks] if isinstance(chunks, bytes) else chunks)]
    for step in [*steps, machine.finish()]:
        result.out += step.out
        result.judged += step.judged
        result.faults += step.faults
        result.ended = result.ended or step.end
    return result


def runner(dialect: Dialect, result: type[AnyResult]) -> Callable[..., AnyResult]:
    """Return what feeds an answer through a dialect, or through a `stream` of one, to its end."""

    def run(
        chunks: bytes | Iterable[bytes],
        judge: Judge,
        *,
        fail_closed: bool = False,
        limits: Limits | None = None,
        enforce: bool = True,
        dialect: Dialect = dialect,
        stream: Stream | None = None,
    ) -> AnyResult:
        begun = stream or dialect.stream(
            judge, limits=limits or Limits(), fail_closed=fail_closed, enforce=lambda: enforce
        )
        return play(begun, chunks, result())

    return run


def cut_at(data: bytes, offsets: Iterable[int]) -> list[bytes]:
    """Return `data` in pieces."""
    at, pieces = 0, []
    for offset in [*sorted({o % (len(data) + 1) for o in offsets}), len(data)]:
        pieces.append(data[at:offset])
        at = offset
    return pieces


def framed(decoder: FrameDecoder, data: bytes, cuts: Iterable[int] = ()) -> list[Frame]:
    """Return the frames of `data`, fed in pieces, and what it ended in the middle of."""
    found = [frame for piece in cut_at(data, cuts) for frame in decoder.feed(piece)]
    rest = decoder.finish()
    return [*found, rest] if rest else found


# Bytes between two cuts: a few frames in a piece, and as many runs for an answer of any length.
PIECE = 512


def every_chunking(data: bytes) -> Iterator[list[bytes]]:
    """Return `data` whole, byte by byte, and in pieces, such that each offset is once among the cuts."""
    yield [data]
    yield [data[at : at + 1] for at in range(len(data))]
    for first in range(min(PIECE, len(data))):
        yield cut_at(data, range(first, len(data), PIECE))
