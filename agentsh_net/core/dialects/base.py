"""What every dialect gives its callers: a stream machine and a whole-body rewrite from one engine, and a reading of the request.

A dialect decides nothing: it finds calls, asks the judge it was given, and writes what the verdict means in its wire format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from agentsh_net.core.dialects.unread import is_harmless
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.model import ToolCall, Verdict

Judge = Callable[[ToolCall], Verdict]

# Whether verdicts are enforced (`enforce_policy`), asked anew before bytes are held: a reload bites in mid-stream.
Enforce = Callable[[], bool]


def always() -> bool:
    """Enforce."""
    return True


def asked(paths: Mapping[str, re.Pattern[str]], method: str, path: str) -> bool:
    """Say whether a request is for one of these paths, by method, as the most lenient of routers takes it: without query, trailing slashes and case."""
    wanted = paths.get(method.upper())
    return wanted is not None and wanted.fullmatch(path.partition("?")[0].rstrip("/").casefold()) is not None


@dataclass(frozen=True, slots=True)
class Judged:
    """A call and what was decided about it."""

    call: ToolCall
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that could not be read: `cause` is a key of `llm_response_uninspected`, `cut` whether it was stopped.

    `would`: it passed because nothing is enforced, and would have been stopped else. `always`: `fail_closed` has no say in it.
    """

    cause: str  # malformed_json | frame_too_long | invalid_utf8 | duplicate_keys | body_too_large | ...
    detail: str
    cut: bool
    would: bool = False
    always: bool = False


class Step(NamedTuple):
    """What one feed leads to: bytes for the client, and facts for the audit. `end`: send nothing after `out`.

    A tuple, because one is made for every read: a frozen dataclass costs four times as much.
    """

    out: bytes
    judged: tuple[Judged, ...] = ()
    faults: tuple[Fault, ...] = ()
    end: bool = False


@dataclass(frozen=True, slots=True)
class Connector:
    """An MCP server that a request asks the provider to call by itself."""

    server_id: str
    url: str


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a request says that policy needs.

    `fault` is set where the body could not be read; its `cut` says that it may hide what policy has to judge, so that it must not
    pass while verdicts are enforced.
    """

    stream: bool = False
    connectors: tuple[Connector, ...] = ()
    fault: Fault | None = None
    # Calls that the request approves, for the provider to run; one whose name is empty was proposed in an answer, not here.
    approvals: tuple[ToolCall, ...] = ()
    parsed: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)  # where it offers tools
    adds_tools: bool = False  # beside its list of tools, in the conversation
    # There is nothing to judge, to learn or to tell of.
    quiet: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Work out what almost every request is asked for."""
        noisy = self.parsed is not None or self.fault is not None or self.connectors or self.approvals
        object.__setattr__(self, "quiet", not noisy)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a stream machine, in bytes. A held call may span many frames: `held` bounds their sum.

    A call that writes a file may take a whole answer: 128k tokens at 150 to 300 bytes a frame, frame by token.
    """

    max_frame: int = 1 << 20
    held: int = 32 << 20


# What a held frame counts for at least: remembering it costs as much, and `\n` by `\n` would be thirty times the bound.
MIN_WEIGHT = 128


class FrameDecoder(Protocol):
    """What cuts the bytes of a stream into frames, within a bound."""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes."""
        ...

    def finish(self) -> Frame | None:
        """Return what the stream ended in the middle of."""
        ...


class Framing(NamedTuple):
    """How a stream is cut that is no server-sent events, and a frame written with other data."""

    frames: FrameDecoder
    write: Callable[[Frame, bytes], bytes]


class Stream(Protocol):
    """One streamed answer. Feed it what the upstream sent, in any chunks; what comes back goes to the client as it is."""

    def passes(self, data: bytes) -> bool:
        """Take the next bytes if they are whole frames that leave as they came, with nothing to tell of; else they have to be fed."""
        ...

    def feed(self, data: bytes) -> Step:
        """Take the next bytes of the body (content decoding is done by the caller)."""
        ...

    def finish(self) -> Step:
        """Take the end of the body: a call that is still held is never released."""
        ...

    @property
    def holding(self) -> bool:
        """Say whether a call is held back, so that the shell keeps the client alive meanwhile."""
        ...

    def keep_alive(self) -> bytes:
        """Return what keeps a client patient while a call is held; nothing where that cannot be said between two frames."""
        ...

    def fail(self, message: str) -> bytes:
        """Return what tells the client, where the answer has come to, that it ends here with an error."""
        ...


class Streamed(Protocol):
    """What begins streams."""

    def __call__(
        self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always
    ) -> Stream:
        """Return the machine for one streamed answer. Without `enforce` every byte leaves."""
        ...


class Whole(Protocol):
    """What reads whole answers."""

    def __call__(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the client gets for a whole JSON answer: byte for byte the same where no call is refused."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One LLM wire format: where it is spoken, and what reads and writes it."""

    name: str
    paths: Mapping[str, re.Pattern[str]]  # of requests whose answers may carry tool calls, by method
    request: Callable[[bytes], RequestFacts]  # reads what policy needs from a request's body
    stream: Streamed
    body: Whole
    error: Callable[[int, str], bytes]  # makes a JSON body in the provider's own shape, by status and message
    # Tells a client in mid-stream that the answer ends here with an error.
    error_frame: Callable[[str], bytes]
    # Whether a whole JSON answer holds nothing that any parser could take for a call, so that it leaves as it came.
    harmless: Callable[[bytes], bool] = is_harmless
    # How its streams are cut for whoever looks at them besides the machine, by the bound of a frame; None: they are server-sent events.
    # Where they are not, whatever comes for a stream is taken for one.
    framing: Callable[[int], Framing] | None = None
    # Its answers may hold anything: what does not begin as its streams do is none of its business.
    files: bool = False

    def inspects(self, method: str, path: str) -> bool:
        """Say whether answers to this request may carry tool calls (`path` is below the provider's base, without query)."""
        return asked(self.paths, method, path)
