"""DLP at work on one exchange: requests leave without what must not, and tokens in the answer become values again.

What is searched for and what is written instead is `core.dlp`'s business.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Final

from agentsh_net.core.dialects.base import (
    Dialect,
    Enforce,
    Judge,
    Judged,
    Limits,
    Step,
    Stream,
    always,
)
from agentsh_net.core.dlp.guard import Guard, Scrubbed
from agentsh_net.core.dlp.restoring import Restorer, restored
from agentsh_net.core.dlp.tokens import Vault
from agentsh_net.core.errors import ProtocolError
from agentsh_proxy.forked import Forked

# Bytes of a body from which it is searched in a fork: that takes 25 ms and more, a fork 2 to 5.
LONG: Final = 512 << 10

# What describes the body as it came in, and is wrong once it was rewritten (RFC 9110 section 8, RFC 9530).
_OF_THE_BODY = re.compile(
    rb"\r\n(?:content-encoding|content-md5|content-digest|digest|repr-digest):[^\r]*", re.IGNORECASE
)


def scrubbed(guard: Guard, body: bytes, vault: Vault) -> Scrubbed:
    """Return a request's body as it may leave. Raises ProtocolError where it cannot be read."""
    return guard.scrub(body, vault.token if guard.mode == "tokenize" else None)


async def scrubbed_forked(guard: Guard, body: bytes, vault: Vault, forked: Forked) -> Scrubbed:
    """Do as `scrubbed` in a process of its own. Raises ProtocolError 503 where that came to nothing."""

    def work() -> bytes:
        found: dict[tuple[str, str], None] = {}  # in the order in which they were last seen

        def token(value: str, kind: str) -> str:
            found.pop((value, kind), None)
            found[value, kind] = None
            return vault.token(value, kind)

        try:
            done = guard.scrub(body, token if guard.mode == "tokenize" else None)
        except ProtocolError as error:
            return json.dumps({"error": str(error)}).encode()
        told = json.dumps({"counts": dict(done.counts), "found": list(found)}).encode()
        return told + b"\n" + done.body if done.counts else told

    head, _, left = (await forked.run(work)).partition(b"\n")
    told = json.loads(head)
    if "error" in told:
        raise ProtocolError(told["error"])
    for value, kind in told["found"]:
        vault.token(value, kind)  # which the other process remembered for itself
    return Scrubbed(left if told["counts"] else body, told["counts"])


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


def restoring(inner: Dialect, vault: Vault) -> Dialect:
    """Return a dialect whose answers are read with the session's values in the place of their tokens.

    Before they are judged: rules over arguments are about what a tool will get, not about what stands for it.
    """

    def stream(judge: Judge, *, limits: Limits, fail_closed: bool, enforce: Enforce = always) -> Stream:
        machine = inner.stream(judge, limits=limits, fail_closed=fail_closed, enforce=enforce)
        framing = None if inner.framing is None else inner.framing(limits.max_frame)
        comment = b": \n\n" if framing is None else b""
        return _RestoredStream(machine, Restorer(vault, limits.max_frame, framing), comment)

    def body(data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        return inner.body(restored(data, vault), judge, fail_closed=fail_closed, enforce=enforce)

    return replace(inner, stream=stream, body=body, harmless=_never)


def _never(_answer: bytes) -> bool:
    """Say no: a token may stand anywhere."""
    return False


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
