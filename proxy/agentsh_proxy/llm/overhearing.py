"""Answers at endpoints that no dialect reads, overheard on their way: they pass to the byte, and a sign of a call is told or stops them.

Sans IO. What a sign is, is `core.dialects.foreign_calls`' business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from agentsh_net.core.dialects.base import Enforce, Fault, Step
from agentsh_net.core.dialects.foreign_calls import Ear
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import ResponseHead
from agentsh_proxy.inflating import Decoder, inflater
from agentsh_proxy.llm.relaying import Answer, Client, Relay, Tapped

CAUSE: Final = "unread_call"
# Types of which no client makes a call, whatever is in them.
_MUTE: Final = (
    "image/",
    "audio/",
    "video/",
    "font/",
    "application/pdf",
    "application/zip",
    "application/gzip",
    "multipart/",
)


class Overhearing(NamedTuple):
    """Whom to tell, and whether to stop what is heard."""

    fail_closed: bool
    enforce: Enforce
    note: Callable[[Step], None]


def overheard(head: ResponseHead, client: Client, overhearing: Overhearing) -> Answer:
    """Return what becomes of an answer that no dialect reads."""
    if head.content_type.startswith(_MUTE):
        return Relay(head, client)
    return Tapped(head, client, _Listener(head, overhearing))


class _Listener:
    """A `relaying.Tap` that stops listening once it heard something."""

    __slots__ = ("_decoder", "_ear", "_overhearing")

    def __init__(self, head: ResponseHead, overhearing: Overhearing) -> None:
        self._overhearing = overhearing
        self._decoder = _decoder(head)
        self._ear: Ear | None = Ear()

    def read(self, data: bytes, *, last: bool) -> None:  # noqa: ARG002 - a call that the end completes was heard before
        """Listen. Raises ProtocolError 502 at a sign of a call under fail_closed, while verdicts are enforced."""
        if self._ear is not None and data:
            self._hear(self._ear, data)

    def _hear(self, ear: Ear, data: bytes) -> None:
        if self._decoder is not None:
            try:
                data = self._decoder.feed(data)
            except ProtocolError:
                self._ear = None  # nobody else can read it either, but for what was read
                return
        sign = ear.hears(data)
        if not sign:
            return
        self._ear = None  # told once
        closed, enforced = self._overhearing.fail_closed, self._overhearing.enforce()
        detail = f"an answer that is not inspected speaks of a call: {sign[:80]}"
        cut = closed and enforced
        self._overhearing.note(Step(b"", faults=(Fault(CAUSE, detail, cut, would=closed and not enforced),)))
        if cut:
            raise ProtocolError(f"the upstream's answer could not be inspected: {detail}", status=502)


def _decoder(head: ResponseHead) -> Decoder | None:
    try:
        return inflater(head.encoding) if head.encoding else None
    except ProtocolError:
        return None  # most clients skip a coding that they do not know
