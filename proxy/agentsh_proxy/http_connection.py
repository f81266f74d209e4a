"""One HTTP/1.1 connection to a server: writes a request, parses the answer, holds what the consumer has not taken yet.

Which connection serves which request, TLS and pins are `http_client`'s business.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import httptools

from agentsh_net.core.errors import ProtocolError
from agentsh_proxy.acknowledged import acknowledged
from agentsh_proxy.inflating import Decoder, inflater

MAX_HEAD = 64 << 10  # bytes of status line and headers; nginx and Node stop at 32 and 16 KiB
HIGH_WATER = 256 << 10  # bytes read ahead of the consumer before the socket is left unread


class CutError(ProtocolError):
    """The connection ended before the answer did."""


class Connection(asyncio.Protocol):
    """One connection: writes a request, parses its answer, holds what the consumer has not taken yet."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.complete = False
        self.fresh = True  # no request was sent on it before
        self.reusable = False
        self._error: ProtocolError | None = None
        self._parser: Any = None
        self._head_size = 0
        self._head_done = False
        self._saw_bytes = False
        self._decoder: Decoder | None = None  # of a body in a content coding
        self._chunks: deque[bytes] = deque()
        self._queued = 0
        self._paused = False
        self._news = asyncio.Event()
        self._watcher: Callable[[], bool] | None = None
        self._closed = False
        self._taken: bool | None = None  # what was sent, by the server's kernel; known when it hung up

    def peer(self) -> tuple[str, int] | None:
        """Return whom it leads to, None where nobody can say."""
        name = self.transport.get_extra_info("peername") if self.transport is not None else None
        return (str(name[0]), int(name[1])) if name else None

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)  # create_connection makes no other

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        if self._parser is None or self.complete:
            self._fail("the server sends bytes that nobody asked for")
            return
        self._saw_bytes = True
        if not self._head_done:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("the server switches to another protocol")
        except httptools.HttpParserError as fault:
            self._fail(f"the server's answer is not HTTP/1.1: {type(fault).__name__}")
        if not self._head_done and self._head_size > MAX_HEAD:
            self._fail(f"the head of the server's answer is longer than {MAX_HEAD} bytes")
        self._tell()

    def eof_received(self) -> None:
        """Note whether the request had arrived: soon the kernel answers for a program that closed its socket."""
        self._note_taken()

    def connection_lost(self, exc: Exception | None) -> None:
        """Decide whether that is the end of the body or a cut."""
        self._note_taken()
        self._closed, self.reusable = True, False
        if self._head_done and not self.complete and exc is None and self._ends_with_connection():
            self._finish()
            self.complete = self._error is None
        elif not self.complete and self._error is None:
            what = "in the middle of its answer" if self._saw_bytes else "without an answer"
            self._error = CutError(f"the server closed the connection {what}", status=502)
        self._tell()

    # --- httptools callbacks

    def on_message_begin(self) -> None:
        """Begin an answer; a second one was not asked for."""
        if self.complete:
            self._fail("the server answers more than it was asked")
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are ignored: nothing of MCP is in them."""
        if not self._head_done:
            self.headers.append((name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")))

    def on_headers_complete(self) -> None:
        """Take the status, and the coding of a server that compresses though it is asked not to: what is judged is plain."""
        self.status = self._parser.get_status_code()
        self._head_done = self.status >= 200
        if self._head_done:
            try:
                self._decoder = inflater(", ".join(self._values("content-encoding")).lower())
            except ProtocolError as error:
                self._fail(f"the server was asked for a plain answer: {error}")

    def on_body(self, body: bytes) -> None:
        """Queue a piece of the body, and stop reading when the consumer is behind."""
        if self._decoder is not None:
            body = self._inflated(self._decoder, body)
            if not body:
                return  # nothing is the end
        self._chunks.append(body)
        self._queued += len(body)
        if self._queued > HIGH_WATER and not self._paused and self.transport is not None:
            self._paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        """End the answer."""
        if not self._head_done:
            return  # an interim answer (RFC 9110, section 15.2)
        self._finish()
        if self._error is not None:
            return
        self.complete = True
        self.reusable = bool(self._parser.should_keep_alive()) and not self._closed

    # --- for the client

    def send(self, head: bytes, body: bytes) -> None:
        """Begin an exchange."""
        if self.transport is not None:
            self.transport.write(head + body)  # first: what follows can be done while it travels
        self._parser = httptools.HttpResponseParser(self)
        self.status, self.headers, self.complete, self.reusable = 0, [], False, False
        self._head_size, self._head_done, self._saw_bytes = 0, False, False
        self._decoder = None
        self._news.clear()

    @property
    def unseen(self) -> bool:
        """Say whether the server had hung up before the request came: it can be sent again, as a call that may have run cannot."""
        return not self._saw_bytes and self._taken is False

    @property
    def usable(self) -> bool:
        """Say whether another request may be sent."""
        return self.reusable and not self._closed and self._error is None and not self._chunks

    async def head(self) -> None:
        """Wait for the status and headers."""
        while not self._head_done:
            await self.news()
        if self._error is not None:
            raise self._error

    def watch(self, watcher: Callable[[], bool] | None) -> None:
        """Have a function called whenever something came, which says whether it took it: then who waits sleeps on."""
        self._watcher = watcher

    @property
    def waiting(self) -> int:
        """How many bytes of the body are here and not taken."""
        return self._queued

    @property
    def error(self) -> ProtocolError | None:
        """Return what went wrong, if anything did."""
        return self._error

    async def chunk(self) -> bytes:
        """Return the next bytes of the body, empty at its end. Raises ProtocolError if it was cut."""
        while not self._chunks:
            if self.complete:
                return b""
            await self.news()
        return self.take()

    def take(self) -> bytes:
        """Return the next bytes of the body that are here, empty where none are."""
        if not self._chunks:
            return b""
        data = self._chunks.popleft()
        self._queued -= len(data)
        if self._paused and self._queued <= HIGH_WATER // 2 and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()
        return data

    def drop(self, limit: int) -> None:
        """Forget what came of the body and was not taken, unless it is more than `limit` bytes."""
        if self._queued <= limit:
            self._chunks.clear()
            self._queued = 0

    def close(self) -> None:
        """Close at once: what was not read is of no interest."""
        if self.transport is not None:
            self.transport.abort()

    def _note_taken(self) -> None:
        if self._taken is None and not self._saw_bytes and self.transport is not None:
            self._taken = acknowledged(self.transport)

    def _tell(self) -> None:
        if self._watcher is None or not self._watcher():
            self._news.set()

    async def news(self) -> None:
        """Wait until something came. Raises ProtocolError where nothing more will."""
        if self._error is not None:
            raise self._error
        self._news.clear()
        await self._news.wait()
        if self._error is not None and not self._chunks:
            raise self._error

    def _inflated(self, decoder: Decoder, data: bytes) -> bytes:
        try:
            return decoder.feed(data) if self._error is None else b""
        except ProtocolError as error:
            self._fail(f"the server's answer: {error}")
            return b""

    def _finish(self) -> None:
        """Take the end of the body."""
        try:
            if self._decoder is not None:
                self._decoder.finish()
        except ProtocolError as error:
            self._fail(f"the server's answer: {error}")

    def _fail(self, message: str) -> None:
        if self._error is None:
            self._error = ProtocolError(message, status=502)
        self.reusable = False
        self.close()

    def _ends_with_connection(self) -> bool:
        """Say whether the body has no other end than the connection's (RFC 9112, section 6.3, rule 8)."""
        return not self._values("content-length") and not self._values("transfer-encoding")

    def _values(self, name: str) -> list[str]:
        return [value for header, value in self.headers if header == name]
