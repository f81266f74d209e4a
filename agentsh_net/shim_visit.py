"""One shim's conversation with the daemon: its lines judged by the policy in force, its tools listed, everything told.

It decides by the snapshot and core's gate and keeps only what this client was shown: a tool that is another one than
the pinned is refused here even where the registry has not heard of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentsh_proxy.reporting import bounded_input

from agentsh_net import jsontext
from agentsh_net.control.peer import Peer
from agentsh_net.core import events, jsonrpc, mcp_gate, server_asks, shim_link, steps
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.jsonrpc import Body, Id, Response
from agentsh_net.core.mcp_exchange import MODERN, changes_tools
from agentsh_net.core.mcp_gate import Asking, Call, Drop, Edit, Hide, Swap
from agentsh_net.core.mcp_glance import HANDSHAKES, LIST, SAMPLING
from agentsh_net.core.mcp_pages import PageLimits, Pages
from agentsh_net.core.model import Action, Candidate, Tool, ToolCall, Verdict
from agentsh_net.core.names import WRAPPERS
from agentsh_net.core.pins import tool_of
from agentsh_net.core.registry import Registry
from agentsh_net.core.settings import Mcp
from agentsh_net.core.shim_link import LinkError
from agentsh_net.core.snapshot import Snapshot

if TYPE_CHECKING:
    from agentsh_net.shim_desk import Desk

LIMITS: Final = jsonrpc.Limits(size=shim_link.MAX_LINE)
MAX_DETAIL: Final = (
    2000  # characters of a server's request kept in its event: what a person reads of a prompt
)

Answer = bytes | Awaitable[bytes]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the client that a message on the line answers. `continues`: a tools/list that named a cursor."""

    index: int
    id: Id
    method: str
    continues: bool


