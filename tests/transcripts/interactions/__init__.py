"""Gemini interactions in the API's published shape, streamed and whole, their building blocks, and a way to run them through the dialect."""

from __future__ import annotations

import json
from typing import Any

from transcripts.gemini import said
from transcripts.playing import Denying, Result, cut_at, denying, every_chunking, runner

from agentsh_net.core.dialects.interactions.dialect import DIALECT

__all__ = ["Denying", "Result", "cut_at", "denying", "every_chunking", "said"]

WEATHER, DELETE = "mcp_weather_get", "mcp_fs_delete"
DONE = b"event: done\ndata: [DONE]\n\n"

Step = dict[str, Any]


def event(kind: str, **fields: Any) -> bytes:
    return raw(kind, json.dumps({"event_type": kind, **fields}))


def raw(name: str, data: str) -> bytes:
    """Return an event with any data."""
    return (
        (f"event: {name}\n" if name else "").encode()
        + b"data: "
        + data.encode("utf-8", "surrogatepass")
        + b"\n\n"
    )


def call(name: str, args: Any = None, *, call_id: str = "c0", **more: Any) -> Step:
    """Return a step that is a call."""
    return {
        "type": "function_call",
        "id": call_id,
        "name": name,
        "arguments": {} if args is None else args,
    } | more


def told(text: str) -> Step:
    """Return a step of text."""
    return {"type": "model_output", "content": [{"type": "text", "text": text}]}


def refused(name: str, reason: str = "denied") -> Step:
    """Return the step that stands where a refused call stood."""
    return told(said(name, reason))


def interaction(*steps: Step, status: str = "requires_action", **more: Any) -> dict[str, Any]:
    """Return an interaction, with a number that a careless rewrite would spoil."""
    usage = {"total_tokens": 12345678901234567890, "ratio": 1.0}
    return {
        "id": "i1",
        "object": "interaction",
        "model": "m",
        "status": status,
        "steps": list(steps),
        "usage": usage,
    } | more


def begin() -> bytes:
    return event("interaction.created", interaction={"id": "i1", "status": "in_progress"}, event_id="e1")


def streamed(index: Any, step: Step, *, pieces: bool = True) -> bytes:
    """Return a step as the API streams it: a call's arguments in pieces of five characters, or whole."""
    arguments = step.get("arguments")
    if step["type"] == "model_output":
        deltas = [{"type": "text", "text": entry["text"]} for entry in step["content"]]
        step = {"type": "model_output"}
    elif pieces and arguments:
        text = json.dumps(arguments)
        deltas = [
            {"type": "arguments_delta", "arguments": text[at : at + 5]} for at in range(0, len(text), 5)
        ]
        step = step | {"arguments": {}}
    else:
        deltas = []
    made = (event("step.delta", index=index, delta=delta) for delta in deltas)
    return event("step.start", index=index, step=step) + b"".join(made) + event("step.stop", index=index)


def end(*steps: Step, status: str = "requires_action") -> bytes:
    """Return the last events; the interaction lists steps where there are any."""
    whole: dict[str, Any] = {"id": "i1", "status": status} | ({"steps": list(steps)} if steps else {})
    update = event("interaction.status_update", interaction_id="i1", status=status)
    return update + event("interaction.completed", interaction=whole) + DONE


def answer(*steps: Step, pieces: bool = True) -> bytes:
    """Return a whole stream that lists its steps at the end once more."""
    return (
        begin() + b"".join(streamed(at, step, pieces=pieces) for at, step in enumerate(steps)) + end(*steps)
    )


def events(data: bytes) -> list[Any]:
    """Return the JSON of a stream's events."""
    lines = (line.removeprefix(b"data: ") for line in data.split(b"\n") if line.startswith(b"data: {"))
    return [json.loads(line) for line in lines]


run = runner(DIALECT, Result)
