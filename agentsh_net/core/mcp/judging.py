"""Judging what passes between an MCP client and a server: calls, listings, and what a server asks. Shim and gateway share it.

Facts in, verdicts and edits out. Who carries the messages, and what events look like, is not its business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentsh_net.core.configuration.settings import Gateway, Mcp
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.inspect.findings import Finding
from agentsh_net.core.mcp import gate as mcp_gate
from agentsh_net.core.mcp.client import META
from agentsh_net.core.mcp.exchange import MODERN
from agentsh_net.core.mcp.gate import Asking, Call, Drop, Edit, Swap
from agentsh_net.core.mcp.glance import CALL, HANDSHAKES, LIST, tells
from agentsh_net.core.mcp.jsonrpc import Body, Id, Message, Notification, Request, Response
from agentsh_net.core.mcp.listing import refused
from agentsh_net.core.mcp.pages import RepeatedCursorError
from agentsh_net.core.model import Action, ToolCall, Verdict
from agentsh_net.core.naming.names import WRAPPERS
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.verdicts import results_policy, server_asks, steps
from agentsh_net.core.verdicts.policy import Charge
from agentsh_net.core.verdicts.rules import ROOT

# The block of a tool, or of its whole server, as one client was shown them.
Shown = Callable[[str], Verdict | None]

# By method, what of its result is pinned, where it is what it should be.
_PINNED: dict[str, tuple[str, type]] = {LIST: ("tools", list)} | dict.fromkeys(
    HANDSHAKES, ("instructions", str)
)
_SUBJECTS = ("taskId", "progressToken", "logger", "uri")  # what notifications are about

_MODERN = (META + "protocolVersion").encode()  # only requests of 2026-07-28 have it

NO_FACTS: dict[str, Any] = {"instructions": "", "server_info": {}, "protocol_version": "", "era": ""}


class Note(NamedTuple):
    """What a server tells by itself. `position` is that of its message, `about` what it names (a task, a logger).

    `id` is that of a request, which wants an answer.
    """

    position: int
    id: Id | None
    method: str
    about: str
    params: Any


def meant(server_id: str, tool: str, arguments: Any = None) -> ToolCall:
    """Return a call on the wire as policy reads calls: the name is the server's own, that of a client's wrapper means nothing else."""
    wrapper = tool.strip().lower() in WRAPPERS
    return ToolCall(
        tool,
        input=None if wrapper else arguments,
        server_name=server_id,
        dialect="mcp",
        doubt="the tool has the name of a client's wrapper" if wrapper else "",
    )


def judge_call(
    snapshot: Snapshot, shown: Shown, server_id: str, call: Call, session_id: str, charge: Charge
) -> Verdict:
    """Return the verdict on a call; `shown` blocks what this very client was shown otherwise than it is trusted."""
    verdict = snapshot.judge(meant(server_id, call.tool, call.input), session_id=session_id, charge=charge)
    return verdict if verdict.blocked else shown(call.tool) or verdict


def refused_call(gateway: Gateway, asked: bytes, id_: Id | None, tool: str, why: str) -> bytes:
    """Return what a client gets for a blocked call on a line or in a body (`gateway.blocked_as`)."""
    error = mcp_gate.refusal(id_, tool, why)
    return error if gateway.blocked_as == "error" else mcp_gate.as_result(error, modern=_MODERN in asked)


def refused_result(
    gateway: Gateway, message: Message, id_: Id | None, named: str, why: str, method: str
) -> bytes:
    """Return what a client gets in place of a result that must not reach it."""
    error = mcp_gate.refused_result(id_, named, why, method)
    if method != CALL or gateway.blocked_as == "error":
        return error
    result = message.result if isinstance(message, Response) else None
    return mcp_gate.as_result(error, modern=isinstance(result, dict) and "resultType" in result)


def denied(snapshot: Snapshot, shown: Shown, server_id: str, definitions: list[Any]) -> tuple[int, ...]:
    """Return the positions of the tools whose calls would be blocked."""

    def blocked(tool: str) -> bool:
        return (shown(tool) or snapshot.explain(meant(server_id, tool)).verdict).blocked

    return tuple(i for i, definition in enumerate(definitions) if blocked(definition["name"]))


def judge_askings(
    mcp: Mcp,
    server_id: str,
    asked: Iterable[tuple[Asking, Sequence[Finding]]],
    tell: Callable[[Asking, Verdict, Sequence[Finding]], None],
) -> tuple[list[bytes], dict[int, Edit]]:
    """Judge what the server wants of the client, and what was found there; return what it is answered, and what becomes of its messages."""
    replies: list[bytes] = []
    edits: dict[int, Edit] = {}
    for asking, found in asked:
        verdict = server_asks.judge(mcp, server_id, asking.method)
        if found and not verdict.blocked:
            inspected = results_policy.judge(mcp, found, "request")
            verdict = inspected if inspected.blocked or inspected.would is not None else verdict
        tell(asking, verdict, found)
        if not verdict.blocked:
            continue
        refusal = mcp_gate.answer_to_asking(asking, verdict)
        if asking.embedded:
            edits[asking.index] = Drop() if asking.id is None else Swap(refusal)
        else:
            edits[asking.index] = Drop()
            replies.append(refusal)
    return replies, edits


def notes(mcp: Mcp, body: Body) -> list[Note]:
    """Return what a server tells by itself that is inspected as results are."""
    if not mcp.output_inspection.enabled:
        return []
    return [
        Note(
            position,
            message.id if isinstance(message, Request) else None,
            message.method,
            _subject(message.params),
            message.params,
        )
        for position, message in enumerate(body.messages)
        if isinstance(message, Notification | Request) and tells(message.raw)
    ]


def judged_note(
    mcp: Mcp, note: Note, found: Sequence[Finding], replies: list[bytes], edits: dict[int, Edit]
) -> Verdict:
    """Return the verdict on what a server tells by itself, with what becomes of it, and what it is answered, added."""
    verdict = results_policy.judge(mcp, found, "message" if note.id is not None else "notification")
    if verdict.blocked:
        edits[note.position] = Drop()
        if note.id is not None:
            replies.append(mcp_gate.answer_to_note(note.id, note.method, verdict.reason))
    return verdict


def to_read(method: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is inspected of an answer as results are: all but what is pinned, and inspected as a definition."""
    read = {key: value for key, value in answer.items() if key in {"result", "error"}}
    pinned, result = _PINNED.get(method), read.get("result")
    if pinned is not None and isinstance(result, Mapping):
        key, kind = pinned
        read["result"] = {k: v for k, v in result.items() if k != key or not isinstance(v, kind)}
    return read


