"""A line of MCP over stdio, seen at a glance: which messages it holds, or that peers may read it differently.

Only what the shim needs to find the lines that somebody has to look at; judging is `gate`'s business, on a strict
reading. Light on purpose (see `shim_link`).
"""

from __future__ import annotations

import json
import re
from functools import cache

TYPE_CHECKING = False  # see shim_link
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Final

CALL: Final = "tools/call"
LIST: Final = "tools/list"
# What lists a server's definitions besides tools.
LISTS: Final = frozenset(("resources/list", "resources/templates/list", "prompts/list"))
# What a server gives to read besides the results of calls, and the model gets to see.
READINGS: Final = LISTS | frozenset(
    (
        "resources/read",
        "prompts/get",
        "completion/complete",
        # Where a call's result is fetched that became a task (2025-11-25, "tasks"; the extension of 2026-07-28).
        "tasks/result",
        "tasks/get",
    )
)
INSPECTED: Final = READINGS | {CALL}
# How the methods begin that rules may name (`tool: resources/read`).
_READ: Final = ("resources/", "prompts/", "completion/")
HANDSHAKES: Final = frozenset(("initialize", "server/discover"))
SAMPLING: Final = "sampling/createMessage"
ELICITATION: Final = "elicitation/create"
LIST_CHANGED: Final = "notifications/tools/list_changed"
LISTS_CHANGED: Final = frozenset(
    (LIST_CHANGED, "notifications/prompts/list_changed", "notifications/resources/list_changed")
)
TASK: Final = "notifications/tasks"  # a task as `tasks/get` would show it (the extension of 2026-07-28)
PROGRESS: Final = "notifications/progress"
# What a server asks of the client, or tells it, that policy or audit has a say in.
WATCHED: Final = frozenset((SAMPLING, ELICITATION, LIST_CHANGED, TASK))
ASKED: Final = frozenset((SAMPLING, ELICITATION))

INPUT_REQUIRED: Final = "input_required"  # 2026-07-28: a result that asks, or a task that does
INPUT_REQUESTS: Final = "inputRequests"  # what it asks
URL_ELICITATION_REQUIRED: Final = -32042  # 2025-11-25: an error that asks

BOM: Final = b"\xef\xbb\xbf"

NUL: Final = "\0"  # where a text ends in C

PARAM_KEYS: Final = frozenset(("name", "arguments"))
MESSAGE_KEYS: Final = frozenset(("jsonrpc", "id", "method", "params", "result", "error"))
# Of a result, whatever was asked: what the model is shown of a server and its tools, and what the client is asked.
RESULT_KEYS: Final = frozenset(
    (
        "tools",
        "nextCursor",
        "protocolVersion",
        "supportedVersions",
        "instructions",
        "serverInfo",
        "resultType",
        INPUT_REQUESTS,
    )
)

# Progress without a text: its token is the client's own.
_COUNTS: Final = frozenset(("progressToken", "progress", "total"))
_NUMBERS: Final = (int, float)

_ID: Final = rb'"id"[ \t]*:[ \t]*(-?[0-9]{1,16}|"[^"\\]{0,256}")[ \t]*'
_JSONRPC: Final = rb'"jsonrpc"[ \t]*:[ \t]*"2\.0"[ \t]*'
_HEAD: Final = re.compile(rb"[ \t]*\{[ \t]*(?:" + _JSONRPC + rb",[ \t]*)?" + _ID + rb",")
_TAIL: Final = re.compile(rb",[ \t]*" + _ID + rb"(?:,[ \t]*" + _JSONRPC + rb")?\}[ \t\r\n]*\Z")


class UnreadableError(ValueError):
    """Not JSON-RPC, or text that two peers may read differently."""


def messages(line: bytes) -> list[dict[str, Any]]:
    """Return the messages on a line (without its newline). Raises UnreadableError."""
    if splits(line):
        raise UnreadableError("a carriage return inside a line")
    try:
        value = _DECODER.decode(line.removeprefix(BOM).decode())
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(error)) from None
    found = value if isinstance(value, list) else [value]
    for message in found:
        if not isinstance(message, dict) or misspelt(message, MESSAGE_KEYS):
            raise UnreadableError("not a JSON-RPC message")
        method = message.get("method", "")
        if not isinstance(method, str):
            raise UnreadableError("a method that is no text")
        if respelt(method):
            raise UnreadableError("a method in another spelling")
        if "method" in message and ("result" in message or "error" in message):
            raise UnreadableError("a request and an answer in one")
    return found


def plain_call(found: list[dict[str, Any]]) -> str:
    """Return the tool of a lone tools/call that every peer reads alike; empty for anything else."""
    message = found[0] if len(found) == 1 else {}
    params, id_ = message.get("params"), message.get("id")
    if (
        message.get("method") != CALL
        or message.get("jsonrpc") != "2.0"
        or not isinstance(params, dict)
        or not isinstance(id_, int | str)
        or isinstance(id_, bool)
        or misspelt(params, PARAM_KEYS)
    ):
        return ""
    name = params.get("name")
    return name if isinstance(name, str) else ""


def splits(line: bytes) -> bool:
    """Say whether some reader ends a line in the middle of this one: Python's text streams do so at a carriage return."""
    return b"\r" in line and line.index(b"\r") < len(line) - 1


def misspelt(keys: Iterable[str], known: frozenset[str]) -> bool:
    """Say whether a key is a known one but for its case, or up to a NUL: Go's `encoding/json` takes it for that one, or cJSON."""
    return not _folded(known).isdisjoint(key.partition(NUL)[0].casefold() for key in set(keys) - known)


@cache
def _folded(known: frozenset[str]) -> frozenset[str]:
    return frozenset(map(str.casefold, known))


def respelt(method: str) -> bool:
    """Say whether a method is tools/call but for its case and the space around it: servers of one's own may take it for that.

    One with a NUL is whatever stands before it, in C.
    """
    return method != CALL and (NUL in method or method.strip().casefold() == CALL)


def reads(method: object) -> bool:
    """Say whether a method asks a server for something to read that is no tool's result."""
    return isinstance(method, str) and method.strip().casefold().startswith(_READ)


def asks_for_input(message: Mapping[str, Any]) -> bool:
    """Say whether an answer asks the client for something before the request is done, be it to clients that go by its requests alone."""
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict):
        return INPUT_REQUESTS in result or INPUT_REQUIRED in result.values()
    return isinstance(error, dict) and error.get("code") == URL_ELICITATION_REQUIRED


def tells(message: Mapping[str, Any]) -> bool:
    """Say whether a server's message tells something to read: clients show logs, progress and what vendors add to the model.

    What it asks of the client's model or user (`sampling`, `elicitation`) has a policy of its own.
    """
    method, params = message.get("method"), message.get("params")
    if not params or not isinstance(method, str) or method in ASKED:
        return False
    counts = method == PROGRESS and isinstance(params, dict) and params.keys() <= _COUNTS
    return not (
        counts and type(params.get("total", 0)) in _NUMBERS and type(params.get("progress")) in _NUMBERS
    )


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise UnreadableError("a key twice in an object")
    return value


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_pairs)


def id_of(head: bytes, tail: bytes) -> Any:
    """Return the id of a message of which only the beginning and the end are known; None where it does not stand there."""
    found = _HEAD.match(head) or _TAIL.search(tail)
    return json.loads(found[1]) if found else None
