"""Gemini answers in the API's published shape, as events and as arrays, their building blocks, and a way to run them through the dialect."""

from __future__ import annotations

import json
from typing import Any

from transcripts.playing import Denying, Result, cut_at, denying, every_chunking, runner

from agentsh_net.core.dialects.gemini.dialect import STREAMED

__all__ = ["Denying", "Result", "cut_at", "denying", "every_chunking"]

# As Gemini CLI names them.
WEATHER, DELETE = "mcp_weather_get", "mcp_fs_delete"


def part(name: str, args: Any = None, **more: Any) -> dict[str, Any]:
    """Return a part that is a call."""
    return {"functionCall": {"name": name, "args": {} if args is None else args}, **more}


def text(said: str, **more: Any) -> dict[str, Any]:
    """Return a part that is text."""
    return {"text": said, **more}


def said(name: str, reason: str = "denied") -> str:
    """Return the text that stands where a refused call stood."""
    return f"[agentsh] Tool '{name}' blocked by policy: {reason}"


def refused(name: str, reason: str = "denied") -> dict[str, Any]:
    """Return the part that stands where a refused call stood."""
    return {"text": said(name, reason)}


def candidate(*parts: Any, finish: str | None = None, index: int | None = None) -> dict[str, Any]:
    """Return a candidate."""
    made: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}}
    return made | ({"finishReason": finish} if finish else {}) | ({} if index is None else {"index": index})


def answer(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return an answer of one candidate, with numbers that a careless rewrite would spoil."""
    return {
        "candidates": [candidate(*parts, finish=finish)],
        "usageMetadata": {"promptTokenCount": 12, "ratio": 1.0, "big": 12345678901234567890},
        "modelVersion": "gemini-test",
        **more,
    }


def event(value: Any) -> bytes:
    """Return an answer as an event, as the API writes it."""
    return raw(value if isinstance(value, str) else json.dumps(value))


def raw(data: str) -> bytes:
    """Return an event with any data."""
    return b"data: " + data.encode("utf-8", "surrogatepass") + b"\r\n\r\n"


def events(*answers: Any) -> bytes:
    """Return a stream of events."""
    return b"".join(event(one) for one in answers)


def array(*answers: Any) -> bytes:
    """Return a stream without `alt=sse`: an array, spread over lines as the API writes it."""
    return b"[" + b"\n,\r\n".join(json.dumps(one, indent=2).encode() for one in answers) + b"\n]\n"


def piece(name: str = "", *, more: bool = True, **partial: Any) -> dict[str, Any]:
    """Return a part that is a piece of a call (Vertex AI)."""
    call: dict[str, Any] = {"name": name} if name else {}
    if partial:
        call["partialArgs"] = [partial]
    return {"functionCall": call | ({"willContinue": True} if more else {})}


run = runner(STREAMED, Result)
