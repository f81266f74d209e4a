"""Bedrock answers in the API's published shape, as messages and whole, their building blocks, and ways to run them through the dialect."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from transcripts.gemini import said
from transcripts.playing import Denying, Result, cut_at, denying, every_chunking, runner

from agentsh_net.core.dialects.base import Dialect
from agentsh_net.core.dialects.bedrock.dialect import CONVERSE_STREAM, INVOKE_STREAM
from agentsh_net.core.framing import event_stream
from agentsh_net.core.framing.event_stream import EventStreamDecoder

__all__ = ["Denying", "Result", "cut_at", "denying", "every_chunking", "said"]

WEATHER, DELETE = "mcp__weather__get", "mcp__fs__delete"
DIALECTS: dict[str, Dialect] = {"converse": CONVERSE_STREAM, "invoke": INVOKE_STREAM}


def message(kind: str, payload: Any, **headers: str) -> bytes:
    """Return a message as the service writes it."""
    told = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"} | headers
    data = (
        payload
        if isinstance(payload, bytes)
        else (payload if isinstance(payload, str) else json.dumps(payload)).encode()
    )
    return event_stream.make(told, data)


def exception(kind: str, text: str) -> bytes:
    """Return an exception."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return event_stream.make(headers, json.dumps({"message": text}).encode())


def begin() -> bytes:
    return message("messageStart", {"p": "abcd", "role": "assistant"})


def start(index: Any, name: Any, *, call_id: str = "", **more: Any) -> bytes:
    use = {"name": name, "toolUseId": call_id or f"tooluse_{index}"} | more
    return message("contentBlockStart", {"contentBlockIndex": index, "p": "ab", "start": {"toolUse": use}})


def piece(index: Any, text: Any) -> bytes:
    return message(
        "contentBlockDelta", {"contentBlockIndex": index, "delta": {"toolUse": {"input": text}}, "p": "abc"}
    )


def stop(index: Any) -> bytes:
    return message("contentBlockStop", {"contentBlockIndex": index, "p": "abcdef"})


def say(index: int, text: str) -> bytes:
    return message("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": text}, "p": "x"})


def text(index: int, *parts: str) -> bytes:
    """Return a whole text block: it has no start."""
    return b"".join(say(index, part) for part in parts) + stop(index)


def call(index: int, name: str, value: Any = None, **more: Any) -> bytes:
    """Return a whole call, its input in pieces of three characters."""
    spelled = json.dumps({} if value is None else value)
    parts = (piece(index, spelled[at : at + 3]) for at in range(0, len(spelled), 3))
    return start(index, name, **more) + b"".join(parts) + stop(index)


def end(reason: str = "tool_use") -> bytes:
    return message("messageStop", {"p": "a", "stopReason": reason}) + message(
        "metadata",
        {
            "metrics": {"latencyMs": 1},
            "p": "a",
            "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
        },
    )


def refused(index: int, name: str, reason: str = "denied") -> list[tuple[str, Any]]:
    """Return what stands where a refused call stood."""
    return [
        ("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": said(name, reason)}}),
        ("contentBlockStop", {"contentBlockIndex": index}),
    ]


def chunk(value: Any, **more: Any) -> bytes:
    """Return an event of an invoked model."""
    data = (
        value
        if isinstance(value, bytes)
        else (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass")
    )
    return message("chunk", {"bytes": b64encode(data).decode(), "p": "abcdefgh"} | more)


def wrapped(events: bytes) -> bytes:
    """Return the chunks of an Anthropic stream's events."""
    return b"".join(
        chunk(line.removeprefix(b"data: ")) for line in events.split(b"\n") if line.startswith(b"data: ")
    )


def events(data: bytes) -> list[tuple[str, Any]]:
    """Return the events of a stream: their kinds and payloads."""
    found = []
    for frame in EventStreamDecoder(1 << 24).feed(data):
        assert not frame.flaw
        found.append((frame.event, json.loads(frame.data) if frame.data else None))
    return found


run = runner(CONVERSE_STREAM, Result)
