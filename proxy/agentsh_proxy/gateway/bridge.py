"""The gateway in front of stdio and HTTP+SSE servers: it is their Streamable HTTP server, in both eras.

A session of an older revision has a server process (or stream) of its own; requests of 2026-07-28, which know no session,
share one. Verdicts are the review's business, pipes and processes the pipes'.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import gateway_http, jsonrpc
from agentsh_net.core.mcp import http_rules as mcp_http
from agentsh_net.core.mcp.exchange import LEGACY
from agentsh_net.core.model import Server, Transport
from agentsh_proxy.gateway.admission import Admitted
from agentsh_proxy.gateway.carrier import Denied, Served
from agentsh_proxy.gateway.connection import JSON, GatewayConnection
from agentsh_proxy.gateway.eras import asks_modern, begins
from agentsh_proxy.gateway.offer import Unnamed
from agentsh_proxy.gateway.pipe import Pipe
from agentsh_proxy.gateway.requests import HttpRequest
from agentsh_proxy.gateway.review import Review
from agentsh_proxy.gateway.session import Session
from agentsh_proxy.gateway.shared import Shared
from agentsh_proxy.gateway.view import Place

MAX_SESSIONS: Final = 1024  # of one server; each is a stream to it
MAX_PROCESSES: Final = 48  # of a stdio server, one a session; whoever starts them allows 64, the shared one and the ending ones too
MAX_SHARED: Final = 64  # connections of clients without sessions: one for each agent session and credential
# Seconds after which a session that nobody uses is ended; its client begins anew (404).
SESSION_IDLE: Final = 1800.0
SHARED_IDLE: Final = 120.0  # seconds that a server without sessions is kept warm
# Servers that fell silent and may still hold a stream of somebody's; the oldest is cut.
MAX_LEAVING: Final = 4

OpenPipe = Callable[[HttpRequest, Admitted], Pipe]


class Bridge:
    """One declared server."""

    def __init__(
        self,
        server: Server,
        pipe: OpenPipe,
        review: Callable[[str], Review],
        spawn: Callable[[Awaitable[None]], None],
    ) -> None:
        self.server = server
        self._pipe = pipe
        self._review = review
        self._spawn = spawn
        self._sessions: dict[tuple[str, str], Session] = {}
        self._shared: dict[tuple[str, str], Shared] = {}
        self._unnamed = Unnamed()
        self._leaving: list[Shared] = []  # replaced; they end when what is under way there has ended
        self._now = asyncio.get_running_loop().time()
        self._closed = False

    @property
    def sessions(self) -> int:
        """How many sessions are open."""
        return len(self._sessions)

    def tick(self, now: float) -> None:
        """End what nobody uses."""
        self._now = now
        held: list[Session | Shared] = [*self._sessions.values(), *self._shared.values()]
        for each in held:
            if each.busy:
                each.used = now  # a client whose stream was cut comes back a moment later
        for key, session in tuple(self._sessions.items()):
            if session.ended or now - session.used > SESSION_IDLE:
                self._end(key)
        for key, shared in tuple(self._shared.items()):
            if shared.ended or now - shared.used > SHARED_IDLE:
                del self._shared[key]
                shared.close()
        for shared in tuple(self._leaving):
            if shared.ended or not shared.busy:
                self._leaving.remove(shared)
                shared.close()

    def deny(self, error: Denied) -> tuple[int, int]:
        """End every session; what is in flight gets the policy's error. Return how many of each there were."""
        used: list[Session | Shared] = [*self._sessions.values(), *self._shared.values(), *self._leaving]
        requests = sum(each.deny(error) for each in used)
        self.close()
        return len(used), requests

    def close(self) -> None:
        """End every session, for good."""
        self._closed = True
        for key in tuple(self._sessions):
            self._end(key)
        for shared in (*self._shared.values(), *self._leaving):
            shared.close()
        self._shared.clear()
        self._leaving.clear()

    def serve(self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted) -> Served:
        """Answer a request of a client. Raises ProtocolError."""
        if not _acceptable(asked, client):
            return True
        if asked.method != "POST":
            return self._other(asked, client, admitted)
        if "mcp-session-id" not in asked.fields:
            return self._post(asked, client, admitted)
        session = self._known(asked, client, admitted)
        if session is None:
            return True
        session.used = self._now
        work = session.post(asked, client, admitted)
        return True if work is None else _done(work)

    async def _other(self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted) -> bool:
        if asks_modern(asked):
            client.answer(405, _error("this revision knows POST only"), (*JSON, ("Allow", "POST")))
            return True
        session = self._known(asked, client, admitted)
        if session is None:
            return True
        if asked.method == "DELETE":
            self._end((admitted.session_id, asked.fields["mcp-session-id"]))
            client.answer(200)
        else:
            await session.listen(asked, client)
        return True

    async def _post(self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted) -> bool:
        """Answer what has no session."""
        if self._closed:  # since it was admitted
            raise ProtocolError(f"server {self.server.id} was let go", status=503)
        if asks_modern(asked):
            shared = await self._share(asked, admitted)
            shared.used = self._now
            review = self._review(admitted.session_id)
            review.offer = self._unnamed.known(admitted.session_id, asked.fields, review.offer)
            await shared.post(asked, client, admitted, review)
        else:
            await self._begin(asked, client, admitted)
        return True

    async def _begin(self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted) -> None:
        """Take what has no session: an `initialize` begins one."""
        review = self._review(admitted.session_id)
        taken = review.client(asked.body, admitted.max_request)
        if not begins(taken.body):
            review.forget(taken.ids)
            refused = taken.replies[0] if taken.forward is None and taken.replies else None
            client.answer(200 if refused else 400, refused or _error("no Mcp-Session-Id, and no initialize"))
            return
        self._make_room()
        pipe, id_ = self._pipe(asked, admitted), secrets.token_hex(16)
        session = Session(pipe, review, id_, admitted.max_response, self._spawn)
        session.credentials = self._credentials(asked, admitted.place)
        key = (admitted.session_id, session.id)
        self._sessions[key] = session
        session.used = self._now
        try:
            await session.begin(taken, client, admitted.place)
        finally:
            if session.ended or not session.begun:
                self._end(key)

    def _make_room(self) -> None:
        """End the session that was used longest ago where there are too many: its client begins anew. Raises ProtocolError."""
        most = MAX_PROCESSES if self.server.transport is Transport.STDIO else MAX_SESSIONS
        if len(self._sessions) < most:
            return
        idle = [(session.used, key) for key, session in self._sessions.items() if not session.busy]
        if not idle:
            raise ProtocolError(f"{most} sessions with this server are in use", status=503)
        self._end(min(idle)[1])

    async def _share(self, asked: HttpRequest, admitted: Admitted) -> Shared:
        """Return what requests without a session go through: one for each agent session and whatever passes through."""
        place = admitted.place
        through = place.settings.passthrough and self.server.transport is not Transport.STDIO
        theirs = gateway_http.passed_through(asked.fields, place.downstream) if through else ""
        key = (admitted.session_id, sha256(theirs.encode("latin-1")).hexdigest() if theirs else "")
        shared = self._shared.get(key)
        if shared is not None and shared.mute and not shared.ended:
            self._leaving.append(self._shared.pop(key))
            shared = None
            if len(self._leaving) > MAX_LEAVING:
                self._leaving.pop(0).close()
        if shared is None or shared.ended:
            self._make_room_to_share()
            pipe = self._pipe(asked, admitted)
            shared = self._shared[key] = Shared(pipe, admitted.max_response, self._spawn)
            shared.used = self._now  # or it were idle since the machine started, and ended while it opens
        try:
            await shared.opened()
        except ProtocolError:
            if self._shared.get(key) is shared:
                del self._shared[key]
            raise
        return shared

    def _make_room_to_share(self) -> None:
        """End what was used longest ago of what clients without a session go through. Raises ProtocolError where all is in use."""
        if len(self._shared) < MAX_SHARED:
            return
        idle = [(shared.used, key) for key, shared in self._shared.items() if not shared.busy]
        if not idle:
            raise ProtocolError(f"{MAX_SHARED} clients' ways to this server are in use", status=503)
        self._shared.pop(min(idle)[1]).close()

    def _credentials(self, asked: HttpRequest, place: Place) -> str:
        """Return who a client says it is, where that goes on to the server: empty elsewhere."""
        through = place.settings.passthrough and self.server.transport is not Transport.STDIO
        theirs = gateway_http.credentials(asked.fields) if through else ""
        return sha256(theirs.encode("latin-1")).hexdigest() if theirs else ""

    def _known(self, asked: HttpRequest, client: GatewayConnection, admitted: Admitted) -> Session | None:
        """Return the session that a request names; None where the client was told that there is none.

        It is none of another client's, nor of this one's under another credential than the stream to the server has.
        """
        named = asked.fields.get("mcp-session-id")
        session = self._sessions.get((admitted.session_id, named)) if named else None
        theirs = self._credentials(asked, admitted.place)
        if session is None or session.ended or session.credentials != theirs:
            status = 404 if named else 400
            code = jsonrpc.SESSION_NOT_FOUND if named else jsonrpc.INVALID_REQUEST
            what = "Session not found" if named else "Mcp-Session-Id is required"
            client.answer(status, jsonrpc.error(None, code, what))
            return None
        version = asked.fields.get("mcp-protocol-version", LEGACY[0])
        if version not in LEGACY:
            client.answer(400, _error(f"unsupported MCP-Protocol-Version; known: {', '.join(LEGACY)}"))
            return None
        return session

    def _end(self, key: tuple[str, str]) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            session.close()