class Visit:
    """One connected shim. Its questions are answered one after the other, in their order."""

    def __init__(
        self, desk: Desk, peer: Peer, server_id: str, session_id: str, *, hide: bool, trusted: bool
    ) -> None:
        self.peer = peer
        self.server_id = server_id
        self.session_id = session_id
        self.trusted = trusted
        self.listed: dict[str, str] = {}  # tool -> hash of the definition that this client was shown
        self._desk = desk
        self._around = desk.around
        self._hide = hide
        self._pages: Pages | None = None
        self._shown: list[Tool] = []
        self._facts: dict[str, Any] = {
            "instructions": "",
            "server_info": {},
            "protocol_version": "",
            "era": "",
        }

    def opened(self) -> bytes:
        """Return the answer to the opening."""
        declared = self._around.snapshot().registry.server(self.server_id) is not None
        return shim_link.frame({"do": shim_link.OPENED, "closed": self._closed(), "declared": declared})

    def answer(self, header: Mapping[str, Any], payload: bytes) -> Answer:
        """Return the answer to a question, or what to await for it. Raises LinkError for one that is none."""
        match header:
            case {"ask": shim_link.CLIENT}:
                return self._client(payload)
            case {"ask": shim_link.SERVER, "asked": list(asked), "stray": bool(stray)}:
                return self._server(payload, [_asked(item) for item in asked], stray=stray)
            case {"ask": shim_link.LONG, "sender": "client" | "server" as sender}:
                return self._long(sender)
            case _:
                raise LinkError("a question that is none")

    # What the client sends.

    def _client(self, line: bytes) -> bytes:
        try:
            ruling = mcp_gate.rule_calls(line, mcp_gate.read(line, LIMITS), self._judge)
        except ProtocolError as error:
            return self._uncertain(line, "client", str(error), mcp_gate.doubt(line), ())
        return self._ruled(line, ruling.forward, ruling.replies)

    def _judge(self, call: Call) -> Verdict:
        now = self._around.monotonic()
        intent = self._desk.intents.claim(self.server_id, call.tool, call.input, self.session_id, now)

        def charge(server_id: str, tool: str, call_id: str, session_id: str) -> bool:  # noqa: ARG001 - core.policy.Charge
            return intent is not None or self._around.within(server_id)

        session_id = intent.session_id if intent else self.session_id
        snapshot = self._around.snapshot()
        verdict = snapshot.judge(self._meant(call.tool, call.input), session_id=session_id, charge=charge)
        if not verdict.blocked:
            verdict = self._shown_is_pinned(snapshot, call.tool) or verdict
        self._around.emit(
            events.ToolCalled(
                **_decided(verdict, session_id),
                server_id=self.server_id,
                tool_name=_bounded(call.tool),
                jsonrpc_id=call.id,
                input=bounded_input(call.input),
                via="shim",
                tool_hash=verdict.candidates[0].tool_hash if verdict.candidates else "",
                tool_call_id=intent.tool_call_id if intent else "",
                intercepted_id=intent.event_id if intent else "",
                **self._who(),
            )
        )
        return verdict

    def _meant(self, tool: str, arguments: Any = None) -> ToolCall:
        # On the wire the name is the server's own: that of a client's wrapper means nothing else here.
        wrapper = tool.strip().lower() in WRAPPERS
        return ToolCall(tool, input=None if wrapper else arguments, server_name=self.server_id, dialect="mcp")

    def _shown_is_pinned(self, snapshot: Snapshot, tool: str) -> Verdict | None:
        """Return the block of a tool whose definition, as this client was shown it, is not the pinned one."""
        shown = self.listed.get(tool)
        known = snapshot.registry.tool(self.server_id, tool)
        if shown is None or (known is not None and known.hash == shown):
            return None
        mcp = snapshot.config.sandbox.mcp
        about = Candidate(self.server_id, tool, shown)
        step = steps.pin_step(snapshot.pins, mcp.version_pinning, about)
        if step is None or step.outcome is not steps.Outcome.BLOCK:
            return None
        return _refused(mcp, step.reason, step.rule, (about,))

    # What the server sends.

    def _server(self, line: bytes, asked: list[Asked], *, stray: bool) -> Answer:
        try:
            body = mcp_gate.read(line, LIMITS)
        except ProtocolError as error:
            listing = any(ask.method == LIST for ask in asked)
            danger = "a list of tools that peers may read differently" if listing else mcp_gate.doubt(line)
            return self._uncertain(line, "server", str(error), danger, asked)
        if stray:
            danger = "a list of tools that nobody asked for" if _lists_tools(body) and asked else ""
            return self._uncertain(line, "server", "an answer to no request", danger, asked)
        if any(map(changes_tools, body.messages)):
            self._around.emit(events.ToolsListChanged(session_id=self.session_id, server_id=self.server_id))
        replies, edits = self._askings(body)
        answers = [(ask, body.messages[ask.index]) for ask in asked if ask.index < len(body.messages)]
        for ask, message in answers:
            if ask.method in HANDSHAKES and isinstance(message, Response):
                self._learn(message.result)
        lists = [(a, m) for a, m in answers if a.method == LIST and isinstance(m, Response)]
        if lists:
            return self._listings(line, body, lists, replies, edits)
        return self._ruled(line, mcp_gate.edited(line, body, edits), tuple(replies))

    def _askings(self, body: Body) -> tuple[list[bytes], dict[int, Edit]]:
        """Judge what the server wants of the client."""
        replies: list[bytes] = []
        edits: dict[int, Edit] = {}
        mcp = self._mcp()
        for asking in mcp_gate.askings(body):
            verdict = server_asks.judge(mcp, self.server_id, asking.method)
            self._tell_asking(asking, verdict)
            if not verdict.blocked:
                continue
            refusal = mcp_gate.answer_to_asking(asking, verdict)
            if asking.embedded:
                edits[asking.index] = Swap(refusal)
            else:
                edits[asking.index] = Drop()
                replies.append(refusal)
        return replies, edits

    def _tell_asking(self, asking: Asking, verdict: Verdict) -> None:
        kind = events.SamplingRequest if asking.method == SAMPLING else events.ElicitationRequest
        detail = jsontext.dumps(asking.params).decode()
        self._around.emit(
            kind(
                **_decided(verdict, self.session_id),
                server_id=self.server_id,
                jsonrpc_id=asking.id,
                detail=_bounded(detail, MAX_DETAIL),
            )
        )

    def _learn(self, result: Any) -> None:
        """Keep what a handshake says of the server."""
        if not isinstance(result, dict):
            return
        version = result.get("protocolVersion")
        instructions, info = result.get("instructions"), result.get("serverInfo")
        self._facts = {
            "instructions": instructions if isinstance(instructions, str) else "",
            "server_info": info if isinstance(info, dict) else {},
            "protocol_version": version if isinstance(version, str) else MODERN,
            "era": "legacy" if isinstance(version, str) else "modern",
        }

    async def _listings(
        self,
        line: bytes,
        body: Body,
        lists: list[tuple[Asked, Response]],
        replies: list[bytes],
        edits: dict[int, Edit],
    ) -> bytes:
        """Take the pages of the server's tools before the client sees them; what it calls next is judged by them."""
        for ask, message in lists:
            try:
                await self._take(message, len(line), continues=ask.continues)
            except ProtocolError as error:
                return self._uncertain(line, "server", str(error), "", [ask for ask, _ in lists])
            hidden = self._denied(message.result["tools"]) if self._hide else ()
            if hidden and ask.index not in edits:
                edits[ask.index] = Hide(hidden)
        return self._ruled(line, mcp_gate.edited(line, body, edits), tuple(replies))

    async def _take(self, message: Response, size: int, *, continues: bool) -> None:
        if self._pages is None or not continues:
            self._pages, self._shown = Pages(PageLimits()), []
        more = self._pages.add(message.result, size)
        tools = [tool_of(self.server_id, definition) for definition in message.result["tools"]]
        self._shown += tools
        # Through the registry's own eyes: of two definitions under one name neither is the pinned one.
        listed, _ = Registry().register(self.server_id, self._shown)
        self.listed = {tool.name: tool.hash for tool in listed.tools.values()}
        definitions = [dict(definition) for definition in self._pages.tools]
        if more is None:
            self._pages, self._shown = None, []
        if self._desk.may_list(self):
            await self._desk.take(self, definitions, self._facts, partial=more is not None)

    def _denied(self, definitions: list[Any]) -> tuple[int, ...]:
        """Return the positions of the tools that a call of would be blocked."""
        snapshot = self._around.snapshot()

        def blocked(tool: str) -> bool:
            verdict = snapshot.explain(self._meant(tool)).verdict
            return (self._shown_is_pinned(snapshot, tool) or verdict).blocked or verdict.blocked

        return tuple(i for i, definition in enumerate(definitions) if blocked(definition["name"]))

    # What cannot be read for certain.

    def _uncertain(
        self, line: bytes, sender: str, why: str, danger: str, asked: list[Asked] | tuple[()]
    ) -> bytes:
        """Decide on a line that peers may read differently: what may be a call is refused, the rest follows fail_closed."""
        mcp = self._mcp()
        refuse = bool(danger) or mcp.fail_closed
        blocked = refuse and mcp.enforce_policy
        self._around.emit(
            events.MessageUninspected(
                session_id=self.session_id,
                action=Action.BLOCK if blocked else Action.ALLOW,
                would=Action.BLOCK if refuse and not blocked else None,
                reason=_bounded(danger or why),
                rule="" if danger else "sandbox.mcp.fail_closed",
                server_id=self.server_id,
                via="shim",
                sender=sender,
                cause="hostile" if danger else "malformed",
                size=len(line),
                **self._who(),
            )
        )
        if not blocked:
            return self._ruled(line, line, ())
        error = f"[agentsh] message refused: {danger or why}"
        if sender == "client":
            return self._ruled(line, None, (_error(mcp_gate.id_in(line), error),))
        # The client waits for these answers.
        return self._ruled(line, b"\n".join(_error(ask.id, error) for ask in asked) or None, ())

    def _long(self, sender: str) -> bytes:
        mcp = self._mcp()
        blocked = mcp.fail_closed and mcp.enforce_policy
        self._around.emit(
            events.MessageUninspected(
                session_id=self.session_id,
                action=Action.BLOCK if blocked else Action.ALLOW,
                would=Action.BLOCK if mcp.fail_closed and not blocked else None,
                reason=f"a line of more than {shim_link.MAX_LINE} bytes",
                rule="sandbox.mcp.fail_closed",
                server_id=self.server_id,
                via="shim",
                sender=sender,
                cause="too_long",
                size=shim_link.MAX_LINE,
                **self._who(),
            )
        )
        return shim_link.frame(
            {"do": shim_link.EDIT if blocked else shim_link.PASS, "closed": self._closed()}
        )

    def _ruled(self, line: bytes, forward: bytes | None, replies: tuple[bytes, ...]) -> bytes:
        if forward is line and not replies:
            return shim_link.frame({"do": shim_link.PASS, "closed": self._closed()})
        edit = {
            "forward": None if forward is None else forward.decode(),
            "replies": [r.decode() for r in replies],
        }
        return shim_link.frame({"do": shim_link.EDIT, "closed": self._closed()}, jsontext.dumps(edit))

    def _mcp(self) -> Mcp:
        return self._around.snapshot().config.sandbox.mcp

    def _closed(self) -> bool:
        """Say what the shim does while we are away."""
        mcp = self._mcp()
        return mcp.fail_closed and mcp.enforce_policy

    def _who(self) -> dict[str, Any]:
        return {"pid": self.peer.pid, "uid": self.peer.uid}


