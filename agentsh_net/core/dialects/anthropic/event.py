"""One event of an Anthropic stream as the most lenient parser reads it, and the frames that replace one.

What an event means among others is `stream`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.dialects.anthropic.blocks import folded, is_call, is_folded, twice, unsure
from agentsh_net.core.dialects.steering import tool_use
from agentsh_net.core.dialects.stray_calls import OF_CHAT, chat_calls
from agentsh_net.core.framing.sse import Frame
from agentsh_net.core.framing.sse_writing import make_frame
from agentsh_net.core.values.members import clash_of
from agentsh_net.core.values.strict_json import Reading, dump


@dataclass(slots=True)  # not frozen: one is made for every event of a call
class Event:
    """The parts of an event that matter. `flaw` says what makes parsers read different events in it."""

    kind: str
    index: int | None  # None: missing, or of a type that parsers coerce differently
    block: Mapping[str, Any]  # the content_block, keys folded
    delta: Mapping[str, Any]  # keys folded
    message: str | None  # the key under which a message with content stands; "" is the event itself
    opens_block: bool  # it brings a content block, or may for some parser
    flaw: str

    @property
    def brings_arguments(self) -> bool:
        """Say whether a client could add this to the input of a call."""
        return _brings_arguments(self.delta)


def read(frame: Frame, reading: Reading) -> Event | None:
    """Return the event in a frame; None where no client would find one (the data is no object)."""
    value = reading.value
    if not isinstance(value, dict):
        return None
    top = value if is_folded(value) else folded(value)
    kind = top.get("type")
    kind = kind.strip().casefold() if isinstance(kind, str) else frame.event
    block, delta = folded(top.get("content_block")), folded(top.get("delta"))
    if reading.duplicates:
        unsure(block)
    message = "message" if isinstance(top.get("message"), dict) else None
    if message is None and isinstance(top.get("content"), list):
        message = ""
    parts = top.get("content_block"), top.get("delta"), top.get("message")
    repeated = twice(value, *parts, duplicates=reading.duplicates)
    hidden = "content_block" in repeated or (
        message is None and not repeated.isdisjoint({"message", "content"})
    )
    flaw = clash_of(repeated)
    if "choices" in top and chat_calls(reading):
        hidden, flaw = True, flaw or OF_CHAT
    if not flaw and (is_call(block) or message is not None or _brings_arguments(delta)):
        carriers = sorted({"content_block", "delta", "message", "content"} & top.keys())
        flaw = f"one event brings {' and '.join(carriers)}" if len(carriers) > 1 else ""
    return Event(
        kind=kind,
        index=_index(top.get("index")),
        block=block,
        delta=delta,
        message=message,
        opens_block=kind == "content_block_start" or bool(block) or hidden,
        flaw=flaw,
    )


def _brings_arguments(delta: Mapping[str, Any]) -> bool:
    return "partial_json" in delta or delta.get("type") == "input_json_delta"


def _index(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JavaScript knows no difference
    return value if type(value) is int and value >= 0 else None


def text_frames(index: int, text: str, make: Callable[[str, bytes], bytes] | None = None) -> bytes:
    """Return a whole text block as three events, each with its own `event:` line (the SDKs skip unnamed events)."""
    make = make or make_frame
    events: tuple[tuple[str, dict[str, Any]], ...] = (
        ("content_block_start", {"index": index, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": index, "delta": {"type": "text_delta", "text": text}}),
        ("content_block_stop", {"index": index}),
    )
    return b"".join(make(name, dump({"type": name} | rest).encode()) for name, rest in events)


def steered_frames(
    index: int, text: str, call_id: Any, make: Callable[[str, bytes], bytes] | None = None
) -> bytes:
    """Return a whole call of no tool as three events."""
    make = make or make_frame
    block = tool_use(text, call_id)
    part = {"type": "input_json_delta", "partial_json": dump(block["input"])}
    events: tuple[tuple[str, dict[str, Any]], ...] = (
        ("content_block_start", {"index": index, "content_block": block | {"input": {}}}),
        ("content_block_delta", {"index": index, "delta": part}),
        ("content_block_stop", {"index": index}),
    )
    return b"".join(make(name, dump({"type": name} | rest).encode()) for name, rest in events)
