"""The gateway in front of a Streamable HTTP server: requests and answers travel as they came, and a copy is judged.

Sessions, eras and resumption stay between client and server; nothing of them is made here. Verdicts are the review's business.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

from agentsh_net.core import gateway_http, jsonrpc, mcp_http, sse
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.gateway_http import Headers
from agentsh_net.core.jsonrpc import Body, Id, Request
from agentsh_net.core.mcp_gate import lone_call
from agentsh_net.core.model import Server
from agentsh_proxy import gateway_unauthorized
from agentsh_proxy.gateway_bodies import event_of, joined, rewritten
from agentsh_proxy.gateway_connection import Asked, GatewayConnection
from agentsh_proxy.gateway_dialing import Tell
from agentsh_proxy.gateway_review import Passed, Review, as_body
from agentsh_proxy.gateway_session import Pipe
from agentsh_proxy.gateway_view import Place
from agentsh_proxy.http_client import HttpClient, Response
from agentsh_proxy.mcp_site import is_json, is_stream

INTERNAL: Final = -32603
MAX_IDLE: Final = 256  # connections kept to one server; as many calls as a busy agent farm has in flight
MAX_SESSIONS: Final = 10_000  # whose listings and open requests are remembered; past it the oldest begin anew
OLDER: Final = (
    400,
    404,
    405,
)  # what a server of HTTP+SSE says to `initialize` (2025-11-25, "backwards compatibility")
OLDER_SECONDS: Final = 10.0  # for it to name its endpoint
MAX_OTHER: Final = 1 << 20  # bytes of an answer that is neither JSON nor events: an error page
# Methods whose answer is a stream that stays open as long as the client listens (2026-07-28).
_ID_FIELD: Final = re.compile(rb"^id:", re.MULTILINE)
ENDLESS: Final = frozenset(("subscriptions/listen",))


class Forward:
    """One declared server that speaks Streamable HTTP."""

    def __init__(
        self,
        server: Server,
        tls: Callable[[], ssl.SSLContext],
        review: Callable[[str], Review],
        spawn: Callable[[Awaitable[None]], None],
        older: Callable[[Asked, Place], Pipe],
        tell: Tell,
    ) -> None:
        address = mcp_http.address(server.url)
        secure = address.scheme == "https"
        self.server = server
        self._address = address
        self._http = HttpClient(
            address, tls=tls() if secure else None, pin=server.tls_fingerprint, max_idle=MAX_IDLE
        )
        self._declared = mcp_http.declared(server.headers)
        self._review = review
        self._spawn = spawn
        self._older = older
        self._tell_of = tell
        self._reviews: OrderedDict[tuple[str, str], Review] = OrderedDict()

    @property
    def sessions(self) -> int:
        """How many sessions are remembered."""
        return len(self._reviews)

    def tick(self, now: float) -> None:
        """Keep everything: sessions are the server's, and are bounded in number here."""

    def close(self) -> None:
        """Close every connection to the server."""
        self._http.close()

    async def serve(
        self, asked: Asked, client: GatewayConnection, place: Place, session_id: str, limits: tuple[int, int]
    ) -> bool:
        """Answer a request of a client; False where the server speaks HTTP+SSE. Raises ProtocolError where there is no answer yet."""
        exchange = _Exchange(self, asked, client, place, session_id, limits[1])
        mcp_session = asked.fields.get("mcp-session-id", "")
        review = self._reviews.get((session_id, mcp_session)) if mcp_session else None
        if review is None:
            review = self._review(session_id)
            if mcp_session:
                self._remember((session_id, mcp_session), review)
        if asked.method == "POST":
            new = await exchange.post(review, limits[0])
            if new and not mcp_session:
                self._remember((session_id, new), review)
        else:
            await exchange.other(review)
        if mcp_session and exchange.session_ended:
            self._reviews.pop((session_id, mcp_session), None)
        return not exchange.older

    async def is_older(self, asked: Asked, place: Place) -> bool:
        """Say whether the server opens the stream of HTTP+SSE and names an endpoint there."""
        pipe = self._older(asked, place)
        try:
            async with asyncio.timeout(OLDER_SECONDS):
                await pipe.open()
        except (ProtocolError, TimeoutError):
            return False
        finally:
            pipe.close()
        return True

    def _remember(self, key: tuple[str, str], review: Review) -> None:
        self._reviews[key] = review
        if len(self._reviews) > MAX_SESSIONS:
            self._reviews.popitem(last=False)

    async def send(
        self, method: str, headers: Headers, place: Place, tool: str, body: bytes, session_id: str
    ) -> Response:
        """Send a request to the server; redirects inside its origin are followed. Raises ProtocolError."""
        merged = mcp_http.merged(self._declared, headers)
        url = self.server.url
        for _ in range(mcp_http.MAX_REDIRECTS + 1):
            target = self._address.target if url == self.server.url else mcp_http.address(url).target
            secured, target = gateway_http.with_credential(place.scheme(tool), merged, target)
            response = await self._http.request(method, target, secured, body)
            self._tell_of(response, self.server, session_id)
            redirect = mcp_http.redirection(method, url, response.status, response.header("location"))
            if redirect is None:
                return response
            await response.release()
            url = redirect
        raise ProtocolError(f"the server redirects more than {mcp_http.MAX_REDIRECTS} times", status=502)

    def answer_server(
        self, replies: Collection[bytes], headers: Headers, place: Place, session_id: str
    ) -> None:
        """Answer requests of the server that do not reach the client, soon."""
        for reply in replies:
            self._spawn(self._tell(reply, headers, place, session_id))

    async def _tell(self, body: bytes, headers: Headers, place: Place, session_id: str) -> None:
        try:
            async with asyncio.timeout(place.settings.timeout):
                response = await self.send("POST", headers, place, "", body, session_id)
            await response.release()
        except (ProtocolError, TimeoutError):
            return  # the server that does not take an answer waits for it in vain, as it would for a client's