def _subject(params: Any) -> str:
    """Return what a notification is about, as far as it says."""
    named = (params.get(key) for key in _SUBJECTS) if isinstance(params, Mapping) else ()
    return next((str(value) for value in named if isinstance(value, str | int)), "")


def facts(result: Any) -> dict[str, Any] | None:
    """Return what the result of a handshake says of the server; None for one that says nothing."""
    if not isinstance(result, dict):
        return None
    version, instructions = result.get("protocolVersion"), result.get("instructions")
    meta = result.get("_meta")  # where servers of 2026-07-28 say who they are
    info = result.get("serverInfo") or (meta.get(META + "serverInfo") if isinstance(meta, dict) else None)
    return {
        "instructions": instructions if isinstance(instructions, str) else "",
        "server_info": info if isinstance(info, dict) else {},
        "protocol_version": version if isinstance(version, str) else MODERN,
        "era": "legacy" if isinstance(version, str) else "modern",
    }


def unlisted(result: Any, fault: ProtocolError) -> str:
    """Say why a list of tools may not pass that was not taken: pins would not know what its client is shown. Empty: they do."""
    if isinstance(fault, RepeatedCursorError) or not (isinstance(result, Mapping) and "tools" in result):
        return ""
    return f"a list of tools that cannot be read whole: {fault}"


def doubted(mcp: Mcp, why: str, danger: str) -> Verdict:
    """Return the verdict on a message that peers may read differently: what may be a call is refused, the rest follows fail_closed."""
    if danger:
        return refused(mcp, danger, steps.PROTOCOL)
    if mcp.fail_closed:
        return refused(mcp, why, f"{ROOT}.fail_closed")
    return Verdict(Action.ALLOW, why, f"{ROOT}.fail_closed")
