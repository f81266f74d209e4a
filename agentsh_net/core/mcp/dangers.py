"""Lines that no strict reader takes: why one may be a call to some peer all the same, and who waits for what it would have answered.

Whether such a line passes is `judging`'s business, what it holds `uncertain`'s.
"""

from __future__ import annotations

import json
from typing import Any

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.gate import MAX_NAME
from agentsh_net.core.mcp.glance import BOM, CALL, MESSAGE_KEYS, WATCHED, id_of, misspelt, respelt, splits
from agentsh_net.core.mcp.jsonrpc import Id
from agentsh_net.core.naming.folding import visible
from agentsh_net.core.values import strict_json

AT_THE_EDGE = 4096  # bytes at either end of a message in which its id is looked for


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
