"""The gateway in front of a Streamable HTTP server: requests and answers travel as they came, and a copy is judged.

Sessions, eras and resumption stay between client and server; nothing of them is made here. Verdicts are the review's business.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import gateway_http, jsonrpc
from agentsh_net.core.mcp import http_rules as mcp_http
from agentsh_net.core.mcp.http_rules import Headers
from agentsh_net.core.model import Server
from agentsh_net.core.trust.certificate import Fingerprints
from agentsh_net.core.values.recent import remember
from agentsh_proxy.gateway.admission import Admitted
from agentsh_proxy.gateway.carrier import Denied
from agentsh_proxy.gateway.connection import GatewayConnection
from agentsh_proxy.gateway.dialing import Tell
from agentsh_proxy.gateway.exchange import MAX_NAME, Exchange
from agentsh_proxy.gateway.offer import Unnamed
from agentsh_proxy.gateway.pipe import Pipe
from agentsh_proxy.gateway.requests import HttpRequest
from agentsh_proxy.gateway.review import Review
from agentsh_proxy.http_client import HttpClient, Response

MAX_IDLE: Final = 256  # connections kept to one server; as many calls as a busy agent farm has in flight
# Whose listings and open requests are remembered; past it who was heard longest ago begins anew.
MAX_SESSIONS: Final = 10_000
MAX_REPLIES: Final = 64  # each is a connection while the server does not take it
OLDER_SECONDS: Final = 10.0  # for it to name its endpoint


class Forward:
    """One declared server that speaks Streamable HTTP."""

    def __init__(
        self,
        server: Server,
        tls: Callable[[], ssl.SSLContext],
        review: Callable[[str], Review],
        spawn: Callable[[Awaitable[None]], None],
        older: Callable[[HttpRequest, Admitted], Pipe],
        tell: Tell,
        report: Callable[[dict[str, Any]], None],
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
        self._report = report  # as `discovery` reports
        self._shown: Fingerprints | None = None  # the certificate that was reported last
        self._replies = 0  # of ours that the server has not taken yet
        self._closed = False
        self._flights: dict[Exchange, asyncio.Task[Any]] = {}
        self._reviews: OrderedDict[tuple[str, str], Review] = OrderedDict()
        self._unnamed = Unnamed()
        # Session of the server's -> of which agents.
        self._owners: OrderedDict[str, frozenset[str]] = OrderedDict()

    @property
    def sessions(self) -> int:
        """How many sessions are remembered."""
        return len(self._reviews)

    def tick(self, now: float) -> None:
        """Keep everything: sessions are the server's, and are bounded in number here."""

    def deny(self, error: Denied) -> tuple[int, int]:
        """Answer what is in flight with the policy's error; sessions are the server's. Return how much that was."""
        for exchange, task in self._flights.items():
            exchange.denied = error
            task.cancel()
        self.close()
        return 0, len(self._flights)

    def close(self) -> None:
        """Close every connection to the server, for good."""
        self._closed = True
        self._http.close()

    async def serve(self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted) -> bool:
        """Answer a request of a client; False where the server speaks HTTP+SSE. Raises ProtocolError where there is no answer yet."""
        if self._closed:  # since it was admitted
            raise ProtocolError(f"server {self.server.id} was let go", status=503)
        exchange = Exchange(self, asked, client, admitted)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines run in tasks
        self._flights[exchange] = task
        try:
            return await self._carry(exchange, asked, client, admitted)
        except asyncio.CancelledError:
            if exchange.denied is None or task.uncancel():
                raise
            exchange.refuse(exchange.denied)
            return True
        finally:
            del self._flights[exchange]

    async def _carry(
        self, exchange: Exchange, asked: HttpRequest, client: GatewayConnection, admitted: Admitted
    ) -> bool:
        mcp_session, session_id = asked.fields.get("mcp-session-id", ""), admitted.session_id
        if mcp_session and (len(mcp_session) > MAX_NAME or not self._may_use(mcp_session, admitted)):
            client.note_refused(
                404, f"the session with server {self.server.id} is not known to be this client's"
            )
            # As if it were nobody's.
            client.answer(404, jsonrpc.error(None, jsonrpc.SESSION_NOT_FOUND, "Session not found"))
            return True
        if mcp_session in self._owners:
            self._owners.move_to_end(mcp_session)  # it is in use: others are forgotten before it
        review = self._reviews.get((session_id, mcp_session)) if mcp_session else None
        review = review or self._review(session_id)
        if mcp_session:
            self._remember((session_id, mcp_session), review)
        else:
            review.offer = self._unnamed.known(session_id, asked.fields, review.offer)
        offer = review.offer
        if asked.method == "POST":
            new = await exchange.post(review)
            if new and new != mcp_session:
                self._remember((session_id, new), review)
                self._own(new, session_id)
            elif not mcp_session and review.offer is not offer:  # an `initialize` that began no session
                self._unnamed.keep(session_id, asked.fields, review.offer)
        else:
            await exchange.other(review)
        if mcp_session and exchange.session_ended:
            self._reviews.pop((session_id, mcp_session), None)
            self._owners.pop(mcp_session, None)
        return not exchange.older

    def _may_use(self, mcp_session: str, admitted: Admitted) -> bool:
        """Say whether a session is a client's; where agents have sessions of their own, one of which nobody knows whose it is is nobody's.

        So it is once the worker that saw it begin has ended: its client is told to begin anew.
        """
        owners = self._owners.get(mcp_session)
        return admitted.session_id in owners if owners is not None else not admitted.sessions

    async def is_older(self, asked: HttpRequest, admitted: Admitted) -> bool:
        """Say whether the server opens the stream of HTTP+SSE and names an endpoint there."""
        pipe = self._older(asked, admitted)
        try:
            async with asyncio.timeout(OLDER_SECONDS):
                await pipe.open()
        except (ProtocolError, TimeoutError):
            return False
        finally:
            pipe.close()
        return True

    def _remember(self, key: tuple[str, str], review: Review) -> None:
        review.offer.listing.lean = True
        remember(self._reviews, key, review, MAX_SESSIONS)

    def _own(self, mcp_session: str, session_id: str) -> None:
        """Take note whose a session is; a server that names one id for everybody has no sessions that could be taken over."""
        owners = self._owners.get(mcp_session, frozenset()) | {session_id}
        remember(self._owners, mcp_session, owners, MAX_SESSIONS)

    async def send(
        self, admitted: Admitted, method: str, headers: Headers, tool: str, body: bytes
    ) -> Response:
        """Send a request to the server; redirects inside its origin are followed. Raises ProtocolError."""
        merged = mcp_http.merged(self._declared, headers)
        url = self.server.url
        for _ in range(mcp_http.MAX_REDIRECTS + 1):
            target = self._address.target if url == self.server.url else mcp_http.address(url).target
            secured, target = gateway_http.with_credential(admitted.place.scheme(tool), merged, target)
            response = await self._http.request(method, target, secured, body)
            self._tell_of(response, self.server, admitted.session_id)
            self._tell_certificate()
            redirect = mcp_http.redirection(method, url, response.status, response.header("location"))
            if redirect is None:
                return response
            await response.release()
            url = redirect
        raise ProtocolError(f"the server redirects more than {mcp_http.MAX_REDIRECTS} times", status=502)

    def _tell_certificate(self) -> None:
        """Have the certificate of a new connection held against its pin: discovery has connections of its own."""
        seen = self._http.seen
        if seen is None or seen == self._shown:
            return
        self._shown = seen
        self._report(
            {"server_id": self.server.id, "ok": False, "error": "", "tools": [], "partial": True}
            | {"tls_fingerprint": seen.certificate, "tls_public_key": seen.public_key}
        )

    def answer_server(self, admitted: Admitted, replies: Collection[bytes], headers: Headers) -> None:
        """Answer requests of the server that do not reach the client, soon; one that does not listen is not answered any more."""
        for reply in replies:
            if self._replies < MAX_REPLIES:
                self._replies += 1
                self._spawn(self._tell(admitted, reply, headers))

    async def _tell(self, admitted: Admitted, body: bytes, headers: Headers) -> None:
        try:
            async with asyncio.timeout(admitted.place.settings.timeout):
                response = await self.send(admitted, "POST", headers, "", body)
            await response.release()
        except (ProtocolError, TimeoutError):
            return  # the server that does not take an answer waits for it in vain, as it would for a client's
        finally:
            self._replies -= 1
