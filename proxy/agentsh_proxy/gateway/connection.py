"""Connections of MCP clients to the gateway: HTTP/1.1 requests read strictly and whole, one at a time, answered by a task.

What a request means is the gateway's business; this file knows where it ends, and what a slow or vanished client does to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, cast

from agentsh_net.core import jsonrpc
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.http_head import RequestHead, find_head, parse_request
from agentsh_net.core.mcp_gate import UNREADABLE
from agentsh_proxy.chunks import LAST_CHUNK, ChunkedReader, chunk
from agentsh_proxy.replies import CONTINUE

HEAD_SECONDS: Final = 20.0  # as the LLM proxy's: from a head's first byte to its last
BODY_SECONDS: Final = 60.0  # between two reads of a body
IDLE_SECONDS: Final = 75.0  # between two requests, as nginx
WRITE_BUFFER: Final = 256 << 10  # bytes waiting for a slow client before its server is read no further
READ_AHEAD: Final = 64 << 10  # bytes of requests that came before their turn
# Bytes of a head that is remembered while its connection lasts: clients repeat themselves, but for a long credential.
MAX_REMEMBERED: Final = 4 << 10
MAX_CONNECTIONS: Final = 4096  # each client holds a stream and a request or two; a thousand sessions fit

# An upstream's own status has none; RFC 9112, section 4 lets it be empty.
PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}

JSON: Final = (("Content-Type", "application/json"),)
Fields = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A whole request. `fields` are by lower-case name; `repeated` are the names that stood twice."""

    head: RequestHead
    fields: Mapping[str, str]
    names: Mapping[str, str]  # as they were spelt
    repeated: frozenset[str]
    body: bytes

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.head.method


@dataclass(frozen=True, slots=True)
class _Heard:
    """A head as it came and as it was read."""

    raw: bytes
    head: RequestHead
    fields: Mapping[str, str]
    names: Mapping[str, str]
    repeated: frozenset[str]


Handler = Callable[[Asked, "GatewayConnection"], Awaitable[None]]


