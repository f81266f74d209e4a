"""The client's side of an MCP conversation as a table: find the era, shake hands, list the tools, listen for changes.

Commands out, outcomes in; which transport carries them (Streamable HTTP, HTTP+SSE, stdio) is the shell's business,
and so are HTTP headers (`http_rules`) and time. Revisions: modelcontextprotocol.io/specification/<date>.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentsh_net import __version__
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.exchange import (
    LEGACY,
    MODERN,
    Answered,
    Ask,
    Command,
    FallBack,
    Heard,
    Listing,
    Outcome,
    Refused,
    SessionLost,
    Tell,
    changes_lists,
    failure,
    quoted,
    refusal,
    reply,
)
from agentsh_net.core.mcp.jsonrpc import Body, ErrorResponse, Notification, Request, Response
from agentsh_net.core.mcp.pages import PageLimits, Pages
from agentsh_net.core.trust import definitions

MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
MODERN_ERRORS = frozenset((jsonrpc.HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION))

META = "io.modelcontextprotocol/"
CLIENT_INFO = {"name": "agentsh-net", "version": __version__}


class Phase(StrEnum):
    """Where the conversation is; the value completes the sentence "no answer while ..."."""

    CLOSED = "connecting"
    PROBING = "asking server/discover"
    INITIALIZING = "asking initialize"
    LISTING = "asking tools/list"
    READY = "ready"


@dataclass(slots=True)
class Conversation:
    """One conversation with one server. `probe`: the peer may be modern; `may_fall_back`: it may be HTTP+SSE."""

    probe: bool = True
    may_fall_back: bool = False
    limits: PageLimits = field(default_factory=PageLimits)
    phase: Phase = Phase.CLOSED
    version: str = ""
    instructions: str = ""
    server_info: Mapping[str, Any] = field(default_factory=dict)
    lists: tuple[str, ...] = ()  # methods that list what the server announced besides tools
    _has_tools: bool = True
    _last_id: int = 0
    _pages: Pages | None = None
    _second_probe: bool = False
    _session_renewed: bool = False

    def begin(self) -> Command:
        """Begin a listing: with the handshake if there is none yet; modern servers are asked anew who they are."""
        self._session_renewed = self._second_probe = False
        if self.version and self.version != MODERN:
            return self._list(None)
        return self._discover() if self.probe else self._initialize()

    def fell_back(self) -> Command:
        """Go on after FallBack, on HTTP+SSE."""
        self.probe = self.may_fall_back = False
        return self._initialize()

    def feed(self, outcome: Outcome) -> tuple[Command, ...]:
        """Take the outcome of the last Ask. Raises ProtocolError where the conversation cannot go on."""
        match self.phase:
            case Phase.PROBING:
                return self._probed(outcome)
            case Phase.INITIALIZING:
                return self._initialized(outcome)
            case Phase.LISTING:
                return self._listed(outcome)
            case Phase.CLOSED | Phase.READY:
                raise ProtocolError(f"{type(outcome).__name__} while nothing was asked", status=502)

    def listen(self) -> Ask:
        """Return the request whose answer is the modern stream of changes (subscriptions/listen)."""
        of = {"toolsListChanged": True} | {
            f"{method.split('/')[0]}ListChanged": True for method in self.lists
        }
        return self._ask("subscriptions/listen", {"notifications": of})

    def others(self, method: str, cursor: str | None) -> Ask:
        """Return the request for a page of what the server lists besides tools; what comes of it is not to be fed."""
        return self._ask(method, {} if cursor is None else {"cursor": cursor})

    def hear(self, body: Body, awaited: int | None) -> Heard:
        """Sort what the server sent: the answer awaited, requests of its own to be answered, news of its tools.

        Raises ProtocolError for an answer to a request that nobody made, and for a request where the revision has none.
        """
        answer: Response | ErrorResponse | None = None
        replies: list[bytes] = []
        changed = False
        for message in body.messages:
            match message:
                case Request() if self.version == MODERN:
                    raise ProtocolError(
                        f"the server sends a request, which {MODERN} does not know", status=502
                    )
                case Request():
                    replies.append(reply(message))
                case Notification():
                    changed = changed or changes_lists(message)
                case Response() | ErrorResponse():
                    if answer is None and awaited is not None and _answers(message, awaited):
                        answer = message
                    elif not self._asked_before(message):
                        raise ProtocolError(
                            f"the server answers request {quoted(repr(message.id))}, which nobody made",
                            status=502,
                        )
        return Heard(answer, tuple(replies), changed)

    def _asked_before(self, message: Response | ErrorResponse) -> bool:
        """Say whether this answers an older request of ours, one that was given up."""
        return isinstance(message.id, int) and 0 < message.id <= self._last_id

    def _ask(self, method: str, params: dict[str, Any]) -> Ask:
        self._last_id += 1
        if self.version == MODERN:
            params = params | {"_meta": envelope()}
        return Ask(self._last_id, method, jsonrpc.request(self._last_id, method, params), self.version)

    def _discover(self) -> Command:
        self.phase, self.version = Phase.PROBING, MODERN
        return self._ask("server/discover", {})

    def _initialize(self) -> Command:
        self.phase, self.version = Phase.INITIALIZING, ""
        offer = {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": CLIENT_INFO}
        return self._ask("initialize", offer)

    def _list(self, cursor: str | None) -> Command:
        if cursor is None:
            self._pages = Pages(self.limits)
        self.phase = Phase.LISTING
        return self._ask("tools/list", {} if cursor is None else {"cursor": cursor})

    def _probed(self, outcome: Outcome) -> tuple[Command, ...]:
        match outcome:
            case Answered(Response(result=result)) if MODERN in _supported(result, "supportedVersions"):
                meta = result.get("_meta")
                self._learn(result, meta.get(META + "serverInfo") if isinstance(meta, dict) else None)
                return (self._list(None),)
            case Answered(ErrorResponse(code=code, data=data) as error) if code in MODERN_ERRORS:
                supported = _supported(data, "supported")
                if code != UNSUPPORTED_VERSION or (supported and supported.isdisjoint(LEGACY)):
                    raise failure("server/discover", error)
        return (self._initialize(),)

    def _initialized(self, outcome: Outcome) -> tuple[Command, ...]:
        match outcome:
            case Answered(Response(result=dict(result))):
                version = result.get("protocolVersion")
                if version not in LEGACY:
                    raise ProtocolError(
                        f"the server answers initialize with revision {quoted(version)}; known: {', '.join(LEGACY)}",
                        status=502,
                    )
                self.version = version
                self._learn(result, result.get("serverInfo"))
                ready = Tell(
                    "notifications/initialized", jsonrpc.notification("notifications/initialized"), version
                )
                return ready, self._list(None)
            case Answered(ErrorResponse(code=code, data=data)) if (
                code == UNSUPPORTED_VERSION
                and MODERN in _supported(data, "supported")
                and not self._second_probe
            ):
                # The probe was too early, or lost: the server says that it is modern.
                self._second_probe = True
                return (self._discover(),)
            case Answered(ErrorResponse() as error, _, status) if (
                status in (400, 404, 405) and self.may_fall_back
            ):
                return (FallBack(str(failure("initialize", error))),)
            case Answered(ErrorResponse() as error):
                raise failure("initialize", error)
            case Refused(status) if status in (400, 404, 405) and self.may_fall_back:
                return (FallBack(str(refusal("initialize", status))),)
            case Refused(status):
                raise refusal("initialize", status)
        raise ProtocolError("initialize answered something that is not an object", status=502)

    def _listed(self, outcome: Outcome) -> tuple[Command, ...]:
        match outcome:
            case Answered(Response(result=result), size) if self._pages is not None:
                cursor = self._pages.add(result, size)
                return (self._list(cursor),) if cursor is not None else (self._done(self._pages.tools),)
            case Answered(ErrorResponse(code=jsonrpc.METHOD_NOT_FOUND)) if not self._has_tools:
                return (self._done([]),)
            case Answered(ErrorResponse() as error):
                raise failure("tools/list", error)
            case SessionLost() if not self._session_renewed:
                self._session_renewed = True
                return (self._initialize(),)
            case Refused(status):
                raise refusal("tools/list", status)
        raise ProtocolError("the server loses its session again and again", status=502)

    def _learn(self, result: Mapping[str, Any], server_info: Any) -> None:
        instructions, capabilities = result.get("instructions"), result.get("capabilities")
        self.instructions = instructions if isinstance(instructions, str) else ""
        self.server_info = server_info if isinstance(server_info, dict) else {}
        # a server that does not announce tools is asked all the same: an agent's client might
        self._has_tools = not isinstance(capabilities, dict) or "tools" in capabilities
        announced = capabilities if isinstance(capabilities, dict) else {}
        self.lists = tuple(method for method in definitions.KINDS if method.split("/")[0] in announced)

    def _done(self, tools: list[Mapping[str, Any]]) -> Listing:
        self.phase, self._pages = Phase.READY, None
        return Listing(tuple(tools), self.instructions, self.server_info, self.version)


def envelope() -> dict[str, Any]:
    """Return what a modern request carries in place of a handshake."""
    return {
        META + "protocolVersion": MODERN,
        META + "clientInfo": CLIENT_INFO,
        META + "clientCapabilities": {},
    }


def _supported(holder: Any, key: str) -> set[str]:
    """Return the revisions a server says it knows."""
    named = holder.get(key) if isinstance(holder, dict) else None
    return {v for v in named if isinstance(v, str)} if isinstance(named, list) else set()


def _answers(message: Response | ErrorResponse, awaited: int) -> bool:
    """Say whether this is the answer: recognised by the id we sent, or an error from who could not read our id."""
    return jsonrpc.same_id(message.id, awaited) or (isinstance(message, ErrorResponse) and message.id is None)
