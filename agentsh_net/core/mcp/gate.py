"""What may pass between an MCP client and a server: tool calls found and refused, server requests found and answered.

Lines or bodies in, rulings out, for whoever carries them (shim, gateway). Verdicts are the policy's business; what is
not refused keeps its very bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.glance import (
    ASKED,
    CALL,
    ELICITATION,
    MESSAGE_KEYS,
    NUL,
    PARAM_KEYS,
    RESULT_KEYS,
    SAMPLING,
    TASK,
    asks_for_input,
    misspelt,
    respelt,
    splits,
)
from agentsh_net.core.mcp.jsonrpc import (
    DEFAULT_LIMITS,
    Body,
    ErrorResponse,
    Id,
    Limits,
    Message,
    Notification,
    Request,
    Response,
)
from agentsh_net.core.model import Verdict
from agentsh_net.core.naming.folding import visible
from agentsh_net.core.values import json_splice, strict_json

# Ours: MCP 2026-07-28 ("error codes") keeps all of -32020 to -32099 for itself, and has others allocate outside JSON-RPC's range.
BLOCKED = -31090
UNREADABLE = jsonrpc.INVALID_REQUEST

_CALLS = (Request, Notification)  # what may be a call

# Of a result of a call, and of what policy reads: where there is no other, none is misspelt.
_USUAL_KEYS = RESULT_KEYS | {"content", "structuredContent", "isError", "_meta"}

MAX_NAME = 200  # characters of a tool's name in an answer; the event has the whole


@dataclass(slots=True)
class Call:
    """A tools/call. `id` is None for one that wants no answer. `reading`: a request to read, whose method `tool` is."""

    id: Id | None
    tool: str
    input: Any
    reading: bool = False


Judge = Callable[[Call], Verdict]
# Id, tool, reason -> what the client gets in place of an answer.
Refuse = Callable[[Id | None, str, str], bytes]


@dataclass(frozen=True, slots=True)
class Asking:
    """Something a server wants of the client: a request, or (`embedded`) an answer or a notification that asks.

    `id` is None where nobody waits for an answer.
    """

    index: int
    id: Id | None
    method: str
    params: Any
    embedded: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """Edit: the message does not go on."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Edit: this message goes on in its place."""

    message: bytes


@dataclass(frozen=True, slots=True)
class Hide:
    """Edit: these tools of a tools/list result do not go on; the others keep their bytes."""

    positions: tuple[int, ...]


Edit = Drop | Swap | Hide


class Ruling(NamedTuple):
    """What becomes of a line: what goes on in its place (None: nothing), what goes back to who sent it, and which calls that answers."""

    forward: bytes | None
    replies: tuple[bytes, ...] = ()
    refused: frozenset[Id] = frozenset()


def read(line: bytes, limits: Limits = DEFAULT_LIMITS) -> Body:
    """Return what every peer reads in a line (without its newline). Raises ProtocolError where one may read something else."""
    if splits(line):
        raise ProtocolError("a carriage return inside a line")
    body = jsonrpc.parse(line, limits)
    for message in body.messages:
        if not message.raw.keys() <= MESSAGE_KEYS and misspelt(message.raw, MESSAGE_KEYS):
            raise ProtocolError("a key of JSON-RPC in another case")
        if isinstance(message, _CALLS) and respelt(message.method):
            raise ProtocolError("a method in another spelling")
        if (
            isinstance(message, Response)
            and isinstance(message.result, dict)
            and not message.result.keys() <= _USUAL_KEYS
            and misspelt(message.result, RESULT_KEYS)
        ):
            raise ProtocolError("a key of a result in another case")
    return body


def rule_calls(
    line: bytes,
    body: Body,
    judge: Judge,
    refuse: Refuse | None = None,
    reads: Callable[[str], bool] = lambda _: False,
) -> Ruling:
    """Judge every tools/call of a client's message or batch, and what it reads by a method that `reads` knows.

    Raises ProtocolError, before any verdict, where a tool is uncertain.
    """
    calls = {index: call_in(message) for index, message in enumerate(body.messages) if is_call(message)}
    for index, message in enumerate(body.messages):
        if isinstance(message, _CALLS) and message.method != CALL and reads(message.method):
            id_ = message.id if isinstance(message, Request) else None
            calls[index] = Call(id_, message.method, message.params, reading=True)
    edits: dict[int, Edit] = {}
    errors: list[tuple[Id, bytes]] = []
    for index, call in calls.items():
        verdict = judge(call)
        if verdict.blocked:
            edits[index] = Drop()
            if call.id is not None:
                worded = answer_to_note if call.reading else refuse or refusal
                errors.append((call.id, worded(call.id, call.tool, verdict.reason)))
    if not edits:
        return Ruling(line)
    answers = _answers([error for _, error in errors], batch=body.batch)
    return Ruling(edited(line, body, edits), answers, frozenset(id_ for id_, _ in errors))


def lone_call(body: Body) -> str:
    """Return the tool of a tools/call that is no part of a batch; empty for anything else."""
    message = body.messages[0]
    return "" if body.batch or not is_call(message) else call_in(message).tool


def is_call(message: Message) -> bool:
    """Say whether a message calls a tool; one that wants no answer calls it too."""
    return isinstance(message, _CALLS) and message.method == CALL


