"""One session of a client of an older revision with a server behind a pipe: its requests, its streams, what it can resume.

Which session a request belongs to is the bridge's business, what may pass the review's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from agentsh_net.core import jsonrpc
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.jsonrpc import Body, Id, Notification, Request
from agentsh_net.core.mcp_exchange import LEGACY
from agentsh_proxy.gateway.bodies import joined
from agentsh_proxy.gateway.connection import Fields, GatewayConnection
from agentsh_proxy.gateway.delivery import deliver
from agentsh_proxy.gateway.requests import Asked
from agentsh_proxy.gateway.review import Passed, Review, Taken, as_body, flattened
from agentsh_proxy.gateway.stream import GENERAL, Kept, Stream, event, place_in, priming
from agentsh_proxy.gateway.view import Place

INTERNAL: Final = -32603
INVALID: Final = -32600
STREAM: Final = (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"))
JSON: Final = (("Content-Type", "application/json"),)
# Seconds after which an answer becomes a stream that its client can resume, where it knows how: a quick one is not worth it.
PROMPT: Final = 0.1
MAX_STREAMS: Final = 64  # of one session that nobody reads and that still wait for answers


class Pipe(Protocol):
    """A server that takes and gives messages one by one."""

    async def open(self) -> None:
        """Connect. Raises ProtocolError."""
        ...

    async def send(self, message: bytes) -> None:
        """Send a message. Raises ProtocolError."""
        ...

    async def receive(self) -> bytes:
        """Return the next message. Raises ProtocolError where there will be none."""
        ...

    def close(self) -> None:
        """End the server's side."""
        ...


