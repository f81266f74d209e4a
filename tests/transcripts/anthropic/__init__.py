"""Anthropic streams in the API's published shape, their building blocks, and a way to run them through the dialect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transcripts.playing import Denying, Result, cut_at, denying, every_chunking, runner

from agentsh_net.core.dialects.anthropic.dialect import DIALECT

__all__ = ["Denying", "Result", "cut_at", "denying", "every_chunking"]

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.sse"))


def load(name: str) -> bytes:
    """Return a transcript."""
    return (HERE / f"{name}.sse").read_bytes()


def event(kind: str, **fields: Any) -> bytes:
    """Return an event as the API writes it."""
    return raw(kind, json.dumps({"type": kind} | fields))


def raw(name: str, data: str) -> bytes:
    """Return a frame with any data."""
    return f"event: {name}\ndata: {data}\n\n".encode("utf-8", "surrogatepass")


def begin(*content: Any) -> bytes:
    """Return a message_start."""
    message = {
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-test", "content": list(content),
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
    }  # fmt: skip
    return event("message_start", message=message)


def start(index: Any, **block: Any) -> bytes:
    """Return a content_block_start."""
    return event("content_block_start", index=index, content_block=block)


def delta(index: Any, **fields: Any) -> bytes:
    """Return a content_block_delta."""
    return event("content_block_delta", index=index, delta=fields)


def stop(index: Any) -> bytes:
    """Return a content_block_stop."""
    return event("content_block_stop", index=index)


def arguments(index: Any, part: str) -> bytes:
    """Return a piece of a call's input."""
    return delta(index, type="input_json_delta", partial_json=part)


def text(index: int, *parts: str) -> bytes:
    """Return a whole text block."""
    return (
        start(index, type="text", text="")
        + b"".join(delta(index, type="text_delta", text=part) for part in parts)
        + stop(index)
    )


def call(
    index: int, name: str, value: Any = None, *, call_id: str = "", kind: str = "tool_use", **more: Any
) -> bytes:
    """Return a whole call, its input in pieces of three characters."""
    spelled = json.dumps({} if value is None else value)
    return (
        start(index, type=kind, id=call_id or f"toolu_{index}", name=name, input={}, **more)
        + b"".join(arguments(index, spelled[at : at + 3]) for at in range(0, len(spelled), 3))
        + stop(index)
    )


def end(reason: str | None = "tool_use") -> bytes:
    """Return message_delta and message_stop."""
    return (
        event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 9})
        + event("message_stop")
    )  # fmt: skip


def refused(index: int, name: str, reason: str = "denied") -> bytes:
    """Return the text block that stands where a refused call stood."""
    notice = f"[agentsh] Tool '{name}' blocked by policy: {reason}"
    parts = (
        ("content_block_start", {"index": index, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": index, "delta": {"type": "text_delta", "text": notice}}),
        ("content_block_stop", {"index": index}),
    )
    return b"".join(
        f"event: {kind}\ndata: {json.dumps({'type': kind} | rest, separators=(',', ':'))}\n\n".encode()
        for kind, rest in parts
    )


run = runner(DIALECT, Result)