def call_in(message: Message) -> Call:
    """Return the call that a tools/call is. Raises ProtocolError where its tool is uncertain."""
    params = message.params if isinstance(message, _CALLS) else None
    if not isinstance(params, dict) or not isinstance(params.get("name"), str):
        raise ProtocolError("tools/call without the name of a tool")
    if not params.keys() <= PARAM_KEYS and misspelt(params, PARAM_KEYS):
        raise ProtocolError("tools/call with a parameter spelt in two ways")
    if NUL in params["name"]:
        raise ProtocolError("tools/call of a tool whose name some servers read up to a NUL")
    return Call(message.id if isinstance(message, Request) else None, params["name"], params.get("arguments"))


def as_result(error: bytes, *, modern: bool) -> bytes:
    """Return a refusal as a result that says it is an error: some clients end the turn at a JSON-RPC error, and a model reads results."""
    found = jsonrpc.parse(error).messages[0]
    if not isinstance(found, ErrorResponse) or found.id is None:
        return error
    result: dict[str, Any] = {"content": [{"type": "text", "text": found.message}], "isError": True}
    return jsonrpc.response(found.id, result | ({"resultType": "complete"} if modern else {}))


def refusal(id_: Id | None, tool: str, reason: str) -> bytes:
    """Return the JSON-RPC error that a blocked call gets."""
    return jsonrpc.error(
        id_, BLOCKED, f"[agentsh] Tool '{visible(tool, MAX_NAME)}' blocked by policy: {reason}"
    )


def denied_server(id_: Id | None, server_id: str, reason: str) -> bytes:
    """Return the JSON-RPC error that any request gets for a server that policy denies."""
    return jsonrpc.error(id_, BLOCKED, denial(server_id, reason))


def denial(server_id: str, reason: str) -> str:
    """Return what a client is told of a server that policy denies."""
    return f"[agentsh] server {visible(server_id)} is denied by policy: {reason}"


def refused_result(id_: Id | None, named: str, reason: str, method: str = CALL) -> bytes:
    """Return the JSON-RPC error that a client gets in place of a result that must not reach it; `named` is what it asked for."""
    name = visible(named, MAX_NAME)
    what = f"tool '{name}'" if method == CALL else f"{method} '{name}'" if name else method
    return jsonrpc.error(id_, BLOCKED, f"[agentsh] Result of {what} blocked by policy: {reason}")


def askings(body: Body) -> Iterator[Asking]:
    """Yield what a server wants of the client, in whichever way the revisions know."""
    for index, message in enumerate(body.messages):
        if isinstance(message, Request):
            if message.method in ASKED:
                yield Asking(index, message.id, message.method, message.params)
        elif isinstance(message, Notification):
            if message.method in ASKED:  # to clients that answer nobody
                yield Asking(index, None, message.method, message.params, embedded=True)
            if message.method == TASK and isinstance(message.params, dict):
                yield from embedded(index, None, message.params.get("inputRequests"))
        elif asks_for_input(message.raw):
            if isinstance(message, Response):
                yield from embedded(index, message.id, message.result.get("inputRequests"))
            elif message.id is not None:
                yield Asking(index, message.id, ELICITATION, message.data, embedded=True)


def embedded(index: int, id_: Id | None, requests: Any) -> Iterator[Asking]:
    """Yield the requests in what a server of 2026-07-28 says (`inputRequests` maps names of the server's choice to requests)."""
    values: Iterable[Any] = requests.values() if isinstance(requests, dict) else requests
    for request in values if isinstance(values, Iterable) else ():
        method = request.get("method") if isinstance(request, dict) else None
        if isinstance(method, str) and method in ASKED:
            yield Asking(index, id_, method, request.get("params"), embedded=True)


def answer_to_note(id_: Id, method: str, reason: str) -> bytes:
    """Return the error that a server's request gets which does not reach its client for what it says."""
    what = visible(method, MAX_NAME)
    return jsonrpc.error(id_, BLOCKED, f"[agentsh] {what} blocked by policy: {reason}")


def answer_to_asking(asking: Asking, verdict: Verdict) -> bytes:
    """Return the error that a blocked asking gets; it goes to the server, or to the client where it stood in an answer."""
    what = "sampling" if asking.method == SAMPLING else "elicitation"
    return jsonrpc.error(asking.id, BLOCKED, f"[agentsh] {what} blocked by policy: {verdict.reason}")


def edited(line: bytes, body: Body, edits: Mapping[int, Edit]) -> bytes | None:
    """Return a line with its messages edited; None where none is left; the line itself where there is no edit."""
    if not edits:
        return line
    if not body.batch:
        match edits[0]:
            case Drop():
                return None
            case Swap(message):
                return message
            case Hide(positions):
                return json_splice.splice(line, dict(_hidden((), positions)))
    if len(edits) == len(body.messages) and all(isinstance(edit, Drop) for edit in edits.values()):
        return None
    changes: dict[strict_json.Path, Any] = {}
    for index, edit in edits.items():
        match edit:
            case Drop():
                changes[index,] = json_splice.DELETE
            case Swap(message):
                changes[index,] = json_splice.Raw(message.decode())
            case Hide(positions):
                changes |= dict(_hidden((index,), positions))
    return json_splice.splice(line, changes)


def _hidden(at: strict_json.Path, positions: Iterable[int]) -> Iterator[tuple[strict_json.Path, Any]]:
    return (((*at, "result", "tools", position), json_splice.DELETE) for position in positions)


def _answers(errors: list[bytes], *, batch: bool) -> tuple[bytes, ...]:
    """Return the errors as the messages that carry them: a batch is answered by a batch."""
    return (b"[" + b",".join(errors) + b"]",) if batch and errors else tuple(errors)
