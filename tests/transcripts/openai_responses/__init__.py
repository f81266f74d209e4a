"""Responses streams in the API's published shape, their building blocks, and a way to run them through the dialect."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from transcripts import playing
from transcripts.playing import cut_at, every_chunking, runner

from agentsh_net.core.dialects.openai_responses.dialect import DIALECT
from agentsh_net.core.model import ToolCall, Verdict

__all__ = ["cut_at", "every_chunking"]

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.sse"))

WEATHER, DELETE = "mcp__weather__get", "mcp__fs__delete"
DONE = b"data: [DONE]\n\n"

Item = dict[str, Any]
Event = dict[str, Any]  # without its sequence_number; OURS marks what the proxy writes
OURS = "@ours@"


def load(name: str) -> bytes:
    """Return a transcript."""
    return (HERE / f"{name}.sse").read_bytes()


def raw(name: str, data: str | bytes) -> bytes:
    """Return a frame with any data."""
    text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return (b"event: " + name.encode() + b"\n" if name else b"") + b"data: " + text + b"\n\n"


def numbered(events: Iterable[Event | bytes], first: int = 0) -> bytes:
    """Return events as the API writes them, numbered in order; bytes are as they are, and have no number."""
    out, number = b"", first
    for made in events:
        if isinstance(made, bytes):
            out += made
            continue
        out += frame(made, number)
        number += 1
    return out


def frame(event: Event, number: int | None = None) -> bytes:
    """Return one event: spaced, its number last; or compact, its number second, where the proxy writes it."""
    fields = {key: value for key, value in event.items() if key not in {"type", OURS}}
    told = {} if number is None else {"sequence_number": number}
    if OURS in event:
        return raw(event["type"], _compact({"type": event["type"], **told, **fields}))
    return raw(event["type"], _spaced({"type": event["type"], **fields, **told}))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _spaced(value: Any) -> str:
    """Return JSON with spaces, but for the messages that the proxy put into it."""
    kept: list[str] = []

    def hide(item: Any) -> Any:
        if isinstance(item, dict):
            if OURS in item:
                kept.append(_compact({k: v for k, v in item.items() if k != OURS}))
                return f"@{len(kept) - 1}@"
            return {k: hide(v) for k, v in item.items()}
        return [hide(v) for v in item] if isinstance(item, list) else item

    text = json.dumps(hide(value))
    for at, part in enumerate(kept):
        text = text.replace(f'"@{at}@"', part)
    return text


# Items.


def function_call(name: str, arguments: Any = None, *, at: Any = 0, **more: Any) -> Item:
    """Return a whole function_call."""
    spelled = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)
    return {
        "id": f"fc_{at}", "type": "function_call", "status": "completed", "arguments": spelled, "call_id": f"call_{at}",
        "name": name,
    } | more  # fmt: skip


def message_item(text: str, *, at: Any = 0) -> Item:
    """Return a whole message."""
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {
        "id": f"msg_{at}",
        "type": "message",
        "status": "completed",
        "content": [part],
        "role": "assistant",
    }


def notice(name: str, reason: str = "denied") -> str:
    """Return the text that stands where a refused call stood."""
    return f"[agentsh] Tool '{name}' blocked by policy: {reason}"


def refused_item(
    item: Item, reason: str = "denied", *, name: str | None = None, at: int | None = None
) -> Item:
    """Return the message that stands in the place of an item."""
    ids = [item.get("id") or "", item.get("call_id") or ""]
    place = sha256("\0".join(ids if any(ids) else [str(at)]).encode()).hexdigest()[:32]
    text = notice(item.get("name", "") if name is None else name, reason)
    return {OURS: True} | message_item(text) | {"id": f"msg_agentsh_{place}"}


# Events.


def response(*items: Item, status: str = "in_progress", **more: Any) -> dict[str, Any]:
    """Return a response object, with a float and a big number that a careless rewrite would spoil."""
    return {
        "id": "resp_1", "object": "response", "created_at": 1700000000.0, "status": status, "error": None,
        "incomplete_details": None, "model": "gpt-test", "output": list(items), "parallel_tool_calls": True,
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "usage": None,
        "x_big": 123456789012345678901234567890,
    } | more  # fmt: skip


def begin(*items: Item) -> list[Event]:
    """Return response.created and response.in_progress."""
    return [{"type": f"response.{kind}", "response": response(*items)} for kind in ("created", "in_progress")]


def end(*items: Item, status: str = "completed", **more: Any) -> list[Event]:
    """Return the last event, with the whole output."""
    return [{"type": f"response.{status}", "response": response(*items, status=status, **more)}]


def added(index: Any, item: Item) -> Event:
    """Return response.output_item.added; `index=...` leaves it without one."""
    where = {} if index is ... else {"output_index": index}
    return {"type": "response.output_item.added", **where, "item": item}


def done(index: Any, item: Item) -> Event:
    """Return response.output_item.done."""
    return added(index, item) | {"type": "response.output_item.done"}


def arguments(index: Any, item_id: str, delta: str, kind: str = "function_call_arguments") -> Event:
    """Return a piece of a call's arguments."""
    where = {} if index is ... else {"output_index": index}
    return {"type": f"response.{kind}.delta", "item_id": item_id, **where, "delta": delta}


