"""One warm session with one declared network server: find how it speaks, list its tools, hear when they change.

The conversation is `core.mcp.client`'s, the bytes are the transports'; when to do what is `discovery`'s.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol, Self

from agentsh_net.core.configuration.settings import SecurityScheme
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.client import Conversation
from agentsh_net.core.mcp.exchange import (
    Answered,
    Ask,
    FallBack,
    Listing,
    Outcome,
    Refused,
    SessionLost,
    Tell,
    failure,
    refusal,
)
from agentsh_net.core.mcp.jsonrpc import ErrorResponse, Response
from agentsh_net.core.model import Server, Transport
from agentsh_net.core.trust import definitions
from agentsh_net.core.trust.certificate import Fingerprints
from agentsh_proxy.mcp_client.legacy_sse import LegacySse
from agentsh_proxy.mcp_client.site import Site
from agentsh_proxy.mcp_client.streamable import StreamableHttp

Page = dict[str, dict[str, Any]]  # kind -> name -> definition
MAX_PAGES: Final = 20  # of one list besides tools, which is asked for every minute
MAX_PAUSE: Final = (
    16  # listings for which one that fails again and again is left alone: tools wait for its answer
)


class _Failure(NamedTuple):
    """What came of a list besides tools: how often in a row, and at which listing it is asked for again."""

    why: str
    times: int
    again: int


class Carrier(Protocol):
    """A transport: carries requests to the server and brings outcomes back. stdio will be the third."""

    retry: float

    async def ask(self, ask: Ask) -> Outcome:
        """Send a request and return what came of it."""
        ...

    async def tell(self, tell: Tell) -> None:
        """Send a notification."""
        ...

    async def listen(self, established: Callable[[], None]) -> bool:
        """Hear the server's news until the stream ends; False if it offers none."""
        ...

    async def close(self) -> None:
        """End the session."""
        ...


class Session:
    """A session with one server. `stale` is set when a new listing is due: tools changed, or news may have been missed."""

    def __init__(
        self, server: Server, *, tls: ssl.SSLContext | None = None, scheme: SecurityScheme | None = None
    ) -> None:
        self.stale = asyncio.Event()
        self._listings = 0
        self._failed: dict[str, _Failure] = {}  # lists besides tools, by method
        self.lost = False  # the stream that is the session has ended: begin a new one
        self._site = Site(server, tls, scheme)
        http = server.transport is Transport.HTTP
        self._talk = Conversation(probe=http, may_fall_back=http)
        self._carrier: Carrier | None = (
            StreamableHttp(self._site, self._talk, self.stale.set) if http else None
        )
        self._listener: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def transport(self) -> Transport:
        """Return how the server is really spoken to: a declared `http` may turn out to be `sse`."""
        return Transport.SSE if isinstance(self._carrier, LegacySse) else Transport.HTTP

    @property
    def certificate(self) -> Fingerprints:
        """Return the digests of the TLS certificate seen last, empty without TLS."""
        return self._site.http.seen or Fingerprints("", "")

    @property
    def unlisted(self) -> str:
        """Return why something besides tools could not be listed; empty where all was."""
        return "; ".join(failed.why for failed in self._failed.values())

    async def list(self, timeout: float) -> Listing:  # noqa: ASYNC109 - it ends in a ProtocolError
        """Return what the server offers now, within so many seconds. Raises ProtocolError."""
        try:
            async with asyncio.timeout(timeout):
                return await self._list()
        except TimeoutError as fault:
            raise ProtocolError(
                f"no answer within {timeout:g} s while {self._talk.phase.value}", status=504
            ) from fault

    async def _list(self) -> Listing:
        self.stale.clear()
        carrier = self._carrier or await self._open_sse()
        commands = [self._talk.begin()]
        while True:
            match commands.pop(0):
                case Tell() as tell:
                    await carrier.tell(tell)
                case Ask() as ask:
                    commands += self._talk.feed(await carrier.ask(ask))
                case FallBack(reason):
                    carrier = await self._fall_back(reason)
                    commands.append(self._talk.fell_back())
                case Listing() as listing:
                    return listing

    async def others(self, timeout: float, heard: Callable[[Page, str], None]) -> None:  # noqa: ASYNC109 - it ends in what came by then
        """Hand on what the server lists besides tools, page by page, each with its place, as far as it answers within so many seconds.

        A list that fails ends it, and is asked for again some listings later (`unlisted` says why).
        """
        self._listings += 1
        due = (
            m for m in self._talk.lists if m not in self._failed or self._failed[m].again <= self._listings
        )
        method = ""
        try:
            async with asyncio.timeout(timeout):
                for method in due:
                    await self._other(method, heard)
                    self._failed.pop(method, None)
        except (ProtocolError, TimeoutError) as fault:
            times = self._failed[method].times + 1 if method in self._failed else 1
            why = str(fault) or f"no answer to {method} within {timeout:g} s"
            again = self._listings + 1 + min(2 ** (times - 1), MAX_PAUSE)
            self._failed[method] = _Failure(why, times, again)

    async def _other(self, method: str, heard: Callable[[Page, str], None]) -> None:
        number = 0
        async for page in self._pages(method):
            number += 1
            listed = await asyncio.to_thread(definitions.read, method, page)
            if listed:
                heard({definitions.KINDS[method].aspect.value: listed}, f"{method} {number}")

    async def _pages(self, method: str) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the pages of a list, at most MAX_PAGES, until the server has no more, or knows no such list. Raises ProtocolError."""
        cursor: Any = None
        for _ in range(MAX_PAGES):
            if self._carrier is None:
                return
            match await self._carrier.ask(self._talk.others(method, cursor)):
                case Answered(Response(result=dict(page))):
                    yield page
                    cursor = page.get("nextCursor")
                case Answered(ErrorResponse(code=code) as error) if code != jsonrpc.METHOD_NOT_FOUND:
                    raise failure(method, error)
                case Answered(Response()):
                    raise ProtocolError(f"{method} answered something that is not an object", status=502)
                case Refused(status):
                    raise refusal(method, status)
                case Answered() | SessionLost():
                    return  # of a lost session the next listing hears
            if not isinstance(cursor, str):
                return

    async def _open_sse(self) -> LegacySse:
        self._carrier = carrier = LegacySse(self._site, self._talk, self.stale.set)
        await carrier.open()
        return carrier

    async def _fall_back(self, reason: str) -> LegacySse:
        try:
            return await self._open_sse()
        except ProtocolError as fault:
            raise ProtocolError(f"{reason}; HTTP+SSE was tried too: {fault}", status=fault.status) from fault

    def listen(self) -> None:
        """Hear the server's news from now on, if it offers any."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="mcp-listener")

    async def _listen(self) -> None:
        """Keep the stream of news open. Each time it opens, a listing is due: what changed before was not heard."""
        while self._carrier is not None:
            try:
                if not await self._carrier.listen(self.stale.set):
                    return
            except ProtocolError:
                self.stale.set()  # the listing finds out what is wrong, and says so
            if isinstance(self._carrier, LegacySse):
                self.lost = True
                self.stale.set()
                return
            await asyncio.sleep(self._carrier.retry)

    async def close(self) -> None:
        """End the session and every connection."""
        try:
            if self._listener is not None:
                self._listener.cancel()
                # And not `await listener`: that cancellation is not ours.
                await asyncio.wait((self._listener,))
            if self._carrier is not None:
                await self._carrier.close()
        finally:
            self._site.http.close()
