"""Honest streams with some changes: most of each stays as a provider writes it, so that machines get far enough to be fooled.

A change takes an event out, brings it again, or moves it, or puts another value at a place: mostly one that stands elsewhere in the stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from fuzz import grammar
from fuzz.grammar import ALLOWED, DENIED, EVIL, Choices, Made

Path = tuple[Any, ...]
_SPLIT: Final = ('{"a":', '{"b":[1,2]', "}}")
_WHOLE: Final = "".join(_SPLIT)
_INPUT: Final = json.loads(_WHOLE)
_MOST: Final = 5  # changes


def mutated(name: str, c: Choices) -> Iterator[Made]:
    """Yield the events of an honest stream after some changes."""
    events = [(kind, json.loads(json.dumps(value))) for kind, value in HONEST[name]]
    for _ in range(c.byte() % _MOST):
        _change(events, c)
    yield from events


def _change(events: list[Made], c: Choices) -> None:
    how, at = c.byte(), c.byte() % len(events)
    match how % 8:
        case 0 if len(events) > 1:
            del events[at]
        case 1 if len(events) < grammar.MOST:
            kind, value = events[at]
            events.insert(c.byte() % (len(events) + 1), (kind, json.loads(json.dumps(value))))
        case 2:
            events.insert(c.byte() % len(events), events.pop(at))
        case _:
            _put(events, at, c)


def _put(events: list[Made], at: int, c: Choices) -> None:
    kind, value = events[at]
    places = [path for path, _ in _places(value)]
    if not places:
        return
    path = places[c.byte() % len(places)]
    others = [found for _, each in events for _, found in _places(each)]
    pools = (others, others, grammar.PARTS, grammar.NAMES, grammar.INDICES, grammar.IDS, grammar.JUNK, (EVIL, DENIED, {"a": EVIL}, '{"a":"evil"}'))  # fmt: skip
    new = json.loads(json.dumps(c.pick(c.pick(pools))))
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    if c.byte() & 15 == 15 and isinstance(holder, dict):
        del holder[path[-1]]
    else:
        holder[path[-1]] = new
    events[at] = (str(value.get("type", kind)) if kind and isinstance(value, dict) else kind, value)


def _places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield where something stands in a value, and what."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in members:
        yield (*path, key), inner
        yield from _places(inner, (*path, key))


def _typed(*values: dict[str, Any]) -> list[Made]:
    return [(str(value.get("type") or value.get("event_type")), value) for value in values]


def _anthropic() -> list[Made]:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"role": "assistant", "content": []}}
    ]
    for index, block in enumerate(
        (
            {"type": "text", "text": ""},
            {"type": "tool_use", "id": "call_1", "name": ALLOWED, "input": {}},
            {"type": "tool_use", "id": "call_2", "name": "get", "input": {}, "toolset_name": None},
        )
    ):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        for part in ("Well", ".") if not index else _SPLIT:
            kind, key = ("text_delta", "text") if not index else ("input_json_delta", "partial_json")
            events.append({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: part}})
        events.append({"type": "content_block_stop", "index": index})
    events.append(
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}}
    )
    return _typed(*events, {"type": "message_stop"})


def _chat() -> list[Made]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    for index, name in enumerate((ALLOWED, "get")):
        first = {
            "index": index,
            "id": f"call_{index + 1}",
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        deltas.append({"tool_calls": [first]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in _SPLIT]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    return [("", {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}) for choice in choices]


def _responses() -> list[Made]:
    items: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r", "output": []}}]
    for at, (kind, key, name) in enumerate(
        (
            ("function_call", "arguments", ALLOWED),
            ("custom_tool_call", "input", "get"),
            ("mcp_call", "arguments", "get"),
        )
    ):
        item = {"type": kind, "id": f"i_{at}", "call_id": f"call_{at}", "name": name, key: ""}
        if kind == "mcp_call":
            item["server_label"] = "weather"
        where = {"item_id": f"i_{at}", "output_index": at}
        parts = ("ls", " -", "l") if key == "input" else _SPLIT
        told = "custom_tool_call_input" if kind == "custom_tool_call" else f"{kind}_arguments"
        events.append({"type": "response.output_item.added", "output_index": at, "item": item})
        events += [{"type": f"response.{told}.delta", **where, "delta": part} for part in parts]
        events.append({"type": f"response.{told}.done", **where, key: "".join(parts)})
        items.append(item | {key: "".join(parts)})
        events.append({"type": "response.output_item.done", "output_index": at, "item": items[-1]})
    events.append({"type": "response.completed", "response": {"id": "r", "output": items}})
    return _typed(*(event | {"sequence_number": number} for number, event in enumerate(events)))


def _gemini() -> list[Made]:
    calls = (
        {"name": ALLOWED, "args": _INPUT},
        {"name": "get", "willContinue": True},
        {
            "partialArgs": [{"jsonPath": "$.a", "stringValue": "x", "willContinue": True}],
            "willContinue": True,
        },
        {"partialArgs": [{"jsonPath": "$.a", "stringValue": "y"}], "willContinue": True},
        {},
    )
    parts: list[dict[str, Any]] = [{"text": "Well."}, *({"functionCall": call} for call in calls)]
    return [
        ("", {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}) for part in parts
    ] + [("", {"candidates": [{"index": 0, "finishReason": "STOP"}]})]


def _interactions() -> list[Made]:
    steps = (
        {"type": "function_call", "id": "call_1", "name": ALLOWED, "arguments": {}},
        {
            "type": "mcp_server_tool_call",
            "id": "call_2",
            "name": "get",
            "server_name": "weather",
            "arguments": {},
        },
    )
    events: list[dict[str, Any]] = [
        {"event_type": "interaction.created", "interaction": {"status": "in_progress"}}
    ]
    for index, step in enumerate(steps):
        events.append({"event_type": "step.start", "index": index, "step": step})
        events += [{"event_type": "step.delta", "index": index, "delta": {"type": "arguments_delta", "arguments": part}} for part in _SPLIT]  # fmt: skip
        events.append({"event_type": "step.stop", "index": index})
    last = {"status": "requires_action", "steps": [step | {"arguments": _INPUT} for step in steps]}
    return _typed(*events, {"event_type": "interaction.completed", "interaction": last})


def _ollama() -> list[Made]:
    calls = [{"function": {"name": name, "arguments": _INPUT}} for name in (ALLOWED, "get")]
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": "Well."}]
    messages += [{"role": "assistant", "content": "", "tool_calls": [call]} for call in calls]
    return [("", {"model": "m", "message": each, "done": False}) for each in messages] + [
        ("", {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True})
    ]


def _converse() -> list[Made]:
    events: list[Made] = [("messageStart", {"role": "assistant"})]
    for index, name in enumerate((ALLOWED, "get")):
        where = {"contentBlockIndex": index}
        use = {"toolUseId": f"call_{index}", "name": name}
        events.append(("contentBlockStart", {**where, "start": {"toolUse": use}}))
        events += [("contentBlockDelta", {**where, "delta": {"toolUse": {"input": part}}}) for part in _SPLIT]
        events.append(("contentBlockStop", where))
    return [*events, ("messageStop", {"stopReason": "tool_use"})]


HONEST: Final = {
    "anthropic": _anthropic(),
    "chat": _chat(),
    "responses": _responses(),
    "gemini": _gemini(),
    "interactions": _interactions(),
    "ollama": _ollama(),
    "converse": _converse(),
}
