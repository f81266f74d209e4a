"""One session of a client of an older revision with a server behind a pipe: what either says, and what of it can be resumed.

Which session a request belongs to is the bridge's business, what may pass the review's, how an answer is given the reply's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.exchange import LEGACY
from agentsh_proxy.gateway.admission import Admitted
from agentsh_proxy.gateway.bodies import as_body, failure, flattened
from agentsh_proxy.gateway.carrier import Denied
from agentsh_proxy.gateway.connection import GatewayConnection
from agentsh_proxy.gateway.delivery import deliver
from agentsh_proxy.gateway.pipe import Pipe
from agentsh_proxy.gateway.reply import STREAM, Ends, Reply
from agentsh_proxy.gateway.requests import HttpRequest
from agentsh_proxy.gateway.review import Passed, Review, Taken
from agentsh_proxy.gateway.routes import Routes
from agentsh_proxy.gateway.stream import GENERAL, event, place_in, priming
from agentsh_proxy.gateway.view import Place


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
        self.credentials = ""  # that went on to the server, where the client's do
        self.used = 0.0
        self.begun = False
        self.ended = ""  # why, once it has
        self._pipe = pipe
        self._review = review
        self._max = max_response
        self._routes = Routes(review.forget)
        self._ends = Ends(
            pipe, self._routes, review, lambda: self.ended, lambda message: spawn(self._tell(message))
        )
        self._reader: asyncio.Task[None] | None = None
        self._taking = False  # the reader is at a message, and what comes behind it waits
        self._replying: asyncio.Task[None] | None = None  # to what was heard; until then nothing else is

    @property
    def busy(self) -> bool:
        """Say whether somebody reads a stream or waits for an answer."""
        return self._routes.busy

    async def begin(self, taken: Taken, client: GatewayConnection, place: Place) -> None:
        """Open the pipe and let the client's `initialize` through. Raises ProtocolError."""
        try:
            await self._pipe.open()
        except ProtocolError as error:
            self.ended = str(error)
            client.answer(502, failure(taken.ids, str(error)))
            return
        if self.ended:  # meanwhile
            self._pipe.close()
            client.answer(502, failure(taken.ids, self.ended))
            return
        self._pipe.attach(self._hear)
        self._reader = asyncio.get_running_loop().create_task(self._read())
        fields = (("Mcp-Session-Id", self.id),)
        reply = Reply(self._ends, taken, client, place.settings.timeout, fields, primed=False)
        try:
            await reply.run()
        finally:
            self.begun = reply.begun

    def deny(self, error: Denied) -> int:
        """Answer what is in flight with the policy's error, and say how much that was; to be closed."""
        ids = self._routes.ids
        self._review.forget(ids)
        for id_ in ids:
            self._routes.carry(Passed(error(id_), (), (id_,)))
        return len(ids)

    def close(self) -> None:
        """End it: whoever waits is told."""
        self._lost("the session was ended")
        for task in (self._reader, self._replying):
            if task is not None:
                task.cancel()
        self._pipe.close()

    def post(
        self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted
    ) -> Awaitable[None] | None:
        """Carry a message of the client to the server; what is returned has to be awaited. Raises ProtocolError."""
        taken = self._review.client(asked.body, admitted.max_request)
        if taken.forward is None:
            _ours(taken, client)
            return None
        used = self._routes.first_used(taken.ids)
        if used is not None:
            client.answer(
                400, jsonrpc.error(used, jsonrpc.INVALID_REQUEST, "this id is that of a request under way")
            )
            return None
        if not taken.ids:
            return self._note(taken, client)
        seconds = admitted.place.settings.timeout
        return Reply(self._ends, taken, client, seconds, primed=_primed(asked)).attend()

    async def _note(self, taken: Taken, client: GatewayConnection) -> None:
        """Carry what wants no answer."""
        assert taken.forward is not None  # noqa: S101 - the caller asks
        try:
            await self._pipe.send(flattened(taken.forward))
        except ProtocolError:
            if not taken.replies:
                raise  # else there is an answer, and nobody waits for one to what was lost
        _ours(taken, client)

    async def listen(self, asked: HttpRequest, client: GatewayConnection) -> None:
        """Answer a GET: what the server says by itself, or the rest of a stream that was lost."""
        resumed = place_in(asked.fields.get("last-event-id", ""))
        stream, seq, missed = self._routes.listen(resumed)
        if stream is None:
            client.answer(409, jsonrpc.error(None, jsonrpc.INVALID_REQUEST, "this stream is open already"))
            return
        client.endless = stream.number == GENERAL
        client.begin(200, (*STREAM, ("Mcp-Session-Id", self.id)))
        try:
            if resumed is None and _primed(asked):
                await client.send(priming(GENERAL, seq))
            for of, message in missed:
                await client.send(event(stream.number, of, message))
            await deliver(stream, client, lambda: self.ended)
        finally:
            self._routes.leave(stream)
        client.end()

    # What the server sends.

    def _hear(self, message: bytes) -> bool:
        """Take a message as it comes, if nothing of it has to be waited for."""
        if self._taking or (self._replying is not None and not self._replying.done()):
            return False
        passed = self._review.at_once(message, self._max, self._routes.ids)
        if passed is None:
            return False
        if passed.replies:
            self._replying = asyncio.get_running_loop().create_task(self._answer(passed.replies))
        self._routes.carry(passed)
        return True

    async def _read(self) -> None:
        """Take what could not be taken as it came."""
        try:
            while True:
                message = await self._pipe.receive()
                self._taking = True
                if self._replying is not None:
                    await asyncio.wait((self._replying,))
                passed = await self._review.server(message, self._max, self._routes.ids)
                await self._answer(passed.replies)
                self._routes.carry(passed)
                self._taking = False
        except ProtocolError as error:
            self._lost(str(error))

    async def _answer(self, replies: tuple[bytes, ...]) -> None:
        """Answer requests of the server that do not reach the client."""
        for reply in replies:
            await self._tell(reply)

    async def _tell(self, message: bytes) -> None:
        try:
            await self._pipe.send(message)
        except ProtocolError as error:
            self._lost(str(error))

    def _lost(self, why: str) -> None:
        self.ended = self.ended or why
        self._routes.wake()


def _ours(taken: Taken, client: GatewayConnection) -> None:
    """Answer with what there is of ours alone."""
    body = as_body(taken.replies)
    client.answer(200 if body else 202, body or b"")


def _primed(asked: HttpRequest) -> bool:
    """Say whether a client expects events without data: earlier revisions than 2025-11-25 do not know them."""
    return asked.fields.get("mcp-protocol-version") == LEGACY[0]
