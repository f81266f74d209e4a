"""Reading of answers that a dialect knows: what it needs, whole texts as any client may take them, and what cannot be read.

In which framing the outcome leaves is `answers`' business.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from agentsh_net.core.dialects.base import Dialect, Enforce, Fault, Judge, Limits, Step, always
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import ResponseHead
from agentsh_proxy.llm.sniffing import Kind, kind_of

# An address with a scheme or an authority of its own; what has neither leads back here. Only where it leads is told: no user, path or query.
_ELSEWHERE = re.compile(
    rb"\r\nlocation:[ \t]*([a-z][a-z0-9+.-]*:[/\\]*|[/\\]{2,})(?:[^/\\?#\r]*@)?([^/\\?#\r]*)", re.IGNORECASE
)


class Inspection(NamedTuple):
    """What an inspected answer needs: who reads it, who judges, what is too much, and whom to tell."""

    dialect: Dialect
    judge: Judge
    limits: Limits
    fail_closed: bool
    max_body: int
    wants_stream: bool
    note: Callable[[Step], None]
    enforce: Enforce = always
    restores: bool = False  # its dialect rewrites what nobody stops
    # The field of an unknown content coding, which most clients ignore: it stays where it was.
    label: bytes = b""

    def tell(self, step: Step) -> None:
        """Note what a step found, if anything."""
        if step.judged or step.faults:
            self.note(step)


def read_whole(data: bytes, inspection: Inspection) -> Step:
    """Return what the client gets for a whole text: as JSON, and where it is none, as the events that a client may find in it."""
    dialect, judge, fail_closed, enforce = (
        inspection.dialect, inspection.judge, inspection.fail_closed, inspection.enforce,
    )  # fmt: skip
    whole = Step(data)
    if kind_of(data, last=True) is not Kind.EVENTS:
        whole = dialect.body(data, judge, fail_closed=fail_closed, enforce=enforce())
        if whole.end or all(fault.cause != "malformed_json" for fault in whole.faults):
            return whole
    machine = dialect.stream(judge, limits=inspection.limits, fail_closed=fail_closed, enforce=enforce)
    steps = (whole, machine.feed(data), machine.finish())
    return Step(
        steps[1].out + steps[2].out,
        tuple(judged for step in steps for judged in step.judged),
        tuple(fault for step in steps for fault in step.faults),
    )


class WholeStream:
    """A whole text in the place of a stream (`core.dialects.base.Stream`): nothing of it leaves before it was read."""

    __slots__ = ("_inspection", "_passing", "_pieces", "_size")

    holding = False  # no comment may be sent into JSON

    def __init__(self, inspection: Inspection) -> None:
        self._inspection = inspection
        self._pieces: list[bytes] = []
        self._size = 0
        self._passing = False

    def passes(self, data: bytes) -> bool:  # noqa: ARG002 - whatever is in it
        """Say no: the whole has to be read."""
        return False

    def feed(self, data: bytes) -> Step:
        """Collect; past the bound go by fail_closed."""
        if self._passing:
            return Step(data)
        self._pieces.append(data)
        self._size += len(data)
        if self._size <= self._inspection.max_body:
            return Step(b"")
        self._passing = True
        closed, enforced = self._inspection.fail_closed, self._inspection.enforce()
        detail = too_large(self._inspection)
        fault = Fault("body_too_large", detail, cut=closed and enforced, would=closed and not enforced)
        passed = b"" if fault.cut else b"".join(self._pieces)
        self._pieces.clear()
        return Step(passed, faults=(fault,), end=fault.cut)

    def keep_alive(self) -> bytes:
        """Nothing may be said inside JSON."""
        return b""

    def fail(self, message: str) -> bytes:
        """Tell who asked for a stream that there is none."""
        return self._inspection.dialect.error_frame(message)

    def finish(self) -> Step:
        """Read what was collected; who asked for a stream is told of an end in an event."""
        if self._passing:
            return Step(b"")
        step = read_whole(b"".join(self._pieces), self._inspection)
        if step.end:
            step = step._replace(out=self._inspection.dialect.error_frame(step.faults[-1].detail))
        return step


def redirection(head: ResponseHead) -> str:
    """Return where an answer sends the client, if that is around the proxy: SDKs follow, and what they get there is seen by nobody."""
    found = _ELSEWHERE.search(head.fields) if 300 <= head.status < 400 else None
    return (found[1] + found[2]).decode("ascii", "replace") if found else ""


def check_charset(head: ResponseHead, inspection: Inspection) -> None:
    """Stop an answer in which clients who go by its charset may read other letters than those who do not. Raises ProtocolError."""
    if head.opaque:
        unreadable(inspection, "unknown_charset", "a charset in which ASCII is not ASCII", must_cut=True)


def too_large(inspection: Inspection) -> str:
    """Say that an answer is."""
    return f"a JSON answer of more than {inspection.max_body} bytes"


def unreadable(inspection: Inspection, cause: str, detail: str, *, must_cut: bool = False) -> None:
    """Tell of an answer that cannot be read. Raises ProtocolError 502 under fail_closed, while verdicts are enforced.

    `must_cut`: clients may read it all the same, so that it does not pass either where fail_closed is false.
    """
    grave = inspection.fail_closed or must_cut
    cut = grave and inspection.enforce()
    fault = Fault(cause, detail, cut, would=grave and not cut, always=must_cut)
    inspection.note(Step(b"", faults=(fault,)))
    if cut:
        raise ProtocolError(f"the upstream's answer could not be inspected: {detail}", status=502)