async def _done(work: Awaitable[None]) -> bool:
    await work
    return True


def _acceptable(asked: HttpRequest, client: GatewayConnection) -> bool:
    """Check what a client takes and sends (Streamable HTTP, "sending messages"); where it will not do, it is told."""
    fields = asked.fields
    status, why = _objection(asked.method, fields.get("accept", ""), fields.get("content-type", ""))
    if not status or (asked.method == "GET" and asks_modern(asked)):
        return True
    client.answer(status, _error(why))
    return False


@lru_cache(maxsize=64)  # clients say what their SDK says
def _objection(method: str, accept: str, content_type: str) -> tuple[int, str]:
    """Return the status of a refusal, and why; 0 where there is nothing to refuse."""
    takes = {mcp_http.media_type(part) for part in accept.split(",")}
    streams = bool(takes & {"text/event-stream", "text/*", "*/*"})
    json = bool(takes & {"application/json", "application/*", "*/*"})
    if method == "POST" and mcp_http.media_type(content_type) != "application/json":
        return 415, "the Content-Type has to be application/json"
    if method == "POST" and not (streams and json):
        return 406, "Accept has to name application/json and text/event-stream"
    if method == "GET" and not streams:
        return 406, "Accept has to name text/event-stream"
    return 0, ""


def _error(message: Any) -> bytes:
    return jsonrpc.error(None, jsonrpc.INVALID_REQUEST, f"agentsh-net: {message}")
