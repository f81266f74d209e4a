"""Where a declared MCP server lives: its origin, its headers, and how its answers are read.

Redirects stay inside the origin, so the declared credentials do too. What to send is the transports' business.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator

from agentsh_net.core.configuration.settings import SecurityScheme
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing import sse
from agentsh_net.core.limits.token_bucket import Bucket
from agentsh_net.core.mcp import http_rules as mcp_http
from agentsh_net.core.mcp import stream as mcp_stream
from agentsh_net.core.mcp.gateway_http import with_credential
from agentsh_net.core.mcp.http_rules import Headers, address
from agentsh_net.core.mcp.jsonrpc import Limits
from agentsh_net.core.mcp.stream import StreamEvent
from agentsh_net.core.model import Server
from agentsh_proxy.http_client import HttpClient, Response

LIMITS = Limits()
MAX_ERROR_BODY = 64 << 10  # an error message; a framework's HTML error page fits too
RETRY = 1.0  # seconds before a stream is opened again, where the server names none
RETRY_BOUNDS = (0.05, 30.0)  # seconds; neither a busy loop nor a server that is never watched
# Events of one server that are read at once, and a second for good: who sends more waits, so that others do not.
EVENT_BURST = 1000
EVENT_RATE = 100.0
LEAST_PAUSE = 0.001  # seconds; the loop's clock has no finer steps
EVENT_STREAM = "text/event-stream"
JSON = "application/json"


class Site:
    """The HTTP side of one declared server."""

    def __init__(
        self, server: Server, tls: ssl.SSLContext | None, scheme: SecurityScheme | None = None
    ) -> None:
        self.url = server.url
        self._scheme = scheme  # the credential that the gateway has for it
        self.http = HttpClient(address(server.url), tls=tls, pin=server.tls_fingerprint)
        self._declared = mcp_http.declared(server.headers)
        self._pace = Bucket.full(EVENT_BURST, EVENT_RATE, asyncio.get_running_loop().time())

    async def send(self, method: str, url: str, headers: Headers, body: bytes = b"") -> Response:
        """Send a request to a URL of the origin and return the answer's head; redirects inside the origin are followed."""
        merged = mcp_http.merged(headers, self._declared)
        for _ in range(mcp_http.MAX_REDIRECTS + 1):
            fields, named = with_credential(self._scheme, merged, address(url).target)
            response = await self.http.request(method, named, fields, body)
            target = mcp_http.redirection(method, url, response.status, response.header("location"))
            if target is None:
                return response
            await response.release()
            url = target
        raise ProtocolError(f"the server redirects more than {mcp_http.MAX_REDIRECTS} times", status=502)

    async def events(self, response: Response) -> AsyncIterator[StreamEvent]:
        """Iterate over the events of a stream, at a bounded pace. Raises ProtocolError if it is cut or an event is too long."""
        decoder, clock = sse.Decoder(LIMITS.size), asyncio.get_running_loop().time
        async for data in response.chunks():
            for frame in decoder.feed(data):
                while not self._pace.take(clock()):  # noqa: ASYNC110 - time is what is waited for
                    await asyncio.sleep(max(self._pace.wait(clock()), LEAST_PAUSE))
                yield mcp_stream.read(frame)


def is_stream(response: Response) -> bool:
    """Say whether the answer is an event stream."""
    return mcp_http.media_type(response.header("content-type")) == EVENT_STREAM


def is_json(response: Response) -> bool:
    """Say whether the answer is JSON."""
    return mcp_http.media_type(response.header("content-type")) == JSON


def bounded_retry(milliseconds: int) -> float:
    """Return the seconds a server asks to wait (`retry:`), within our bounds."""
    return min(max(milliseconds / 1000, RETRY_BOUNDS[0]), RETRY_BOUNDS[1])
