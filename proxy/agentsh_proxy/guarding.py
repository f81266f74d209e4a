"""DLP at work on one exchange: requests leave without what must not, and tokens in the answer become values again.

What is searched for and what is written instead is `core.dlp`'s business.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agentsh_net.core.dialects.base import (
    Dialect,
    Enforce,
    Framing,
    Judge,
    Judged,
    Limits,
    RequestFacts,
    Step,
    Stream,
    always,
)
from agentsh_net.core.dlp.guard import Guard, Scrubbed
from agentsh_net.core.dlp.restoring import Restorer, restored
from agentsh_net.core.dlp.tokens import Vault

# What describes the body as it came in, and is wrong once it was rewritten (RFC 9110 section 8, RFC 9530).
_OF_THE_BODY = re.compile(
    rb"\r\n(?:content-encoding|content-md5|content-digest|digest|repr-digest):[^\r]*", re.IGNORECASE
)


def scrubbed(guard: Guard, body: bytes, vault: Vault) -> Scrubbed:
    """Return a request's body as it may leave. Raises ProtocolError where it cannot be read."""
    return guard.scrub(body, vault.token if guard.mode == "tokenize" else None)


def without_description(opening: bytes) -> bytes:
    """Return a request's opening without the fields that describe a body which is no longer there."""
    return _OF_THE_BODY.sub(b"", opening)


def masked(guard: Guard, step: Step) -> Step:
    """Return a step whose calls may be told of."""
    judged = (
        Judged(replace(found.call, input=guard.masked(found.call.input)), found.verdict)
        for found in step.judged
    )
    return step._replace(judged=tuple(judged))


class Restoring:
    """A dialect whose answers are read with the session's values in the place of their tokens (`base.Dialect`).

    Before they are judged: rules over arguments are about what a tool will get, not about what stands for it.
    """

    __slots__ = ("_inner", "_vault", "files", "name", "own_framing")

    def __init__(self, inner: Dialect, vault: Vault) -> None:
        self._inner = inner
        self._vault = vault
        self.name = inner.name
        self.own_framing = inner.own_framing
        self.files = inner.files

    def inspects(self, method: str, path: str) -> bool:
        """Say what the dialect says."""
        return self._inner.inspects(method, path)

    def request(self, body: bytes) -> RequestFacts:
        """Read what the dialect reads."""
        return self._inner.request(body)

    def stream(self, judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        """Return the dialect's machine behind a restorer."""
        machine = self._inner.stream(judge, limits=limits, fail_closed=fail_closed, enforce=enforce)
        framing = self._inner.framing(limits.max_frame)
        comment = b": \n\n" if framing is None else b""
        return _RestoredStream(machine, Restorer(self._vault, limits.max_frame, framing), comment)

    def framing(self, max_frame: int) -> Framing | None:
        """Say what the dialect says."""
        return self._inner.framing(max_frame)

    def harmless(self, data: bytes) -> bool:  # noqa: ARG002 - whatever is in it
        """Say no: a token may stand anywhere."""
        return False

    def body(self, data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        """Return what the dialect makes of the restored text."""
        return self._inner.body(restored(data, self._vault), judge, fail_closed=fail_closed, enforce=enforce)

    def error(self, status: int, message: str) -> bytes:
        """Write what the dialect writes."""
        return self._inner.error(status, message)

    def error_frame(self, message: str) -> bytes:
        """Write what the dialect writes."""
        return self._inner.error_frame(message)


class _RestoredStream:
    """A stream of which the machine sees the restored bytes (`base.Stream`)."""

    __slots__ = ("_comment", "_machine", "_restorer")

    def __init__(self, machine: Stream, restorer: Restorer, comment: bytes) -> None:
        self._comment = comment  # what says nothing to a client, where something does
        self._machine = machine
        self._restorer = restorer

    @property
    def holding(self) -> bool:
        """Say whether something is held back."""
        return self._machine.holding or self._restorer.holding

    def keep_alive(self) -> bytes:
        """Return what the machine would say; a comment while a token waits for its rest."""
        return self._machine.keep_alive() or (self._comment if self._restorer.holding else b"")

    def fail(self, message: str) -> bytes:
        """Write what the machine writes."""
        return self._machine.fail(message)

    def passes(self, data: bytes) -> bool:  # noqa: ARG002 - whatever is in it
        """Say no: a token may stand anywhere."""
        return False

    def feed(self, data: bytes) -> Step:
        """Take the next bytes of the answer."""
        return self._machine.feed(self._restorer.feed(data))

    def finish(self) -> Step:
        """Take the end of the answer."""
        rest = self._restorer.finish()
        first = self._machine.feed(rest) if rest else Step(b"")
        if first.end:
            return first
        end = self._machine.finish()
        return Step(first.out + end.out, first.judged + end.judged, first.faults + end.faults, end.end)
