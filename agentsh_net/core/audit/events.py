"""One dataclass per event type: what the audit trail, `--jsonl` and the CLI all speak.

`id` and `timestamp` are stamped by the shell that emits (ids are time-ordered, timestamps RFC 3339 UTC with microseconds).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Self

DEFAULT_SESSION = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event carries. `would` is set only where audit mode let pass what policy would block."""

    type: ClassVar[str] = ""

    id: str = ""
    timestamp: str = ""
    session_id: str = DEFAULT_SESSION
    action: str = "allow"
    would: str | None = None
    reason: str = ""
    rule: str = ""

    def stamped(self, *, id: str, timestamp: str) -> Self:  # noqa: A002 - the field's name
        """Return a copy with its identity; a timestamp that is already set (by who saw it happen) is kept."""
        return replace(self, id=id, timestamp=self.timestamp or timestamp)

    def to_json(self) -> dict[str, Any]:
        """Return the event as a JSON object, `id`, `type` and `timestamp` first."""
        value = {"id": self.id, "type": self.type, "timestamp": self.timestamp}
        for name in _further_fields(type(self)):  # type: ignore[arg-type] # mypy takes the hash of events for that of their types
            value[name] = getattr(self, name)
        return value

    def to_stamped_json(self, *, id: str, timestamp: str) -> dict[str, Any]:  # noqa: A002 - the field's name
        """Return what `stamped` and `to_json` do together, at half their price: the daemon does it for every call."""
        return {**self.to_json(), "id": id, "timestamp": self.timestamp or timestamp}


