"""A WebSocket between a client and a provider: every message is read, requests as requests and events as events of an answer.

It takes the place of an exchange, with an upload that does not end. Frames are core.web.websocket's, what an event leads to is the
dialect's machine's, the provider's connection is `websocket_upstream`'s.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from secrets import token_bytes
from typing import TYPE_CHECKING, Any, Final

import orjson

from agentsh_net.core.dialects.base import Dialect, Fault, Judge, Stream
from agentsh_net.core.dialects.message_stream import GAIN, Leaving, MessageStream
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import ToolCall, Verdict
from agentsh_net.core.trust.offers import NOTHING, Lessons
from agentsh_net.core.values import members, strict_json
from agentsh_net.core.values.strict_json import Reading
from agentsh_net.core.web.websocket import Message, Opcode, Reader, close, frame
from agentsh_proxy.llm import pending
from agentsh_proxy.llm.admission import RefusalError
from agentsh_proxy.llm.asked import Asked, renewed
from agentsh_proxy.llm.guarding import restoring
from agentsh_proxy.llm.receiving import Reception
from agentsh_proxy.llm.service import Service
from agentsh_proxy.llm.steering import steered
from agentsh_proxy.llm.websocket_upstream import WebSocketUpstream

if TYPE_CHECKING:
    from agentsh_proxy.llm.server import ClientConnection

ENDLESS: Final = 1 << 62  # bytes that a client may send: a WebSocket has no length
_PROTOCOL_ERROR, _UNSUPPORTED, _REFUSED, _TOO_BIG, _INTERNAL = 1002, 1003, 1008, 1009, 1011
_REQUESTS: Final = "response."  # what a client's messages begin with, all that are known


class Tunnel:
    """One WebSocket."""

    __slots__ = (
        "_answer", "_client", "_connecting", "_dialect", "_from_client", "_from_upstream", "_judge_of_answer",
        "_lessons", "_over", "_seen", "_service", "_upstream", "answering", "asked", "held", "method",
    )  # fmt: skip

    def __init__(self, service: Service, client: ClientConnection, what: Asked) -> None:
        self._service = service
        self._client = client
        self.asked = what
        self._dialect = self._reading(what)
        self._upstream: WebSocketUpstream | None = None
        self._connecting: asyncio.Task[None] | None = None
        proxy = what.view.proxy
        self._from_client = Reader(masked=True, max_message=proxy.max_request)
        self._from_upstream = Reader(masked=False, max_message=proxy.max_body)
        self._lessons: Lessons = NOTHING
        self._judge_of_answer: Judge = service.judge_for(what.admitted.session_id)
        self._answer = MessageStream(self._machine, max_frame=proxy.max_frame)
        self._over = False
        self._seen = service.now
        self.answering = False
        self.held = False
        self.method = what.head.method

    # The client's side, as an exchange has it.

    def on_request(self, body: bytes) -> None:
        """Nothing: a WebSocket has no body."""

    def on_streamed_request(self) -> None:
        """Begin; the client's frames wait until the upstream agreed."""
        self._client.pause_upload()
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    def on_upload(self, data: bytes, *, last: bool) -> None:  # noqa: ARG002 - there is no last
        """Take the client's bytes."""
        self._seen = self._service.now
        try:
            for message in self._from_client.feed(data):
                if not self._over:
                    self._sent(message)
        except ProtocolError as error:
            refused = RefusalError(error.status, str(error))
            self._service.note_refused(refused, self.asked, self.asked.admitted.here)
            self._end(_TOO_BIG if error.status == 413 else _PROTOCOL_ERROR, str(error))
        except Exception as error:  # noqa: BLE001 - a bug of ours
            self.on_bug(error)

    def on_client_writable(self, *, writable: bool) -> None:
        """Make the upstream wait while the client takes no more."""
        if self._upstream is not None:
            self._upstream.set_reading(on=writable)

    def tick(self, now: float) -> None:
        """Once a second: end what is silent."""
        idle = self.asked.view.proxy.idle_timeout
        if now - self._seen > idle and not self._over:
            if self.answering:
                self._end(_REFUSED, f"silent for {idle:g} s")
            else:
                self._refuse(504, f"the upstream did not answer within {idle:g} s")

    def fail(self, error: ProtocolError) -> None:
        """End now (the worker is stopping)."""
        self._end(_INTERNAL, str(error))

    def on_bug(self, error: Exception) -> None:
        """Answer for a bug of ours: nothing of what it concerns passes."""
        self._end(_INTERNAL, self._service.note_bug(error, self.asked.subject()))

    def cancel(self) -> None:
        """Drop everything: the client is gone."""
        self._over = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._upstream is not None:
            self._upstream.abort()

    # The upstream's side.

    async def _connect(self) -> None:
        what = self.asked
        try:
            upstream = await self._service.pool.open(
                what.admitted.provider.origin,
                lambda: WebSocketUpstream(self),
                what.view.proxy.connect_timeout,
            )
        except ProtocolError as error:
            self._refuse(error.status, str(error))
            return
        except Exception as error:  # noqa: BLE001 - a bug of ours
            self.on_bug(error)
            return
        self._connecting = None
        self._upstream = upstream
        upstream.ask(what.opening)

    def agreed(self, head: bytes) -> None:
        """Take the upstream's agreement to a WebSocket, and let the client's frames come."""
        self._seen = self._service.now
        self.answering = True
        self._client.write(head)
        self._client.resume_upload()

    def refused(self, status: int, why: str) -> None:
        """Take what the upstream answered instead."""
        self._refuse(status, why)

    def received(self, data: bytes) -> None:
        """Take the upstream's frames."""
        self._seen = self._service.now
        try:
            for message in self._from_upstream.feed(data):
                if not self._over:
                    self._came(message)
        except ProtocolError as error:
            self._end(_TOO_BIG if error.status == 413 else _PROTOCOL_ERROR, f"the upstream: {error}")
        except Exception as error:  # noqa: BLE001 - a bug of ours
            self.on_bug(error)

    def lost(self) -> None:
        """Take the end of the upstream's connection."""
        self._upstream = None
        if self._over:
            return
        if not self.answering:
            self._refuse(502, "the upstream closed the connection before it answered")
            return
        try:
            self._leave(self._answer.finish())
        except Exception as error:  # noqa: BLE001 - a bug of ours
            self.on_bug(error)
            return
        self._over = True
        self._client.on_answered(keep_alive=False, whole=True)

    def writable(self, *, writable: bool) -> None:
        """Make the client wait while the upstream takes no more."""
        if writable:
            self._client.resume_upload()
        else:
            self._client.pause_upload()

    # Messages.

    def _sent(self, message: Message) -> None:
        """Take a message of the client's."""
        if message.control:
            self._to_upstream(message.raw)
            return
        try:
            self.renew()
        except RefusalError as refused:
            self._service.note_refused(refused, self.asked, self.asked.admitted.here)
            self._end(_REFUSED, str(refused))
            return
        if not message.text:
            self._unread("a binary message of the client's", message.raw, self._to_upstream)
            return
        try:
            text = self._judged(message.payload)
        except RefusalError as refused:
            self._service.note_refused(refused, self.asked, self.asked.admitted.here)
            told = orjson.loads(self._dialect.error(refused.status, str(refused)))
            self._to_client(orjson.dumps({"type": "error", "status": refused.status, **told}))
            return
        if text is message.payload:
            self._to_upstream(message.raw)
        else:
            self._to_upstream(frame(Opcode.TEXT, text, token_bytes(4)))

    def renew(self) -> None:
        """Go by the policy and the sessions of now. Raises RefusalError where they would not let this WebSocket be opened."""
        was = self.asked
        self.asked = what = renewed(was, self._service.view, self._service.sessions)
        if what.admitted.provider.origin != was.admitted.provider.origin:
            raise RefusalError(503, "the provider is another one now")
        self._dialect = self._reading(what)

    def _judged(self, text: bytes) -> bytes:
        """Return a client's message as it may leave; it is judged as the request that it is. Raises RefusalError."""
        reception = Reception(self._service, self.asked)
        left = reception.take(text)
        message = _read(left)
        self._judge_nested(message)
        kind = message.value.get("type")
        if not (isinstance(kind, str) and kind.startswith(_REQUESTS)):
            view, detail = self.asked.view, f"a client's message of type {str(kind)[:80]!r}"
            self._tell(Fault("unknown_message", detail, view.closed, would=view.would_close))
            if view.closed:
                raise RefusalError(
                    400, "a message of this type cannot be inspected, and fail_closed is set", told=True
                )
        if kind == "response.create":
            self._lessons = reception.lessons
        reception.settle()  # as nobody tells here how the provider took it
        return left

    def _judge_nested(self, message: Reading) -> None:
        """Judge the request that stands inside a message, as OpenAI's Realtime API has it. Raises RefusalError."""
        inner = members.folded(message.value).get("response")
        twice = {members.plain(key) for key in message.duplicates} | members.twice(message.value)
        if "response" not in twice:
            if not isinstance(inner, dict):
                return
            nested = strict_json.dump(inner).encode()
            if Reception(self._service, self.asked).take(nested) is nested:
                return
        view, detail = (
            self.asked.view,
            "a request inside another that policy would change, or that stands twice",
        )
        self._tell(Fault("nested_request", detail, cut=view.enforce, would=not view.enforce, always=True))
        if view.enforce:
            raise RefusalError(403, "policy would change the request, which stands inside another", told=True)

    def _came(self, message: Message) -> None:
        """Take a message of the upstream's."""
        if message.control:
            self._client.write(message.raw)
        elif message.text:
            self._leave(self._answer.feed(message.payload, message.raw))
        else:
            self._unread("a binary message of the upstream's", message.raw, self._client.write)

    def _leave(self, leaving: Leaving) -> None:
        facts = leaving.facts
        if facts.judged or facts.faults:
            session_id = self.asked.admitted.session_id
            self._service.note(facts, self.asked.subject())
            for judged in facts.judged:
                self._service.offering.propose(session_id, judged.call)
                pending.note(self._service.charges, session_id, judged)
        for raw, text in leaving.messages:
            if raw is not None:
                self._client.write(raw)
            else:
                self._to_client(text)
        if leaving.end:
            self._end(_REFUSED, "the response could not be inspected")

    def _unread(self, detail: str, raw: bytes, pass_on: Any) -> None:
        """By fail_closed: end, or pass on a binary message, which cannot be read, and say so."""
        cut = self.asked.view.closed
        self._tell(Fault("binary_message", detail, cut, would=self.asked.view.would_close))
        if cut:
            self._end(_UNSUPPORTED, f"{detail} cannot be inspected, and fail_closed is set")
        else:
            pass_on(raw)

    def _tell(self, fault: Fault) -> None:
        self._service.reporter.fault(fault, self.asked.subject())

    def _machine(self) -> Stream:
        """Return the machine of the next answer."""
        view = self.asked.view
        self._judge_of_answer = self._service.judge_for(self.asked.admitted.session_id)
        limits = replace(view.limits, max_frame=view.limits.max_frame + GAIN)
        return self._dialect.stream(
            self._judge, limits=limits, fail_closed=view.fail_closed, enforce=self._service.enforcing
        )

    def _judge(self, call: ToolCall) -> Verdict:
        verdict = self._judge_of_answer(self._lessons.applied(call))
        return steered(verdict, call, self._service.view.snapshot, self.asked)

    def _reading(self, what: Asked) -> Dialect:
        dialect = what.admitted.dialect
        if what.view.guard is not None and what.view.guard.mode == "tokenize":
            return restoring(dialect, self._service.vaults.of(what.admitted.session_id))
        return dialect

    # Ends.

    def _to_client(self, text: bytes) -> None:
        self._client.write(frame(Opcode.TEXT, text))

    def _to_upstream(self, data: bytes) -> None:
        if self._upstream is not None:
            self._upstream.write(data)

    def _refuse(self, status: int, message: str) -> None:
        """Answer the handshake with an error."""
        if self._over:
            return
        self._over = True
        self._service.counts.upstream_failed += 1
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.abort()
        self._client.answer_error(status, message, self.asked.admitted.dialect)

    def _end(self, code: int, reason: str) -> None:
        """Close both sides, each with the reason."""
        if self._over:
            return
        self._over = True
        if self._upstream is not None:
            self._upstream.write(close(code, reason, token_bytes(4)))
            self._upstream.close()
        if self.answering:
            self._client.write(close(code, f"agentsh-net: {reason}"))
            self._client.on_answered(keep_alive=False, whole=True)
        else:
            self._client.answer_error(503, reason, self.asked.admitted.dialect)


def _read(text: bytes) -> Reading:
    """Return what a message says; an empty object where it is none, which was told already."""
    try:
        reading = strict_json.read(text)
    except ProtocolError:
        return Reading({})
    return reading if isinstance(reading.value, dict) else Reading({})
