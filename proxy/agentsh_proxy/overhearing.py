"""Answers at endpoints that no dialect reads, overheard on their way: they pass to the byte, and a sign of a call is told or stops them.

Sans IO. What a sign is, is `core.dialects.foreign_calls`' business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from agentsh_net.core.dialects.base import Enforce, Fault, Step
from agentsh_net.core.dialects.foreign_calls import Ear
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.http_head import ResponseHead
from agentsh_proxy.inflating import Decoder, inflater
from agentsh_proxy.relaying import Client, Relay

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


class Overheard:
    """A relayed answer that is listened to (`relaying.Answer`)."""

    __slots__ = ("_decoder", "_ear", "_overhearing", "_relay")

    def __init__(self, head: ResponseHead, client: Client, overhearing: Overhearing) -> None:
        self._relay = Relay(head, client)
        self._overhearing = overhearing
        self._decoder = _decoder(head)
        self._ear: Ear | None = None if head.content_type.startswith(_MUTE) else Ear()

    @property
    def started(self) -> bool:
        """Say whether the client got anything."""
        return self._relay.started

    @property
    def done(self) -> bool:
        """Say whether the client has all it gets."""
        return self._relay.done

    @property
    def closing(self) -> bool:
        """Say whether the client's connection must end with this answer."""
        return self._relay.closing

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Pass `data` on. Raises ProtocolError 502 at a sign of a call under fail_closed, while verdicts are enforced."""
        if self._ear is not None and data:
            self._hear(self._ear, data)
        return self._relay.feed(data, last=last)

    def fail(self, message: str) -> bytes:
        """Cut."""
        return self._relay.fail(message)

    def keep_alive(self) -> bytes:
        """Nothing is held here."""
        return b""

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
