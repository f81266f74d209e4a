"""The provider's side of a WebSocket: the request for one, what the provider answers, and then bytes.

What the frames say is the tunnel's business.
"""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Final, Protocol, cast

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import MAX_HEAD, forwarded_response, parse_response

_EXTENSIONS: Final = re.compile(rb"\r\nsec-websocket-extensions:[^\r]*", re.IGNORECASE)
_UPGRADE: Final = b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
_ERRORS: Final = frozenset(status.value for status in HTTPStatus if status >= 400)


class Listener(Protocol):
    """Who is told of what the provider does."""

    def agreed(self, head: bytes) -> None:
        """Take the head of an answer that agrees to a WebSocket, as the client may have it."""
        ...

    def refused(self, status: int, why: str) -> None:
        """Take an answer that does not, or what is none."""
        ...

    def received(self, data: bytes) -> None:
        """Take bytes of frames."""
        ...

    def writable(self, *, writable: bool) -> None:
        """Make the client wait, or go on."""
        ...

    def lost(self) -> None:
        """Take the end of the connection."""
        ...


class WebSocketUpstream(asyncio.Protocol):
    """One connection to a provider."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._agreed = False
        self._buffer = b""  # the head of the answer, while it is not whole

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read the head of the answer, then pass bytes on."""
        if not self._agreed:
            self._buffer += data
            try:
                data = self._answered()
            except ProtocolError as error:
                self._listener.refused(502, str(error))
                return
        if data:
            self._listener.received(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        """Pass the news on."""
        self._transport = None
        self._listener.lost()

    def pause_writing(self) -> None:
        """Make the client wait."""
        self._listener.writable(writable=False)

    def resume_writing(self) -> None:
        """Let the client go on."""
        self._listener.writable(writable=True)

    def ask(self, opening: bytes) -> None:
        """Ask for a WebSocket without extensions, by the request line and fields of the client's request."""
        self.write(_EXTENSIONS.sub(b"", opening) + _UPGRADE)

    def _answered(self) -> bytes:
        """Tell what the head says once it is whole, and return what follows an agreement. Raises ProtocolError."""
        data = self._buffer
        end = data.find(b"\r\n\r\n") + 4
        if end < 4:
            if len(data) > MAX_HEAD:
                raise ProtocolError("the upstream's head is too long", status=502)
            return b""
        self._buffer = b""
        head = parse_response(data[:end])
        if head.status != 101 or b"\r\nsec-websocket-extensions:" in data[:end].lower():
            status = head.status if head.status in _ERRORS else 502
            self._listener.refused(status, f"the upstream did not agree to a WebSocket ({head.status})")
            return b""
        self._agreed = True
        told = forwarded_response(head, rewritten=False)
        self._listener.agreed(b"HTTP/1.1" + head.line[8:] + told + _UPGRADE)
        return data[end:]

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._transport is not None:
            self._transport.write(data)

    def set_reading(self, *, on: bool) -> None:
        """Read, or read no more for now."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.resume_reading if on else self._transport.pause_reading)()

    def close(self) -> None:
        """Close once everything was sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Drop the connection."""
        if self._transport is not None:
            self._transport.abort()
