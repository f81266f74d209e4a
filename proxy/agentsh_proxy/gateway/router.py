"""The MCP gateway: `/mcp/<server-id>`, and who carries a request to the server that is meant.

One worker runs it, because sessions live in it. Who may ask is `admission`'s business, carrying `forward`'s and
`bridge`'s.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from agentsh_net.audit.call_events import Teller
from agentsh_net.core.audit.events import DEFAULT_SESSION, Event
from agentsh_net.core.audit.refusals import McpRequestRefused
from agentsh_net.core.configuration.settings import GatewayServer
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import dangers, gateway_http
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp.jsonrpc import Id
from agentsh_net.core.model import Server, Transport, Verdict
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.web.http_head import RequestHead
from agentsh_proxy.callers import place
from agentsh_proxy.charging import Charges
from agentsh_proxy.counting import Counts
from agentsh_proxy.gateway.admission import Admitted, admit
from agentsh_proxy.gateway.bodies import flattened
from agentsh_proxy.gateway.bridge import Bridge, OpenPipe
from agentsh_proxy.gateway.carrier import Carrier, Served
from agentsh_proxy.gateway.connection import Front, GatewayConnection
from agentsh_proxy.gateway.dependencies import Dependencies
from agentsh_proxy.gateway.dialing import teller
from agentsh_proxy.gateway.forward import Forward
from agentsh_proxy.gateway.pipe import Pipe
from agentsh_proxy.gateway.reporting import Reporting
from agentsh_proxy.gateway.requests import HttpRequest
from agentsh_proxy.gateway.review import Review
from agentsh_proxy.gateway.sse import SsePipe
from agentsh_proxy.gateway.stdio import Starter, StdioPipe
from agentsh_proxy.gateway.view import GatewayView, Place, unfold
from agentsh_proxy.http_client import tls_context
from agentsh_proxy.refused_requests import Refusals, refused_request

TICK: Final = 1.0  # seconds between two looks at what takes too long

# Fields of a client's first request that say nothing about the session it begins.
_OF_ONE_MESSAGE: Final = frozenset(("content-type", "accept", "last-event-id", "cache-control"))

_RULES: Final = {401: "gateway.security_schemes", 413: "gateway.max_request"}  # that refuse a request

log = logging.getLogger("agentsh_proxy")


@dataclass(frozen=True, slots=True)
class Means:
    """What the gateway has of its worker."""

    charges: Charges
    counts: Counts
    emit: Callable[[Event], None]
    report: Callable[[dict[str, Any]], None]
    stdio: socket.socket | None  # who starts stdio servers


class Gateway:
    """The gateway of one worker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, snapshot: Snapshot, means: Means) -> None:
        self._loop = loop
        self._means = means
        self.view: GatewayView = unfold(snapshot)
        self.sessions: Mapping[str, str] = {}
        self._refusals = Refusals(means.emit, McpRequestRefused, "gateway", _RULES)
        self.front = Front(
            self.serve,
            lambda: self.view.gateway.max_request,
            self._bug,
            self._whose,
            self._refused,
            loop.time(),
        )
        self._carriers: dict[str, Carrier] = {}
        self._tls: ssl.SSLContext | None = None
        self._starter = Starter(means.stdio, loop) if means.stdio is not None else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._tell = teller(means.emit)
        self._worker = Dependencies(
            snapshot=lambda: self.view.snapshot,
            charge=means.charges.of_the_wire,
            claim=self._claim,
            unanswered=lambda: means.charges.unanswered,
            emit=means.emit,
            report=Reporting(means.report, lambda: self.view.snapshot.generation),
            changed=self._until_changed,
            customs=lambda: self.view.customs,
            counted=self._count,
            soon=loop.call_soon,
        )
        self._timer = loop.call_later(TICK, self._tick)

    def follow(self, snapshot: Snapshot) -> None:
        """Judge by another snapshot from now on; servers that are declared otherwise now are let go, denied ones ended."""
        self.view = unfold(snapshot)
        for key, carrier in tuple(self._carriers.items()):
            place = self.view.places.get(key)
            if place is None or place.server != carrier.server:
                del self._carriers[key]
                carrier.close()
            elif (denied := snapshot.judge_server(place.server.id)).blocked:
                del self._carriers[key]
                self._stop(carrier, denied)
        self._changed.set()
        self._changed = asyncio.Event()

    async def drain(self, seconds: float) -> None:
        """End: let what is under way finish for so long."""
        self.front.drain()
        try:
            async with asyncio.timeout(seconds):
                await self.front.quiet()
        except TimeoutError:
            log.warning("requests to the gateway were cut: they took longer than %g s to end", seconds)
        self.close()

    def close(self) -> None:
        """End everything."""
        self._timer.cancel()
        self.front.close()
        self._refusals.finish()
        for carrier in self._carriers.values():
            carrier.close()
        for task in self._tasks:
            task.cancel()

    def serve(self, asked: HttpRequest, client: GatewayConnection) -> Awaitable[None] | None:
        """Answer one request; what is returned has to be awaited. Raises ProtocolError."""
        self._means.counts.requests += 1
        admitted = client.admitted
        if not isinstance(admitted, Admitted) or not admitted.holds(self.view, self.sessions, asked):
            admitted = client.admitted = self._admit(asked, client)
            if admitted is None:
                return None  # it is answered
            if admitted.shown:
                self._means.charges.contradict(admitted.session_id, admitted.shown)
        if admitted.denied is not None:
            self._deny(asked, client, admitted, admitted.denied)
            return None
        served = self._carrier(admitted.place).serve(asked, client, admitted)
        if served is True:
            return None
        return self._served(served, asked, client, admitted)

    def _admit(self, asked: HttpRequest, client: GatewayConnection) -> Admitted | None:
        """Return who asks which server; None where that was the end of it. Raises ProtocolError, which is told of."""
        try:
            return admit(asked, client, self.view, self.sessions)
        except ProtocolError as error:
            client.note_refused(error.status, str(error))
            raise

    def _refused(self, status: int, why: str, head: RequestHead | None, here: str) -> None:
        self._refusals.tell(refused_request(head, self.sessions, here), status, why)

    async def _served(
        self, served: Served, asked: HttpRequest, client: GatewayConnection, admitted: Admitted
    ) -> None:
        if served if isinstance(served, bool) else await served:
            return
        again = self._older(admitted.place).serve(asked, client, admitted)
        if not isinstance(again, bool):
            await again

    def _deny(
        self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted, denied: Verdict
    ) -> None:
        """Refuse whatever is asked of a server that policy denies, and tell of it; calls are told of as such."""
        server_id = admitted.place.server.id

        def error(id_: Id | None) -> bytes:
            return mcp_gate.denied_server(id_, server_id, denied.reason)

        review = self._review(server_id, admitted.session_id)
        if asked.method == "POST":
            taken = review.client(asked.body, admitted.max_request)
            review.refused((each.method for each in taken.own.values()), denied)
            errors = [*taken.replies, *map(error, taken.ids)]
            if not errors and taken.forward is not None and taken.body is not None:
                client.answer(202)
                return
            if not errors:
                errors = [error(dangers.id_in(flattened(asked.body)))]
            batch = taken.body is not None and taken.body.batch
            whole = b",".join(e[1:-1] if e.startswith(b"[") else e for e in errors)
            client.answer(200, b"[" + whole + b"]" if batch else whole)
            return
        review.refused((asked.method,), denied)
        client.answer(403, error(None))

    def _stop(self, carrier: Carrier, denied: Verdict) -> None:
        """End what is under way with a server that policy has come to deny, and tell of it."""
        server_id = carrier.server.id
        error = partial(mcp_gate.denied_server, server_id=server_id, reason=denied.reason)
        sessions, requests = carrier.deny(error)
        if sessions or requests:
            events = Teller(self._means.emit, server_id, DEFAULT_SESSION, via="gateway")
            events.stopped(denied, sessions=sessions, requests=requests)

    def _carrier(self, place: Place) -> Carrier:
        carrier = self._carriers.get(place.key)
        if carrier is None:
            carrier = self._carriers[place.key] = self._connect(place.server)
        return carrier

    def _older(self, place: Place) -> Carrier:
        """Carry to a server that is declared as `http` and speaks HTTP+SSE; it is remembered until it is declared otherwise."""
        key, server = place.key, place.server
        former = self._carriers.get(key)
        if isinstance(former, Bridge):
            return former  # another request found it out meanwhile
        if former is not None:
            former.close()
        log.info("server %s speaks HTTP+SSE, not Streamable HTTP: declare it as `type: sse`", server.id)
        bridge = Bridge(
            server, self._pipe(server), lambda session_id: self._review(server.id, session_id), self._spawn
        )
        self._carriers[key] = bridge
        return bridge

    def _connect(self, server: Server) -> Carrier:
        def review(session_id: str) -> Review:
            return self._review(server.id, session_id)

        if server.transport is Transport.HTTP:
            return Forward(
                server,
                self._tls_context,
                review,
                self._spawn,
                self._pipe(server),
                self._tell,
                self._means.report,
            )
        return Bridge(server, self._pipe(server), review, self._spawn)

    def _pipe(self, server: Server) -> OpenPipe:
        """Return how to reach a server that speaks no Streamable HTTP."""
        key = fold(server.id)

        def limits() -> tuple[int, float]:
            place = self.view.places.get(key)
            seconds = place.settings.timeout if place is not None else GatewayServer().timeout
            return self.view.gateway.max_response, seconds

        def sse(asked: HttpRequest, admitted: Admitted) -> Pipe:
            place = admitted.place
            through = place.settings.passthrough
            fields = gateway_http.forwarded(
                asked.fields, asked.names, place.downstream, passthrough=through, keys=place.keys
            )
            kept = tuple(
                h
                for h in fields
                if h[0].lower() not in _OF_ONE_MESSAGE and not h[0].lower().startswith("mcp-")
            )
            return SsePipe(
                server,
                self._tls_context,
                kept,
                place.scheme_of,
                limits,
                lambda r: self._tell(r, server, admitted.session_id),
            )

        def stdio(asked: HttpRequest, admitted: Admitted) -> Pipe:  # noqa: ARG001 - as `sse`
            if self._starter is None:
                raise ProtocolError(f"stdio server {server.id} cannot be started here", status=503)
            return StdioPipe(server, self._starter, lambda: limits()[0])

        return stdio if server.transport is Transport.STDIO else sse

    def _review(self, server_id: str, session_id: str) -> Review:
        key = fold(server_id)
        return Review(self._worker, server_id, session_id, lambda: self.view.places[key])

    def _claim(self, server_id: str, tool: str, marked: Callable[[], str], session_id: str) -> Any:
        if not self.view.joins:
            return None
        return self._means.charges.claim(server_id, tool, marked, session_id)

    def _whose(self, client: asyncio.BaseTransport) -> str:
        enforce = self.view.snapshot.config.sandbox.mcp.enforce_policy
        return place(client, self._means.charges, enforce=enforce)

    def _count(self, verdict: Verdict) -> None:
        self._means.counts.calls_judged += 1
        self._means.counts.calls_blocked += verdict.blocked

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = tls_context()  # reads the whole trust store: once is enough
        return self._tls

    async def _until_changed(self) -> None:
        await self._changed.wait()

    def _tick(self) -> None:
        now = self._loop.time()
        self.front.tick(now)
        for carrier in tuple(self._carriers.values()):
            carrier.tick(now)
        self._timer = self._loop.call_later(TICK, self._tick)

    def _spawn(self, work: Awaitable[None]) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._bug(error)

    def _bug(self, error: BaseException) -> None:
        log.error("the gateway failed, which is a bug: %s", type(error).__name__, exc_info=error)
