"""An HTTP+SSE server (revision 2024-11-05) behind the gateway: one stream brings everything, POSTs carry what we send.

Messages in, messages out. What they say is the bridge's business.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from agentsh_net.core.configuration.settings import SecurityScheme
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing import sse
from agentsh_net.core.mcp import gateway_http
from agentsh_net.core.mcp import http_rules as mcp_http
from agentsh_net.core.mcp.http_rules import Headers
from agentsh_net.core.model import Server
from agentsh_proxy.gateway.pipe import Failed, Hear
from agentsh_proxy.http_client import HttpClient, Response
from agentsh_proxy.http_connection import Connection
from agentsh_proxy.mcp_client.site import is_stream

IDLE_CONNECTIONS: Final = 8  # kept for POSTs; a session has a few requests in flight
# Of one session, its stream among them, before a message waits for those before it to be accepted: a server that accepts none
# holds so many, with 64 KiB of answers nobody wants each.
MAX_CONNECTIONS: Final = 16


class SsePipe:
    """One stream with one server, and the endpoint that it named."""

    def __init__(
        self,
        server: Server,
        tls: Callable[[], ssl.SSLContext],
        headers: Headers,
        # The credential of a message; of the stream: of none.
        scheme: Callable[[bytes], SecurityScheme | None],
        limits: Callable[[], tuple[int, float]],  # bytes of one event, seconds
        tell: Callable[[Response], None],
    ) -> None:
        address = mcp_http.address(server.url)
        secure = address.scheme == "https"
        self._server = server
        self._http = HttpClient(
            address, tls=tls() if secure else None, pin=server.tls_fingerprint, max_idle=IDLE_CONNECTIONS
        )
        self._headers = mcp_http.merged(mcp_http.declared(server.headers), headers)
        self._scheme = scheme
        self._posted = mcp_http.merged((("Content-Type", "application/json"),), self._headers)
        self._endpoint = ""  # the target of POSTs, once it is named
        self._limits = limits
        self._tell = tell
        self._stream: Response | None = None
        self._decoder = sse.Decoder(limits()[0])
        self._frames: deque[sse.Frame] = deque()
        self._hear: Hear = lambda _: False
        self._repeated: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self) -> None:
        """Open the stream and wait for its endpoint, which has to be of the same origin. Raises ProtocolError."""
        seconds = self._limits()[1]
        try:
            async with asyncio.timeout(seconds):
                await self._open()
        except TimeoutError as error:
            self.close()
            raise ProtocolError(
                f"server {self._server.id} named no endpoint within {seconds:g} s", status=504
            ) from error
        except ProtocolError:
            self.close()
            raise

    async def _open(self) -> None:
        headers = mcp_http.merged(
            (("Accept", "text/event-stream"), ("Cache-Control", "no-store")), self._headers
        )
        target = mcp_http.address(self._server.url).target
        fields, target = gateway_http.with_credential(self._scheme(b""), headers, target)
        self._stream = await self._http.request("GET", target, fields)
        self._tell(self._stream)
        if self._stream.status != 200 or not is_stream(self._stream):
            raise ProtocolError(
                f"server {self._server.id} opens no event stream (HTTP {self._stream.status})", status=502
            )
        while True:
            frame = await self._next()
            if frame.event == "endpoint":
                named = (frame.data or b"").decode("utf-8", "replace")
                endpoint = mcp_http.resolve(self._server.url, named, "endpoint")
                self._endpoint = mcp_http.address(endpoint).target
                return

    def attach(self, hear: Hear) -> None:
        """Have messages heard as they come; what is not heard waits for `receive`."""
        self._hear = hear
        assert self._stream is not None  # noqa: S101 - opened first
        self._stream.watch(self._came)

    def start(self, message: bytes, failed: Failed) -> bool:
        """POST a message if that can be done at once, and say so; `failed` is told why it was not taken."""
        if self._http.connections >= MAX_CONNECTIONS:
            return False
        fields, target = self._secured(message)
        return self._http.post(target, fields, message, partial(self._ended, message, failed))

    async def send(self, message: bytes) -> None:
        """POST a message; its answer comes on the stream. Raises ProtocolError where it is not taken."""
        fields, target = self._secured(message)
        seconds = self._limits()[1]
        try:
            async with asyncio.timeout(seconds):
                response = await self._http.request("POST", target, fields, message)
        except TimeoutError as error:
            raise ProtocolError(
                f"server {self._server.id} took no message within {seconds:g} s", status=504
            ) from error
        await response.release()
        self._check(response.status)

    async def receive(self) -> bytes:
        """Return the next message of the stream. Raises ProtocolError where it has ended."""
        while True:
            message = _message(await self._next())
            if message is not None:
                return message

    def close(self) -> None:
        """End the session: the closed stream says so."""
        self._closed = True
        self._http.close()
        for task in self._repeated:
            task.cancel()

    async def _next(self) -> sse.Frame:
        stream = self._stream
        assert stream is not None  # noqa: S101 - opened first
        while not self._frames:
            if data := stream.take():
                self._frames.extend(self._decoder.feed(data))
            elif stream.ended:
                raise ProtocolError(f"server {self._server.id} ended its event stream", status=502)
            else:
                await self._news(stream)
        frame = self._frames.popleft()
        if frame.oversize:
            raise ProtocolError(f"server {self._server.id} sends an event that is too long", status=502)
        return frame

    async def _news(self, stream: Response) -> None:
        """Wait for more. Raises ProtocolError where the stream was cut, once what came before is taken."""
        try:
            await stream.news()
        except ProtocolError:
            if not self._frames:
                raise

    def _came(self) -> bool:
        """Have what came heard at once; what was not waits, and so does all that comes behind it."""
        stream = self._stream
        assert stream is not None  # noqa: S101 - it is what is watched
        while not self._frames and (data := stream.take()):
            self._frames.extend(self._decoder.feed(data))
            while self._frames and not self._frames[0].oversize:
                message = _message(self._frames[0])
                if message is not None and not self._hear(message):
                    return False
                self._frames.popleft()
        return not self._frames and stream.lasts

    def _ended(self, message: bytes, failed: Failed, connection: Connection) -> None:
        """Take note of what became of a POST; one that came after the server closed the connection is repeated."""
        if self._closed:
            return
        error = connection.error
        if error is not None and connection.unseen:
            task = asyncio.get_running_loop().create_task(self._repeat(message, failed))
            self._repeated.add(task)
            task.add_done_callback(self._repeated.discard)
            return
        try:
            if error is not None:
                raise error
            self._check(connection.status)
        except ProtocolError as fault:
            failed(fault)

    async def _repeat(self, message: bytes, failed: Failed) -> None:
        try:
            await self.send(message)
        except ProtocolError as error:
            failed(error)

    def _check(self, status: int) -> None:
        if status >= 300:
            raise ProtocolError(f"server {self._server.id} refused a message with HTTP {status}", status=502)

    def _secured(self, message: bytes) -> tuple[Headers, str]:
        return gateway_http.with_credential(self._scheme(message), self._posted, self._endpoint)


def _message(frame: sse.Frame) -> bytes | None:
    """Return the message of an event; the default of its name is this one's (HTML standard, 9.2.6)."""
    return frame.data if frame.data and frame.event in {"", "message"} else None
