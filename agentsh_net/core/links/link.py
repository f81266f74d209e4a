"""What supervisor and workers say to each other: length-prefixed JSON messages, bounded, each a dataclass.

Pure framing and shapes. Sockets, processes and what a message leads to are not its business. A worker parses network
bytes, so the supervisor takes nothing a worker says on trust: `decode_from_worker` checks every type and bound.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import orjson

from agentsh_net.core.audit import event_types, events, refusals
from agentsh_net.core.errors import ProtocolError

_LENGTH = struct.Struct("!I")
# A snapshot holds every tool definition seen; a thousand tools of 10 KiB fit six times over.
MAX_TO_WORKER = 64 << 20
# A server's whole list of tools (discovery reads at most 16 MiB of it) as JSON again; a batch of events stays far below.
MAX_FROM_WORKER = 24 << 20
MAX_EVENTS = 512  # in one message
MAX_INPUT = 64 << 10  # bytes of a call's arguments kept in an event
MAX_TEXT = 8 << 10  # characters of any other text in an event: model-written names can be long
MAX_CHARGE = 16 << 10  # one question about a call, or its answer: a handful of names, cut at MAX_CHARGE_NAME
# Totals of a worker: a few dozen, two histograms and the reasons why answers passed unread.
MAX_COUNTERS = 256
COUNTERS_EVERY = 2.0  # seconds between a worker's words that it lives
# Seconds; a first token takes half of one, a long answer minutes. What a local error takes is the first.
LATENCY_BOUNDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
MAX_TOKENS = 10**9  # of one request, in a question about a provider's limits
# Characters of what is told of a refused call, as ASCII: a question may escape each of them.
MAX_TOLD = 7 << 10
MAX_CHARGE_NAME = 512  # characters; real names of tools, sessions and calls have at most 128

WORKER_EVENTS: tuple[type[events.Event], ...] = (
    events.ToolCallIntercepted,
    events.ResponseUninspected,
    events.RequestRedacted,
    events.RequestLimited,
    refusals.RequestRefused,
    events.ConnectorRequest,
    events.ToolAltered,
    events.EventsLost,
    events.CrossServerBlocked,
    # and of the MCP gateway
    events.ToolCalled,
    events.ToolResultInspected,
    events.SamplingRequest,
    events.ElicitationRequest,
    events.ToolsListChanged,
    events.MessageUninspected,
    events.ServerRefused,
    refusals.McpRequestRefused,
    events.ServerStopped,
    events.NetworkConnection,  # of its own alone
)


@dataclass(frozen=True, slots=True)
class Apply:
    """Supervisor to worker: judge by this snapshot from now on (`core.snapshot.encode`)."""

    seq: int
    snapshot: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Supervisor to worker: the sessions there are, sha256 of the token (hex) to session id; `placed`: some have a cgroup."""

    seq: int
    sessions: Mapping[str, str]
    placed: bool = False


@dataclass(frozen=True, slots=True)
class Relist:
    """Supervisor to worker: ask every server again what it offers."""

    seq: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Supervisor to worker: accept no more, end within so many seconds."""

    seq: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Ack:
    """Worker to supervisor: message `seq` is in force here; `generation` is the snapshot judged by."""

    seq: int
    generation: int


@dataclass(frozen=True, slots=True)
class Events:
    """Worker to supervisor: what was seen, in order."""

    events: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Counters:
    """Worker to supervisor: totals since the worker started."""

    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Report:
    """Worker to supervisor: what discovery says of a server (`agentsh_proxy.mcp_client.discovery`)."""

    report: Mapping[str, Any]


ToWorker = Apply | Sessions | Relist | Drain
FromWorker = Ack | Events | Counters | Report


class Framer:
    """Bytes to messages: a 4-byte length, then that many bytes of JSON. Bounded by `max_message`."""

    __slots__ = ("_buffer", "_max_message")

    def __init__(self, max_message: int) -> None:
        self._max_message = max_message
        self._buffer = bytearray()

    @property
    def waiting(self) -> int:
        """How many bytes wait for the rest of their message."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes and return the messages that are complete. Raises ProtocolError for one above the bound."""
        self._buffer += data
        messages: list[bytes] = []
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if length > self._max_message:
                raise ProtocolError(
                    f"a message of {length} bytes on the link; the bound is {self._max_message}"
                )
            end = start + _LENGTH.size + length
            if len(self._buffer) < end:
                break
            messages.append(bytes(self._buffer[start + _LENGTH.size : end]))
            start = end
        del self._buffer[:start]
        return messages