@cache
def _further_fields(kind: type[Event]) -> tuple[str, ...]:
    """Return the fields of an event type besides its identity."""
    return tuple(f.name for f in fields(kind) if f.name not in {"id", "timestamp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallIntercepted(Event):
    """The LLM proxy saw a tool call in a model's answer and judged it."""

    type = "mcp_tool_call_intercepted"
    request_id: str = ""
    dialect: str = ""
    tool_name: str = ""  # as the model wrote it
    tool_call_id: str = ""
    input: Any = None
    server_id: str = ""
    server_type: str = ""
    server_addr: str = ""
    tool_hash: str = ""
    candidates: list[dict[str, Any]] = field(default_factory=list)
    detections: list[dict[str, Any]] = field(default_factory=list)  # in the arguments
    max_severity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(Event):
    """The shim or the gateway saw a tools/call on the wire."""

    type = "mcp_tool_called"
    server_id: str = ""
    tool_name: str = ""
    jsonrpc_id: Any = None
    input: Any = None
    via: str = ""  # shim | gateway
    tool_hash: str = ""
    tool_call_id: str = ""  # of the call in the model's answer that this one carries out, where it was seen
    intercepted_id: str = ""  # the id of the event that tells of it
    detections: list[dict[str, Any]] = field(default_factory=list)  # in the arguments
    max_severity: str = ""
    pid: int = 0  # of who asked for it at the shim's socket
    uid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultInspected(Event):
    """A tool's result went through the detectors, or what else a server gave to read and they found something in."""

    type = "mcp_tool_result_inspected"
    server_id: str = ""
    tool_name: str = ""
    method: str = ""  # resources/read and the like, where no tool was called
    subject: str = ""  # the resource or prompt that was asked for
    jsonrpc_id: Any = None
    detections: list[dict[str, Any]] = field(default_factory=list)
    max_severity: str = ""
    content_length: int = 0
    via: str = ""  # shim | gateway
    pid: int = 0  # as of the call


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(Event):
    """A process connected, or tried to, to where a plane looks; `type` says what is there."""

    remote_addr: str = ""  # host:port, IPv6 in brackets
    layer: str = ""  # ebpf | nftables | sweep | proxy
    pid: int = 0
    comm: str = ""
    exe: str = ""
    cgroup: str = ""
    container_id: str = ""
    uid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConnection(Connection):
    """A process connected, or tried to connect, to the address of an MCP server."""

    type = "mcp_network_connection"
    remote_host: str = ""
    server_id: str = ""
    server_type: str = ""
    candidates: list[str] = field(default_factory=list)
    family: str = ""  # inet | inet6
    protocol: str = ""  # tcp | udp | ...
    sni: str = ""
    correlated: bool = False  # a tool call of the same session to the same server explains it


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSeen(Event):
    """A server offered a tool for the first time."""

    type = "mcp_tool_seen"
    server_id: str = ""
    tool_name: str = ""
    tool_hash: str = ""
    previous_hash: str = ""
    changes: list[dict[str, Any]] = field(default_factory=list)
    detections: list[dict[str, Any]] = field(default_factory=list)
    max_severity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChanged(ToolSeen):
    """A tool's definition is not the one that was known."""

    type = "mcp_tool_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRemoved(ToolSeen):
    """A server no longer offers a tool."""

    type = "mcp_tool_removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSeen(Event):
    """A server's certificate, binary, instructions, prompts or resources were seen for the first time."""

    type = "mcp_server_seen"
    server_id: str = ""
    aspect: str = ""  # tls | binary | instructions | prompts | resources | resource_templates
    digest: str = ""
    previous_digest: str = ""
    changes: list[dict[str, Any]] = field(default_factory=list)
    # In prompts and resources that are new or others.
    detections: list[dict[str, Any]] = field(default_factory=list)
    max_severity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAltered(ToolSeen):
    """A request showed the model another definition of a tool (`tool_hash`) than its server gives (`previous_hash`)."""

    type = "mcp_tool_altered"
    dialect: str = ""
    shown_name: str = ""  # the name that the model was given


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChanged(ServerSeen):
    """A server's certificate, binary, instructions, prompts or resources are not what was trusted."""

    type = "mcp_server_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequest(Event):
    """A server asked the client for something, or said that its tools changed; `type` says which."""

    server_id: str = ""
    jsonrpc_id: Any = None
    detail: str = ""
    detections: list[dict[str, Any]] = field(default_factory=list)  # in what it asks
    max_severity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRequest(ServerRequest):
    """A server asked the client to sample its model."""

    type = "mcp_sampling_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElicitationRequest(ServerRequest):
    """A server asked the user for input."""

    type = "mcp_elicitation_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsListChanged(ServerRequest):
    """A server said that its list of tools changed."""

    type = "mcp_tools_list_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageUninspected(Event):
    """A message between an MCP client and a server passed, or was cut, because it could not be read for certain."""

    type = "mcp_message_uninspected"
    server_id: str = ""
    via: str = ""  # shim | gateway
    sender: str = ""  # client | server
    cause: str = ""  # malformed | hostile | too_long
    size: int = 0  # bytes
    detections: list[dict[str, Any]] = field(default_factory=list)  # in what a lenient reader makes of it
    max_severity: str = ""
    pid: int = 0
    uid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRefused(Event):
    """A client asked something else than a call of a server that policy denies, and the server does not hear of it."""

    type = "mcp_server_refused"
    server_id: str = ""
    via: str = ""  # shim | gateway
    method: str = ""
    pid: int = 0
    uid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStopped(Event):
    """A server was in use when policy came to deny it: it was ended, and what its clients waited for was refused."""

    type = "mcp_server_stopped"
    server_id: str = ""
    via: str = ""  # shim | gateway
    sessions: int = 0  # that ended with it
    requests: int = 0  # that were in flight
    pid: int = 0
    uid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossServerBlocked(Event):
    """A session rule over several servers stopped a call."""

    type = "mcp_cross_server_blocked"
    severity: str = ""
    related_calls: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRequest(Event):
    """A request asked the LLM provider to call an MCP server by itself."""

    type = "mcp_connector_request"
    dialect: str = ""
    server_url: str = ""
    server_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDirectConnection(Connection):
    """A process talked to an LLM provider around the proxy."""

    type = "llm_direct_connection"
    provider: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndeclaredConnection(Connection):
    """A session connected, or tried to, where nothing is declared (`network.egress`)."""

    type = "undeclared_connection"
    family: str = ""  # inet | inet6
    protocol: str = ""  # tcp | udp | ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseUninspected(Event):
    """Something passed, or was cut, because it could not be read: `cause` says what, `detail` where."""

    type = "llm_response_uninspected"
    request_id: str = ""
    dialect: str = ""
    cause: str = ""  # malformed_json | frame_too_long | invalid_utf8 | unknown_encoding | body_too_large | unknown_dialect | ...
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRedacted(Event):
    """A request left without what DLP found in it: how many of what kind, never what."""

    type = "llm_request_redacted"
    dialect: str = ""
    mode: str = ""  # redact | tokenize
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimited(Event):
    """A request was refused because the provider's limits (`proxy.providers.<name>.limits`) were used up."""

    type = "llm_request_limited"
    provider: str = ""
    dialect: str = ""
    retry_after: int = 0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReloaded(Event):
    """A new policy is in force in every layer."""

    type = "policy_reloaded"
    generation: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRejected(Event):
    """A new policy was refused and the old one stays in force."""

    type = "policy_rejected"
    generation: int = 0
    digest: str = ""
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerStateChanged(Event):
    """A layer came into force, went out of force, or was tampered with."""

    type = "layer_state_changed"
    layer: str = ""
    state: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsLost(Event):
    """Events that could not be recorded, counted; the verdicts they would have told of stood all the same."""

    type = "events_lost"
    layer: str = ""
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStarted(Event):
    """The daemon is ready: what is in force is in force."""

    type = "daemon_started"
    generation: int = 0
    digest: str = ""
    version: str = ""
    layers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonStopped(Event):
    """The daemon stopped in good order."""

    type = "daemon_stopped"
    layers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerExited(Event):
    """A proxy worker died and was replaced; its open streams ended, the kernel's enforcement did not."""

    type = "worker_exited"
    pid: int = 0
    status: str = ""
