"""The nouns everything else speaks of: servers, tools, calls, verdicts. Frozen values without behaviour of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from agentsh_net.core.mcp.params import Mirrored
from agentsh_net.core.trust.outline import NOTHING, Outline


class Action(StrEnum):
    """What is done with a call or a connection."""

    ALLOW = "allow"
    BLOCK = "block"


class Transport(StrEnum):
    """How an MCP server is reached (the `type` of a declared server)."""

    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


class PinState(StrEnum):
    """How what is offered stands to what was trusted."""

    TRUSTED = "trusted"
    NEW = "new"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Server:
    """A declared MCP server. `host` and `port` are set for network transports only."""

    id: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)  # secrets, as are the headers
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls_fingerprint: str = ""
    pin_tls: bool = True  # the certificate is pinned at first sight
    pin_binary: bool = False  # so is the program that a shim starts
    host: str = ""
    port: int = 0
    source: str = ""  # the file the declaration came from


@dataclass(frozen=True, slots=True)
class Candidate:
    """One (server, tool) that a name may mean; `tool_hash` is empty while the tool has not been seen."""

    server_id: str
    tool: str
    tool_hash: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a request showed a name to be: registered tools that it describes, or (`altered`: in what) something else than they are."""

    candidates: tuple[Candidate, ...] = ()
    altered: str = ""

    def with_(self, other: Shown) -> Shown:
        """Return what both say."""
        return Shown((*self.candidates, *other.candidates), self.altered or other.altered)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a server was seen to offer; `hash` is the canonical hash of its whole definition."""

    server_id: str
    name: str
    hash: str
    definition: Mapping[str, Any] = field(default_factory=dict)
    max_severity: str = ""  # the worst finding of the detectors that read this definition; empty: none
    outline: Outline = NOTHING  # what a model reads of it, as hashes
    shadows: bool = False  # it gives orders about another server's tool, or its name passes for one
    mirrored: Mirrored = ()  # arguments that calls over HTTP repeat as header fields


class Kept(NamedTuple):
    """A refused call that its provider keeps, and waits for the result of."""

    places: tuple[str, ...]  # from which a conversation goes on: ids of the answer and of the conversation
    result: Mapping[str, Any]  # that it was refused, as a request brings it
    stand_in: str = ""  # the id of what the client got instead, where it may repeat that
    item: Mapping[str, Any] | None = None  # the call as a request repeats it, or refers to it


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it. `input` is the parsed arguments, or the raw text where they do not parse."""

    name: str
    call_id: str = ""
    input: Any = None
    namespace: str = ""  # Codex writes the server here
    server_name: str = ""  # Anthropic mcp_tool_use writes the server here
    toolset: str = ""  # Anthropic's clients look the name up in this family of tools (`computer`, `browser`)
    dialect: str = ""
    flaw: str = ""  # why clients could read something else out of its bytes: policy refuses it for that
    ordinal: int = 0  # which call of its answer this is, from 1; 0: nobody counted
    shown: Shown | None = None  # what the request that is answered showed the name to be
    doubt: str = ""  # why nobody can tell what its arguments say, though the call itself is certain
    hypothetical: bool = False  # what some client might read: it is judged, and nothing is charged
    # Read again from where the provider keeps it, each time it is asked: nothing is charged.
    stored: bool = False
    kept: Kept | None = field(default=None, compare=False, repr=False)
    inner: tuple[ToolCall, ...] | None = None  # the calls in its arguments, where somebody looked

    @property
    def key(self) -> str:
        """Return what tells this call from every other of its answer: ids may repeat, or be missing. See `call_id_of`."""
        return f"{self.ordinal}:{self.call_id}" if self.ordinal else self.call_id


def call_id_of(key: str) -> str:
    """Return the id in a call's key, as the model wrote it."""
    ordinal, colon, call_id = key.partition(":")
    return call_id if colon and ordinal.isdecimal() else key


@dataclass(frozen=True, slots=True)
class Crossing:
    """What a session rule over several servers has against a call; `related` are the calls that led to it, as events list them."""

    rule: str  # shadowing | read_then_send | flow | burst
    severity: str
    reason: str
    related: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with its reason. `would` is what policy decided where audit mode did otherwise."""

    action: Action
    reason: str
    rule: str = ""
    would: Action | None = None
    candidates: tuple[Candidate, ...] = ()
    crossing: Crossing | None = None  # the session rule that decided, if one did
    steered: bool = False  # a block that the client may get as a call of no tool (`block_mode: steer`)

    @property
    def blocked(self) -> bool:
        """Say whether the call must not reach the agent."""
        return self.action is Action.BLOCK

    @property
    def denied(self) -> bool:
        """Say whether policy decided against it, be it enforced or only watched."""
        return Action.BLOCK in (self.action, self.would)
