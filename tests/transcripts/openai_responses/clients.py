"""Clients as they are found: what each would execute of a Responses stream. The official SDK first, then models of other families.

The models err on the harsh side: they skip what they cannot read, and execute whatever they have when the stream ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx2
import openai
from transcripts.key_readings import any_case, first_wins, last_wins

from agentsh_net.core.framing import sse

# (namespace, name, arguments): arguments parsed, or the text where it does not parse.
Run = tuple[str, str, Any]
Executed = list[Run]
Hook = Callable[[list[tuple[str, Any]]], Any]

CALLS = frozenset(
    {
        "function_call", "custom_tool_call", "mcp_call", "mcp_approval_request", "local_shell_call", "shell_call",
        "apply_patch_call", "computer_call", "['function_call']",
    }
)  # fmt: skip
NATIVE = frozenset({"local_shell_call", "shell_call", "apply_patch_call", "computer_call"})
KEYS = ("arguments", "input", "action", "operation", "actions")


class _Chunks(httpx2.SyncByteStream):
    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks


def sdk(chunks: Sequence[bytes], content_type: str = "text/event-stream", status: int = 200) -> openai.OpenAI:
    """Return the official client, its next answer at hand; no socket is opened."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers={"content-type": content_type}, stream=_Chunks(chunks))

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="k", base_url="http://llm.invalid/v1", max_retries=0, http_client=client)


ASK: dict[str, Any] = {"model": "m", "input": "x"}


def executed(item: Any, text: str | None = None) -> Run:
    """Return what a client runs that takes an item for a call; `text`: the arguments as it added them up."""
    get = item.get if isinstance(item, dict) else lambda key, other=None: getattr(item, key, other)
    value: Any = text if text is not None else next((v for k in KEYS if (v := get(k)) is not None), None)
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, str) and get("type") != "custom_tool_call":
        try:
            value = json.loads(value)
        except ValueError:
            value = ("unparsed", value)
    native = str(get("type")).removesuffix("_call") if str(get("type")) in NATIVE else ""
    return str(get("namespace") or get("server_label") or ""), native or str(get("name") or ""), value


def _is_call(item: Any) -> bool:
    kind = item.get("type") if isinstance(item, dict) else getattr(item, "type", None)
    return str(kind) in CALLS


# The SDK.


def by_sdk_events(chunks: Sequence[bytes]) -> Executed:
    """Execute each call that the SDK's events call done, each that deltas add up to, and each of a last event."""
    found: Executed = []
    grown: dict[Any, tuple[Any, str]] = {}
    try:
        for event in sdk(chunks).responses.create(**ASK, stream=True):
            kind = getattr(event, "type", "")
            if kind == "response.output_item.added" and _is_call(event.item):
                start = getattr(event.item, "arguments", None) or getattr(event.item, "input", None) or ""
                grown[event.output_index] = event.item, start
            elif kind.endswith(("arguments.delta", "input.delta")) and event.output_index in grown:
                item, text = grown[event.output_index]
                grown[event.output_index] = item, text + event.delta
            elif kind.endswith(("arguments.done", "input.done")) and event.output_index in grown:
                item, _ = grown[event.output_index]
                found.append(
                    executed(item, getattr(event, "arguments", None) or getattr(event, "input", None))
                )
            elif kind == "response.output_item.done" and _is_call(event.item):
                found.append(executed(event.item))
            elif hasattr(event, "response"):
                found += [executed(item) for item in event.response.output or () if _is_call(item)]
    except Exception:  # what a hostile stream makes the SDK raise is no matter: what it had by then is
        pass
    return found + [executed(item, text) for item, text in grown.values() if isinstance(text, str)]


def by_sdk_stream(chunks: Sequence[bytes]) -> Executed:
    """Execute what the SDK's own accumulator has at the end, or what it had of an unfinished answer."""
    with sdk(chunks).responses.stream(**ASK) as stream:
        try:
            output: Any = stream.get_final_response().output
        except Exception:
            output = getattr(stream._state._ResponseStreamState__current_snapshot, "output", ())  # type: ignore[attr-defined]
    return [executed(item) for item in output or () if _is_call(item)]


# Models.


def _frames(data: bytes) -> Iterator[tuple[str, bytes]]:
    decoder = sse.Decoder(1 << 24)
    for frame in [*decoder.feed(data), decoder.finish()]:
        if frame is not None and frame.data is not None:
            yield frame.event, frame.data


def _lines(data: bytes) -> Iterator[tuple[str, bytes]]:
    for line in data.decode("utf-8", "replace").splitlines():
        if line.startswith("data:"):
            yield "", line[5:].strip().encode()


