"""One client's conversation with one server through the gateway: what passes, what is refused, and what is told of it.

The verdicts are core's (core.mcp.judging), as the shim's are. How messages are carried is the gateway's transports' business.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from agentsh_net.apart import INLINE, LONG, apart
from agentsh_net.audit.call_events import Teller
from agentsh_net.core.audit.joining import Intent, mark
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.inspect.contents import inspect_content
from agentsh_net.core.inspect.findings import Finding
from agentsh_net.core.mcp import dangers, jsonrpc
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp import judging as mcp_judging
from agentsh_net.core.mcp.exchange import changes_tools
from agentsh_net.core.mcp.gate import Call, Edit, Hide, Swap
from agentsh_net.core.mcp.glance import ELICITATION, HANDSHAKES, LIST, LISTS, asks_for_input
from agentsh_net.core.mcp.jsonrpc import Body, ErrorResponse, Id, Limits, Request, Response
from agentsh_net.core.mcp.params import Mirrored
from agentsh_net.core.mcp.uncertain import NOTHING, Held
from agentsh_net.core.model import Action, Crossing, Verdict
from agentsh_net.core.trust import definitions
from agentsh_net.core.verdicts import results_policy, steps
from agentsh_proxy.gateway.bodies import as_body, flattened
from agentsh_proxy.gateway.dependencies import Dependencies
from agentsh_proxy.gateway.doubts import Doubts, refusal
from agentsh_proxy.gateway.offer import Offer
from agentsh_proxy.gateway.pending import (
    NOBODYS,
    NOBODYS_OWN,
    Own,
    PendingRequest,
    PendingRequests,
    pending_request,
)
from agentsh_proxy.gateway.view import Place

_ANSWERS: Final = (Response, ErrorResponse)
# Where it stands in its body, and the request it is to.
_Answer = tuple[int, PendingRequest, Response | ErrorResponse]
# An event of HTTP+SSE (2024-11-05); not every client looks whose origin it names.
ENDPOINT: Final = "endpoint"
SHOWING: Final = HANDSHAKES | LISTS | {LIST}  # requests whose answers show the client what is pinned


class Taken(NamedTuple):
    """What becomes of what a client sent. `body` is None where it could not be read for certain."""

    forward: bytes | None
    replies: tuple[bytes, ...]
    body: Body | None
    ids: tuple[Id, ...]  # of the requests that go on
    status: int = 200  # of HTTP, where nothing goes on
    own: Own = NOBODYS_OWN  # those requests


class Passed(NamedTuple):
    """What becomes of what a server sent: what goes on (as it came: the very object), and what the server is answered."""

    forward: bytes | None
    replies: tuple[bytes, ...] = ()
    answered: tuple[Id, ...] = ()
    body: Body | None = None  # as it was read; None where it could not be for certain


class Review:
    """What one client and one server said to each other, as far as it matters."""

    __slots__ = ("_pending", "_tell", "_worker", "doubts", "offer", "server_id", "session_id")

    def __init__(
        self, worker: Dependencies, server_id: str, session_id: str, place: Callable[[], Place]
    ) -> None:
        self.server_id = server_id
        self.session_id = session_id
        self.offer = Offer(worker, server_id, place)
        self._worker = worker
        self._tell = Teller(worker.emit, server_id, session_id, via="gateway")
        self.doubts = Doubts(worker, server_id, self._tell)
        self._pending = PendingRequests()

    # What the client sends.

    def client(self, data: bytes, limit: int, fault: Callable[[Body], str] | None = None) -> Taken:
        """Judge what a client sent; `fault` says where its header fields contradict a body."""
        flat = flattened(data)
        try:
            body = mcp_gate.read(flat, _limits(limit))
            if fault is not None and (why := fault(body)):
                return self._contradicted(body, why)
            snapshot = self._worker.snapshot()
            refuse = partial(mcp_judging.refused_call, snapshot.config.gateway, flat)
            reads = partial(snapshot.reads, self.server_id)
            ruling = mcp_gate.rule_calls(flat, body, self._judge, refuse, reads)
        except ProtocolError as error:
            return self._doubtful(data, str(error), dangers.doubt_of_client(flat))
        going = {
            message.id: pending_request(message)
            for message in body.messages
            if isinstance(message, Request) and message.id not in ruling.refused
        }
        self._pending.add(going)
        forward = data if ruling.forward is flat else ruling.forward
        return Taken(forward, ruling.replies, body, tuple(going), own=going)

    def _contradicted(self, body: Body, why: str) -> Taken:
        """Refuse a message whose header fields say another thing than it does; a call is told of as refused."""
        message = body.messages[0]
        verdict = Verdict(Action.BLOCK, why, steps.PROTOCOL)
        if mcp_gate.is_call(message):
            self._judged(mcp_gate.call_in(message), verdict, None)
        id_ = message.id if isinstance(message, Request) else None
        error = jsonrpc.error(id_, jsonrpc.HEADER_MISMATCH, f"[agentsh] {why}")
        return Taken(None, (error,), body, (), 400)

    def _doubtful(self, data: bytes, why: str, danger: str) -> Taken:
        verdict = self.doubts.of_client(len(data), why, danger)
        if not verdict.blocked:
            return Taken(data, (), None, ())
        id_ = dangers.id_in(flattened(data))
        # Where nobody waits for an answer the status says it (MCP 2025-11-25, Streamable HTTP, "sending messages").
        return Taken(None, (refusal(id_, verdict),), None, (), 400 if id_ is None else 200)

    def _judge(self, call: Call) -> Verdict:
        """Judge a call and tell of it."""
        worker, snapshot = self._worker, self._worker.snapshot()
        if call.reading:
            verdict = snapshot.judge_reading(self.server_id, call.tool, call.input)
            self._tell_of(verdict, partial(self._judged, call, verdict, None))
            return verdict
        intent = worker.claim(
            self.server_id, call.tool, lambda: mark(snapshot.masked(call.input)), self.session_id
        )
        asked = False

        def charge(server_id: str, tool: str, *_: str) -> bool | Crossing:
            nonlocal asked
            if intent is not None:
                return True
            asked = True
            return worker.charge(server_id, tool, self.session_id)

        verdict = self.offer.judge(snapshot, call, self.session_id, charge)
        if asked and worker.unanswered():
            verdict = replace(verdict, reason=f"{verdict.reason} (the rate limiter did not answer)")
        self._tell_of(verdict, partial(self._judged, call, verdict, intent))
        return verdict

    def _tell_of(self, verdict: Verdict, told: Callable[[], None]) -> None:
        """Put on record what was refused before the client hears of it; what goes on goes first, for it is waited for."""
        if verdict.blocked:
            told()
        else:
            self._worker.soon(told)

    def _judged(self, call: Call, verdict: Verdict, intent: Intent | None) -> None:
        self._worker.counted(verdict)
        self._tell.called(call, verdict, intent)

    def mirrored(self, tool: str) -> Mirrored:
        """Return the arguments of a tool that its calls repeat as header fields, as far as the tool is known."""
        known = self._worker.snapshot().registry.tool(self.server_id, tool)
        return known.mirrored if known is not None else ()

    def forget(self, ids: Collection[Id]) -> None:
        """Take note that requests never went out, or that nobody waits for their answers."""
        self._pending.forget(ids)

    def refused(self, methods: Iterable[str], denied: Verdict) -> None:
        """Tell of what was asked, besides calls, of a server that policy denies."""
        for method in methods:
            self._tell.refused(method, denied)

    # What the server sends.

    async def server(
        self, data: bytes, limit: int, ids: Collection[Id] = (), own: Own = NOBODYS_OWN
    ) -> Passed:
        """Judge what a server sent; `ids` are the requests that this answer or stream belongs to.

        `own`: those of them that came with it, answered ones too: another client of the session may use their ids for others.
        """
        read = await apart(len(data), partial(_read, data, limit), LONG)
        return self._plain(data, read, ids, own) or await self._heard(data, read, ids, own)

    def _plain(self, data: bytes, body: Body | ProtocolError, ids: Collection[Id], own: Own) -> Passed | None:
        """Take the answer to one request if nothing is looked for in it, as in most; None where there is more to it."""
        if isinstance(body, ProtocolError) or body.batch or self._worker.mcp.output_inspection.enabled:
            return None
        message = body.messages[0]
        if not isinstance(message, Response) or asks_for_input(message.raw):
            return None
        asked = self._pending.asked(message.id, own)
        if asked is NOBODYS or asked.method in SHOWING or not self._pending.answered(message, ids, own):
            return None
        return Passed(data, (), (message.id,), body)

    async def _heard(self, data: bytes, body: Body | ProtocolError, ids: Collection[Id], own: Own) -> Passed:
        """Take whatever else came, or judge what could not be read."""
        flat = flattened(data)
        if isinstance(body, ProtocolError):
            return await self._unread(data, flat, str(body), ids, own)
        answers, stray = self._sorted(body, ids, own)
        answered = tuple(message.id for _, _, message in answers if message.id is not None)
        if stray:
            for _, asked, message in answers:
                if message.id is not None:
                    self._pending.keep(message.id, asked)
            holds = await self.doubts.held(flat)
            meant = jsonrpc.loosely_answered(body, ids)  # others may have their answer yet
            passed = self._uncertain(data, "an answer to no request", "", meant, holds, own)
            self.forget(answered)
            return passed._replace(answered=passed.answered or answered, body=body)
        replies, edits = await self._told(body, len(data))
        for index, asked, message in answers:
            await self._answer(index, asked, message, len(data), edits)
        forward = mcp_gate.edited(flat, body, edits) if edits else data
        return Passed(forward, tuple(replies), answered, body)

    async def _unread(self, data: bytes, flat: bytes, why: str, ids: Collection[Id], own: Own) -> Passed:
        """Judge what could not be read, in the place of answers to these requests."""
        if dangers.is_noise(flat):
            ids = ()
        lists = any(self._pending.asked(id_, own).method == LIST for id_ in ids)
        danger = "a list of tools that peers may read differently" if lists else dangers.doubt(flat)
        return self._uncertain(data, why, danger, ids, await self.doubts.held(flat), own)

    def _sorted(self, body: Body, ids: Collection[Id], own: Own) -> tuple[list[_Answer], bool]:
        """Return the answers with the requests they are to, and whether one is to none; take note of lists that change."""
        answers: list[_Answer] = []
        stray = False
        for index, message in enumerate(body.messages):
            if not isinstance(message, _ANSWERS):
                if changes_tools(message):
                    self._tell.list_changed()
                continue
            asked = self._pending.answered(message, ids, own)
            if asked is None:
                stray = True
            else:
                answers.append((index, asked, message))
        return answers, stray

    async def _told(self, body: Body, size: int) -> tuple[list[bytes], dict[int, Edit]]:
        """Judge what a server asks and tells by itself: what it is answered, and what of it does not go on."""
        if all(isinstance(m, _ANSWERS) and not asks_for_input(m.raw) for m in body.messages):
            return [], {}
        asked_for = [
            (a, await self._found(a.params, size, opens=a.method == ELICITATION))
            for a in mcp_gate.askings(body)
        ]
        replies, edits = mcp_judging.judge_askings(
            self._worker.mcp, self.server_id, asked_for, self._tell.asked
        )
        for note in mcp_judging.notes(self._worker.mcp, body):
            found = await self._found(note.params, size)
            verdict = mcp_judging.judged_note(self._worker.mcp, note, found, replies, edits)
            self._tell.result(note.about, None, found, size, verdict, note.method)
        return replies, edits

    async def aside(self, event: str, data: bytes, limit: int) -> Passed:
        """Judge an event of another name than `message`: clients of the specification ignore it, so it answers nothing; others may not."""
        try:
            mcp_gate.read(data, _limits(limit))
            danger = ""
        except ProtocolError:
            danger = dangers.doubt(data)
        if event == ENDPOINT:
            danger = "an endpoint of the server's own, which leads clients around the gateway"
        return self._uncertain(data, "an event that is no message", danger, (), await self.doubts.held(data))

    async def page(self, data: bytes, ids: Sequence[Id]) -> Verdict:
        """Judge an answer to these requests that is no message, but that some client shows to the model."""
        asked = self._pending.asked(ids[0]) if ids else NOBODYS
        found = await self._found(data.decode("utf-8", "replace"), len(data))
        verdict = results_policy.judge(self._worker.mcp, found, "answer")
        if found:
            self._tell.result(asked.tool, ids[0] if ids else None, found, len(data), verdict, asked.method)
        return verdict

    def at_once(self, data: bytes, limit: int, ids: Collection[Id] = ()) -> Passed | None:
        """Judge what a server sent as `server` does; None where something of it might have to be waited for."""
        if len(data) > INLINE:
            return None
        if self._pending.listing:
            return None
        read = _read(data, limit)
        if (plain := self._plain(data, read, ids, NOBODYS_OWN)) is not None:
            return plain
        try:
            self._heard(data, read, ids, NOBODYS_OWN).send(None)
        except StopIteration as done:
            passed: Passed = done.value
            return passed
        raise AssertionError("short messages and no listings are waited for nowhere")

    async def _answer(
        self,
        index: int,
        asked: PendingRequest,
        message: Response | ErrorResponse,
        size: int,
        edits: dict[int, Edit],
    ) -> None:
        """Take an answer that matters, and note what has to be changed in it."""
        if asked.method in HANDSHAKES and isinstance(message, Response):
            if asked.method == "initialize":
                self.offer = self.offer.anew()
            self.offer.facts = mcp_judging.facts(message.result) or self.offer.facts
        elif asked.method == LIST and isinstance(message, Response):
            await self._listed(index, asked, message, size, edits)
        elif asked.method in LISTS and isinstance(message, Response):
            found = await apart(size, partial(definitions.read, asked.method, message.result))
            self.offer.listed(asked.method, found)
        if self._worker.mcp.output_inspection.enabled and isinstance(edits.get(index), Hide | None):
            await self._resulted(index, asked, message, size, edits)

    async def _listed(
        self, index: int, asked: PendingRequest, message: Response, size: int, edits: dict[int, Edit]
    ) -> None:
        try:
            await self.offer.page(message, size, continues=asked.continues)
        except ProtocolError as error:
            verdict = self.doubts.of_server(size, str(error), mcp_judging.unlisted(message.result, error))
            if verdict.blocked:
                edits[index] = Swap(refusal(message.id, verdict))
            return
        hidden = self.offer.hidden(message.result["tools"])
        if hidden and index not in edits:
            edits[index] = Hide(hidden)

    async def _resulted(
        self,
        index: int,
        asked: PendingRequest,
        message: Response | ErrorResponse,
        size: int,
        edits: dict[int, Edit],
    ) -> None:
        """Look at what a call returned, or what else the server gives to read, before the client sees it."""
        found = await self._found(mcp_judging.to_read(asked.method, message.raw), size)
        verdict = results_policy.judge(self._worker.mcp, found)
        told = partial(self._tell.result, asked.tool, message.id, found, size, verdict, asked.method)
        self._tell_of(verdict, told)
        if verdict.blocked:
            gateway = self._worker.snapshot().config.gateway
            edits[index] = Swap(
                mcp_judging.refused_result(
                    gateway, message, message.id, asked.tool, verdict.reason, asked.method
                )
            )

    async def _found(self, content: Any, size: int, *, opens: bool = False) -> Sequence[Finding]:
        if not self._worker.mcp.output_inspection.enabled:
            return ()
        return await apart(size, partial(inspect_content, content, self._worker.customs(), opens=opens))

    def _uncertain(
        self,
        data: bytes,
        why: str,
        danger: str,
        ids: Collection[Id],
        holds: Held = NOTHING,
        own: Own = NOBODYS_OWN,
    ) -> Passed:
        """Take a message of the server that cannot be read for certain, in the place of answers to these requests."""
        verdict = self.doubts.of_server(len(data), why, danger, holds)
        if not verdict.blocked:
            return Passed(data)
        errors = [refusal(id_, verdict) for id_ in ids if self._pending.claimed(id_, ids, own) or id_ in own]
        return Passed(as_body(errors), (), tuple(ids))


@lru_cache(maxsize=8)  # of a policy there are two, and one or two policies
def _limits(size: int) -> Limits:
    return Limits(size=size)


def _read(data: bytes, limit: int) -> Body | ProtocolError:
    """Return what every peer reads in what a server sent, or why that is not certain."""
    try:
        return mcp_gate.read(flattened(data), _limits(limit))
    except ProtocolError as error:
        return error
