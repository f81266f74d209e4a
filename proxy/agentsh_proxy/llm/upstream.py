"""A connection to an LLM provider: kept alive, one exchange at a time, with strict reading of what comes back.

What becomes of an answer is the exchange's business, how a connection is made the pool's; this file knows where a message ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, cast

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import MAX_HEAD, ResponseHead
from agentsh_proxy.chunks import ChunkedReader, only_chunk
from agentsh_proxy.llm.view import Origin

if TYPE_CHECKING:
    from agentsh_proxy.llm.upstream_pool import Pool

MAX_IDLE = 512  # kept per origin; as many as agents stream at once on one worker, a few KiB each
MAX_INTERIM = 16  # 1xx answers before the real one; more is a peer playing for time
SLICE = 256 << 10  # of a long request, sent in one turn of the loop: a millisecond of TLS
_HEAD_END = b"\r\n\r\n"
_NOTHING = memoryview(b"")


class Waiting(Protocol):
    """Who asked: an exchange, as a connection sees it."""

    uploaded: bool  # the whole request was handed over

    @property
    def method(self) -> str:
        """The method of the request."""
        ...

    def on_connected(self, connection: UpstreamConnection) -> None:
        """Write the request to a connection that was made for it."""
        ...

    def on_unreachable(self, error: ProtocolError) -> None:
        """Take the news that no connection could be made."""
        ...

    def on_interim(self, head: ResponseHead) -> None:
        """Take a 1xx answer."""
        ...

    def on_head(self, head: ResponseHead) -> None:
        """Take the answer's head."""
        ...

    def takes(self, connection: UpstreamConnection, head: ResponseHead, data: bytes, whole: bytes) -> bool:
        """Take an answer that came whole in one read, its body alone and with its head, if it may leave as it came.

        Then the connection was released.
        """
        ...

    def relays(self, data: bytes, whole: bytes) -> bool:
        """Take body bytes that came as one chunk (`whole`), if they may leave as they came."""
        ...

    def on_data(self, data: bytes, *, last: bool) -> None:
        """Take body bytes; with `last` the connection is no longer this exchange's."""
        ...

    def on_lost(self, error: ProtocolError, *, answered: bool) -> None:
        """Take the news that the connection broke before the answer was whole; it is no longer this exchange's.

        `answered` says whether a byte of an answer came.
        """
        ...

    def on_bug(self, error: Exception) -> None:
        """Take an error of ours; the connection is no longer this exchange's."""
        ...

    def on_writable(self, *, writable: bool) -> None:
        """Write on, or write no more for now."""
        ...


