"""One request of a client to a Streamable HTTP server, and its answer: whole or as a stream, judged piece by piece.

Which session it belongs to, and how the server is reached, is `forward`'s business.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Collection
from typing import Any, Final, Protocol

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing import sse
from agentsh_net.core.mcp import gateway_http, jsonrpc
from agentsh_net.core.mcp import params as mcp_params
from agentsh_net.core.mcp.gate import call_in, is_call, lone_call
from agentsh_net.core.mcp.http_rules import Headers
from agentsh_net.core.mcp.jsonrpc import Body, Id, Request
from agentsh_net.core.web.http_head import is_opaque
from agentsh_proxy.gateway import unauthorized
from agentsh_proxy.gateway.admission import Admitted
from agentsh_proxy.gateway.bodies import (
    as_body,
    errors,
    event_of,
    failure,
    is_plain,
    joined,
    on_one_line,
    rewritten,
)
from agentsh_proxy.gateway.carrier import Denied
from agentsh_proxy.gateway.connection import JSON, GatewayConnection
from agentsh_proxy.gateway.eras import begins, is_modern
from agentsh_proxy.gateway.pending import NOBODYS_OWN
from agentsh_proxy.gateway.requests import HttpRequest
from agentsh_proxy.gateway.review import Passed, Review
from agentsh_proxy.http_client import Response
from agentsh_proxy.mcp_client.site import EVENT_STREAM, is_json, is_stream
from agentsh_proxy.mcp_client.site import JSON as JSON_TYPE

# What a server of HTTP+SSE says to `initialize` (2025-11-25, "backwards compatibility").
OLDER: Final = (400, 404, 405)
MAX_OTHER: Final = 1 << 20  # bytes of an answer that is neither JSON nor events: an error page
# Characters of a session's id: thousands are remembered. Servers that keep all they know of a session in it sign some 2,000.
MAX_NAME: Final = 4096
# Methods whose answer is a stream that stays open as long as the client listens (2026-07-28).
ENDLESS: Final = frozenset(("subscriptions/listen",))
MESSAGES: Final = frozenset(("", "message"))  # names of events that are messages
IN_A_ROW: Final = 32  # events that are judged before others have their turn: some 2 ms
_ID_FIELD: Final = re.compile(rb"^id:", re.MULTILINE)


class Upstream(Protocol):
    """How a server is reached."""

    async def send(
        self, admitted: Admitted, method: str, headers: Headers, tool: str, body: bytes
    ) -> Response:
        """Send a request to the server. Raises ProtocolError."""
        ...

    def answer_server(self, admitted: Admitted, replies: Collection[bytes], headers: Headers) -> None:
        """Answer requests of the server that do not reach the client, soon."""
        ...

    async def is_older(self, asked: HttpRequest, admitted: Admitted) -> bool:
        """Say whether the server speaks HTTP+SSE."""
        ...


class Exchange:
    """One request of a client and its answer."""

    def __init__(
        self, upstream: Upstream, asked: HttpRequest, client: GatewayConnection, admitted: Admitted
    ) -> None:
        place = admitted.place
        self._upstream = upstream
        self._asked = asked
        self._client = client
        self._admitted = admitted
        self._place = place
        self._max = admitted.max_response
        self._passthrough = place.settings.passthrough
        self._headers = gateway_http.forwarded(
            asked.fields, asked.names, place.downstream, passthrough=self._passthrough, keys=place.keys
        )
        self._ids: list[Id] = []  # requests of this POST that wait for their answers
        self._own = NOBODYS_OWN  # the same, answered or not
        self._extra: tuple[bytes, ...] = ()  # errors of the calls of a batch that do not go on
        self._endless = False
        self._frames = 0  # of a stream, so far
        self._resumable = False  # the stream has event ids: a client that lost it comes back for the rest
        self._named = asked.fields.get("mcp-session-id", "")
        self._begins = False  # a session may begin with the answer
        self.session_ended = False
        self.older = False  # nothing was answered: the server speaks HTTP+SSE
        self.denied: Denied | None = None  # policy denies the server by now

    async def post(self, review: Review) -> str:
        """Carry a message to the server; return the id of the session that began with it."""
        taken = review.client(
            self._asked.body,
            self._admitted.max_request,
            lambda body: _contradiction(self._asked, body, review),
        )
        if taken.forward is None:
            body = as_body(taken.replies)
            self._client.answer(taken.status if body else 202, body or b"")
            return ""
        self._ids = list(taken.ids)
        self._own = taken.own
        self._begins = not self._named or begins(taken.body)
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
            and (begins(taken.body) or (is_modern(taken.body) and not is_json(response)))
            and await self._upstream.is_older(self._asked, self._admitted)
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
                return await self._upstream.send(self._admitted, method, self._headers, tool, body)
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
            self._upstream.answer_server(self._admitted, (note,), self._headers)

    async def _respond(self, response: Response, review: Review) -> str:
        try:
            session = response.header("mcp-session-id")
            self.session_ended = self.session_ended or response.status == 404
            unauthorized.check(response, self._place, self._asked.fields)
            self._check(response, review)
            path = self._asked.head.target.partition(b"?")[0].decode("ascii", "replace")
            fields = gateway_http.answered(response.headers, passthrough=self._passthrough, path=path)
            # Some clients go on in whatever session an answer names.
            if session != self._named and not self._begins:
                fields = tuple(field for field in fields if field[0].lower() != "mcp-session-id")
            if is_stream(response) and response.status < 300:
                await self._stream(response, review, gateway_http.described(fields, EVENT_STREAM))
            elif is_json(response) or (self._ids and response.status < 300):
                # What some clients read as an answer, whatever it is called, is looked at as one.
                await self._whole(response, review, gateway_http.described(fields, JSON_TYPE))
            else:
                await self._page(response, review, fields)
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
        return session if response.status < 300 and self._begins else ""

    def _check(self, response: Response, review: Review) -> None:
        """Refuse an answer in which some clients read what nobody reads here. Raises ProtocolError."""
        described = response.header("content-type").lower().encode("latin-1")
        if is_opaque(described) and (verdict := review.doubts.opaque()).blocked:
            raise ProtocolError(f"server {self._place.server.id}: {verdict.reason}", status=502)
        if len(response.header("mcp-session-id")) > MAX_NAME:
            why = f"names a session by more than {MAX_NAME} characters"
            raise ProtocolError(f"server {self._place.server.id} {why}", status=502)
        if self._asked.method == "GET" and response.status < 300 and not is_stream(response):
            # They read events in it, whatever it is called.
            raise ProtocolError(
                f"server {self._place.server.id} answers GET with no event stream", status=502
            )

    async def _whole(self, response: Response, review: Review, fields: Headers) -> None:
        data = await self._bounded(response.read(self._max))
        body = None
        if data:
            passed = await review.server(data, self._max, self._ids, self._own)
            self._note(passed)
            self._upstream.answer_server(self._admitted, passed.replies, self._headers)
            body = passed.forward
        if data and body is None and self._ids and response.status < 300:
            body = failure(self._ids, "the server's answer is none to this request")
            review.forget(self._ids)
            fields = _as_json(fields)
        if self._extra:
            self._complete(response.status, body, review, fields)
        else:
            self._client.answer(response.status, body or b"", fields)

    async def _page(self, response: Response, review: Review, fields: Headers) -> None:
        """Hand on what is no message, an error page for the most part: clients show it to the model."""
        body = await self._bounded(response.read(MAX_OTHER))
        verdict = await review.page(body, self._ids)
        if verdict.blocked:
            why = f"the server's answer is blocked by policy: {verdict.reason}"
            body = failure(self._ids, why)
            fields = _as_json(fields)
        if self._extra:
            self._complete(response.status, None, review, fields)
        else:
            self._client.answer(response.status, body, fields)

    def _complete(self, status: int, body: bytes | None, review: Review, fields: Headers) -> None:
        """Answer a batch of which a part did not go on: each of its members, whatever the server said to the others."""
        missing = errors(self._ids, f"the server did not answer it (HTTP {status})")
        review.forget(self._ids)
        # A fault of the request as a whole (login, session) the client has to see; a failure of the server is of its part alone.
        shown = status if 400 <= status < 500 else 200
        self._client.answer(shown, joined(body, (*missing, *self._extra)) or b"", _as_json(fields))

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
                self._frames += 1
                if not self._frames % IN_A_ROW:
                    await asyncio.sleep(0)  # a flood must not keep the others waiting
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
        plain = is_plain(frame.raw)
        if not frame.data:
            return frame.raw if plain else rewritten(frame, None)
        data = frame.data if plain else on_one_line(frame.data)
        if frame.event in MESSAGES:
            passed = await review.server(data, self._max, self._ids, self._own)
        else:
            passed = await review.aside(frame.event, data, self._max)
        self._note(passed)
        self._upstream.answer_server(self._admitted, passed.replies, self._headers)
        if plain and passed.forward is data:
            return frame.raw
        return rewritten(frame, passed.forward)

    def _note(self, passed: Passed) -> None:
        for id_ in passed.answered:
            if id_ in self._ids:
                self._ids.remove(id_)

    async def _cut(self, response: Response, review: Review, out: list[bytes], size: int) -> None:
        """End a stream that grew past its bound: whoever waits is told so."""
        review.doubts.oversize(size)
        message = f"the answer is longer than {self._max} bytes (gateway.max_response)"
        out += map(event_of, errors(self._ids, message))
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
        client = self._client
        # Its other members have their answers: an answer, and no failure of HTTP.
        if not client.streaming and self._extra:
            client.answer(200, joined(as_body(errors(self._ids, str(error))), self._extra) or b"")
        elif not client.streaming:
            client.answer(error.status if error.status >= 500 else 502, failure(self._ids, str(error)))
        elif self._resumable:
            client.abort()
        else:
            client.last(b"".join(map(event_of, errors(self._ids, str(error)))))

    def refuse(self, error: Denied) -> None:
        """Give the policy's error to what waits, in the place of what the server might say."""
        client, refusals = self._client, [error(id_) for id_ in self._ids]
        if client.streaming:
            client.last(b"".join(map(event_of, refusals)))
        elif not client.answered:
            status = 200 if self._asked.method == "POST" else 403
            body = joined(as_body(refusals), self._extra) if self._extra else as_body(refusals)
            client.answer(status, body or error(None))


def _as_json(fields: Headers) -> Headers:
    """Return the fields of a server's answer for a body of ours in its place."""
    return (*(field for field in fields if field[0].lower() != "content-type"), *JSON)


def _contradiction(asked: HttpRequest, body: Body, review: Review) -> str:
    """Say where the header fields of a message contradict it; empty where they do not. What is missing is the server's business."""
    message: Any = body.messages[0]
    if body.batch:
        return ""
    why = gateway_http.disagreement(asked.fields, asked.repeated, message.raw)
    if why or not is_call(message) or not mcp_params.repeats(asked.fields):
        return why
    call = call_in(message)
    mirrored = review.mirrored(call.tool)
    return mcp_params.disagreement(mirrored, call.input, asked.fields, asked.repeated, complete=False)