def events(
    data: bytes, hook: Hook = last_wins, *, lines: bool = False
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, text in (_lines if lines else _frames)(data):
        try:
            value = json.loads(text.decode("utf-8", "replace"), object_pairs_hook=hook, parse_int=_number)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield name or str(value.get("type")), value


def _number(digits: str) -> float:
    return int(digits) if len(digits) < 30 else float(digits)


def _output(value: dict[str, Any]) -> list[Any]:
    holder = value.get("response") if isinstance(value.get("response"), dict) else value
    listed = holder.get("output") if isinstance(holder, dict) else None
    return listed if isinstance(listed, list) else []


def by_done(data: bytes, hook: Hook = last_wins, *, lines: bool = False) -> Executed:
    """Execute each item that an event brings whole (as Codex does), whatever the event is called."""
    made = (
        value.get("item") for kind, value in events(data, hook, lines=lines) if not kind.endswith(".added")
    )
    return [executed(item) for item in made if _is_call(item)]


def by_shape(data: bytes) -> Executed:
    """Execute whatever item has a name and arguments."""
    made = (value.get("item") for kind, value in events(data) if not kind.endswith(".added"))
    return [
        executed(item) for item in made if isinstance(item, dict) and {"name", "arguments"} <= item.keys()
    ]


def by_output(data: bytes, hook: Hook = last_wins, *, lines: bool = False) -> Executed:
    """Execute what any event lists in its output."""
    return [
        executed(i) for _, value in events(data, hook, lines=lines) for i in _output(value) if _is_call(i)
    ]


def by_deltas(
    data: bytes, hook: Hook = last_wins, *, key: str = "output_index", keep: bool = False, lines: bool = False
) -> Executed:
    """Execute what `added` and deltas add up to, by index or id, at the end; `keep`: the first item of a key stays."""
    grown: dict[str, list[Any]] = {}
    for kind, value in events(data, hook, lines=lines):
        item = value.get("item")
        if kind.endswith("item.added") and isinstance(item, dict):
            place = str(item.get("id") if key == "item_id" else value.get(key))
            if not (keep and place in grown):
                start = item.get("arguments") or item.get("input") or ""
                grown[place] = [item, start if isinstance(start, str) else ""]
        elif kind.endswith((".delta",)) and ("arguments" in kind or "input" in kind):
            place, piece = str(value.get(key)), value.get("delta")
            if place in grown and isinstance(piece, str):
                grown[place][1] += piece
    return [executed(item, text or None) for item, text in grown.values() if _is_call(item)]


def by_arguments_done(data: bytes, hook: Hook = last_wins) -> Executed:
    """Execute an `added` item as soon as an event repeats its arguments whole; that event's own name counts, if it has one."""
    items: dict[str, Any] = {}
    found: Executed = []
    for kind, value in events(data, hook):
        if kind.endswith("item.added") and isinstance(value.get("item"), dict):
            items[str(value.get("output_index"))] = value["item"]
        elif kind.endswith(("arguments.done", "input.done")):
            item = items.get(str(value.get("output_index"))) or {"type": "function_call"}
            named = {"name": value["name"]} if value.get("name") else {}
            if _is_call(item) and (item | named).get("name"):
                found.append(executed(item | named, value.get("arguments") or value.get("input")))
    return found


def by_choices(data: bytes) -> Executed:
    """Execute the calls of chat completions in events, as LiteLLM does where it makes a chat out of the answer."""
    grown: dict[Any, list[str]] = {}
    for _, value in events(data):
        choices = value.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            for entry in choice["delta"].get("tool_calls") or ():
                call = grown.setdefault(entry.get("index"), ["", ""])
                for at, key in enumerate(("name", "arguments")):
                    call[at] += entry["function"].get(key) or ""
    return [
        executed({"type": "function_call", "name": name, "arguments": text}) for name, text in grown.values()
    ]


MODELS: dict[str, Callable[[bytes], Executed]] = {
    "done": by_done,
    "done, line by line": lambda d: by_done(d, lines=True),
    "done, first key wins": lambda d: by_done(d, first_wins),
    "done, keys in any case": lambda d: by_done(d, any_case),
    "done, by shape": by_shape,
    "output": by_output,
    "output, line by line": lambda d: by_output(d, lines=True),
    "output, first key wins": lambda d: by_output(d, first_wins),
    "output, keys in any case": lambda d: by_output(d, any_case),
    "deltas by index": by_deltas,
    "deltas by index, line by line": lambda d: by_deltas(d, lines=True),
    "deltas by index, first key wins": lambda d: by_deltas(d, first_wins),
    "deltas by index, keys in any case": lambda d: by_deltas(d, any_case),
    "deltas by index, first item stays": lambda d: by_deltas(d, keep=True),
    "deltas by id": lambda d: by_deltas(d, key="item_id"),
    "deltas by id, first key wins": lambda d: by_deltas(d, first_wins, key="item_id"),
    "deltas by id, first item stays": lambda d: by_deltas(d, key="item_id", keep=True),
    "choices": by_choices,
    "arguments done": by_arguments_done,
    "arguments done, first key wins": lambda d: by_arguments_done(d, first_wins),
}


def models(data: bytes) -> dict[str, Executed]:
    """Return what each model executes."""
    return {name: model(data) for name, model in MODELS.items()}


def by_sdks(data: bytes) -> dict[str, Executed]:
    """Return what applications on the official SDK execute."""
    return {"the SDK's events": by_sdk_events([data]), "the SDK's stream": by_sdk_stream([data])}