class Session:
    """One session."""

    def __init__(
        self,
        pipe: Pipe,
        review: Review,
        id_: str,
        max_response: int,
        spawn: Callable[[Awaitable[None]], None],
    ) -> None:
        self.id = id_
        self.used = 0.0
        self.begun = False
        self.ended = ""  # why, once it has
        self._pipe = pipe
        self._review = review
        self._max = max_response
        self._spawn = spawn
        self._kept = Kept()
        self._numbers = GENERAL
        self._streams: dict[int, Stream] = {}
        self._routes: dict[Id, Stream] = {}
        self._tokens: dict[Id, Stream] = {}
        self._reader: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Say whether somebody reads a stream or waits for an answer."""
        return any(stream.attached for stream in self._streams.values())

    async def begin(self, taken: Taken, client: GatewayConnection, place: Place) -> None:
        """Open the pipe and let the client's `initialize` through. Raises ProtocolError."""
        try:
            await self._pipe.open()
        except ProtocolError as error:
            self.ended = str(error)
            client.answer(502, _failures(taken.ids, str(error)))
            return
        self._reader = asyncio.get_running_loop().create_task(self._read())
        await self._exchange(taken, client, place, (("Mcp-Session-Id", self.id),), primed=False)

    def close(self) -> None:
        """End it: whoever waits is told."""
        self._lost("the session was ended")
        if self._reader is not None:
            self._reader.cancel()
        self._pipe.close()

    async def post(
        self, asked: Asked, client: GatewayConnection, place: Place, limits: tuple[int, int]
    ) -> None:
        """Carry a message of the client to the server. Raises ProtocolError."""
        taken = self._review.client(asked.body, limits[0])
        if taken.forward is None:
            body = as_body(taken.replies)
            client.answer(200 if body else 202, body or b"")
            return
        used = [id_ for id_ in taken.ids if id_ in self._routes]
        if used:
            client.answer(400, jsonrpc.error(used[0], INVALID, "this id is that of a request under way"))
            return
        if not taken.ids:
            try:
                await self._pipe.send(flattened(taken.forward))
            except ProtocolError:
                if not taken.replies:
                    raise  # else there is an answer, and nobody waits for one to what was lost
            body = as_body(taken.replies)
            client.answer(200 if body else 202, body or b"")
            return
        await self._exchange(taken, client, place, (), primed=_primed(asked))

    async def listen(self, asked: Asked, client: GatewayConnection) -> None:
        """Answer a GET: what the server says by itself, or the rest of a stream that was lost."""
        resumed = place_in(asked.fields.get("last-event-id", ""))
        number, seq = resumed if resumed is not None else (GENERAL, self._kept.seq)
        stream = self._streams.get(number)
        if stream is not None and stream.attached:
            client.answer(409, jsonrpc.error(None, INVALID, "this stream is open already"))
            return
        missed = self._kept.since(number, seq)
        if stream is None:
            stream = Stream(number)
            if number == GENERAL:
                self._streams[GENERAL] = stream
        stream.attach()
        client.endless = number == GENERAL
        client.begin(200, (*STREAM, ("Mcp-Session-Id", self.id)))
        try:
            if resumed is None and _primed(asked):
                await client.send(priming(GENERAL, seq))
            for of, message in missed:
                await client.send(event(number, of, message))
            await deliver(stream, client, lambda: self.ended)
        finally:
            self._leave(stream)
        client.end()

    # Requests and their answers.

    async def _exchange(
        self, taken: Taken, client: GatewayConnection, place: Place, fields: Fields, *, primed: bool
    ) -> None:
        assert taken.forward is not None  # noqa: S101 - the callers ask
        self._numbers += 1
        stream = Stream(self._numbers, taken.ids)
        self._streams[stream.number] = stream
        for id_ in taken.ids:
            self._routes[id_] = stream
        stream.tokens = _tokens(taken.body)
        self._tokens.update(dict.fromkeys(stream.tokens, stream))
        seconds = place.settings.timeout
        try:
            await self._pipe.send(flattened(taken.forward))
            for error in taken.replies:
                self._put(stream, error)
            await self._respond(stream, client, taken, seconds, fields, primed=primed)
        except TimeoutError:
            why = f"the server did not answer within {seconds:g} s"
            self._give_up(stream, client, why, 504, taken.replies)
        except ProtocolError as error:
            self._give_up(stream, client, str(error), 502, taken.replies)
        finally:
            self._leave(stream)

    async def _respond(
        self,
        stream: Stream,
        client: GatewayConnection,
        taken: Taken,
        seconds: float,
        fields: Fields,
        *,
        primed: bool,
    ) -> None:
        if not self.ended:
            try:
                async with asyncio.timeout(min(seconds, PROMPT) if primed else seconds):
                    await stream.news()
            except TimeoutError:
                if not primed or seconds <= PROMPT:
                    raise
        if self.ended and not stream.waiting:
            raise ProtocolError(self.ended, status=502)
        if not stream.ids and len(taken.ids) == 1 and not taken.replies:
            seq, message = stream.take()
            if not stream.waiting:  # the answer was all there is to say
                self.begun = self.begun or b'"result"' in message
                client.answer(200, message, (*JSON, *fields))
                return
            client.begin(200, (*STREAM, *fields))
            first = priming(stream.number, 0) if primed else b""
            await client.send(first + event(stream.number, seq, message))
        else:
            client.begin(200, (*STREAM, *fields))
            if primed:
                await client.send(priming(stream.number, 0))
        self.begun = True
        await deliver(stream, client, lambda: self.ended, seconds)
        client.end()

    def _give_up(
        self, stream: Stream, client: GatewayConnection, why: str, status: int, replies: tuple[bytes, ...]
    ) -> None:
        """Tell the client that there is no answer but our replies, and the server that nobody waits for one."""
        ids = tuple(stream.ids)
        self._forget(stream)
        self._review.forget(ids)
        if not self.ended:
            for id_ in ids:
                params = {"requestId": id_, "reason": why}
                self._spawn(self._tell(jsonrpc.notification("notifications/cancelled", params)))
        if (
            not client.streaming and replies
        ):  # its other members have their answers: an answer, and no failure of HTTP
            client.answer(200, joined(_failures(ids, why), replies) or b"")
        elif not client.streaming:
            client.answer(status, _failures(ids, why))
        elif stream.cut:
            client.abort()  # it comes back for the rest
        else:
            errors = [jsonrpc.error(id_, INTERNAL, f"[agentsh] {why}") for id_ in ids]
            client.last(b"".join(event(stream.number, 0, error) for error in errors))

    def _leave(self, stream: Stream) -> None:
        """Take note that nobody reads a stream any more; its answers are kept where there are some to come."""
        stream.detach()
        if not stream.ids:
            self._forget(stream)
        lost = [s for s in self._streams.values() if not s.attached and s.number != GENERAL]
        for old in lost[:-MAX_STREAMS]:
            self._review.forget(old.ids)
            self._forget(old)

    def _forget(self, stream: Stream) -> None:
        self._streams.pop(stream.number, None)
        for id_ in stream.ids:
            self._routes.pop(id_, None)
        for token in stream.tokens:
            self._tokens.pop(token, None)
        stream.ids = []

    # What the server sends.

    async def _read(self) -> None:
        try:
            while True:
                await self._take(await self._pipe.receive())
        except ProtocolError as error:
            self._lost(str(error))

    async def _take(self, message: bytes) -> None:
        passed = await self._review.server(message, self._max, tuple(self._routes))
        for reply in passed.replies:
            await self._pipe.send(reply)
        if passed.forward is None:
            return
        stream = self._stream_for(passed)
        if stream is None:
            self._kept.add(GENERAL, passed.forward)
            return
        for id_ in passed.answered:
            self._routes.pop(id_, None)
            if id_ in stream.ids:
                stream.ids.remove(id_)
        self._put(stream, passed.forward)

    def _stream_for(self, passed: Passed) -> Stream | None:
        """Return the stream that a message belongs to, as far as it says; else the newest, else that of a GET."""
        for id_ in passed.answered:
            if id_ in self._routes:
                return self._routes[id_]
        token = progress_token(passed.body)
        if token is not None and token in self._tokens:
            return self._tokens[token]
        if passed.body is None or any(isinstance(m, Request) for m in passed.body.messages):
            waiting = [s for s in self._streams.values() if s.attached and s.ids]
            if waiting:
                return waiting[-1]
        general = self._streams.get(GENERAL)
        if general is not None:
            return general
        waiting = [s for s in self._streams.values() if s.attached and s.ids]
        return waiting[-1] if waiting else None

    def _put(self, stream: Stream, message: bytes) -> None:
        stream.put(self._kept.add(stream.number, message), message)

    async def _tell(self, message: bytes) -> None:
        try:
            await self._pipe.send(message)
        except ProtocolError as error:
            self._lost(str(error))

    def _lost(self, why: str) -> None:
        self.ended = self.ended or why
        for stream in tuple(self._streams.values()):
            stream.wake()


def _primed(asked: Asked) -> bool:
    """Say whether a client expects events without data: earlier revisions than 2025-11-25 do not know them."""
    return asked.fields.get("mcp-protocol-version") == LEGACY[0]


def progress_token(body: Body | None) -> Id | None:
    """Return what a notification of progress says it is about."""
    message = body.messages[0] if body is not None else None
    if not isinstance(message, Notification) or message.method != "notifications/progress":
        return None
    token = message.params.get("progressToken") if isinstance(message.params, Mapping) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def _tokens(body: Body | None) -> list[Id]:
    found: list[Any] = []
    for message in body.messages if body is not None else ():
        params = message.params if isinstance(message, Request) else None
        meta = params.get("_meta") if isinstance(params, Mapping) else None
        found.append(meta.get("progressToken") if isinstance(meta, Mapping) else None)
    return [token for token in found if isinstance(token, str | int) and not isinstance(token, bool)]


def _failures(ids: tuple[Id, ...], why: str) -> bytes:
    errors = [jsonrpc.error(id_, INTERNAL, f"[agentsh] {why}") for id_ in ids]
    return as_body(errors) or jsonrpc.error(None, INTERNAL, f"[agentsh] {why}")