class Front:
    """What all connections share: who answers, the bound of a request, and who is connected."""

    def __init__(
        self,
        handler: Handler,
        max_request: Callable[[], int],
        on_bug: Callable[[BaseException], None],
        now: float,
    ) -> None:
        self.handler = handler
        self.max_request = max_request
        self.on_bug = on_bug
        self.connections: set[GatewayConnection] = set()
        self.draining = False
        self.now = now

    def tick(self, now: float) -> None:
        """Close what takes too long (once a second)."""
        self.now = now
        for connection in tuple(self.connections):
            connection.tick(now)

    async def quiet(self) -> None:
        """Wait until nobody is being answered; streams that have no end are not waited for."""
        while busy := [c.busy for c in self.connections if c.busy is not None and not c.endless]:
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
        "_body", "_buffer", "_chunked", "_closing", "_front", "_head", "_heard", "_left", "_loop", "_paused", "_seen", "_streaming",
        "_task", "_transport", "_writable", "admitted", "cors", "endless",
    )  # fmt: skip

    def __init__(self, front: Front) -> None:
        self._front = front
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._head: RequestHead | None = None
        self._heard: _Heard | None = None  # the last head
        self._body: list[bytes] = []
        self._chunked: ChunkedReader | None = None
        self._left = 0
        self._task: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None  # set while the client is slow
        self._streaming = False
        self._closing = False
        self._paused = False
        self._seen = front.now
        self.endless = False  # this answer lasts as long as the client listens
        self.admitted: object = None  # what the gateway made of the last head
        self.cors: Fields = ()  # what the page that asked must be told, if one did

    # What asyncio tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection up, unless there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self._front.connections.add(self)
        if len(self._front.connections) > MAX_CONNECTIONS:
            self._refuse(ProtocolError("too many connections", status=503))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        """Cancel what the client asked for."""
        self._transport = None
        self._front.connections.discard(self)
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Read requests."""
        self._seen = self._front.now
        self._buffer = self._buffer + data if self._buffer else data
        if self._task is None:
            self._read()
        elif len(self._buffer) > READ_AHEAD and self._transport is not None:
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
        length = (("Content-Length", str(len(body))),) if status not in (204, 304) else ()
        own = fields if body else (field for field in fields if field not in JSON)  # nothing is not JSON
        self._write(self._head_of(status, (*own, *length)) + body)

    def begin(self, status: int, fields: Fields) -> None:
        """Begin an answer whose end is not known yet."""
        self._streaming = True
        coding = (("Transfer-Encoding", "chunked"),) if self._head is None or self._head.minor else ()
        self._closing = self._closing or not coding
        self._write(self._head_of(status, (*fields, *coding)))

    async def send(self, data: bytes) -> None:
        """Send the next bytes of an answer that was begun; waits while the client is slow."""
        self._write(chunk(data) if self._head is None or self._head.minor else data)
        if self._writable is not None:
            await self._writable

    def end(self) -> None:
        """End an answer that was begun."""
        self._streaming = False
        if self._head is None or self._head.minor:
            self._write(LAST_CHUNK)

    def last(self, data: bytes) -> None:
        """Send the last bytes of an answer that was begun, however slow the client is, and end it."""
        self._write(chunk(data) if self._head is None or self._head.minor else data)
        self.end()

    @property
    def busy(self) -> asyncio.Task[None] | None:
        """Who is answering a request, None while nobody is."""
        return self._task

    @property
    def streaming(self) -> bool:
        """Say whether an answer was begun and not ended: nothing else can be said but its end, or a cut."""
        return self._streaming

    def abort(self) -> None:
        """Cut the connection, so that nobody takes the answer for complete."""
        if self._transport is not None:
            self._transport.abort()

    def tick(self, now: float) -> None:
        """Close what takes too long."""
        quiet = now - self._seen
        if self._task is not None:
            return
        if self._head is not None:
            if quiet > BODY_SECONDS:
                self._refuse(ProtocolError("the request body did not come in time", status=408))
        elif self._buffer:
            if quiet > HEAD_SECONDS:
                self._refuse(ProtocolError("the request head did not come in time", status=408))
        elif (quiet > IDLE_SECONDS or self._front.draining) and self._transport is not None:
            self._transport.close()

    # Reading.

    def _read(self) -> None:
        try:
            if self._head is None and not self._read_head():
                return
            if self._read_body():
                self._begin_task()
        except ProtocolError as error:
            self._refuse(error)

    def _read_head(self) -> bool:
        length = find_head(self._buffer)
        if not length:
            return False
        raw, self._buffer = self._buffer[:length], self._buffer[length:]
        if self._heard is None or raw != self._heard.raw:
            self._heard = _Heard(raw, parse_request(raw), *_fields(raw))
        head = self._heard.head
        self._closing = not head.keep_alive
        bound = self._front.max_request()
        if (head.length or 0) > bound:
            raise ProtocolError(f"the request is longer than {bound} bytes (gateway.max_request)", status=413)
        self._head = head
        self._chunked = ChunkedReader() if head.chunked else None
        self._left = head.length or 0
        if head.expects_continue and head.has_body and not self._buffer:
            self._write(CONTINUE)
        return True

    def _read_body(self) -> bool:
        """Take what there is of the body; say whether it is whole."""
        if self._chunked is not None:
            data, self._buffer = self._buffer, b""
            if data:
                self._body.append(self._chunked.feed(data))
            if self._chunked.overrun:
                raise ProtocolError("bytes after a chunked body: requests are not pipelined behind one")
            bound = self._front.max_request()
            if sum(map(len, self._body)) > bound:
                raise ProtocolError(
                    f"the request is longer than {bound} bytes (gateway.max_request)", status=413
                )
            return self._chunked.complete
        data, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
        if data:
            self._body.append(data)
            self._left -= len(data)
        return not self._left

    def _begin_task(self) -> None:
        heard = self._heard
        assert heard is not None  # noqa: S101 - a body has a head
        body, self._body = b"".join(self._body), []
        asked = Asked(heard.head, heard.fields, heard.names, heard.repeated, body)
        if len(heard.raw) > MAX_REMEMBERED:
            self._heard = None
        self._task = self._loop.create_task(self._serve(asked))

    async def _serve(self, asked: Asked) -> None:
        try:
            await self._front.handler(asked, self)
        except ProtocolError as error:
            if self._streaming:
                self.abort()
            else:
                self.answer(error.status, _error(str(error)))
        except asyncio.CancelledError:
            if self._transport is not None:
                self.abort()
            raise
        except Exception as error:  # noqa: BLE001 - a bug of ours: told, and this client's answer is cut
            self._front.on_bug(error)
            self.abort()
        self._task = None
        self._head = None
        self.endless = False
        if self._closing or self._streaming or self._front.draining:
            if self._transport is not None:
                self._transport.close()
            return
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        self._seen = self._front.now
        if self._buffer:
            self._read()

    def _refuse(self, error: ProtocolError) -> None:
        self._closing = True
        self.answer(error.status, _error(str(error)))
        if self._transport is not None:
            self._transport.close()

    def _head_of(self, status: int, fields: Fields) -> bytes:
        lines = [
            f"HTTP/1.1 {status} {PHRASES.get(status, '')}",
            *(f"{name}: {value}" for name, value in (*fields, *self.cors)),
        ]
        if self._closing:
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


def _fields(raw: bytes) -> tuple[dict[str, str], dict[str, str], frozenset[str]]:
    """Return the fields of a head that was read: values by lower-case name, names as spelt, and what repeats otherwise."""
    fields: dict[str, str] = {}
    names: dict[str, str] = {}
    repeated: set[str] = set()
    for line in raw.decode("latin-1").split("\r\n")[1:-2]:
        name, _, value = line.partition(":")
        lower, value = name.lower(), value.strip(" \t")
        if lower in fields:
            repeated.add(lower)
            fields[lower] += ", " + value
        else:
            fields[lower], names[lower] = value, name
    return fields, names, frozenset(repeated)


def _error(message: str) -> bytes:
    return jsonrpc.error(None, UNREADABLE, f"agentsh-net: {message}")
