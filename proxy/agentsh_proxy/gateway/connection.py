"""Connections of MCP clients to the gateway: one request at a time is answered, at once, by a task, or by whoever attends to it.

What a request is, is `requests`' business, and what it means the router's; this file knows what a slow or vanished client does to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Protocol, cast

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.gate import UNREADABLE
from agentsh_net.core.web.http_head import RequestHead
from agentsh_proxy import connection_limit
from agentsh_proxy.chunks import LAST_CHUNK, chunk
from agentsh_proxy.gateway.requests import HttpRequest, Requests
from agentsh_proxy.load import Load
from agentsh_proxy.replies import CONTINUE

HEAD_SECONDS: Final = 20.0  # as the LLM proxy's: from a head's first byte to its last
BODY_SECONDS: Final = 60.0  # between two reads of a body
IDLE_SECONDS: Final = 75.0  # between two requests, as nginx
LINGER_SECONDS: Final = 5.0  # in which what a refused client still sends is dropped, so that it can read why
WRITE_BUFFER: Final = 256 << 10  # bytes waiting for a slow client before its server is read no further
READ_AHEAD: Final = 64 << 10  # bytes of requests that came before their turn

# An upstream's own status has none; RFC 9112, section 4 lets it be empty.
PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}

JSON: Final = (("Content-Type", "application/json"),)
Fields = Iterable[tuple[str, str]]


class Attending(Protocol):
    """Who answers a request later. It says `finished` when it has."""

    def cancel(self) -> object:
        """Take note that the client is gone."""
        ...


# Answers a request, in one of three ways: at once (None), by what it returns and a task awaits, or later: who `attend`s to it.
Handler = Callable[[HttpRequest, "GatewayConnection"], Awaitable[None] | None]


class Front:
    """What all connections share: who answers, the bound of a request, and who is connected."""

    def __init__(
        self,
        handler: Handler,
        max_request: Callable[[], int],
        on_bug: Callable[[BaseException], None],
        whose: Callable[[asyncio.BaseTransport], str],
        on_refused: Callable[[int, str, RequestHead | None, str], None],
        now: float,
    ) -> None:
        self.handler = handler
        self.max_request = max_request
        self.on_bug = on_bug
        self.whose = whose  # the session in which a client's socket was made, empty for none
        self.on_refused = on_refused  # with status, reason, head and that session
        self.connections: set[GatewayConnection] = set()
        self.load = Load()
        self.draining = False
        self.now = now

    def tick(self, now: float) -> None:
        """Close what takes too long (once a second)."""
        self.now = now
        for connection in tuple(self.connections):
            connection.tick(now)

    async def quiet(self) -> None:
        """Wait until nobody is being answered; streams that have no end are not waited for."""
        while busy := [c.idle() for c in self.connections if c.busy and not c.endless]:
            await asyncio.wait(busy)

    def drain(self) -> None:
        """Let no connection wait for another request."""
        self.draining = True
        self.tick(self.now)

    def close(self) -> None:
        """End every connection."""
        for connection in tuple(self.connections):
            connection.abort()


class GatewayConnection(asyncio.Protocol):
    """One connection of a client."""

    __slots__ = (
        "_answered", "_closing", "_front", "_idle", "_lingering", "_loop", "_paused", "_requests", "_streaming", "_transport", "_work", "_writable",
        "admitted", "cors", "endless", "here", "seen",
    )  # fmt: skip

    def __init__(self, front: Front) -> None:
        self._front = front
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._requests = Requests(front.max_request, front.load)
        self._work: Attending | None = None  # who is answering
        self._idle: asyncio.Future[None] | None = None  # whoever waits until nobody is
        self._writable: asyncio.Future[None] | None = None  # set while the client is slow
        self._streaming = False
        self._answered = False
        self._closing = False
        self._lingering = False
        self._paused = False
        self.seen = front.now  # when it was heard last
        self.endless = False  # this answer lasts as long as the client listens
        self.admitted: object = None  # what the gateway made of the last head
        self.here = ""  # the session in which the client's socket was made
        self.cors: Fields = ()  # what the page that asked must be told, if one did

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection up, where it can be."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER)
        if not connection_limit.admit(self._front.connections, self):
            self._refuse(ProtocolError("too many connections", status=503))
            return
        try:
            self.here = self._front.whose(transport)
        except ProtocolError as error:
            self._refuse(error)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        """Cancel what the client asked for."""
        self._transport = None
        self._front.connections.discard(self)
        self._requests.drop()
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        if isinstance(self._work, asyncio.Task):
            # Behind its first step: what never began lets go of nothing.
            self._loop.call_soon(self._work.cancel)
        elif self._work is not None:
            self._work.cancel()
        self._quiet()

    def data_received(self, data: bytes) -> None:
        """Read requests."""
        if self._lingering:
            return
        self.seen = self._front.now
        self._requests.add(data)
        if self._work is None:
            self._read()
        elif self._requests.ahead > READ_AHEAD and self._transport is not None:
            self._transport.pause_reading()
            self._paused = True

    def eof_received(self) -> None:
        """Let the transport close: a client that will send no more is taken to be gone."""

    def pause_writing(self) -> None:
        """Make who writes wait for a slow client."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Go on: the client caught up."""
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    # What an answer is made of.

    def answer(self, status: int, body: bytes = b"", fields: Fields = JSON) -> None:
        """Send a whole answer."""
        own = tuple(fields) if body else tuple(f for f in fields if f not in JSON)  # nothing is not JSON
        self._answered = True
        length = b"Content-Length: %d\r\n" % len(body) if status not in (204, 304) else b""
        self._write(b"%b%b\r\n%b" % (self._head_of(status, own), length, body))

    def begin(self, status: int, fields: Fields) -> None:
        """Begin an answer whose end is not known yet."""
        self._streaming = True
        coding = (("Transfer-Encoding", "chunked"),) if self._chunked else ()
        self._closing = self._closing or not coding
        self._write(self._head_of(status, (*fields, *coding)) + b"\r\n")

    async def send(self, data: bytes) -> None:
        """Send the next bytes of an answer that was begun; waits while the client is slow."""
        self._write(chunk(data) if self._chunked else data)
        if self._writable is not None:
            await self._writable

    def end(self) -> None:
        """End an answer that was begun."""
        self._streaming = False
        self._answered = True
        if self._chunked:
            self._write(LAST_CHUNK)

    def last(self, data: bytes) -> None:
        """Send the last bytes of an answer that was begun, however slow the client is, and end it."""
        self._write(chunk(data) if self._chunked else data)
        self.end()

    def note_refused(self, status: int, why: str) -> None:
        """Tell of a request that goes no further than here."""
        self._front.on_refused(status, why, self._requests.head, self.here)

    # Who answers.

    def attend(self, who: Attending) -> None:
        """Take note of who answers later."""
        self._work = who

    def later(self, seconds: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Have something called for who attends."""
        return self._loop.call_later(seconds, callback)

    def take_over(self, work: Awaitable[None]) -> None:
        """Let a task answer, or go on with an answer."""
        self._work = self._loop.create_task(self._run(work))

    def finished(self) -> None:
        """Take note that the request was answered by who attended to it, and go on with the next."""
        self._finish()
        self._read()

    @property
    def busy(self) -> bool:
        """Say whether a request is being answered."""
        return self._work is not None

    @property
    def awaited(self) -> bool:
        """Say whether it is the client's turn: to send a request, or the rest of one."""
        return self._work is None

    def idle(self) -> asyncio.Future[None]:
        """Return what is done when the request under way is answered, or its client gone."""
        if self._idle is None:
            self._idle = self._loop.create_future()
        return self._idle

    @property
    def streaming(self) -> bool:
        """Say whether an answer was begun and not ended: nothing else can be said but its end, or a cut."""
        return self._streaming

    @property
    def answered(self) -> bool:
        """Say whether all of an answer to the request under way was said."""
        return self._answered

    def abort(self) -> None:
        """Cut the connection, so that nobody takes the answer for complete."""
        if self._transport is not None:
            self._transport.abort()

    def close_now(self) -> None:
        """Close without waiting for the client."""
        if self._transport is not None:
            self._transport.close()

    def tick(self, now: float) -> None:
        """Close what takes too long."""
        quiet = now - self.seen
        if self._work is not None:
            return
        if self._lingering:
            if quiet > LINGER_SECONDS:
                self.abort()
        elif self._requests.head is not None:
            if quiet > BODY_SECONDS:
                self._refuse(ProtocolError("the request body did not come in time", status=408))
        elif self._requests.ahead:
            if quiet > HEAD_SECONDS:
                self._refuse(ProtocolError("the request head did not come in time", status=408))
        elif (quiet > IDLE_SECONDS or self._front.draining) and self._transport is not None:
            self._transport.close()

    # Reading and answering.

    def _read(self) -> None:
        """Answer what is whole, one request after another, until one takes its time."""
        while self._work is None and self._transport is not None and not self._transport.is_closing():
            try:
                asked = self._requests.next()
            except ProtocolError as error:
                self._refuse(error)
                return
            if asked is None:
                if self._requests.awaited:
                    self._write(CONTINUE)
                return
            self._closing = not asked.head.keep_alive
            self._serve(asked)

    def _serve(self, asked: HttpRequest) -> None:
        try:
            work = self._front.handler(asked, self)
            if work is not None:
                self.take_over(work)
                return
        except Exception as error:  # noqa: BLE001 - see `_failed`
            self._failed(error)
            self._work = None
        if self._work is None:
            self._finish()

    async def _run(self, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            if self._transport is not None:
                self.abort()
            raise
        except Exception as error:  # noqa: BLE001 - see `_failed`
            self._failed(error)
        self.finished()

    def _failed(self, error: Exception) -> None:
        """Tell a client what is wrong; of a bug of ours it learns nothing but that its answer is cut."""
        if not isinstance(error, ProtocolError):
            self._front.on_bug(error)
            self.abort()
        elif self._streaming:
            self.abort()
        else:
            self.answer(error.status, _error(str(error)))

    def _finish(self) -> None:
        self._work = None
        self._answered = False
        self._requests.done()
        self.endless = False
        self._quiet()
        if self._closing or self._streaming or self._front.draining:
            if self._transport is not None:
                self._transport.close()
            return
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        self.seen = self._front.now

    def _quiet(self) -> None:
        idle, self._idle = self._idle, None
        if idle is not None and not idle.done():
            idle.set_result(None)

    @property
    def _chunked(self) -> bool:
        """Say whether an answer without a length is sent in chunks: clients of HTTP/1.0 read to the end of the connection."""
        head = self._requests.head
        return head is None or bool(head.minor)

    def _refuse(self, error: ProtocolError) -> None:
        """Answer and close; read on a little, or a reset could overtake the answer (RFC 9112, section 9.6)."""
        self._closing = self._lingering = True
        self._requests.drop()
        self.seen = self._front.now
        self.note_refused(error.status, str(error))
        self.answer(error.status, _error(str(error)))
        if self._transport is not None:
            self._transport.write_eof()

    def _head_of(self, status: int, fields: tuple[tuple[str, str], ...]) -> bytes:
        closing = (("Connection", "close"),) if self._closing else ()
        return _head(status, (*fields, *self.cors, *closing))

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


@lru_cache(maxsize=64)  # answers are much alike
def _head(status: int, fields: tuple[tuple[str, str], ...]) -> bytes:
    """Return a head without its end."""
    lines = [f"HTTP/1.1 {status} {PHRASES.get(status, '')}", *(f"{name}: {value}" for name, value in fields)]
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def _error(message: str) -> bytes:
    return jsonrpc.error(None, UNREADABLE, f"agentsh-net: {message}")
