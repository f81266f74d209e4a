"""JSON-RPC 2.0 as MCP uses it: bytes in, typed messages out, and the few messages we make ourselves.

Read strictly, because what is read here is judged: an id keeps its type, a key stands once, unknown fields ride along.
What a method means is not its business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, NamedTuple

import orjson

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import strict_json

Id = int | str  # `1` is not `"1"`: compare with same_id

# Codes of errors (JSON-RPC 2.0, section 5.1).
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
# MCP's own: what SDK servers say of a session that they do not know; a header field that contradicts its body (2026-07-28,
# Streamable HTTP, "server validation").
SESSION_NOT_FOUND = -32001
HEADER_MISMATCH = -32020

MAX_ID_LENGTH = 1024  # a UUID has 36; some servers put a token here
MAX_ID = 2**53 - 1  # past it a JavaScript peer answers with another number (RFC 8259, section 6)
MAX_BATCH = 1024  # messages; the revision that knew batches (2025-03-26) names no bound
BOM = b"\xef\xbb\xbf"
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # an escape that may be half of a pair
_BLANKS = b" \t\r\n"
# Values in one message, arrays and objects among them: to read and inspect them takes half a second and 100 MB. Text is one value.
MAX_VALUES = 500_000
CROWDED = f"JSON of more than {MAX_VALUES} values"
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
MANY_DIGITS = 4000  # strict_json hands such numbers on as text


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one message (or batch): bytes, and levels of nesting (JSON schemas go to about 20)."""

    size: int = 4 << 20
    depth: int = 64


DEFAULT_LIMITS = Limits()


# Messages are not frozen, nor are the calls in them (`gate`): to make one would take three times as long, and each is made once a hop.


@dataclass(slots=True)
class Request:
    """A call that wants an answer with this id. `raw` is the whole message, unknown fields included."""

    id: Id
    method: str
    params: Mapping[str, Any] | list[Any] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(slots=True)
class Notification:
    """A call that wants no answer."""

    method: str
    params: Mapping[str, Any] | list[Any] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(slots=True)
class Response:
    """The result of the request with this id."""

    id: Id
    result: Any
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(slots=True)
class ErrorResponse:
    """The failure of a request. `id` is None where the peer could not read the request's id."""

    id: Id | None
    code: int
    message: str
    data: Any = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


Message = Request | Notification | Response | ErrorResponse


class Body(NamedTuple):
    """What one frame, line or HTTP body held: one message, or a batch."""

    messages: tuple[Message, ...]
    batch: bool


def same_id(one: Id | None, other: Id | None) -> bool:
    """Say whether two ids are the same value of the same type."""
    return type(one) is type(other) and one == other


def loosely_answered(body: Body, ids: Iterable[Id]) -> list[Id]:
    """Return which of these requests a body answers, be it to clients that take "1" for 1 alone."""
    said = {str(m.id) for m in body.messages if isinstance(m, Response | ErrorResponse)}
    return [id_ for id_ in ids if str(id_) in said]


def crowded(data: bytes) -> bool:
    """Say whether a text holds more values than are read here, without reading it: three bytes of it may cost a hundred of memory."""
    if len(data) <= MAX_VALUES or _marks(data) <= MAX_VALUES:
        return False
    if data.count(b'"') > 2 * MAX_VALUES:
        return True
    return _marks(_STRING.sub(b"", data)) > MAX_VALUES  # without the text that is in it


