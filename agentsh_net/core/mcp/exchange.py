"""What an MCP conversation and its carrier say to each other: commands out, outcomes in; and what a fault reads like.

The machine that speaks it is `client`; transports carry it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.glance import LIST_CHANGED, LISTS_CHANGED
from agentsh_net.core.mcp.jsonrpc import ErrorResponse, Notification, Request, Response

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # newest first; we offer the first

QUOTE = 300  # characters of a peer's text in an error of ours: enough to recognise it, too few to flood a log


@dataclass(frozen=True, slots=True)
class Ask:
    """Command: send this request at this revision and feed what comes of it. `version` is empty while none is agreed."""

    id: int
    method: str
    body: bytes
    version: str = ""


@dataclass(frozen=True, slots=True)
class Tell:
    """Command: send this notification; nothing comes back."""

    method: str
    body: bytes
    version: str = ""


@dataclass(frozen=True, slots=True)
class FallBack:
    """Command: this is no Streamable HTTP server; open the stream of HTTP+SSE and call `fell_back()`. `reason` is what it said."""

    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Command: be done; this is what the server offers. Definitions are as the server wrote them."""

    tools: tuple[Mapping[str, Any], ...]
    instructions: str
    server_info: Mapping[str, Any]
    version: str

    @property
    def era(self) -> str:
        """Return `modern` or `legacy`."""
        return "modern" if self.version == MODERN else "legacy"


Command = Ask | Tell | FallBack | Listing


@dataclass(frozen=True, slots=True)
class Answered:
    """Outcome: the answer to the last Ask, the bytes it took, and the HTTP status it came with (200 without HTTP)."""

    message: Response | ErrorResponse
    size: int = 0
    status: int = 200


@dataclass(frozen=True, slots=True)
class Refused:
    """Outcome: an HTTP error without a JSON-RPC message."""

    status: int


@dataclass(frozen=True, slots=True)
class SessionLost:
    """Outcome: the server does not know our session any more."""


Outcome = Answered | Refused | SessionLost


@dataclass(frozen=True, slots=True)
class Heard:
    """What a message or batch of the server held for us."""

    answer: Response | ErrorResponse | None
    replies: tuple[bytes, ...]  # to be sent back
    changed: bool  # the tools are others now


def changes_tools(message: jsonrpc.Message) -> bool:
    """Say whether the server tells that its list of tools is another now."""
    return isinstance(message, Notification) and message.method == LIST_CHANGED


def changes_lists(message: jsonrpc.Message) -> bool:
    """Say whether the server tells that what it lists, tools or other things, is another now."""
    return isinstance(message, Notification) and message.method in LISTS_CHANGED


def reply(request: Request) -> bytes:
    """Return our answer to a server's request: a ping is answered; we announced nothing else, so there is nothing else."""
    if request.method == "ping":
        return jsonrpc.response(request.id, {})
    return jsonrpc.error(request.id, jsonrpc.METHOD_NOT_FOUND, "agentsh-net only lists tools")


def quoted(text: Any) -> str:
    """Return a peer's text as one bounded line without anything invisible: it ends up in logs and terminals."""
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text)[:QUOTE])
    return f'"{line}"' + (" (cut)" if len(str(text)) > QUOTE else "")


def failure(asked: str, error: ErrorResponse) -> ProtocolError:
    """Return the server's own error as ours."""
    return ProtocolError(
        f"{asked} failed: the server says {quoted(error.message)} ({error.code})", status=502
    )


def refusal(asked: str, status: int) -> ProtocolError:
    """Return an HTTP refusal as an error that says what may mend it."""
    remedy = {
        401: ": declare the credential in `headers`, or in gateway.servers",
        403: ": the credential in `headers` is not accepted, or the origin is not",
        404: ": check the path of `url`",
        405: ": check the path of `url` and the declared type (http or sse)",
    }.get(status, "")
    return ProtocolError(f"{asked} was refused with HTTP {status}{remedy}", status=502)