class _Exchange:
    """One request of a client and its answer."""

    def __init__(
        self,
        forward: Forward,
        asked: Asked,
        client: GatewayConnection,
        place: Place,
        session_id: str,
        max_response: int,
    ) -> None:
        self._forward = forward
        self._asked = asked
        self._client = client
        self._place = place
        self._session_id = session_id
        self._max = max_response
        self._passthrough = place.settings.passthrough
        self._headers = gateway_http.forwarded(
            asked.fields, asked.names, place.downstream, passthrough=self._passthrough
        )
        self._ids: list[Id] = []  # requests of this POST that wait for their answers
        self._extra: tuple[bytes, ...] = ()  # errors of the calls of a batch that do not go on
        self._endless = False
        self._resumable = False  # the stream has event ids: a client that lost it comes back for the rest
        self.session_ended = False
        self.older = False  # nothing was answered: the server speaks HTTP+SSE

    async def post(self, review: Review, max_request: int) -> str:
        """Carry a message to the server; return the id of the session that began with it."""
        taken = review.client(self._asked.body, max_request, lambda body: _contradiction(self._asked, body))
        if taken.forward is None:
            body = as_body(taken.replies)
            self._client.answer(taken.status if body else 202, body or b"")
            return ""
        self._ids = list(taken.ids)
        self._extra = taken.replies
        tool = lone_call(taken.body) if taken.body is not None else ""
        self._endless = taken.body is not None and any(
            isinstance(m, Request) and m.method in ENDLESS for m in taken.body.messages
        )
        try:
            response = await self._send("POST", tool, taken.forward)
        except ProtocolError as error:
            review.forget(taken.ids)
            self._fail(error)
            return ""
        if (
            response.status in OLDER
            and (_begins(taken.body) or (_modern(taken.body) and not is_json(response)))
            and await self._forward.is_older(self._asked, self._place)
        ):
            await response.release()
            review.forget(taken.ids)
            self.older = True
            return ""
        return await self._respond(response, review)

    async def other(self, review: Review) -> None:
        """Carry a GET or a DELETE."""
        self._endless = self._asked.method == "GET"
        response = await self._send(self._asked.method, "", b"")
        if self._asked.method == "DELETE" and response.status < 300:
            self.session_ended = True
        await self._respond(response, review)

    async def _send(self, method: str, tool: str, body: bytes) -> Response:
        seconds = self._place.settings.timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._forward.send(
                    method, self._headers, self._place, tool, body, self._session_id
                )
        except TimeoutError as error:
            self._cancel()
            raise ProtocolError(
                f"server {self._place.server.id} did not answer within {seconds:g} s", status=504
            ) from error

    def _cancel(self) -> None:
        """Tell a server of the older era that nobody waits for it any more; in the newer one the closed stream has said so."""
        if "mcp-method" in self._asked.fields:
            return
        for id_ in self._ids:
            params = {"requestId": id_, "reason": "gateway timeout"}
            note = jsonrpc.notification("notifications/cancelled", params)
            self._forward.answer_server((note,), self._headers, self._place, self._session_id)

    async def _respond(self, response: Response, review: Review) -> str:
        try:
            session = response.header("mcp-session-id")
            self.session_ended = self.session_ended or response.status == 404
            gateway_unauthorized.check(response, self._place, self._asked.fields)
            fields = gateway_http.answered(response.headers, passthrough=self._passthrough)
            if is_stream(response) and response.status < 300:
                await self._stream(response, review, fields)
            elif is_json(response):
                await self._whole(response, review, fields)
            else:
                body = await self._bounded(response.read(MAX_OTHER))
                if self._extra and not body:
                    self._client.answer(200, as_body(self._extra) or b"")
                else:
                    self._client.answer(response.status, body, fields)
            await response.release()
        except ProtocolError as error:
            response.close()
            self._forget(review)
            self._fail(error)
            return ""
        except BaseException:
            response.close()
            self._forget(review)
            raise
        return session if response.status < 300 else ""

    async def _whole(self, response: Response, review: Review, fields: Headers) -> None:
        data = await self._bounded(response.read(self._max))
        if not data:
            self._client.answer(response.status, as_body(self._extra) or b"", fields)
            return
        passed = await review.server(data, self._max, self._ids)
        self._forward.answer_server(passed.replies, self._headers, self._place, self._session_id)
        body = passed.forward
        if self._extra:
            body = joined(body, self._extra)
        self._client.answer(response.status, body or b"", fields)

    async def _stream(self, response: Response, review: Review, fields: Headers) -> None:
        client = self._client
        client.endless = self._endless
        client.begin(response.status, fields)
        decoder = sse.Decoder(self._max)
        size = 0
        if self._extra:
            await client.send(b"".join(map(event_of, self._extra)))
        while data := await self._bounded(response.next(), endless=self._endless):
            size += len(data)
            out: list[bytes] = []
            for frame in decoder.feed(data):
                if frame.oversize or (size > self._max and not self._endless):
                    return await self._cut(response, review, out, size)
                out.append(await self._frame(frame, review))
            if out:
                await client.send(out[0] if len(out) == 1 else b"".join(out))
        rest = decoder.finish()
        if rest is not None:
            # By the standard it is not dispatched, but some clients read it all the same: no error may be glued to half of it.
            last = await self._frame(rest, review)
            if not self._ids:
                await client.send(last)
        if self._ids and not self._resumable:
            raise ProtocolError(
                f"server {self._place.server.id} ended its stream without an answer", status=502
            )
        client.end()
        return None

    async def _frame(self, frame: sse.Frame, review: Review) -> bytes:
        """Return what goes on of an event."""
        self._resumable = self._resumable or _ID_FIELD.search(frame.raw) is not None
        if not frame.data:
            return frame.raw
        passed = await review.server(frame.data, self._max, self._ids)
        self._note(passed)
        self._forward.answer_server(passed.replies, self._headers, self._place, self._session_id)
        if passed.forward is frame.data:
            return frame.raw
        return rewritten(frame, passed.forward)

    def _note(self, passed: Passed) -> None:
        for id_ in passed.answered:
            if id_ in self._ids:
                self._ids.remove(id_)

    async def _cut(self, response: Response, review: Review, out: list[bytes], size: int) -> None:
        """End a stream that grew past its bound: whoever waits is told so."""
        review.oversize(size)
        message = f"[agentsh] the answer is longer than {self._max} bytes (gateway.max_response)"
        out += [event_of(jsonrpc.error(id_, INTERNAL, message)) for id_ in self._ids]
        review.forget(self._ids)
        response.close()
        await self._client.send(b"".join(out))
        self._client.end()

    async def _bounded(self, work: Awaitable[bytes], *, endless: bool = False) -> bytes:
        """Wait for the server, but not for longer than its timeout."""
        if endless:
            return await work
        seconds = self._place.settings.timeout
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError as error:
            self._cancel()
            raise ProtocolError(
                f"server {self._place.server.id} was silent for {seconds:g} s", status=504
            ) from error

    def _forget(self, review: Review) -> None:
        if not self._resumable:
            review.forget(self._ids)

    def _fail(self, error: ProtocolError) -> None:
        """Tell the client that there is no answer: as an HTTP error while nothing is sent, as an event in a stream."""
        errors = [jsonrpc.error(id_, INTERNAL, f"[agentsh] {error}") for id_ in self._ids]
        client = self._client
        if not client.streaming:
            body = as_body(errors) or jsonrpc.error(None, INTERNAL, f"[agentsh] {error}")
            client.answer(error.status if error.status >= 500 else 502, body)
            return
        if self._resumable:
            client.abort()
        else:
            client.last(b"".join(map(event_of, errors)))


def _begins(body: Body | None) -> bool:
    message = body.messages[0] if body is not None and not body.batch else None
    return isinstance(message, Request) and message.method == "initialize"


def _modern(body: Body | None) -> bool:
    """Say whether a request is of 2026-07-28, which an HTTP+SSE server answers with whatever its framework says."""
    message = body.messages[0] if body is not None and not body.batch else None
    params = message.params if isinstance(message, Request) else None
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    return isinstance(meta, Mapping) and gateway_http.VERSION_KEY in meta


def _contradiction(asked: Asked, body: Body) -> str:
    """Say where the header fields of a message contradict it; empty where they do not."""
    message: Any = body.messages[0]
    return "" if body.batch else gateway_http.disagreement(asked.fields, asked.repeated, message.raw)
