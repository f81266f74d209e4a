"""Where a streamed answer says what a model writes piece by piece: which strings of an event go on where an earlier one ended.

By the shape of the event, whatever the dialect. Reasoning is left out: its text is signed and has to go back as it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from agentsh_net.core.values.strict_json import Path

Channel = tuple[Any, ...]


class Fragment(NamedTuple):
    """A piece of text at `path` of an event, which goes on in the next piece of its channel. `nested`: a piece of JSON."""

    channel: Channel
    path: Path
    text: str
    nested: bool


def fragments(value: Any) -> Iterator[Fragment]:
    """Yield the pieces in an event."""
    if not isinstance(value, dict):
        return
    kind = value.get("type")
    if kind == "content_block_delta":
        yield from _texts(value, ("delta",), ("text", "partial_json"), (value.get("index"),))
    elif isinstance(kind, str) and kind.endswith(".delta") and "reasoning" not in kind:
        nested = "arguments" in kind
        channel = (kind, value.get("output_index"), value.get("content_index"))
        if isinstance(value.get("delta"), str):
            yield Fragment(_plain(channel), ("delta",), value["delta"], nested)
        yield from _texts(value, (), ("content", "arguments"), channel)  # Mistral's conversations
        yield from _texts(value, ("content",), ("text",), channel)
    elif isinstance(value.get("choices"), list):
        for n, choice in enumerate(value["choices"]):
            yield from _of_choice(choice, n)
    elif isinstance(value.get("candidates"), list):
        for n, candidate in enumerate(value["candidates"]):
            yield from _of_candidate(candidate, n)
    elif isinstance(value.get("delta"), dict) and "contentBlockIndex" in value:
        index = value["contentBlockIndex"]
        yield from _texts(value, ("delta",), ("text",), (index,))
        yield from _texts(value, ("delta", "toolUse"), ("input",), (index,))
    elif isinstance(value.get("delta"), dict) and "event_type" in value:
        yield from _texts(value, ("delta",), ("text", "arguments"), (value.get("index"),))
    elif isinstance(value.get("message"), dict):
        yield from _texts(value, ("message",), ("content",), ("message",))
    elif isinstance(value.get("response"), str):
        yield Fragment(("response",), ("response",), value["response"], nested=False)


def _of_choice(choice: Any, n: int) -> Iterator[Fragment]:
    if not isinstance(choice, dict):
        return
    who = choice.get("index")
    yield from _texts(choice, (), ("text",), (who,), ("choices", n))
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return
    yield from _texts(choice, ("delta",), ("content", "refusal"), (who,), ("choices", n))
    yield from _texts(delta, ("function_call",), ("arguments",), (who,), ("choices", n, "delta"))
    calls = delta.get("tool_calls")
    for m, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, dict):
            below = ("choices", n, "delta", "tool_calls", m)
            yield from _texts(call, ("function",), ("arguments",), (who, call.get("index")), below)
            yield from _texts(call, ("custom",), ("input",), (who, call.get("index")), below)


def _of_candidate(candidate: Any, n: int) -> Iterator[Fragment]:
    content = candidate.get("content") if isinstance(candidate, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    for m, part in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(part, dict) and not part.get("thought"):
            below = ("candidates", n, "content", "parts", m)
            who = candidate.get("index", n)
            yield from _texts(part, (), ("text",), (who,), below)
            yield from _of_arguments(part.get("functionCall"), (who,), below)


def _of_arguments(call: Any, who: Channel, below: Path) -> Iterator[Fragment]:
    """Yield the pieces of the texts among a call's arguments, as Gemini streams them: by where each stands."""
    pieces = call.get("partialArgs") if isinstance(call, dict) else None
    for n, piece in enumerate(pieces if isinstance(pieces, list) else ()):
        if isinstance(piece, dict):
            channel = (*who, "args", piece.get("jsonPath"))
            yield from _texts(
                piece, (), ("stringValue",), channel, (*below, "functionCall", "partialArgs", n)
            )


def _texts(
    value: dict[str, Any], steps: tuple[str, ...], names: tuple[str, ...], channel: Channel, below: Path = ()
) -> Iterator[Fragment]:
    inner: Any = value
    for step in steps:
        inner = inner.get(step) if isinstance(inner, dict) else None
    for name in names if isinstance(inner, dict) else ():
        text = inner.get(name)
        if isinstance(text, str):
            nested = name in {"partial_json", "arguments"} or steps[-1:] == ("toolUse",)
            yield Fragment(_plain((*channel, *steps, name)), (*below, *steps, name), text, nested)


def _plain(channel: Channel) -> Channel:
    """Return a channel that can be a key, whatever the upstream wrote for an index."""
    return tuple(part if isinstance(part, str | int | None) else str(part) for part in channel)