def _marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def parse(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Body:
    """Return the message or the batch in `data`. Raises ProtocolError for anything that is not exactly that."""
    if len(data) > limits.size:
        raise ProtocolError(f"JSON-RPC message of {len(data)} bytes, more than {limits.size}", status=413)
    if crowded(data):
        raise ProtocolError(CROWDED, status=413)
    text = data.removeprefix(BOM)
    value = _plain(text, limits.depth)
    if value is None:
        value = _certain(text, limits.depth)
    if not isinstance(value, list):
        return Body((classify(value),), batch=False)
    if not value:
        raise ProtocolError("JSON-RPC batch without a message")
    if len(value) > MAX_BATCH:
        raise ProtocolError(f"JSON-RPC batch of {len(value)} messages, more than {MAX_BATCH}", status=413)
    return Body(tuple(classify(item) for item in value), batch=True)


def _plain(data: bytes, depth: int) -> Any:
    """Return the value of a text that comes out again when the value is written, but for white space; None where it does not.

    A member whose key stands twice would be missing then, and a number or an escape that parsers may read differently
    would be written differently. The text has no more brackets than it may have levels.
    """
    if data.count(b"{") + data.count(b"[") > depth:
        return None
    try:
        value = orjson.loads(data)
        written = orjson.dumps(value)
    except (orjson.JSONDecodeError, TypeError):  # TypeError: what cannot be written
        return None
    same = written == data or written.translate(None, _BLANKS) == data.translate(None, _BLANKS)
    return value if same else None


def _certain(data: bytes, depth: int) -> Any:
    """Return the value of any text, if every parser reads the same one. Raises ProtocolError if two parsers could differ."""
    reading = strict_json.read(data)
    if reading.duplicates:
        raise ProtocolError(f"JSON with the key {min(reading.duplicates)!a} twice in an object")
    if reading.flaws:
        raise ProtocolError(f"JSON with {' and '.join(reading.flaws)}")
    return _settled(reading.value, depth, surrogates=SURROGATE.search(data) is not None)


def _settled(value: Any, depth: int, *, surrogates: bool) -> Any:
    """Return the value with every integer past 64 bits as the double that clients take it for (in place).

    Raises ProtocolError where parsers differ: lone surrogates, numbers past a double, nesting past `depth`.
    """
    level: list[Any] = [[value]]
    root = level[0]
    for _ in range(depth + 2):
        deeper: list[Any] = []
        for container in level:
            items: Iterable[Any] = container.items() if isinstance(container, dict) else enumerate(container)
            for key, item in items:
                if isinstance(item, dict | list):
                    deeper.append(item)
                elif isinstance(item, str):
                    _check_text(item, surrogates=surrogates)
                elif isinstance(item, int | float):
                    container[key] = _number(item)
                if surrogates and isinstance(key, str):
                    _check_text(key, surrogates=True)
        if not deeper:
            return root[0]
        level = deeper
    raise ProtocolError("JSON nested too deeply")


def _number(number: float) -> float:
    if isinstance(number, int) and -(2**63) <= number < 2**64:
        return number  # booleans too
    try:
        double = float(number)
    except OverflowError:
        double = inf
    if not isfinite(double):
        raise ProtocolError("JSON with a number past what a double holds")
    return double


def _check_text(text: str, *, surrogates: bool) -> None:
    if surrogates and not _encodable(text):
        raise ProtocolError("JSON with half a surrogate pair")
    if len(text) >= MANY_DIGITS and text.lstrip("-").isdigit():
        raise ProtocolError("JSON with a number of thousands of digits")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def classify(value: Any) -> Message:
    """Return which message a JSON value is (JSON-RPC 2.0, sections 4 and 5). Raises ProtocolError if it is none, or two."""
    if not isinstance(value, dict):
        raise ProtocolError(f"JSON-RPC message is {_kind(value)}, not an object")
    if value.get("jsonrpc") != "2.0":
        raise ProtocolError('JSON-RPC message without "jsonrpc": "2.0"')
    calls, succeeds, fails = "method" in value, "result" in value, "error" in value
    if calls + succeeds + fails != 1:
        raise _shapeless(value)
    if calls:
        return _call(value)
    return Response(_id(value), value["result"], value) if succeeds else _error(value)


def _shapeless(value: dict[str, Any]) -> ProtocolError:
    shapes = [key for key in ("method", "result", "error") if key in value]
    if not shapes:
        return ProtocolError("JSON-RPC message has neither method nor result nor error")
    return ProtocolError(f"JSON-RPC message has {' and '.join(shapes)}: which one is meant cannot be known")


def _call(value: dict[str, Any]) -> Request | Notification:
    method, params = value["method"], value.get("params")
    if not isinstance(method, str):
        raise ProtocolError(f"JSON-RPC method is {_kind(method)}, not a string")
    if params is not None and not isinstance(params, (dict, list)):
        raise ProtocolError(f"JSON-RPC params are {_kind(params)}, not an object or array")
    if "id" not in value:
        return Notification(method, params, value)
    return Request(_id(value), method, params, value)


def _error(value: dict[str, Any]) -> ErrorResponse:
    error = value["error"]
    if not isinstance(error, dict):
        raise ProtocolError(f"JSON-RPC error is {_kind(error)}, not an object")
    code, message = error.get("code"), error.get("message", "")
    if not isinstance(code, int) or isinstance(code, bool) or not isinstance(message, str):
        raise ProtocolError("JSON-RPC error without an integer code and a string message")
    id_ = None if value.get("id") is None else _id(value)
    return ErrorResponse(id_, code, message, error.get("data"), value)


def _id(value: dict[str, Any]) -> Id:
    id_ = value.get("id")
    if isinstance(id_, str) and len(id_) <= MAX_ID_LENGTH:
        return id_
    if type(id_) is int and -MAX_ID <= id_ <= MAX_ID:  # a boolean is an int to isinstance
        return id_
    if isinstance(id_, str | int) and not isinstance(id_, bool):
        raise ProtocolError("JSON-RPC id is too long")
    raise ProtocolError(f"JSON-RPC id is {_kind(id_)}, not a string or an integer")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def request(id_: Id, method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes of a request."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "method": method} | _params(params))


def notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes of a notification."""
    return orjson.dumps({"jsonrpc": "2.0", "method": method} | _params(params))


def response(id_: Id, result: Mapping[str, Any]) -> bytes:
    """Return the bytes of an answer."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "result": result})


def error(id_: Id | None, code: int, message: str) -> bytes:
    """Return the bytes of a failure."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}})


def _params(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if params is None else {"params": params}