def arguments_done(
    index: Any, item_id: str, text: str, kind: str = "function_call_arguments", **more: Any
) -> Event:
    """Return the arguments as an event repeats them."""
    key = "input" if "input" in kind else "arguments"
    return {"type": f"response.{kind}.done", "item_id": item_id, "output_index": index, key: text} | more


_STREAMED = {
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
    "mcp_call": ("arguments", "mcp_call_arguments"),
}


def call(index: int, item: Item, *, piece: int = 3) -> list[Event]:
    """Return all events of a call, its arguments in pieces of some characters."""
    key, kind = _STREAMED.get(item["type"], ("", ""))
    if not key:
        return [added(index, item | {"status": "in_progress"}), done(index, item)]
    text = item[key]
    return [
        added(index, item | {"status": "in_progress", key: ""}),
        *(arguments(index, item["id"], text[at : at + piece], kind) for at in range(0, len(text), piece)),
        arguments_done(index, item["id"], text, kind),
        done(index, item),
    ]


def text(index: int, item: Item, *, pieces: int = 1) -> list[Event]:
    """Return all events of a message."""
    words = item["content"][0]["text"]
    begun = item | {"status": "in_progress", "content": []}
    where = {"item_id": item["id"], "output_index": index, "content_index": 0}
    cuts = [len(words) * at // pieces for at in range(pieces + 1)]
    return [
        added(index, begun),
        {"type": "response.content_part.added", **where, "part": item["content"][0] | {"text": ""}},
        *(
            {"type": "response.output_text.delta", **where, "delta": words[a:b], "logprobs": []}
            for a, b in pairwise(cuts)
        ),
        {"type": "response.output_text.done", **where, "text": words, "logprobs": []},
        {"type": "response.content_part.done", **where, "part": item["content"][0]},
        done(index, item),
    ]


def refused(
    index: int, item: Item, reason: str = "denied", *, frames: int = 0, name: str | None = None
) -> list[Event]:
    """Return the events that stand where the `frames` events of an item stood: as many, if there were 6 to 69."""
    made = refused_item(item, reason, name=name, at=index)
    plain = {key: value for key, value in made.items() if key != OURS}
    return [event | {OURS: True} for event in text(index, plain, pieces=min(max(frames - 5, 1), 64))]


# Running.


class Denying(playing.Denying):
    """A judge that does not remember flaws: an item is judged at several of its events."""

    def __call__(self, tool_call: ToolCall) -> Verdict:
        verdict = super().__call__(tool_call)
        if tool_call.flaw:
            self.asked.pop()
        return verdict


def denying(*names: str) -> Denying:
    """Return a judge that refuses these."""
    return Denying(frozenset(names))


class Result(playing.Result):
    """What a stream came to."""

    @property
    def numbers(self) -> list[int]:
        datas = [line[6:] for line in self.out.split(b"\n") if line.startswith(b"data: {")]
        return [json.loads(data)["sequence_number"] for data in datas]


run = runner(DIALECT, Result)
