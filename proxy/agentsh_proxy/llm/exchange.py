"""One request and its answer: from the admitted head to the last byte, or to the error that takes its place.

It joins a client connection with an upstream connection and knows when a request may be sent again. Parsing is done by
others on both sides; what an answer becomes is `answers`' business.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentsh_net.core.dialects.base import Dialect
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.trust.offers import Lessons
from agentsh_net.core.web.http_head import ResponseHead, forwarded_response
from agentsh_proxy.chunks import LAST_CHUNK, chunk
from agentsh_proxy.llm.admission import RefusalError
from agentsh_proxy.llm.answers import StreamInspection
from agentsh_proxy.llm.any_file import any_file
from agentsh_proxy.llm.asked import Asked, renewed
from agentsh_proxy.llm.choosing import choose
from agentsh_proxy.llm.guarding import restoring
from agentsh_proxy.llm.inspecting import Inspection, redirection, unreadable
from agentsh_proxy.llm.judging import Judging
from agentsh_proxy.llm.overhearing import Overhearing, overheard
from agentsh_proxy.llm.pending import nothing
from agentsh_proxy.llm.receiving import NO_FACTS, Reception
from agentsh_proxy.llm.relaying import Answer, Client, Relay, opening
from agentsh_proxy.llm.service import Service
from agentsh_proxy.llm.sniffing import PACKED
from agentsh_proxy.llm.trail import Trail, begin
from agentsh_proxy.llm.upstream import UpstreamConnection

if TYPE_CHECKING:
    from agentsh_proxy.llm.server import ClientConnection

PATIENCE = 5.0  # seconds of silence over a held call before a comment is sent; the shortest client timeout seen is 10


class Exchange:
    """One request on its way."""

    __slots__ = (
        "_answer", "_began", "_body", "_client", "_connecting", "_connection", "_facts", "_lessons", "_over", "_paused_at",
        "_reused", "_searching", "_seen", "_service", "_settle", "_stream", "_trail", "_wrote", "asked", "uploaded",
    )  # fmt: skip

    def __init__(self, service: Service, client: ClientConnection, what: Asked) -> None:
        self._service = service
        self._client = client
        self.asked = what
        self._facts = NO_FACTS
        self._lessons: Lessons | None = None  # of the request's own tools
        self._settle = nothing  # to be done once the answer came
        self._answer: Answer | None = None
        self._stream: StreamInspection | None = None  # the answer, where it is one
        self._body: bytes | None = None  # kept so that the request can be sent again
        self._connection: UpstreamConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._searching: asyncio.Task[None] | None = None
        self._trail: Trail | None = None  # what the exchange leaves behind, where something asks for it
        self._over = False
        self._reused = False  # the connection, which may have gone stale while it lay idle
        self.uploaded = False  # the whole request
        self._began = service.clock()
        self._paused_at = 0.0
        self._seen = self._wrote = service.now

    @property
    def held(self) -> bool:
        """Say whether the body must be whole before anything leaves."""
        return self.asked.held

    @property
    def method(self) -> str:
        """The method of the request."""
        return self.asked.head.method

    @property
    def answering(self) -> bool:
        """Say whether the client got bytes of an answer."""
        return self._answer is not None and self._answer.started

    # The client's side.

    def renew(self) -> None:
        """Go by the policy and the sessions of now: the body took its time. Raises RefusalError."""
        self.asked = renewed(self.asked, self._service.view, self._service.sessions)

    def on_request(self, body: bytes) -> None:
        """Take the whole request (`held`). Raises RefusalError."""
        what = self.asked
        facts = what.reads(body) if body and what.reads is not None else None
        if facts is not None and facts.quiet:
            self._facts = facts
        elif body or what.admitted.inspected is not None:
            received = Reception(self._service, what, defers=True)
            if what.admitted.inspected is not None:
                body = received.take(body, None if body.startswith(PACKED) else facts)
            else:
                body = received.pass_by(body)
            if received.unsearched:
                self._searching = asyncio.get_running_loop().create_task(self._search(received, body))
                return
            self._take(received)
        self._leave_with(body)

    def on_streamed_request(self) -> None:
        """Begin with a request whose body follows in pieces (not `held`)."""
        self._client.pause_upload()
        self._ask()

    def on_upload(self, data: bytes, *, last: bool) -> None:
        """Body bytes of a request that is not held."""
        self._seen = self._service.now
        self.uploaded = last
        if self._connection is None:
            return
        if self.asked.head.chunked:
            data = chunk(data) + LAST_CHUNK if last else chunk(data)
        self._connection.write(data, last=last)

    def cancel(self) -> None:
        """Drop the request: its client is gone."""
        self._over = True
        self._let_go()
        self._leave("the client went away")

    def on_client_writable(self, *, writable: bool) -> None:
        """Make the upstream wait while the client takes no more."""
        self._paused_at = 0.0 if writable else self._service.now
        if self._connection is not None:
            if writable:
                self._seen = self._service.now
                self._connection.resume()
            else:
                self._connection.pause()

    def tick(self, now: float) -> None:
        """Once a second: time out what is silent, keep alive what waits on a held call."""
        idle = self.asked.view.proxy.idle_timeout
        if self._paused_at:
            if now - self._paused_at > idle:
                self._client.abort()
        elif self._connection is not None and self.uploaded:
            if now - self._seen > idle:
                self.fail(ProtocolError(f"the upstream was silent for {idle:g} s", status=504))
            elif self._answer is not None and now - self._wrote >= PATIENCE:
                self._write(self._answer.keep_alive())

    # The upstream's side.

    def on_connected(self, connection: UpstreamConnection) -> None:
        """Send the request over a connection that was made for it."""
        self._connecting = None
        if self._over:
            connection.abort()
            return
        self._connection = connection
        if not connection.ask(self, self.asked.request(self._body)):
            self.fail(ProtocolError("the upstream closed the connection before it was asked", status=502))
            return
        self._reused = False
        self._seen = self._service.now
        if self._body is None:
            self._client.resume_upload()

    def on_unreachable(self, error: ProtocolError) -> None:
        """No connection could be made."""
        self._connecting = None
        if not self._over:
            self.fail(error)

    def on_interim(self, head: ResponseHead) -> None:
        """Pass a 1xx answer on (RFC 9110 section 15.2), but for 100, which was answered here."""
        self._seen = self._service.now
        if head.status != 100 and self.asked.head.minor == 1:
            # Without what describes a body: there is none, and some clients would wait for it.
            self._write(b"HTTP/1.1" + head.line[8:] + forwarded_response(head, rewritten=True) + b"\r\n\r\n")

    def on_head(self, head: ResponseHead) -> None:
        """Settle what becomes of the answer. Raises ProtocolError where it has to be stopped."""
        self._seen = self._service.now
        self._settle = self._settle if head.status < 300 else nothing
        client = Client(chunks=self.asked.head.minor == 1, keep_alive=self._client.keeps_alive())
        if self._trail is not None:
            self._trail.head(head)
        service, dialect = self._service, self.asked.admitted.inspected
        if dialect is None:
            unread = "unknown_dialect" if self.asked.admitted.unread else "other_endpoint"
            service.counts.uninspected[unread] += 1
        service.counts.head.observe(service.clock() - self._began)
        lessons = self._lessons or service.offering.last(self.asked.admitted.session_id)
        judging = Judging(service, self.asked, lessons, head)
        if dialect is not None and (elsewhere := redirection(head)):
            unreadable(
                self._inspection(dialect, judging), "redirected", f"it sends the client to {elsewhere[:200]}"
            )
        if not head.has_body(self.method) or self.asked.admitted.unread:  # which was told of
            self._answer = Relay(head, client, bodiless=not head.has_body(self.method))
        elif dialect is None:
            hearing = Overhearing(self.asked.view.fail_closed, service.enforcing, judging.note)
            self._answer = overheard(head, client, hearing)
        elif dialect.files and head.status < 300:
            self._answer = any_file(head, client, self._inspection(dialect, judging))
        else:
            self._answer = answer = choose(head, client, self._inspection(dialect, judging))
            self._stream = answer if isinstance(answer, StreamInspection) else None

    def takes(self, connection: UpstreamConnection, head: ResponseHead, data: bytes, whole: bytes) -> bool:
        """Take an answer that came whole in one read (`data`, behind its head `whole`) if it leaves as it came, as most of JSON do."""
        what = self.asked
        if (
            what.glances is None
            or not head.plain_json
            or self._facts.stream
            or len(data) > what.view.proxy.max_body
            or not what.glances(data)
        ):
            return False
        connection.release(head)
        self._connection = None
        self._over = True
        service, client = self._service, self._client
        service.counts.at_once.observe(service.clock() - self._began)
        self._settle()
        keep_alive = client.keeps_alive()
        if not (head.verbatim and keep_alive):
            fields = forwarded_response(head, rewritten=False)
            whole = opening(head, fields, closing=not keep_alive) + data
        client.write(whole)
        client.on_answered(keep_alive=keep_alive, whole=True)
        return True

    def relays(self, data: bytes, whole: bytes) -> bool:
        """Take body bytes that came as one chunk (`whole`) if they leave as they came, as most events of a stream do."""
        stream = self._stream
        if stream is None or not stream.passes(data):
            return False
        self._wrote = self._seen = self._service.now
        if self._trail is not None:
            self._trail.data(data)
        self._client.write(whole)
        return True

    def on_data(self, data: bytes, *, last: bool) -> None:
        """Pass body bytes through the answer, one write a read."""
        if last:
            self._connection = None
        answer = self._answer
        assert answer is not None  # noqa: S101 - a body follows its head
        self._seen = self._service.now
        if self._trail is not None:
            self._trail.data(data)
        try:
            out = answer.feed(data, last=last)
        except ProtocolError as error:
            self.fail(error)
            return
        except Exception as error:  # noqa: BLE001 - a bug of ours
            self.on_bug(error)
            return
        if out:
            self._wrote = self._seen
            self._client.write(out)
        if answer.done:
            self._end()

    def on_lost(self, error: ProtocolError, *, answered: bool) -> None:
        """Ask again where a pooled connection had gone stale, else fail."""
        self._connection = None
        if self._over:
            return
        if self._reused and not answered and self._body is not None:
            self._connect()
        else:
            self.fail(error)

    def on_bug(self, error: Exception) -> None:
        """Answer for a bug of ours: it must leave no client waiting."""
        self.fail(ProtocolError(self._service.note_bug(error, self.asked.subject()), status=502))

    def on_writable(self, *, writable: bool) -> None:
        """Make the client wait while the upstream takes no more."""
        if writable:
            self._client.resume_upload()
        else:
            self._client.pause_upload()

    # Within.

    def _connect(self) -> None:
        origin, seconds = self.asked.admitted.provider.origin, self.asked.view.proxy.connect_timeout
        self._connecting = self._service.pool.connect(origin, self, seconds=seconds)

    async def _search(self, received: Reception, body: bytes) -> None:
        """Go on with a request once DLP searched it, which takes its time."""
        load, size = self._service.load, len(body)
        load.size += size
        try:
            body = await received.search(body)
            self._take(received)
            self._leave_with(body)
        except RefusalError as refused:
            self._client.refuse(refused)
        except Exception as error:  # noqa: BLE001 - a bug of ours
            self.on_bug(error)
        finally:
            load.size -= size
            self._searching = None

    def _take(self, received: Reception) -> None:
        """Go by what a body led to."""
        self.asked, self._facts, self._lessons = received.asked, received.facts, received.lessons
        self._settle = received.settle

    def _leave_with(self, body: bytes) -> None:
        """Send the request with the body that policy lets leave. Raises RefusalError where a limit is used up."""
        if self.asked.trails:
            self._trail = begin(self._service, self.asked, body)
        self._body = body
        self.uploaded = True
        self._ask()

    def _ask(self) -> None:
        """Send the request over a connection that lies idle, or have one made for it."""
        origin, pool = self.asked.admitted.provider.origin, self._service.pool
        # One that is long is put together once.
        connection = pool.ask(origin, self, self.asked.request(self._body)) if pool.idle[origin] else None
        if connection is None:
            self._connect()
            return
        self._connection = connection
        self._reused = True
        if self._body is None:
            self._client.resume_upload()

    def _inspection(self, dialect: Dialect, judging: Judging) -> Inspection:
        view = self.asked.view
        restores = view.guard is not None and view.guard.mode == "tokenize"
        if restores:
            dialect = restoring(dialect, self._service.vaults.of(self.asked.admitted.session_id))
        return Inspection(
            dialect,
            judging.judge,
            view.limits,
            view.fail_closed,
            view.proxy.max_body,
            self._facts.stream,
            judging.note,
            self._service.enforcing,
            restores,
        )

    def _write(self, data: bytes) -> None:
        if data:
            self._wrote = self._service.now
            self._client.write(data)

    def fail(self, error: ProtocolError) -> None:
        """End with an error: in the dialect's shape while nothing was sent, else as the answer can."""
        if self._over:
            return
        self._service.counts.upstream_failed += 1
        self._leave(str(error))
        answer, self._answer = self._answer, None
        self._let_go()
        if answer is None or not answer.started:
            status = error.status if error.status in (502, 503, 504) else 502
            self._over = True
            self._client.answer_error(status, str(error), self.asked.admitted.dialect)
            return
        self._write(answer.fail(str(error)))
        self._over = True
        self._client.on_answered(keep_alive=False, whole=answer.done)

    def _end(self) -> None:
        answer, self._answer = self._answer, None
        assert answer is not None  # noqa: S101 - it is done
        self._over = True
        self._settle()
        self._leave("")
        self._service.counts.answer.observe(self._service.clock() - self._began)
        if self._connection is not None:
            self._let_go()
        self._client.on_answered(keep_alive=not answer.closing, whole=True)

    def _leave(self, outcome: str) -> None:
        if self._trail is not None:
            self._trail.end(outcome)

    def _let_go(self) -> None:
        for task in (self._connecting, self._searching):
            if task is not None:
                task.cancel()
        self._connecting = self._searching = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
