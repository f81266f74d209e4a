"""An HTTP+SSE server (revision 2024-11-05) behind the gateway: one stream brings everything, POSTs carry what we send.

Messages in, messages out. What they say is the bridge's business.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final

from agentsh_net.core import gateway_http, mcp_http, sse
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.gateway_http import Headers
from agentsh_net.core.model import Server
from agentsh_net.core.settings import SecurityScheme
from agentsh_proxy.http_client import HttpClient, Response
from agentsh_proxy.mcp_client.site import is_stream

IDLE_CONNECTIONS: Final = 8  # kept for POSTs; a session has a few requests in flight


class SsePipe:
    """One stream with one server, and the endpoint that it named."""

    def __init__(
        self,
        server: Server,
        tls: Callable[[], ssl.SSLContext],
        headers: Headers,
        scheme: Callable[
            [bytes], SecurityScheme | None
        ],  # the credential of a message; of the stream: of none
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
        self._endpoint = ""  # once it is named
        self._limits = limits
        self._tell = tell
        self._stream: Response | None = None
        self._decoder = sse.Decoder(limits()[0])
        self._frames: deque[sse.Frame] = deque()

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
        fields, target = self._secured(self._server.url, headers, b"")
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
                self._endpoint = mcp_http.resolve(self._server.url, named, "endpoint")
                return

    async def send(self, message: bytes) -> None:
        """POST a message; its answer comes on the stream. Raises ProtocolError where it is not taken."""
        json = mcp_http.merged((("Content-Type", "application/json"),), self._headers)
        fields, target = self._secured(self._endpoint, json, message)
        seconds = self._limits()[1]
        try:
            async with asyncio.timeout(seconds):
                response = await self._http.request("POST", target, fields, message)
        except TimeoutError as error:
            raise ProtocolError(
                f"server {self._server.id} took no message within {seconds:g} s", status=504
            ) from error
        await response.release()
        if response.status >= 300:
            raise ProtocolError(
                f"server {self._server.id} refused a message with HTTP {response.status}", status=502
            )

    async def receive(self) -> bytes:
        """Return the next message of the stream. Raises ProtocolError where it has ended."""
        while True:
            frame = await self._next()
            if frame.data and frame.event in {"", "message"}:  # the default (HTML standard, 9.2.6)
                return frame.data

    def close(self) -> None:
        """End the session: the closed stream says so."""
        self._http.close()

    async def _next(self) -> sse.Frame:
        while not self._frames:
            assert self._stream is not None  # noqa: S101 - opened first
            data = await self._stream.next()
            if not data:
                raise ProtocolError(f"server {self._server.id} ended its event stream", status=502)
            self._frames.extend(self._decoder.feed(data))
        frame = self._frames.popleft()
        if frame.oversize:
            raise ProtocolError(f"server {self._server.id} sends an event that is too long", status=502)
        return frame

    def _secured(self, url: str, fields: Headers, message: bytes) -> tuple[Headers, str]:
        return gateway_http.with_credential(self._scheme(message), fields, mcp_http.address(url).target)
