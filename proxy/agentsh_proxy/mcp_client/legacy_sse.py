"""HTTP+SSE (revision 2024-11-05) towards one server: one stream brings the endpoint and all answers, POSTs carry requests.

What is asked and what an answer means is `core.mcp.client`'s business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import http_rules as mcp_http
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.client import Conversation
from agentsh_net.core.mcp.exchange import Answered, Ask, Outcome, Refused, Tell, refusal
from agentsh_proxy.http_client import Response
from agentsh_proxy.mcp_client.site import LIMITS, RETRY, Site, bounded_retry, is_stream


class LegacySse:
    """One stream with one server. `changed` is called when the server's tools are others."""

    def __init__(self, site: Site, talk: Conversation, changed: Callable[[], None]) -> None:
        self._site = site
        self._talk = talk
        self._changed = changed
        self._stream: Response | None = None
        self._reader: asyncio.Task[None] | None = None
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._awaited: tuple[int, asyncio.Future[Answered]] | None = None
        self.retry = RETRY

    async def open(self) -> None:
        """Open the stream and wait for the endpoint. Raises ProtocolError if this is no HTTP+SSE server."""
        response = await self._site.send("GET", self._site.url, mcp_http.stream_headers("", "", ""))
        if response.status != 200 or not is_stream(response):
            await response.release()
            if response.status >= 400:
                raise refusal("the event stream", response.status)
            raise ProtocolError(f"HTTP {response.status} instead of an event stream", status=502)
        self._stream = response
        self._reader = asyncio.create_task(self._read(response), name="mcp-sse-reader")
        await self._endpoint

    async def ask(self, ask: Ask) -> Outcome:
        """Send a request and return what came of it on the stream."""
        answered: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._awaited = ask.id, answered
        try:
            self._check_alive()
            status = await self._post(ask.method, ask.body, ask.version)
            return Refused(status) if status >= 400 else await answered
        finally:
            self._awaited = None
            answered.cancel()

    async def tell(self, tell: Tell) -> None:
        """Send a notification."""
        status = await self._post(tell.method, tell.body, tell.version)
        if status >= 400:
            raise ProtocolError(f"{tell.method} was refused with HTTP {status}", status=502)

    async def listen(self, established: Callable[[], None]) -> bool:
        """Wait until the stream ends: it brings the news as well."""
        established()
        if self._reader is not None:
            await asyncio.wait((self._reader,))
        return True

    async def close(self) -> None:
        """End the stream, and the session with it."""
        if self._stream is not None:
            self._stream.close()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait((self._reader,))

    async def _post(self, method: str, body: bytes, version: str) -> int:
        url = await self._endpoint
        headers = mcp_http.post_headers(version, method, "")
        response = await self._site.send("POST", url, headers, body)
        await response.release()
        return response.status

    async def _read(self, stream: Response) -> None:
        try:
            async for event in self._site.events(stream):
                if event.retry is not None:
                    self.retry = bounded_retry(event.retry)
                if event.kind == "endpoint":
                    self._learn_endpoint(event.data)
                elif event.kind == "message" and event.data:
                    await self._hear(event.data)
            self._fail(ProtocolError("the stream ended without an answer", status=502))
        except ProtocolError as fault:
            self._fail(fault)
        finally:
            stream.close()
            self._changed()  # what was missed meanwhile is not known

    def _learn_endpoint(self, data: bytes) -> None:
        if self._endpoint.done():
            raise ProtocolError("the server names a second endpoint", status=502)
        try:
            reference = data.decode()
        except UnicodeDecodeError as fault:
            raise ProtocolError("the endpoint is not UTF-8", status=502) from fault
        self._endpoint.set_result(mcp_http.resolve(self._site.url, reference, "endpoint"))

    async def _hear(self, data: bytes) -> None:
        awaited = self._awaited
        heard = self._talk.hear(jsonrpc.parse(data, LIMITS), awaited[0] if awaited else None)
        if heard.changed:
            self._changed()
        if awaited and heard.answer is not None and not awaited[1].done():
            awaited[1].set_result(Answered(heard.answer, len(data)))
        for reply in heard.replies:
            await self._post("", reply, self._talk.version)

    def _check_alive(self) -> None:
        if self._reader is None or self._reader.done():
            raise ProtocolError("the stream has ended", status=502)

    def _fail(self, fault: ProtocolError) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(fault)
        if self._awaited and not self._awaited[1].done():
            self._awaited[1].set_exception(fault)
