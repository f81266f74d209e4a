"""Requests of 2026-07-28, which know no session, through one pipe that clients share: ids are made different and back again.

What may pass is each request's own review's business; when a pipe is opened and let go is the bridge's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import client as mcp_client
from agentsh_net.core.mcp import dangers, gateway_http, jsonrpc
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp import glance as mcp_glance
from agentsh_net.core.mcp import params as mcp_params
from agentsh_net.core.mcp.exchange import MODERN
from agentsh_net.core.mcp.jsonrpc import Body, ErrorResponse, Id, Limits, Notification, Request, Response
from agentsh_net.core.values import json_splice, strict_json
from agentsh_proxy.gateway.admission import Admitted
from agentsh_proxy.gateway.bodies import as_body, failure, flattened
from agentsh_proxy.gateway.carrier import Denied
from agentsh_proxy.gateway.connection import JSON, GatewayConnection
from agentsh_proxy.gateway.delivery import PING, deliver
from agentsh_proxy.gateway.exchange import ENDLESS
from agentsh_proxy.gateway.pipe import Pipe
from agentsh_proxy.gateway.reply import STREAM
from agentsh_proxy.gateway.requests import HttpRequest
from agentsh_proxy.gateway.review import Review, Taken
from agentsh_proxy.gateway.routes import progress_token, token_of
from agentsh_proxy.gateway.stream import Stream, event
from agentsh_proxy.gateway.view import Place

MAX_IN_FLIGHT: Final = 4096  # requests of all clients
# The first request on a pipe decides for good which era a server of both speaks on it: it is ours, and no client's.
OPENING: Final = jsonrpc.request(0, "server/discover", {"_meta": mcp_client.envelope()})
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
# The HTTP status of an error that is the whole answer (2026-07-28, Streamable HTTP).
STATUS: Final[Mapping[int, int]] = {
    -32700: 400, -32600: 400, -32602: 400, -32601: 404, -32020: 400, -32021: 400, -32022: 400,
}  # fmt: skip


@dataclass(slots=True)
class _Flight:
    """A request under way: what its client calls it, and where its answer goes."""

    own_id: Id
    token: Id | None
    review: Review
    stream: Stream


class Shared:
    """One pipe and the requests that go through it."""

    def __init__(self, pipe: Pipe, max_response: int, spawn: Callable[[Awaitable[None]], None]) -> None:
        self.used = 0.0
        self.ended = ""
        # It left a request unanswered and said nothing at all meanwhile: others get a new one.
        self.mute = False
        self._pipe = pipe
        self._max = max_response
        self._spawn = spawn
        self._number = 0
        self._heard = 0  # messages of the server
        self._flights: dict[Id, _Flight] = {}
        self._opening = asyncio.get_running_loop().create_task(self._open())
        self._reader: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Say whether a request is under way."""
        return bool(self._flights)

    async def opened(self) -> None:
        """Wait until the pipe is open. Raises ProtocolError where it cannot be, or is let go before it is."""
        if not self._opening.done():
            await asyncio.wait((self._opening,))  # who waits and is gone ends the wait, not the opening
        if self._opening.cancelled():
            raise ProtocolError(self.ended, status=503)
        self._opening.result()

    def deny(self, error: Denied) -> int:
        """Answer what is in flight with the policy's error, and say how much that was; to be closed."""
        waiting = [flight for flight in self._flights.values() if flight.stream.ids]
        for flight in waiting:
            flight.stream.ids = []
            flight.stream.put(0, error(flight.own_id))
        return len(waiting)

    def close(self) -> None:
        """End it: whoever waits is told."""
        self._lost("the server was let go")
        self._opening.cancel()
        if self._reader is not None:
            self._reader.cancel()
        self._pipe.close()

    async def post(
        self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted, review: Review
    ) -> None:
        """Carry a request to the server and its answer back. Raises ProtocolError."""
        if asked.body.lstrip(b" \t\r\n").startswith(b"["):  # none of its calls is judged, charged or told of
            why = f"one request is expected: {MODERN} knows no batches"
            client.note_refused(400, why)
            client.answer(400, _invalid(None, why))
            return
        taken = review.client(
            asked.body, admitted.max_request, lambda body: _contradiction(asked, body, review)
        )
        if taken.forward is None:
            replies = as_body(taken.replies)
            client.answer(taken.status if replies else 202, replies or b"")
            return
        request = taken.body.messages[0] if taken.body is not None else None
        if taken.body is None or taken.body.batch or not isinstance(request, Request):
            # A notification: over HTTP this revision has none for servers, a closed stream says what there is to say.
            notes = isinstance(request, Notification) and taken.body is not None and not taken.body.batch
            client.answer(202 if notes else 400, b"" if notes else _invalid(None, "one request is expected"))
            return
        if request.method == "initialize":
            review.forget(taken.ids)
            client.answer(
                404,
                jsonrpc.error(
                    request.id, jsonrpc.METHOD_NOT_FOUND, f"[agentsh] {MODERN} knows no initialize"
                ),
            )
            return
        if len(self._flights) >= MAX_IN_FLIGHT:
            raise ProtocolError("too many requests are under way", status=503)
        await self._fly(taken, request, client, admitted.place, review)

    async def _fly(
        self, taken: Taken, request: Request, client: GatewayConnection, place: Place, review: Review
    ) -> None:
        assert taken.forward is not None  # noqa: S101 - the caller asks
        self._number += 1
        number = self._number
        stream = Stream(number, (request.id,))
        flight = _Flight(request.id, token_of(request), review, stream)
        self._flights[number] = flight
        changes: dict[strict_json.Path, Any] = {("id",): number}
        if flight.token is not None:
            changes["params", "_meta", "progressToken"] = number
        client.endless = request.method in ENDLESS
        seconds = None if client.endless else place.settings.timeout
        heard = self._heard
        try:
            await self._pipe.send(json_splice.splice(flattened(taken.forward), changes))
            await self._respond(stream, client, seconds)
        except TimeoutError:
            self.mute = self.mute or self._heard == heard
            self._fail(flight, client, f"the server did not answer within {seconds:g} s", 504)
        except ProtocolError as error:
            # A server that ends at its first request and says nothing knows no request before `initialize`: an error that no
            # revision knows lets the client begin with that.
            self._fail(flight, client, str(error), 502 if self._heard else 400)
        finally:
            del self._flights[number]
            review.forget((request.id,))
            if stream.ids and not self.ended:  # the closed stream is the cancellation
                note = {"requestId": number, "reason": "the client closed the stream"}
                self._spawn(self._tell(jsonrpc.notification("notifications/cancelled", note)))

    async def _respond(self, stream: Stream, client: GatewayConnection, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(PING if seconds is None else min(seconds, PING)):
                await stream.news()
        except TimeoutError:
            if seconds is not None and seconds <= PING:
                raise
        if not stream.ids and stream.waiting:
            _, message = stream.take()
            if not stream.waiting:
                client.answer(_status(message), message, JSON)
                return
            client.begin(200, STREAM)
            await client.send(event(0, 0, message))
        elif self.ended:
            raise ProtocolError(self.ended, status=502)
        else:
            client.begin(200, STREAM)
        await deliver(stream, client, lambda: self.ended, seconds)
        client.end()

    def _fail(self, flight: _Flight, client: GatewayConnection, why: str, status: int) -> None:
        error = failure((flight.own_id,), why)
        if client.streaming:
            client.last(event(0, 0, error))
        else:
            client.answer(status, error)

    # What the server sends.

    async def _open(self) -> None:
        try:
            await self._pipe.open()
            await self._pipe.send(OPENING)
        except ProtocolError as error:
            self.ended = str(error)
            raise
        self._reader = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        try:
            while True:
                message = flattened(await self._pipe.receive())
                self._heard += 1
                await self._take(message)
        except ProtocolError as error:
            self._lost(str(error))

    async def _take(self, message: bytes) -> None:
        try:
            body = mcp_gate.read(message, Limits(size=self._max))
        except ProtocolError as error:
            self._refuse(message, str(error))
            return
        if body.batch:
            self._refuse(message, f"a batch, which {MODERN} has not")
            return
        found = self._flight_of(body)
        if found is None:
            return  # of nobody who is still there
        flight, changes = found
        passed = await flight.review.server(json_splice.splice(message, changes), self._max, (flight.own_id,))
        for reply in passed.replies:
            await self._pipe.send(reply)
        if passed.answered:
            flight.stream.ids = []
        if passed.forward is not None:
            flight.stream.put(0, passed.forward)

    def _refuse(self, message: bytes, why: str) -> None:
        """Let go of a message that cannot be read for certain, and tell whom it seems to answer, and the audit trail."""
        meant = [self._flights[id_] for id_ in dangers.answered_in(message) if id_ in self._flights]
        told = next(iter(meant or self._flights.values()), None)
        if told is not None:
            told.review.doubts.undeliverable(len(message), why)
        for flight in meant:
            flight.stream.ids = []
            flight.stream.put(0, failure((flight.own_id,), f"the server's answer cannot be read: {why}"))

    def _flight_of(self, body: Body) -> tuple[_Flight, dict[strict_json.Path, Any]] | None:
        """Return whose a message is, and what makes it the one that its client expects."""
        message = body.messages[0]
        if isinstance(message, Response | ErrorResponse):
            flight = self._flights.get(message.id) if message.id is not None else None
            changes: dict[strict_json.Path, Any] = {("id",): flight.own_id} if flight else {}
            meta = (
                message.result.get("_meta")
                if isinstance(message, Response) and isinstance(message.result, Mapping)
                else None
            )
            if flight and isinstance(meta, Mapping) and SUBSCRIPTION in meta:
                changes["result", "_meta", SUBSCRIPTION] = flight.own_id
            return (flight, changes) if flight else None
        token = progress_token(body)
        flight = self._flights.get(token) if token is not None else None
        if flight is not None and flight.token is not None:
            return flight, {("params", "progressToken"): flight.token}
        meta = message.params.get("_meta") if isinstance(message.params, Mapping) else None
        subscription = meta.get(SUBSCRIPTION) if isinstance(meta, Mapping) else None
        flight = self._flights.get(subscription) if isinstance(subscription, int | str) else None
        if flight is not None:
            return flight, {("params", "_meta", SUBSCRIPTION): flight.own_id}
        if len(self._flights) == 1:
            return next(iter(self._flights.values())), {}
        return None

    async def _tell(self, message: bytes) -> None:
        try:
            await self._pipe.send(message)
        except ProtocolError as error:
            self._lost(str(error))

    def _lost(self, why: str) -> None:
        self.ended = self.ended or why
        for flight in self._flights.values():
            flight.stream.wake()


def _contradiction(asked: HttpRequest, body: Body, review: Review) -> str:
    """Say where the header fields of a request contradict it, or are missing: nobody but us reads them in front of such a server."""
    message = body.messages[0]
    if body.batch or not isinstance(message, Request):
        return ""
    raw: Any = message.raw
    why = gateway_http.disagreement(asked.fields, asked.repeated, raw) or gateway_http.missing(
        asked.fields, raw
    )
    params = message.params
    if why or message.method != mcp_glance.CALL or not isinstance(params, Mapping):
        return why
    mirrored = review.mirrored(str(params.get("name")))
    return mcp_params.disagreement(mirrored, params.get("arguments"), asked.fields, asked.repeated)


def _status(message: bytes) -> int:
    """Return the HTTP status of a message that is the whole answer."""
    found = jsonrpc.parse(message, Limits(size=len(message))).messages[0]
    return STATUS.get(found.code, 200) if isinstance(found, ErrorResponse) else 200


def _invalid(id_: Id | None, why: str) -> bytes:
    return jsonrpc.error(id_, mcp_gate.UNREADABLE, f"agentsh-net: {why}")
