"""One shim's conversation with the daemon: its lines are judged by the policy in force, and what they tell is taken.

What a line may hold is core's gate's business, and what the events look like `audit.call_events`'.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from agentsh_net.apart import LONG, apart
from agentsh_net.audit.call_events import HOSTILE, MALFORMED, TOO_LONG, Teller
from agentsh_net.control.peer import Peer
from agentsh_net.core.audit.joining import Intent
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.inspect.contents import inspect_content
from agentsh_net.core.inspect.findings import Finding
from agentsh_net.core.links import shim_link
from agentsh_net.core.links.shim_link import LinkError
from agentsh_net.core.mcp import dangers, jsonrpc
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp import judging as mcp_judging
from agentsh_net.core.mcp.exchange import changes_tools
from agentsh_net.core.mcp.gate import Call, Edit, Hide, Swap
from agentsh_net.core.mcp.glance import ELICITATION, HANDSHAKES, LIST, LISTS
from agentsh_net.core.mcp.jsonrpc import Body, ErrorResponse, Id, Message, Request, Response
from agentsh_net.core.mcp.judging import Note
from agentsh_net.core.mcp.listing import Listing
from agentsh_net.core.mcp.standing import Standing
from agentsh_net.core.mcp.uncertain import NOTHING, Held, held
from agentsh_net.core.model import Crossing, Verdict
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust import identity
from agentsh_net.core.trust.identity import Aspect
from agentsh_net.core.values import jsontext
from agentsh_net.core.verdicts import results_policy
from agentsh_net.shims import reading
from agentsh_net.shims.answered import AnsweredRequest, answered_request, unasked
from agentsh_net.shims.call_log import CallLog
from agentsh_net.shims.reading import Read, Unread

if TYPE_CHECKING:
    from agentsh_net.shims.service import ShimService

Answer = bytes | Awaitable[bytes]


class ShimHandler:
    """One connected shim. Its questions are answered one after the other, in their order."""

    def __init__(
        self,
        service: ShimService,
        peer: Peer,
        server_id: str,
        session_id: str,
        *,
        hide: bool,
        trusted: bool,
        binary: Mapping[str, Any] | None = None,
        counts: bool = False,
    ) -> None:
        self.peer = peer
        self.binary = binary  # the program that the shim says it starts, where it was asked
        self.server_id = server_id
        self.session_id = session_id
        self.trusted = trusted
        self.listing = Listing(server_id)
        self._own = Standing(server_id)
        self._service = service
        self._daemon = service.daemon
        self._hide = hide
        self._tell = Teller(
            service.daemon.emit, server_id, session_id, via="shim", who={"pid": peer.pid, "uid": peer.uid}
        )
        self._counts = counts  # it wants to know how many calls are on record
        self._facts = mcp_judging.NO_FACTS
        self._call_log = CallLog(service.daemon, server_id, session_id, self._tell)

    def opened(self) -> Answer:
        """Return the answer to the opening, or what to await for it."""
        denied = self._denied()
        if denied is not None:
            return self._say(shim_link.OPENED, denied.reason.encode(), several=True)
        server = self._daemon.snapshot().registry.server(self.server_id)
        if server is None or not server.pin_binary or self.binary is None:
            pin_binary = server is not None and server.pin_binary
            return self._say(
                shim_link.OPENED, declared=server is not None, pin_binary=pin_binary, several=True
            )
        return self._opened_after_a_look()

    async def _opened_after_a_look(self) -> bytes:
        """Hold the program that is about to be started against its pin; the payload is why it may not be."""
        await self._service.recognise(self)
        verdict = self._own.verdict(self._daemon.snapshot(), {Aspect.BINARY: self.binary or {}})
        refusal = verdict.reason if verdict and verdict.blocked else ""
        return self._say(shim_link.OPENED, refusal.encode(), declared=True, pin_binary=True, several=True)

    def revoked(self) -> bytes:
        """Return the news that no verdict stands any more."""
        return self._say(shim_link.REVOKE)

    def noted(self, calls: int) -> bytes:
        """Return the news that so many calls are on record."""
        return shim_link.frame({"do": shim_link.NOTED, "calls": calls}) if self._counts else b""

    def answer(self, header: Mapping[str, Any], payload: bytes) -> Answer:
        """Return the answer to a question, or what to await for it. Raises LinkError for one that is none."""
        match header:
            case {"ask": shim_link.CLIENT}:
                return _when_read(reading.of_client, payload, partial(self._client, payload))
            case {"ask": shim_link.CALLED}:
                self._call_log.take(payload, self._ruled_on)
                return b""
            case {"ask": shim_link.SERVER, "asked": list(asked), "stray": bool(stray)}:
                self._call_log.forget()  # what this client is shown may block a tool
                server = partial(self._server, payload, [*map(answered_request, asked)], stray=stray)
                return _when_read(reading.of_server, payload, server)
            case {"ask": shim_link.LONG, "sender": "client" | "server" as sender}:
                return self._long(sender)
            case {"ask": shim_link.STOPPED, "requests": int(requests)} if requests >= 0:
                if (denied := self._denied()) is not None:
                    self._tell.stopped(denied, sessions=1, requests=requests)
                return b""
            case _:
                raise LinkError("a question that is none")

    def failed(self, header: Mapping[str, Any], payload: bytes) -> bytes:
        """Return the answer to a question that judging fails on: as for any line that cannot be read for certain. Raises LinkError."""
        why = "judging it failed, which is a bug of agentsh-net: its log has more"
        match header:
            case {"ask": shim_link.CLIENT}:
                return self._uncertain(payload, "client", why, why, [dangers.id_in(payload)])
            case {"ask": shim_link.SERVER, "asked": list(asked)}:
                return self._uncertain(
                    payload, "server", why, why, [answered_request(item).id for item in asked]
                )
            case _:
                raise LinkError(why)

    # What the client sends.

    def _client(self, line: bytes, read: Body | Unread) -> bytes:
        denied = self._denied()
        if isinstance(read, Unread):
            if denied is None:
                return self._uncertain(line, "client", read.why, read.danger, read.ids or (None,))
            self._tell.uninspected("client", MALFORMED, len(line), denied)
            refusal = mcp_gate.denied_server(next(iter(read.ids), None), self.server_id, denied.reason)
            return self._ruled(line, None, [refusal])
        refuse = partial(mcp_judging.refused_call, self._daemon.snapshot().config.gateway, line)
        ruling = mcp_gate.rule_calls(line, read, self._judge, refuse, self._reads)
        if denied is not None:
            others = [m for m in read.messages if isinstance(m, Request) and not mcp_gate.is_call(m)]
            errors = [mcp_gate.denied_server(m.id, self.server_id, denied.reason) for m in others]
            for message in others:
                self._tell.refused(message.method, denied)
            return self._ruled(line, None, [*ruling.replies, *errors])
        if ruling.forward is line and (tool := mcp_gate.lone_call(read)):
            return self._say(
                shim_link.PASS, stands=self._daemon.snapshot().stands(mcp_judging.meant(self.server_id, tool))
            )
        return self._ruled(line, ruling.forward, ruling.replies)

    def _reads(self, method: str) -> bool:
        """Say whether a rule names a request to read; whatever is asked of a denied server is refused as such."""
        return self._daemon.snapshot().reads(self.server_id, method) and self._denied() is None

    def _denied(self) -> Verdict | None:
        """Return the verdict that denies the server as a whole, if one does."""
        verdict = self._daemon.snapshot().judge_server(self.server_id)
        return verdict if verdict.blocked else None

    def _judge(self, call: Call) -> Verdict:
        """Judge a call and tell of it."""
        if call.reading:
            verdict = self._daemon.snapshot().judge_reading(self.server_id, call.tool, call.input)
            self._tell.called(call, verdict, None)
            return verdict
        intent = self._call_log.claim(call)
        verdict, _ = self._ruled_on(call, intent)
        self._tell.called(call, verdict, intent)
        return verdict

    def _ruled_on(self, call: Call, intent: Intent | None) -> tuple[Verdict, bool]:
        """Return the verdict on a call, and whether it stands."""
        snapshot = self._daemon.snapshot()

        def charge(server_id: str, tool: str, *_: str) -> bool | Crossing:
            return intent is not None or self._daemon.within(server_id, tool, self.session_id)

        verdict = mcp_judging.judge_call(
            snapshot, self._shown(snapshot), self.server_id, call, self.session_id, charge
        )
        return verdict, snapshot.stands(mcp_judging.meant(self.server_id, call.tool))

    def _itself(self, snapshot: Snapshot) -> dict[Aspect, identity.Value | None]:
        """Return what the server showed to this client of itself."""
        seen: dict[Aspect, identity.Value | None] = {}
        server = snapshot.registry.server(self.server_id)
        if server is not None and server.pin_binary:
            seen[Aspect.BINARY] = self.binary
        if self._facts["era"]:
            seen[Aspect.INSTRUCTIONS] = identity.instructions(self._facts["instructions"])
        return seen

    def _shown(self, snapshot: Snapshot) -> mcp_judging.Shown:
        """Return what blocks a tool because this client was shown it, or its server, otherwise than it is trusted."""
        itself = self._own.verdict(snapshot, self._itself(snapshot))
        return lambda tool: itself or self.listing.verdict(snapshot, tool)

    # What the server sends.

    def _server(
        self, line: bytes, asked: list[AnsweredRequest], read: Body | Unread, *, stray: bool
    ) -> Answer:
        if isinstance(read, Unread):
            listed = any(ask.method == LIST for ask in asked) and not read.noise
            danger = "a list of tools that peers may read differently" if listed else read.danger
            waited = [] if read.noise else [ask.id for ask in asked] or [*read.ids]
            return self._doubtful(line, read.why, danger, waited)
        if stray:
            answered = [m.id for m in read.messages if isinstance(m, Response | ErrorResponse)]
            waited = [ask.id for ask in asked]
            return self._doubtful(line, "an answer to no request", "", waited, [*dict.fromkeys(answered)])
        if any(map(changes_tools, read.messages)):
            self._tell.list_changed()
        return self._inspected(line, read, asked)

    async def _inspected(self, line: bytes, body: Body, asked: list[AnsweredRequest]) -> bytes:
        """Decide on a line that everybody reads alike."""
        wanted = [
            (a, await self._found(a.params, opens=a.method == ELICITATION)) for a in mcp_gate.askings(body)
        ]
        replies, edits = mcp_judging.judge_askings(self._daemon.mcp, self.server_id, wanted, self._tell.asked)
        answers = [(ask, body.messages[ask.index]) for ask in asked if ask.index < len(body.messages)]
        answers += unasked(body)
        for ask, message in answers:
            if ask.method in LISTS and isinstance(message, Response):
                await self._service.list_others(self, ask.method, message.result)
            elif ask.method in HANDSHAKES and isinstance(message, Response):
                self._facts = mcp_judging.facts(message.result) or self._facts
        lists = [(a, m) for a, m in answers if a.method == LIST and isinstance(m, Response)]
        results = [(a, m) for a, m in answers if a.index not in edits]
        for note in mcp_judging.notes(self._daemon.mcp, body):
            await self._noted(note, len(line), replies, edits)
        for ask, message in lists:
            await self._listed(ask, message, len(line), edits)
        for ask, answer in results if self._daemon.mcp.output_inspection.enabled else ():
            await self._resulted(ask, answer, len(line), edits)
        revoked = self.revoked() if lists else b""
        forward = await apart(len(line), partial(mcp_gate.edited, line, body, edits), LONG)
        return revoked + self._ruled(line, forward, replies)

    async def _listed(
        self, ask: AnsweredRequest, message: Response, size: int, edits: dict[int, Edit]
    ) -> None:
        """Take a page of the server's tools before the client sees it: what it calls next is judged by it."""
        try:
            add = partial(self.listing.add, message, size, continues=ask.continues)
            definitions = await apart(size, add, LONG)
        except ProtocolError as error:
            verdict = self._doubted("server", size, str(error), mcp_judging.unlisted(message.result, error))
            if verdict.blocked:
                edits[ask.index] = Swap(_refusal(ask.id, verdict))
            return
        await self._service.take(self, definitions, self._facts)
        hidden: tuple[int, ...] = ()
        if self._hide:
            snapshot = self._daemon.snapshot()
            hidden = mcp_judging.denied(
                snapshot, self._shown(snapshot), self.server_id, message.result["tools"]
            )
        if hidden and ask.index not in edits:
            edits[ask.index] = Hide(hidden)

    async def _resulted(
        self, ask: AnsweredRequest, message: Message, size: int, edits: dict[int, Edit]
    ) -> None:
        """Look at what a call returned, or what else the server gives to read, before the client sees it."""
        found = await self._found(mcp_judging.to_read(ask.method, message.raw))
        verdict = results_policy.judge(self._daemon.mcp, found)
        self._tell.result(ask.tool, ask.id, found, size, verdict, ask.method)
        if verdict.blocked:
            gateway = self._daemon.snapshot().config.gateway
            edits[ask.index] = Swap(
                mcp_judging.refused_result(gateway, message, ask.id, ask.tool, verdict.reason, ask.method)
            )

    async def _noted(self, note: Note, size: int, replies: list[bytes], edits: dict[int, Edit]) -> None:
        """Look at what the server tells by itself."""
        found = await self._found(note.params)
        verdict = mcp_judging.judged_note(self._daemon.mcp, note, found, replies, edits)
        self._tell.result(note.about, None, found, size, verdict, note.method)

    async def _found(self, content: Any, *, opens: bool = False) -> Sequence[Finding]:
        """Return what detectors find, in a thread: a text that is made to be slow to read may take a second."""
        if not self._daemon.mcp.output_inspection.enabled:
            return ()
        customs = self._service.customs(self._daemon.mcp.inspection)
        return await asyncio.to_thread(inspect_content, content, customs, opens=opens)

    # What cannot be read for certain.

    async def _doubtful(
        self,
        line: bytes,
        why: str,
        danger: str,
        waited: Sequence[Id | None],
        answered: Sequence[Id | None] | None = None,
    ) -> bytes:
        """Decide on a line of the server that peers may read differently, by what the least strict of them reads in it.

        `waited`: the requests it may be meant for; `answered`: those it names, where it could be read.
        """
        customs = self._service.customs(self._daemon.mcp.inspection)
        holds = await asyncio.to_thread(held, self._daemon.mcp, self.server_id, line, customs)
        for asking, verdict in holds.asked:
            self._tell.asked(asking, verdict)
        danger = danger or holds.danger
        told = waited if answered is None or (danger and waited) else answered
        return self._uncertain(line, "server", why, danger, told, holds)

    def _uncertain(
        self,
        line: bytes,
        sender: str,
        why: str,
        danger: str,
        waited: Sequence[Id | None] = (),
        holds: Held = NOTHING,
    ) -> bytes:
        """Decide on a line that peers may read differently: what may be a call is refused, the rest follows fail_closed."""
        verdict = self._doubted(sender, len(line), why, danger, holds)
        if not verdict.blocked:
            return self._ruled(line, line)
        if sender == "client":
            return self._ruled(line, None, [_refusal(id_, verdict) for id_ in waited])
        # The client waits for these answers.
        errors = (_refusal(id_, verdict) for id_ in waited if id_ is not None)
        return self._ruled(line, b"\n".join(errors) or None)

    def _doubted(self, sender: str, size: int, why: str, danger: str, holds: Held = NOTHING) -> Verdict:
        """Judge what cannot be read for certain, and tell of it."""
        verdict = holds.decides(mcp_judging.doubted(self._daemon.mcp, why, danger), why)
        cause = HOSTILE if danger or holds.verdict is not None else MALFORMED
        self._tell.uninspected(sender, cause, size, verdict, holds.found)
        return verdict

    def _long(self, sender: str) -> bytes:
        why = f"a line of more than {shim_link.MAX_LINE} bytes"
        danger = f"{why}, which may be a call" if sender == "client" else ""
        verdict = mcp_judging.doubted(self._daemon.mcp, why, danger)
        self._tell.uninspected(sender, TOO_LONG, shim_link.MAX_LINE, verdict)
        return self._say(shim_link.EDIT if verdict.blocked else shim_link.PASS)

    # Answers.

    def _ruled(self, line: bytes, forward: bytes | None, replies: Sequence[bytes] = ()) -> bytes:
        if forward is line and not replies:
            return self._say(shim_link.PASS)
        text = None if forward is None else forward.decode()
        edit = {"forward": text, "replies": [reply.decode() for reply in replies]}
        return self._say(shim_link.EDIT, jsontext.dumps(edit))

    def _say(self, do: str, payload: bytes = b"", **facts: bool | str) -> bytes:
        mcp = self._daemon.mcp
        closed = mcp.fail_closed and mcp.enforce_policy  # what the shim does while we are away
        if mcp.output_inspection.enabled:
            facts["results"] = True
        if self._daemon.snapshot().reads(self.server_id):
            facts["reads"] = True
        if (denied := self._denied()) is not None:
            facts["denied"] = True
            facts["denial"] = mcp_gate.denial(self.server_id, denied.reason)
        return shim_link.frame({"do": do, "closed": closed, **facts}, payload)


def _when_read(read: Read, line: bytes, then: Callable[[Body | Unread], Answer]) -> Answer:
    """Return what becomes of a line once it is read, in a thread where it is long: other shims wait for their answers."""
    return then(read(line)) if len(line) <= LONG else _read_apart(read, line, then)


async def _read_apart(read: Read, line: bytes, then: Callable[[Body | Unread], Answer]) -> bytes:
    answer = then(await asyncio.to_thread(read, line))
    return answer if isinstance(answer, bytes) else await answer


def _refusal(id_: Id | None, verdict: Verdict) -> bytes:
    return jsonrpc.error(id_, mcp_gate.UNREADABLE, f"[agentsh] message refused: {verdict.reason}")
