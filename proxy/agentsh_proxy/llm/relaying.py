"""Answers nobody has an opinion on: the body's bytes as they came, in a framing that the client can take.

Sans IO. What is read before it is passed on is `answers`' business.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple, Protocol

from agentsh_net.core.web.http_head import ResponseHead, forwarded_response
from agentsh_proxy.chunks import LAST_CHUNK, chunk


class Framing(Enum):
    """How the client learns where the body ends."""

    LENGTH = auto()  # Content-Length
    CHUNKED = auto()
    CLOSE = auto()  # HTTP/1.0: by the end of the connection


class Client(NamedTuple):
    """What the client can take: chunks (HTTP/1.1), and whether its connection stays open after the answer."""

    chunks: bool
    keep_alive: bool


class Answer(Protocol):
    """One answer on its way."""

    @property
    def started(self) -> bool:
        """Say whether the client got anything."""
        ...

    @property
    def done(self) -> bool:
        """Say whether the client has all it gets."""
        ...

    @property
    def closing(self) -> bool:
        """Say whether the client's connection must end with this answer."""
        ...

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Take body bytes and return what the client gets now. Raises ProtocolError while `started` is false: answer that."""
        ...

    def fail(self, message: str) -> bytes:
        """Return the last bytes for a client whose answer broke off after `started`; its connection is closed then."""
        ...

    def keep_alive(self) -> bytes:
        """Return bytes that keep a waiting client patient, or nothing where none are due."""
        ...


class Relay:
    """An answer nobody has an opinion on: the body's bytes as they came."""

    __slots__ = ("_client", "_framing", "_head", "closing", "done", "started")

    def __init__(self, head: ResponseHead, client: Client, *, bodiless: bool = False) -> None:
        self._head = head
        self._client = client
        if head.length is not None or bodiless:
            self._framing = Framing.LENGTH
        else:
            self._framing = Framing.CHUNKED if client.chunks else Framing.CLOSE
        self.started = False
        self.done = False
        self.closing = self._framing is Framing.CLOSE or not client.keep_alive

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Pass `data` on."""
        if self._framing is Framing.CHUNKED:
            data = chunk(data) + LAST_CHUNK if last else chunk(data)
        if not self.started:
            self.started = True
            data = self._opening() + data
        self.done = last
        return data

    def fail(self, message: str) -> bytes:  # noqa: ARG002 - nothing can be said inside somebody's bytes
        """Cut: the missing end tells the client that the body is not whole."""
        self.closing = True
        return b""

    def keep_alive(self) -> bytes:
        """Nothing is held here."""
        return b""

    def _opening(self) -> bytes:
        fields = forwarded_response(self._head, rewritten=False)
        if self._framing is Framing.CHUNKED:
            fields += b"\r\nTransfer-Encoding: chunked"
        return opening(self._head, fields, closing=self.closing)


class Tap(Protocol):
    """Who reads what passes."""

    def read(self, data: bytes, *, last: bool) -> None:
        """Take body bytes. A ProtocolError stops the answer."""
        ...


class Tapped:
    """A relayed answer that is read on its way."""

    __slots__ = ("_relay", "_tap")

    def __init__(self, head: ResponseHead, client: Client, tap: Tap) -> None:
        self._relay = Relay(head, client)
        self._tap = tap

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
        """Have `data` read, and pass it on. Raises ProtocolError as who reads it does."""
        self._tap.read(data, last=last)
        return self._relay.feed(data, last=last)

    def fail(self, message: str) -> bytes:
        """Cut."""
        return self._relay.fail(message)

    def keep_alive(self) -> bytes:
        """Nothing is held here."""
        return b""


def opening(head: ResponseHead, fields: bytes, *, closing: bool) -> bytes:
    """Return the head for the client: this hop's version, the upstream's status line and fields."""
    end = b"\r\nConnection: close\r\n\r\n" if closing else b"\r\n\r\n"
    return b"".join((b"HTTP/1.1", head.line[8:], fields, end))