class UpstreamConnection(asyncio.Protocol):
    """One connection. Serves one exchange at a time; between two it lies idle in the pool."""

    __slots__ = (
        "_buffer", "_chunked", "_exchange", "_full", "_head", "_heads", "_idle", "_interim", "_left", "_pool", "_sent_whole", "_transport", "_unsent",
        "_writes", "idle_since",
    )  # fmt: skip

    def __init__(self, pool: Pool, origin: Origin) -> None:
        self._pool = pool
        self._writes = pool.writes
        self._heads = pool.heads[origin]
        self._idle = pool.idle[origin]  # where it lies between two exchanges
        self._transport: asyncio.Transport | None = None
        self._exchange: Waiting | None = None
        self._buffer = b""
        self._head: ResponseHead | None = None
        self._chunked: ChunkedReader | None = None
        self._left: int | None = None  # body bytes to come; None: until the end of the connection
        self._interim = 0
        self._sent_whole = False
        self._unsent = _NOTHING  # of a long request
        self._full = False  # the transport takes no more for now
        self.idle_since = 0.0

    # What an exchange asks.

    def ask(self, exchange: Waiting, data: bytes) -> bool:
        """Take up an exchange and send its request, or the beginning of it; False where the connection is gone."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        self._exchange = exchange
        self._sent_whole = exchange.uploaded
        if len(data) > SLICE:
            self._unsent, data = memoryview(data)[SLICE:], data[:SLICE]
            asyncio.get_running_loop().call_soon(self._send_on)
        self._writes.write(transport, data)
        return True

    def write(self, data: bytes, *, last: bool) -> None:
        """Send request bytes; `last` ends the request."""
        self._sent_whole = last
        if self._transport is not None:
            self._writes.write(self._transport, data)

    def pause(self) -> None:
        """Read no more for now."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def abort(self) -> None:
        """Drop the connection; the exchange hears no more of it."""
        self._exchange = None
        self._drop()

    def release(self, head: ResponseHead) -> None:
        """Give the connection back, since the answer with this head came whole and nothing behind it: the next request may follow."""
        self._exchange = None
        self._interim = 0
        if not (self._sent_whole and head.keep_alive) or self._unsent:
            self._drop()
            return
        self.idle_since = self._pool.now
        idle = self._idle
        idle.append(self)
        if len(idle) > MAX_IDLE:
            idle.pop(0).abort()  # the oldest

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read what came; a violation ends the connection, and the exchange is told."""
        exchange = self._exchange
        if exchange is None:  # nobody asked: whatever this is, it answers nothing
            self._drop()
            return
        try:
            body = data if self._head is not None else self._read_head(exchange, data)
            if body is None:
                return
            chunked = self._chunked
            if chunked is None:
                self._read_body(exchange, body)
                return
            if chunked.between and (event := only_chunk(body)) and exchange.relays(event, body):
                return
            body = chunked.feed(body)
            if chunked.complete:
                self._end(clean=not chunked.overrun)
                exchange.on_data(body, last=True)
            elif body:
                exchange.on_data(body, last=False)
        except ProtocolError as error:
            self._drop()
            if self._exchange is exchange:
                self._exchange = None
                exchange.on_lost(error, answered=True)
        except Exception as error:  # noqa: BLE001 - a bug of ours must leave no client waiting
            self.abort()
            exchange.on_bug(error)

    def eof_received(self) -> None:
        """Let the transport close; connection_lost tells the rest."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the end of the body where nothing else marks it, and a failure everywhere else."""
        if self in self._idle:
            self._idle.remove(self)
        if self._transport is not None:
            self._writes.drop(self._transport)
        self._transport, self._unsent = None, _NOTHING
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        if self._head is not None and self._chunked is None and self._left is None and exc is None:
            exchange.on_data(b"", last=True)
            return
        what = "in the middle of its answer" if self._head is not None else "before it answered"
        answered = self._head is not None or self._interim > 0 or self._buffer != b""
        exchange.on_lost(
            ProtocolError(f"the upstream closed the connection {what}", status=502), answered=answered
        )

    def pause_writing(self) -> None:
        """Tell the exchange that no more can be sent for now."""
        self._full = True
        if self._exchange is not None:
            self._exchange.on_writable(writable=False)

    def resume_writing(self) -> None:
        """Tell the exchange that more can be sent."""
        self._full = False
        self._send_on()
        if self._exchange is not None:
            self._exchange.on_writable(writable=True)

    def _send_on(self) -> None:
        """Send another slice of a long request: at once it would keep every other stream waiting while it is encrypted."""
        if not self._unsent or self._full or self._transport is None:
            return
        piece, self._unsent = self._unsent[:SLICE], self._unsent[SLICE:]
        self._transport.write(piece)
        asyncio.get_running_loop().call_soon(self._send_on)

    # Reading.

    def _read_head(self, exchange: Waiting, data: bytes) -> bytes | None:
        """Read a head, or more of it, and return what follows; None where nothing of a body is to be read."""
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        text, end, body = data.partition(_HEAD_END)
        if not end or len(text) + len(end) > MAX_HEAD:
            self._await_head(data)
            return None
        head = self._heads.read(text)
        if head.status < 200:
            return self._read_interim(exchange, head, body)
        if body and head.length == len(body) and exchange.takes(self, head, body, data):
            return None
        self._head = head
        has_body = head.has_body(exchange.method)
        self._left = head.length if has_body else 0
        exchange.on_head(head)
        if self._exchange is not exchange:
            return None
        if head.chunked and has_body:
            self._chunked = ChunkedReader()
            return body or None
        return body

    def _await_head(self, data: bytes) -> None:
        """Keep the beginning of a head. Raises ProtocolError where it cannot become one."""
        if len(data) > MAX_HEAD:
            raise ProtocolError("the upstream's head is too long", status=502)
        if not b"HTTP/1.".startswith(data[:7]):
            raise ProtocolError("the upstream does not speak HTTP/1.1", status=502)
        self._buffer = data

    def _read_interim(self, exchange: Waiting, head: ResponseHead, rest: bytes) -> bytes | None:
        """Read a 1xx answer, and return what follows the next head. Raises ProtocolError where it is out of place."""
        self._interim += 1
        if head.status == 101 or self._interim > MAX_INTERIM:
            raise ProtocolError(
                f"the upstream answered {head.status} to a request that asks for no such thing", status=502
            )
        exchange.on_interim(head)
        return self._read_head(exchange, rest) if rest and self._exchange is exchange else None

    def _read_body(self, exchange: Waiting, data: bytes) -> None:
        """Read a body of known length, or one that ends with the connection."""
        left = self._left
        if left is None or len(data) < left:
            self._left = None if left is None else left - len(data)
            if data:
                exchange.on_data(data, last=False)
            return
        self._end(clean=len(data) == left)
        exchange.on_data(data[:left], last=True)

    def _end(self, *, clean: bool) -> None:
        """Give the connection back before the exchange ends, or drop what may be out of step."""
        head = self._head
        self._head = self._chunked = None
        if clean and head is not None:
            self.release(head)
        else:
            self._exchange = None
            self._drop()

    def _drop(self) -> None:
        self._unsent = _NOTHING
        if self._transport is not None:
            self._writes.drop(self._transport)
            self._transport.abort()
