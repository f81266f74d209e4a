"""What may pass between an MCP client and a server: tool calls found and refused, server requests found and answered.

Lines or bodies in, rulings out, for whoever carries them (shim, gateway). Verdicts are the policy's business; what is
not refused keeps its very bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.glance import (
    ASKED,
    BOM,
    CALL,
    ELICITATION,
    MESSAGE_KEYS,
    PARAM_KEYS,
    RESULT_KEYS,
    SAMPLING,
    TASK,
    WATCHED,
    asks_for_input,
    id_of,
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

AT_THE_EDGE = 4096  # bytes at either end of a message in which its id is looked for
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
            raise ProtocolError("tools/call in another spelling")
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


def doubt(line: bytes) -> str:
    """Say why a line that no strict reader takes is a danger: some peer may read a tools/call in it. Empty: none can."""
    if splits(line):
        return "a carriage return inside a line"
    if jsonrpc.crowded(line):
        return jsonrpc.CROWDED
    try:
        reading = strict_json.read(line.removeprefix(BOM))
    except strict_json.DivergentError as error:
        return str(error)
    except ProtocolError:
        return ""
    if reading.duplicates:
        return f"the key {visible(min(reading.duplicates), MAX_NAME)!r} twice in an object"
    for message in reading.value if isinstance(reading.value, list) else [reading.value]:
        if isinstance(message, list):
            return "a batch in a batch"
        if isinstance(message, dict):
            if misspelt(message, MESSAGE_KEYS):
                return "a key of JSON-RPC in another case"
            method = message.get("method", "")
            if not isinstance(method, str) or method in {CALL, *WATCHED} or respelt(method):
                return f"a {visible(str(message['method']), MAX_NAME)} that is no proper JSON-RPC"
    return ""


def is_noise(line: bytes) -> bool:
    """Say whether no reader finds a message in a line, nor the beginning of one: what servers print by mistake, and clients skip."""
    try:
        value = strict_json.read(line.removeprefix(BOM)).value
    except strict_json.DivergentError:
        return False
    except ProtocolError as error:
        return not _of_a_stream(error.__cause__)
    return not isinstance(value, dict | list)


def doubt_of_client(line: bytes) -> str:
    """Say, as `doubt` does, what is dangerous in what a client sends, readers that take JSON as a stream of values included.

    Go's `json.Decoder` does: it knows no lines, and stops reading where a value ends.
    """
    found = doubt(line)
    if found:
        return found
    try:
        strict_json.read(line.removeprefix(BOM))
    except ProtocolError as error:
        return _of_a_stream(error.__cause__) or _of_a_dialect(line)
    return ""


def _of_a_stream(fault: BaseException | None) -> str:
    if not isinstance(fault, json.JSONDecodeError) or fault.doc.lstrip()[:1] not in {"{", "["}:
        return ""
    cut = fault.pos >= len(fault.doc.rstrip()) or fault.msg.startswith("Unterminated string")
    return "a JSON value that does not end" if cut else ""


def _of_a_dialect(line: bytes) -> str:
    """Say whether text that is no JSON may be a call to readers of more than JSON: Newtonsoft takes comments, bare keys and single quotes."""
    names = b"{" in line and (b"tools" in line.lower() or b"\\" in line)
    return "a tools/call to readers of more than JSON" if names else ""


def id_in(line: bytes) -> Id | None:
    """Return the id of a single message that no strict reader takes, for the error it gets; None where there is none."""
    if jsonrpc.crowded(line):
        found: Id | None = id_of(line[:AT_THE_EDGE], line[-AT_THE_EDGE:])
        return found
    try:
        value = strict_json.read(line.removeprefix(BOM)).value
    except ProtocolError:
        return None
    return _id_of(value)


def _id_of(message: Any) -> Id | None:
    """Return the id by which a message can be answered."""
    id_ = message.get("id") if isinstance(message, dict) else None
    if isinstance(id_, float) and id_.is_integer():
        id_ = int(id_)  # JavaScript and pydantic take 1.0 for 1
    usable = (isinstance(id_, str) and len(id_) <= jsonrpc.MAX_ID_LENGTH) or (
        type(id_) is int and abs(id_) <= jsonrpc.MAX_ID
    )
    return id_ if usable else None


def answered_in(line: bytes) -> list[Id]:
    """Return the ids of the answers on a line that no strict reader takes: who waits for them must be told."""
    if jsonrpc.crowded(line):
        found = [id_in(line)]
    else:
        try:
            value = strict_json.read(line.removeprefix(BOM)).value
        except ProtocolError:
            return []
        found = [_id_of(m) for m in (value if isinstance(value, list) else [value]) if _answers_something(m)]
    return [*dict.fromkeys(id_ for id_ in found if id_ is not None)]


def _answers_something(message: Any) -> bool:
    keys = {key.casefold() for key in message} if isinstance(message, dict) else set()
    return bool(keys & {"result", "error"}) and "method" not in keys


def askings(body: Body) -> Iterator[Asking]:
    """Yield what a server wants of the client, in whichever way the revisions know."""
    for index, message in enumerate(body.messages):
        if isinstance(message, Request):
            if message.method in ASKED:
                yield Asking(index, message.id, message.method, message.params)
        elif isinstance(message, Notification):
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
