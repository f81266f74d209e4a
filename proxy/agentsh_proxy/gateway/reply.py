"""The answer to one POST of a session: whole where the server answers at once, a stream where it says more or takes its time.

Nobody awaits a quick one: the server's answer is sent on where it is heard. Which messages it gets is `routes`' business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_proxy.gateway.bodies import errors, failure, flattened, joined
from agentsh_proxy.gateway.connection import JSON, Fields, GatewayConnection
from agentsh_proxy.gateway.delivery import deliver
from agentsh_proxy.gateway.pipe import Pipe
from agentsh_proxy.gateway.review import Review, Taken
from agentsh_proxy.gateway.routes import Routes
from agentsh_proxy.gateway.stream import Stream, event, priming

STREAM: Final = (("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache"))
# Seconds after which an answer becomes a stream that its client can resume, where it knows how: a quick one is not worth it.
PROMPT: Final = 0.1


@dataclass(frozen=True, slots=True)
class Ends:
    """What the replies of a session share."""

    pipe: Pipe
    routes: Routes
    review: Review
    ended: Callable[[], str]  # why the server is gone, once it is
    tell: Callable[[bytes], None]  # sends the server a message of ours, soon


class Reply:
    """One answer. `begun` once there is something of it."""

    __slots__ = (
        "_client", "_ends", "_fault", "_fields", "_primed", "_seconds", "_stream", "_taken", "_timer", "begun",
    )  # fmt: skip

    def __init__(
        self,
        ends: Ends,
        taken: Taken,
        client: GatewayConnection,
        seconds: float,
        fields: Fields = (),
        *,
        primed: bool,
    ) -> None:
        self.begun = False
        self._ends = ends
        self._taken = taken
        self._client = client
        self._seconds = seconds
        self._fields = fields
        self._primed = primed  # the client knows how to resume
        self._stream: Stream
        self._fault = ""  # why the server did not take the message
        self._timer: asyncio.TimerHandle | None = None

    # Where nothing has to be waited for.

    def attend(self) -> Awaitable[None] | None:
        """Ask the server, and answer when it does. Returns what has to be awaited where it cannot be asked at once."""
        taken, ends = self._taken, self._ends
        assert taken.forward is not None  # noqa: S101 - the caller asks
        asked = not taken.replies and ends.pipe.start(flattened(taken.forward), self._failed)
        self._stream = ends.routes.begin(taken)  # while the server is at it
        if not asked:
            return self._finish(self._ask())
        self._stream.listener = self._news
        self._stream.whole = self._whole if len(taken.ids) == 1 else None
        wait = min(self._seconds, PROMPT) if self._primed else self._seconds
        self._timer = self._client.later(wait, self._late)
        self._client.attend(self)
        return None

    def cancel(self) -> None:
        """Take note that the client is gone."""
        self._rest()
        self._ends.routes.leave(self._stream)

    def _whole(self, message: bytes) -> None:
        self._answer(message)
        self._rest()
        self._end()

    def _news(self) -> None:
        self._rest()
        self._client.take_over(self._finish(self._deliver()))

    def _late(self) -> None:
        self._rest()
        if self._primed and self._seconds > PROMPT:
            self._client.take_over(self._finish(self._deliver()))
        else:
            self._give_up(self._silence(), 504)
            self._end()

    def _failed(self, error: ProtocolError) -> None:
        if self._stream.listener is None:  # a task is at it, or it was answered all the same
            self._fault = str(error)
            self._stream.wake()
            return
        self._rest()
        self._give_up(str(error), 502)
        self._end()

    def _rest(self) -> None:
        self._stream.listener = self._stream.whole = None
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        self._ends.routes.leave(self._stream)
        self._client.finished()

    # Where something has.

    async def run(self) -> None:
        """Ask the server and answer."""
        self._stream = self._ends.routes.begin(self._taken)
        await self._finish(self._ask())

    async def _finish(self, rest: Awaitable[None]) -> None:
        """Do what is left of it; where that fails, the client is told."""
        try:
            await rest
        except TimeoutError:
            self._give_up(self._silence(), 504)
        except ProtocolError as error:
            self._give_up(str(error), 502)
        finally:
            self._ends.routes.leave(self._stream)

    async def _ask(self) -> None:
        assert self._taken.forward is not None  # noqa: S101 - the caller asks
        await self._ends.pipe.send(flattened(self._taken.forward))
        for error in self._taken.replies:
            self._ends.routes.put(self._stream, error)
        await self._await_news()
        if not self._quick():
            await self._deliver()

    async def _await_news(self) -> None:
        """Wait for the first word of the server, and for a quick one only where the client knows how to wait itself."""
        if self._over():
            return
        try:
            async with asyncio.timeout(min(self._seconds, PROMPT) if self._primed else self._seconds):
                await self._stream.news()
        except TimeoutError:
            if not self._primed or self._seconds <= PROMPT:
                raise

    def _quick(self) -> bool:
        """Send the answer, if that is all there is to say."""
        if not self._stream.lone or len(self._taken.ids) != 1 or self._taken.replies:
            return False
        self._answer(self._stream.take()[1])
        return True

    def _answer(self, message: bytes) -> None:
        self.begun = b'"result"' in message
        self._client.answer(200, message, (*JSON, *self._fields))

    async def _deliver(self) -> None:
        stream, client = self._stream, self._client
        if (why := self._over()) and not stream.waiting:
            raise ProtocolError(why, status=502)
        client.begin(200, (*STREAM, *self._fields))
        if self._primed:
            await client.send(priming(stream.number, 0))
        self.begun = True
        await deliver(stream, client, self._over, self._seconds)
        client.end()

    def _over(self) -> str:
        return self._fault or self._ends.ended()

    # Where there is no answer.

    def _silence(self) -> str:
        return f"the server did not answer within {self._seconds:g} s"

    def _give_up(self, why: str, status: int) -> None:
        """Tell the client that there is no answer but ours, and the server that nobody waits for one."""
        stream, client, replies = self._stream, self._client, self._taken.replies
        ids = tuple(stream.ids)
        self._ends.routes.forget(stream)
        self._ends.review.forget(ids)
        if not self._ends.ended():
            for id_ in ids:
                params = {"requestId": id_, "reason": why}
                self._ends.tell(jsonrpc.notification("notifications/cancelled", params))
        # Its other members have their answers: an answer, and no failure of HTTP.
        if not client.streaming and replies:
            client.answer(200, joined(failure(ids, why), replies) or b"")
        elif not client.streaming:
            client.answer(status, failure(ids, why))
        elif stream.cut:
            client.abort()  # it comes back for the rest
        else:
            client.last(b"".join(event(stream.number, 0, error) for error in errors(ids, why)))