def frame(payload: bytes) -> bytes:
    """Return `payload` as it goes over the link."""
    return _LENGTH.pack(len(payload)) + payload


def encode(message: ToWorker | FromWorker) -> bytes:
    """Return a message as it goes over the link, length and all."""
    kind = type(message).__name__.lower()
    return frame(orjson.dumps({"kind": kind} | {f.name: getattr(message, f.name) for f in fields(message)}))


def decode_to_worker(payload: bytes) -> ToWorker:
    """Return what the supervisor said. Raises ProtocolError for anything else."""
    match _object(payload):
        case {"kind": "apply", "seq": int(seq), "snapshot": dict(snapshot)}:
            return Apply(seq, snapshot)
        case {"kind": "sessions", "seq": int(seq), "sessions": dict(sessions), "placed": bool(placed)}:
            return Sessions(seq, sessions, placed)
        case {"kind": "relist", "seq": int(seq)}:
            return Relist(seq)
        case {"kind": "drain", "seq": int(seq), "seconds": int(seconds) | float(seconds)}:
            return Drain(seq, float(seconds))
        case _:
            raise ProtocolError("the supervisor sent a message that is not of this version")


def decode_from_worker(payload: bytes) -> FromWorker:
    """Return what a worker said, its types checked. Raises ProtocolError for anything a sound worker cannot say."""
    match _object(payload):
        case {"kind": "ack", "seq": int(seq), "generation": int(generation)}:
            return Ack(seq, generation)
        case {"kind": "events", "events": list(found)} if len(found) <= MAX_EVENTS:
            return Events(tuple(_mapping(event) for event in found))
        case {"kind": "counters", "counters": dict(counters)} if len(counters) <= MAX_COUNTERS and all(
            type(value) is int for value in counters.values()
        ):
            return Counters(counters)
        case {
            "kind": "report",
            "report": ({"server_id": str(), "ok": bool()} | {"server_id": str(), "listed": dict()}) as report,
        }:
            return Report(report)
        case _:
            raise ProtocolError("a worker sent a message that is not of this version")


def events_of(payload: bytes) -> tuple[Mapping[str, Any], ...]:
    """Return the events in a message of a worker that may hold nothing else. Raises ProtocolError."""
    message = decode_from_worker(payload)
    if not isinstance(message, Events):
        raise ProtocolError("a worker sent something else than events where only events belong")
    return message.events


def event_from_worker(value: Mapping[str, Any]) -> events.Event:
    """Return the event a worker reports. Raises ProtocolError unless it is of a worker's types, typed and bounded."""
    try:
        event = event_types.from_json(value)
    except TypeError as error:
        raise ProtocolError(f"a worker's event is malformed: {error}") from error
    if type(event) not in WORKER_EVENTS:
        raise ProtocolError(f"a worker may not report {event.type}")
    for name, sound in _checks(type(event)):  # type: ignore[arg-type] # mypy takes the hash of events for that of their types
        if not sound(getattr(event, name)):
            raise ProtocolError(f"a worker's {event.type} has an unsound {name}")
    if isinstance(event, events.NetworkConnection) and (event.layer, event.action) != ("proxy", "allow"):
        raise ProtocolError("a worker may not speak for the kernel")
    if event.action not in ("allow", "block"):
        raise ProtocolError(f"a worker's {event.type} has the action {event.action[:20]!r}")
    return event


@cache
def _checks(kind: type[events.Event]) -> tuple[tuple[str, Callable[[Any], bool]], ...]:
    """Return the fields of a kind of events, and what says whether a value is one of theirs; Any is bounded by the message it came in."""
    return tuple((field.name, _SOUND[str(field.type)]) for field in fields(kind) if field.type != "Any")


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _number(value: Any) -> bool:
    return type(value) is int


def _list_of(sound: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and len(value) <= MAX_EVENTS and all(map(sound, value))


def _counts(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MAX_EVENTS
        and all(len(key) <= MAX_TEXT and type(count) is int for key, count in value.items())
    )


# By the type that a field is declared to have; one that is not here is not a worker's to report.
_SOUND: Mapping[str, Callable[[Any], bool]] = {
    "str": _text,
    "str | None": lambda value: value is None or _text(value),
    "int": _number,
    "int | None": lambda value: value is None or _number(value),
    "bool": lambda value: isinstance(value, bool),
    "dict[str, int]": _counts,
    "list[str]": _list_of(_text),
    "list[dict[str, Any]]": _list_of(lambda value: isinstance(value, dict)),
}


def _object(payload: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise ProtocolError(f"a message on the link is not JSON: {error}") from error
    return _mapping(value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ProtocolError("a message on the link is not a JSON object")
    return value
