"""Connections of clients: requests read strictly, one at a time, in order; everything bounded in bytes and in time.

What a request leads to is the exchange's business.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import cast

from agentsh_net.core.dialects.base import Dialect
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.familiar_heads import mould
from agentsh_net.core.web.http_head import RequestHead, find_head, parse_request
from agentsh_proxy.llm.admission import Answered, RefusalError
from agentsh_proxy.llm.asked import Asked, asked
from agentsh_proxy.llm.exchange import Exchange
from agentsh_proxy.llm.half_open import HalfOpen
from agentsh_proxy.llm.request_body import RequestBody, too_large
from agentsh_proxy.llm.service import Service
from agentsh_proxy.llm.tunnel import ENDLESS, Tunnel
from agentsh_proxy.replies import CONTINUE, error_body, reply

HEAD_SECONDS = 20.0  # from a head's first byte to its last; nginx allows 60, a local client needs none
BODY_SECONDS = 60.0  # between two reads of a body
IDLE_SECONDS = 75.0  # between two requests, as nginx
LINGER_SECONDS = 5.0  # in which what a refused client still sends is dropped, so that it can read why
_BLANK = (b"", b"\r")  # nothing, or the half of an empty line
WRITE_BUFFER = 256 << 10  # bytes waiting for a slow client before the upstream is paused; one read of uvloop


class ClientConnection(asyncio.Protocol):
    """One connection of a client."""

    __slots__ = (
        "_body", "_buffer", "_closing", "_exchange", "_half_open", "_head", "_here", "_in_loop", "_known", "_lingering", "_reading_paused",
        "_service", "_transport", "_upload_paused", "_writes", "_writing_paused", "seen",
    )  # fmt: skip

    def __init__(self, service: Service) -> None:
        self._service = service
        self._writes = service.writes
        self._transport: asyncio.Transport | None = None
        self._buffer = b""  # an incomplete head, or requests that came before their turn (one read at most)
        self._exchange: Exchange | Tunnel | None = None
        self._head: RequestHead | None = None  # of the request whose body is being read
        self._body: RequestBody | None = None
        self._known: Asked | None = None  # what the last head led to
        self._in_loop = False
        self._closing = False  # this answer is the last
        self._lingering = False
        self._half_open: HalfOpen | None = None
        self._here = ""  # the session in which the client's socket was made
        self._upload_paused = False
        self._reading_paused = False
        self._writing_paused = False
        self.seen = service.now

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection up, where it can be."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER)
        try:
            self._here = self._service.take(self, transport)
        except ProtocolError as error:
            self.refuse(RefusalError(error.status, str(error)), close=True)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        """Cancel what the client asked for."""
        if self._transport is not None:
            self._writes.drop(self._transport)
        self._transport = None
        if self._half_open is not None:
            self._half_open.rest(b"")
        self._service.drop(self)
        self._forget_body()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.cancel()

    def data_received(self, data: bytes) -> None:
        """Read requests."""
        if self._lingering:
            return
        self.seen = self._service.now
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        elif self._exchange is None and self._known is not None and self._read_at_once(self._known, data):
            return
        self._read(data)

    def eof_received(self) -> bool:
        """Go on where a whole request waits for its answer, and find out whether the client does; else it is gone."""
        exchange, transport = self._exchange, self._transport
        waits = isinstance(exchange, Exchange) and self._head is None and not exchange.answering
        if not waits or self._lingering or transport is None:
            return False
        self._half_open = HalfOpen(
            partial(self._writes.write, transport), asyncio.get_running_loop().call_later
        )
        return True

    def pause_writing(self) -> None:
        """Make the upstream wait for a slow client."""
        self._writing_paused = True
        if self._exchange is not None:
            self._exchange.on_client_writable(writable=False)

    def resume_writing(self) -> None:
        """Go on: the client caught up."""
        self._writing_paused = False
        if self._exchange is not None:
            self._exchange.on_client_writable(writable=True)
        elif self._buffer:
            self._next()

    # What an exchange asks.

    def write(self, data: bytes) -> None:
        """Send bytes of an answer, at the end of this turn of the loop."""
        if self._transport is not None:
            if self._half_open is not None:
                data = self._half_open.rest(data)
            self._writes.write(self._transport, data)

    def answer_error(self, status: int, message: str, dialect: Dialect | None) -> None:
        """Send an error in place of an answer of which nothing was sent."""
        self._exchange = None
        self._reply(status, error_body(status, message, dialect), close=not self.keeps_alive())
        self._next()

    def refuse(self, refused: RefusalError, *, close: bool = False, bodiless: bool = False) -> None:
        """Answer with an error of ours; what was under way is cancelled."""
        exchange, self._exchange = self._exchange, None
        self._service.note_refused(refused, exchange.asked if exchange is not None else None, self._here)
        if exchange is not None:
            exchange.cancel()
            if exchange.answering:
                self.abort()
                return
        body = error_body(refused.status, str(refused), refused.dialect)
        close = close or self._closing
        self._reply(refused.status, body, close=close, fields=refused.fields, bodiless=bodiless)
        self._next()

    def on_answered(self, *, keep_alive: bool, whole: bool) -> None:
        """Go on after an answer. Without `whole` the connection is cut, so that nobody takes the answer for complete."""
        self._exchange = None
        if not whole:
            self.abort()
        elif not keep_alive or self._head is not None:
            self._close()
        elif self._buffer or self._reading_paused:
            self._next()

    def keeps_alive(self) -> bool:
        """Say whether another request may follow the answer to this one."""
        ends = self._closing or self._head is not None or self._service.draining
        return not (ends or (self._half_open is not None and not self._buffer))

    def pause_upload(self) -> None:
        """Read no more of the body for now."""
        self._upload_paused = True
        self._set_reading()

    def resume_upload(self) -> None:
        """Read the body again, beginning with what came meanwhile."""
        self._upload_paused = False
        self._next()

    def abort(self) -> None:
        """Cut the connection, after what was written."""
        if self._transport is not None:
            self._writes.flush(self._transport)
            self._transport.abort()

    # What the service asks.

    @property
    def awaited(self) -> bool:
        """Say whether it is the client's turn: to send a request, or the rest of one."""
        return self._exchange is None or (self._head is not None and not isinstance(self._exchange, Tunnel))

    def tick(self, now: float) -> None:
        """Close what takes too long (once a second)."""
        quiet = now - self.seen
        if self._lingering:
            if quiet > LINGER_SECONDS:
                self.abort()
        elif isinstance(self._exchange, Tunnel):
            self._exchange.tick(now)
        elif self._head is not None and not self._upload_paused:
            if quiet > BODY_SECONDS:
                self.refuse(RefusalError(408, "the request body did not come in time"), close=True)
        elif self._exchange is not None:
            if self._half_open is not None:
                self._half_open.ask()
            self._exchange.tick(now)
        elif self._buffer:
            if quiet > HEAD_SECONDS:
                self.refuse(RefusalError(408, "the request head did not come in time"), close=True)
        elif quiet > IDLE_SECONDS or self._service.draining:
            self.close_now()

    def close_now(self) -> None:
        """Close without waiting for the client."""
        if self._transport is not None:
            self._writes.flush(self._transport)
            self._transport.close()

    def stop(self, error: ProtocolError) -> None:
        """Fail what is under way and close: the worker is ending."""
        if self._exchange is not None:
            self._exchange.fail(error)
        self._close()

    # Reading.

    def _read(self, data: bytes) -> None:
        """Read as much of `data` as has its turn; keep the rest."""
        self._in_loop = True
        try:
            while data and not self._lingering and self._transport is not None:
                if self._head is not None and not self._upload_paused:
                    data = self._read_body(data)
                elif self._exchange is not None or self._writing_paused:
                    break
                else:
                    # An empty line before a request is none (RFC 9112 section 2.2).
                    data = data.removeprefix(b"\r\n")
                    length = 0 if data in _BLANK else find_head(data)
                    if not length:
                        break
                    raw = data[:length]
                    data = data[length:]
                    if not self._repeated(raw):
                        self._begin(raw)
        except Exception as error:  # noqa: BLE001 - sorted there
            self._fail(error)
            return
        finally:
            self._in_loop = False
        self._buffer = b"" if self._lingering else data
        if data or self._reading_paused:
            self._set_reading()

    def _read_at_once(self, known: Asked, data: bytes) -> bool:
        """Take a request whose head came before on this connection, if that and its whole body are all there is to read."""
        service, mould = self._service, known.mould
        if mould is None or known.view is not service.view or known.sessions is not service.sessions:
            return False  # not asked by a call, in what most requests go through
        body = mould.body_in(data)
        longest = known.view.proxy.max_request
        if not body or len(body) > longest or self._head is not None or self._writing_paused:
            return False
        service.counts.requests += 1
        self._exchange = exchange = Exchange(service, self, known)
        try:
            exchange.on_request(body)
        except Exception as error:  # noqa: BLE001 - sorted there
            self._fail(error)
        return True

    def _next(self) -> None:
        """Read on with what was kept."""
        if not self._in_loop and (self._buffer or self._reading_paused):
            data, self._buffer = self._buffer, b""
            self.seen = self._service.now
            self._read(data)

    def _repeated(self, raw: bytes) -> bool:
        """Begin with a request whose head came before on this connection, but for the length of its body, if it is one."""
        known, service = self._known, self._service
        if known is None or known.mould is None or not known.stands(service.view, service.sessions):
            return False
        if not (length := known.mould.length_in(raw)):
            return False
        service.counts.requests += 1
        self._exchange = Exchange(service, self, known)
        if length > known.view.proxy.max_request:
            self.refuse(too_large(), close=True)
        else:
            self._head, self._body = known.head, RequestBody(known.head, length, service.load)
        return True

    def _begin(self, raw: bytes) -> None:
        """Begin with a request whose head is whole. Raises ProtocolError."""
        head = parse_request(raw)
        service = self._service
        service.counts.requests += 1
        view, sessions = service.view, service.sessions
        self._closing, bodiless = not head.keep_alive, head.method == "HEAD"
        self._known = None
        try:
            admitted = service.admit(head, self._here)
            if isinstance(admitted, Answered):
                self._reply(200, admitted.body, close=self._closing or head.has_body, bodiless=bodiless)
                return
            what = asked(head, admitted, view, sessions)
            if admitted.websocket:
                self._exchange = Tunnel(service, self, what)
                self._head, self._body = head, RequestBody(head, ENDLESS, service.load)
                self._exchange.on_streamed_request()
                return
            self._exchange = exchange = Exchange(service, self, what)
            if admitted.unread:
                service.note_unread(admitted)
            if what.held and (head.length or 0) > view.proxy.max_request:
                raise too_large()
            if not head.has_body:
                exchange.on_request(b"")
                return
        except RefusalError as refused:
            self.refuse(refused, close=head.has_body, bodiless=bodiless)
            return
        if what.held and head.keep_alive and not head.expects_continue:
            self._known = replace(what, mould=mould(raw))
        self._head, self._body = head, RequestBody(head, head.length or 0, service.load)
        if head.expects_continue:
            self.write(CONTINUE)
        if not what.held:
            exchange.on_streamed_request()

    def _read_body(self, data: bytes) -> bytes:
        """Take body bytes and return what follows the body. Raises ProtocolError."""
        exchange, body = self._exchange, self._body
        if exchange is None or body is None:
            self._close()  # the answer came before the body's end; what is left of it is of no use
            return b""
        data, rest = body.take(data)
        last = body.whole
        self._closing |= body.overrun
        if last:
            self._head = self._body = None
        if not exchange.held:
            exchange.on_upload(data, last=last)
            return rest
        try:
            if body.size > self._service.view.proxy.max_request:
                raise too_large()
            if last:
                exchange.renew()
                exchange.on_request(body.joined(data))
            else:
                body.hold(data)
        except RefusalError as refused:
            self.refuse(refused, close=not last)
        return rest

    def _set_reading(self) -> None:
        """Read from the socket only what may be read now: this bounds what waits here to one read."""
        busy = self._writing_paused or (self._exchange is not None and self._head is None)
        waiting = self._upload_paused or (busy and self._buffer != b"")
        if waiting == self._reading_paused or self._transport is None or self._transport.is_closing():
            return
        self._reading_paused = waiting
        (self._transport.pause_reading if waiting else self._transport.resume_reading)()

    # Answering.

    def _fail(self, error: Exception) -> None:
        """Answer a refusal, a violation of HTTP, or a bug of ours, which must leave no client waiting."""
        if isinstance(error, RefusalError):
            self.refuse(error)
        elif isinstance(error, ProtocolError):
            self.refuse(RefusalError(error.status, str(error)), close=True)
        else:
            self.refuse(RefusalError(502, self._service.note_bug(error)), close=True)

    def _reply(
        self, status: int, body: bytes, *, close: bool, fields: bytes = b"", bodiless: bool = False
    ) -> None:
        self.write(reply(status, body, close=close, fields=fields, bodiless=bodiless))
        if close:
            self._close()

    def _close(self) -> None:
        """Close once everything was sent; read on a little, or a reset could overtake the answer (RFC 9112 section 9.6)."""
        if self._lingering or self._transport is None or self._transport.is_closing():
            return
        self._buffer = b""
        self._forget_body()
        if self._half_open is not None:
            self.close_now()  # it sends nothing that could be reset
            return
        self._lingering = True
        self.seen = self._service.now
        self._upload_paused = False
        self._set_reading()
        self._writes.flush(self._transport)
        self._transport.write_eof()

    def _forget_body(self) -> None:
        if self._body is not None:
            self._body.drop()
            self._body = None
