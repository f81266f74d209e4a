"""Streamable HTTP towards one server: requests by POST, answers as JSON or as a stream, news on a stream of its own.

Both eras: sessions and GET streams until 2025-11-25, stateless POSTs and subscriptions/listen since 2026-07-28.
What is asked and what an answer means is `core.mcp.client`'s business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import http_rules as mcp_http
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.client import Conversation
from agentsh_net.core.mcp.exchange import MODERN, Answered, Ask, Outcome, Refused, SessionLost, Tell
from agentsh_net.core.mcp.stream import StreamEvent
from agentsh_proxy.http_client import Response
from agentsh_proxy.http_connection import CutError
from agentsh_proxy.mcp_client.site import (
    LIMITS,
    MAX_ERROR_BODY,
    RETRY,
    Site,
    bounded_retry,
    is_json,
    is_stream,
)

MAX_RESUMPTIONS = 20  # of one answer; at the default pause that is longer than any timeout here
CLOSE_TIMEOUT = 1.0  # seconds for the farewell


class StreamableHttp:
    """One session (legacy) or none (modern) with one server. `changed` is called when the server's tools are others."""

    def __init__(self, site: Site, talk: Conversation, changed: Callable[[], None]) -> None:
        self._site = site
        self._talk = talk
        self._changed = changed
        self._session_id = ""
        self._last_event_id = ""  # of the stream of news
        self.retry = RETRY

    async def ask(self, ask: Ask) -> Outcome:
        """Send a request and return what came of it. Raises ProtocolError for an answer that is none."""
        if ask.method == "initialize":
            self._session_id = self._last_event_id = ""
        with_session = self._session_id != "" and ask.version != MODERN
        async with await self._post(ask.method, ask.body, ask.version) as response:
            if response.status == 404 and with_session:
                return SessionLost()
            if response.status >= 400:
                return await self._refusal(response, ask)
            if ask.method == "initialize":
                self._session_id = _session_id(response)
            return await self._answer(response, ask)

    async def tell(self, tell: Tell) -> None:
        """Send a notification."""
        response = await self._post(tell.method, tell.body, tell.version)
        await response.release()
        if response.status >= 400:
            raise ProtocolError(f"{tell.method} was refused with HTTP {response.status}", status=502)

    async def listen(self, established: Callable[[], None]) -> bool:
        """Hear the server's news until the stream ends; False if it offers none."""
        ask = self._talk.listen() if self._talk.version == MODERN else None
        if ask is not None:
            response = await self._post(ask.method, ask.body, ask.version)
        else:
            response = await self._get(self._last_event_id)
        try:
            if response.status == 404 and ask is None and self._session_id:
                raise ProtocolError("the server does not know the session any more", status=502)
            if response.status >= 500:
                raise ProtocolError(f"the stream of news was refused with HTTP {response.status}", status=502)
            if response.status != 200 or not is_stream(response):
                return False
            established()
            async for event in self._site.events(response):
                if event.id is not None:
                    self._last_event_id = _event_id(event.id)
                if await self._take(event, None if ask is None else ask.id) is not None:
                    break  # the end of a subscription, said in good order
            return True
        finally:
            response.close()

    async def close(self) -> None:
        """End the session: the server may forget it now."""
        if not self._session_id:
            return
        headers = mcp_http.stream_headers(self._talk.version, self._session_id, "")
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await (await self._site.send("DELETE", self._site.url, headers)).release()
        except (ProtocolError, TimeoutError):
            pass  # a courtesy: the server forgets idle sessions by itself
        self._session_id = ""

    async def _post(self, method: str, body: bytes, version: str) -> Response:
        headers = mcp_http.post_headers(version, method, self._session_id)
        return await self._site.send("POST", self._site.url, headers, body)

    async def _get(self, last_event_id: str) -> Response:
        headers = mcp_http.stream_headers(self._talk.version, self._session_id, last_event_id)
        return await self._site.send("GET", self._site.url, headers)

    async def _refusal(self, response: Response, ask: Ask) -> Outcome:
        """Return an HTTP error, with the JSON-RPC error in its body if that is one."""
        if is_json(response):
            body = await response.read(MAX_ERROR_BODY)
            try:
                answer = self._talk.hear(jsonrpc.parse(body, LIMITS), ask.id).answer
            except ProtocolError:
                answer = None  # an error of the HTTP server's own shape
            if isinstance(answer, jsonrpc.ErrorResponse):
                return Answered(answer, len(body), response.status)
        return Refused(response.status)

    async def _answer(self, response: Response, ask: Ask) -> Answered:
        if is_stream(response):
            return await self._answer_on_stream(response, ask)
        if not is_json(response):
            kind = response.header("content-type") or "no Content-Type"
            raise ProtocolError(
                f"{ask.method} was answered with HTTP {response.status} and {kind!r}", status=502
            )
        body = await response.read(LIMITS.size)
        answer = await self._hear(body, ask.id)
        if answer is None:
            raise ProtocolError(
                f"{ask.method} was answered with a message that is not its answer", status=502
            )
        return Answered(answer, len(body), response.status)

    async def _answer_on_stream(self, response: Response, ask: Ask) -> Answered:
        """Read a stream until the answer; one that ends before is resumed if the server gave it an event id."""
        answered, cursor = await self._until_answer(response, ask, "")
        for _ in range(MAX_RESUMPTIONS):
            if answered is not None:
                return answered
            if not cursor or ask.version == MODERN:
                break
            await asyncio.sleep(self.retry)
            async with await self._get(cursor) as resumed:
                if resumed.status != 200 or not is_stream(resumed):
                    break
                answered, cursor = await self._until_answer(resumed, ask, cursor)
        raise ProtocolError(f"the stream ended without the answer to {ask.method}", status=502)

    async def _until_answer(self, response: Response, ask: Ask, cursor: str) -> tuple[Answered | None, str]:
        """Read a stream until the answer or its end; return also the event id to resume it at."""
        try:
            async for event in self._site.events(response):
                if event.id is not None:
                    cursor = _event_id(event.id)
                answer = await self._take(event, ask.id)
                if answer is not None:
                    return Answered(answer, len(event.data)), cursor
        except CutError:
            response.close()  # what is missing may come on another connection
        return None, cursor

    async def _take(
        self, event: StreamEvent, awaited: int | None
    ) -> jsonrpc.Response | jsonrpc.ErrorResponse | None:
        if event.retry is not None:
            self.retry = bounded_retry(event.retry)
        if event.kind != "message" or not event.data:
            return None  # an event of another kind, or one that only brings an id
        return await self._hear(event.data, awaited)

    async def _hear(
        self, body: bytes, awaited: int | None
    ) -> jsonrpc.Response | jsonrpc.ErrorResponse | None:
        heard = self._talk.hear(jsonrpc.parse(body, LIMITS), awaited)
        if heard.changed:
            self._changed()
        for reply in heard.replies:
            await (await self._post("", reply, self._talk.version)).release()
        return heard.answer


def _session_id(response: Response) -> str:
    found = response.header("mcp-session-id")
    if found and not mcp_http.SESSION_ID.fullmatch(found):
        raise ProtocolError("the server names a session id that is not visible ASCII", status=502)
    return found


def _event_id(found: str) -> str:
    """Return an event id that may go back in a header, empty if it may not (and for the empty id, which resets)."""
    return found if mcp_http.EVENT_ID.fullmatch(found) else ""