def _asked(item: Any) -> Asked:
    match item:
        case [int(index), int() | str() as id_, str(method), bool(continues)] if index >= 0:
            return Asked(index, id_, method, continues)
        case _:
            raise LinkError("an answer to a request that is none")


def _lists_tools(body: Body) -> bool:
    results = (message.result for message in body.messages if isinstance(message, Response))
    return any(isinstance(result, dict) and "tools" in result for result in results)


def _decided(verdict: Verdict, session_id: str) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "action": verdict.action.value,
        "would": verdict.would.value if verdict.would else None,
        "reason": _bounded(verdict.reason),
        "rule": verdict.rule,
    }


def _refused(mcp: Mcp, reason: str, rule: str, candidates: tuple[Candidate, ...]) -> Verdict:
    """Return a block as policy speaks it: in audit mode it is let pass."""
    if mcp.enforce_policy:
        return Verdict(Action.BLOCK, reason, rule, None, candidates)
    return Verdict(Action.ALLOW, reason, rule, Action.BLOCK, candidates)


def _error(id_: Id | None, message: str) -> bytes:
    return jsonrpc.error(id_, mcp_gate.UNREADABLE, message)


def _bounded(text: str, limit: int = 8192) -> str:
    """Return text as an event keeps it: bounded, and UTF-8 whatever a server wrote."""
    return text[:limit].encode("utf-8", "backslashreplace").decode()[: 2 * limit]
