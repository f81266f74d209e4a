"""Ollama answers in the API's published shape, by lines and whole, their building blocks, and a way to run them through the dialect."""

from __future__ import annotations

import json
from typing import Any

from transcripts.gemini import said
from transcripts.playing import Denying, Result, cut_at, denying, every_chunking, runner

from agentsh_net.core.dialects.ollama.dialect import DIALECT

__all__ = ["Denying", "Result", "cut_at", "denying", "every_chunking", "said"]

WEATHER, DELETE = "mcp__weather__get", "mcp__fs__delete"


def entry(name: str, args: Any = None, **more: Any) -> dict[str, Any]:
    """Return an entry of `tool_calls`."""
    return {"function": {"name": name, "arguments": {} if args is None else args}, **more}


def answer(content: str = "", *calls: Any, done: bool = False, **more: Any) -> dict[str, Any]:
    """Return an answer or a piece of one, with numbers that a careless rewrite would spoil."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    told = {
        "model": "qwen3",
        "created_at": "2026-01-01T00:00:00.000000001Z",
        "message": message,
        "done": done,
    }
    if done:
        told |= {"done_reason": "stop", "total_duration": 12345678901234567890, "ratio": 1.0}
    return told | more


def line(value: Any) -> bytes:
    """Return a piece of a stream."""
    return (value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode(
        "utf-8", "surrogatepass"
    ) + b"\n"


def lines(*answers: Any) -> bytes:
    """Return a stream."""
    return b"".join(map(line, answers))


run = runner(DIALECT, Result)
