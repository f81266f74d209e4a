"""The events of a Bedrock Converse stream: what one says, and how one is written, as a message or (Nova, invoked directly) in a chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agentsh_net.core.dialects.bedrock.calls import CARRIERS, OPAQUE, TOOL_USE, Rulings, flaw_of
from agentsh_net.core.dialects.block_stream import Event, Part, Words
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.framing import event_stream
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.values.json_splice import splice
from agentsh_net.core.values.members import clash_of, find, folded, plain, twice
from agentsh_net.core.values.strict_json import Path, Reading, dump

_JSON: Final = "application/json"

# Writes an event of a kind with a payload.
Make = Callable[[str, Mapping[str, Any]], bytes]


_PARTS: Final = {
    "contentblockstart": Part.START, "contentblockdelta": Part.DELTA, "contentblockstop": Part.STOP, "messagestop": Part.END,
}  # fmt: skip


def message(kind: str, payload: bytes) -> bytes:
    """Return an event as a message."""
    headers = {":event-type": kind, ":content-type": _JSON, ":message-type": "event"}
    return event_stream.make(headers, payload)


def make(kind: str, value: Mapping[str, Any]) -> bytes:
    """Return an event of a Converse stream."""
    return message(kind, dump(dict(value)).encode())


def error(text: str) -> bytes:
    """Return the message that ends a stream with an error, at which the SDKs raise."""
    headers = {
        ":exception-type": "internalServerException",
        ":content-type": _JSON,
        ":message-type": "exception",
    }
    return event_stream.make(headers, dump({"message": text}).encode())


def put(frame: Frame, payload: bytes) -> bytes:
    """Return the bytes of a message with another payload; its headers stay."""
    return event_stream.with_payload(frame.raw, payload)


def read(kind: str, reading: Reading, prefix: Path) -> Event:
    """Return the event in a payload; `prefix` leads to it where a chunk wraps it."""
    root: Any = reading.value
    for step in prefix:
        root = root[step]
    value = folded(root)
    start, delta = folded(value.get("start")), folded(value.get("delta"))
    call, piece = start.get("tooluse"), delta.get("tooluse")
    literal = {plain(key) for key in reading.duplicates}
    flaw = clash_of(literal) if call is not None or piece is not None else ""
    alike: set[str] = set()  # but for their case: of each only the last was looked into
    for part in (root, value.get("start"), value.get("delta")):
        if isinstance(part, dict) and (clash := twice(part)):
            alike |= clash
            flaw = flaw or clash_of(clash)
    if call is not None and (piece is not None or plain(kind) != "contentblockstart"):
        flaw = flaw or "the event's type and its content differ"
    if piece is not None and plain(kind) != "contentblockdelta":
        flaw = flaw or "the event's type and its content differ"
    known = [("start", "tooluse"), ("delta", "tooluse")]
    elsewhere = [m for m in find(root, TOOL_USE, OPAQUE) if tuple(map(plain, map(str, m.path))) not in known]
    clashes = (alike | literal) & CARRIERS
    index = value.get("contentblockindex")
    if call is not None:
        flaw = flaw or flaw_of(call)
    return Event(
        part=_PARTS.get(plain(kind), Part.OTHER),
        index=index if type(index) is int and index >= 0 else None,
        call=call,
        piece=piece,
        flaw=flaw,
        hidden=bool(elsewhere) or (bool(clashes) and call is None and piece is None),
        text=folded(piece).get("input"),
        given=folded(call).get("input"),
        reason=_reason(root, prefix),
    )


def words(rulings: Rulings, write: Make, put_: Callable[[Frame, bytes], bytes]) -> Words:
    """Return what the machine has to know; `write` makes an event, `put_` puts other data into a frame."""

    def notice(index: int, told: str) -> tuple[bytes, bytes]:
        return (
            write("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": told}}),
            write("contentBlockStop", {"contentBlockIndex": index}),
        )

    def rest(frame: Frame, _: Reading, event: Event, __: Output) -> bytes:
        """Say why the answer ended: it must not announce calls that the client did not get."""
        if event.reason is None or not rulings.ends_turn:
            return frame.raw
        return put_(frame, splice(frame.data or b"", {event.reason: "end_turn"}))

    return Words(read, notice, rest)


def _reason(root: Any, prefix: Path) -> Path | None:
    for key in root if isinstance(root, dict) else ():
        if plain(key) == "stopreason" and root[key] == "tool_use":
            return (*prefix, key)
    return None
