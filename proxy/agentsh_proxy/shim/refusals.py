"""What the shim says by itself where the daemon cannot be asked and fail_closed holds: errors, each to who waits for an answer.

Light on purpose (see `shim`).
"""

from __future__ import annotations

import json

from agentsh_net.core.mcp.glance import ASKED, CALL, UnreadableError, asks_for_input, messages, tells

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from typing import Any, Final

BLOCKED: Final = -31090  # as core.mcp.gate
UNREADABLE: Final = -32600

AWAY: Final = "[agentsh] blocked: the agentsh-net daemon cannot be asked (fail_closed)"
AGAIN: Final = "[agentsh] policy allows this server again, but it does not run any more: start it anew"
TOO_LONG: Final = "[agentsh] refused: a message longer than 16 MiB"


def error(id_: Any, code: int, message: str) -> bytes:
    """Return the bytes of a JSON-RPC error."""
    value = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}
    return json.dumps(value, separators=(",", ":")).encode()


def of_line(line: bytes, text: str = AWAY) -> list[bytes]:
    """Return the errors for a client's line that does not go on: one for each request on it."""
    try:
        found = messages(line)
    except UnreadableError:
        return [error(None, UNREADABLE, text)]
    return [error(m["id"], BLOCKED, text) for m in found if "method" in m and m.get("id") is not None]


def of_server(line: bytes, results: list[Any], *, notes: bool = False) -> tuple[bytes | None, list[bytes]]:
    """Return what goes on to the client in place of a server's line, and what is answered to the server.

    `results` are the ids of calls whose results were to be looked at; `notes`: what it tells by itself was to be, too.
    """
    try:
        found = messages(line)
    except UnreadableError:
        return None, []
    told = [m for m in found if notes and tells(m)]
    wants = [m for m in found if m.get("method") in ASKED or (m in told and m.get("id") is not None)]
    looked_at = [*results, None] if notes else results
    asks = [m for m in found if "method" not in m and (asks_for_input(m) or m.get("id") in looked_at)]
    if not wants and not asks and not told:
        return line, []
    errors = [error(m.get("id"), BLOCKED, AWAY) for m in found if m in asks]
    return b"\n".join(errors) or None, [error(m.get("id"), BLOCKED, AWAY) for m in wants]


def count_calls(line: bytes) -> int:
    """Return how many calls pass, or are refused, unjudged with a line."""
    try:
        return sum(message.get("method") == CALL for message in messages(line))
    except UnreadableError:
        return 1
