"""What clients would execute of what left the proxy, read with nothing but the standard library: the fuzzers' oracle.

On purpose no line of this is shared with the product. Each reader skips what it cannot read, and executes what it has at the end.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

from transcripts.key_readings import first_wins

Run = tuple[str, Any]
Values = list[tuple[str, Any]]  # name of the event line, value
Hook = Callable[[list[tuple[str, Any]]], Any] | None


def any_case(pairs: list[tuple[str, Any]]) -> Any:
    return {key.lower(): value for key, value in pairs}


def loads(text: Any, hook: Hook = None) -> Any:
    """Return a value; None where there is none."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False, object_pairs_hook=hook)
    except (ValueError, TypeError, RecursionError):
        return None


def events(data: bytes) -> list[tuple[str, bytes]]:
    """Cut server-sent events by the standard; what the stream ended in the middle of is read as well."""
    text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found, name, held = [], "", []
    for line in [*text.split(b"\n"), b""]:
        if not line:
            if held:
                found.append((name, b"\n".join(held)))
            name, held = "", []
            continue
        key, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if key == b"data":
            held.append(value)
        elif key == b"event":
            name = value.decode("utf-8", "replace")
    return found


def by_events(data: bytes, hook: Hook) -> Values:
    return [(name, loads(text, hook)) for name, text in events(data)]


def by_decoded_lines(data: bytes, hook: Hook) -> Values:
    """Decode each line by itself, which drops a BOM before it, as the npm SDKs of Anthropic and OpenAI do."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return by_events(b"\n".join(line.removeprefix(b"\xef\xbb\xbf") for line in lines), hook)


def by_lines(data: bytes, hook: Hook) -> Values:
    return [("", loads(line, hook)) for line in data.split(b"\n") if line.strip()]


def by_objects(data: bytes, hook: Hook) -> Values:
    """Read values wherever one can be read."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=hook)
    text, at, found = data.decode("utf-8", "replace"), 0, []
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            found.append(("", value))
    return found


def by_joined_lines(data: bytes, hook: Hook) -> Values:
    """Join lines that are no event by nothing and read values wherever one can be read, as google-genai does where braces balance."""
    lines = (line for line in data.splitlines() if not line.startswith(b"data:"))
    return by_objects(b"".join(lines), hook)


def by_messages(data: bytes, hook: Hook) -> Values:
    found, at = [], 0
    while len(data) - at >= 16:
        total, size = struct.unpack_from(">II", data, at)
        if total < 16 or at + total > len(data):
            break
        headers, place, end = {}, at + 12, at + 12 + size
        while place < end and data[place + 1 + data[place]] == 7:
            name = data[place + 1 : place + 1 + data[place]].decode()
            place += 2 + data[place]
            (length,) = struct.unpack_from(">H", data, place)
            headers[name] = data[place + 2 : place + 2 + length].decode("utf-8", "replace")
            place += 2 + length
        if headers.get(":message-type") not in ("error", "exception"):
            found.append((headers.get(":event-type", ""), loads(data[end : at + total - 4], hook)))
        at += total
    return found


def by_chunks(data: bytes, hook: Hook) -> Values:
    found: Values = []
    for _, value in by_messages(data, hook):
        packed = value.get("bytes") if isinstance(value, dict) else None
        if isinstance(packed, str):
            try:
                found.append(("", loads(base64.b64decode(packed), hook)))
            except ValueError:
                continue
    return found


def _get(value: Any, *keys: str) -> Any:
    """Follow keys, under any of the spellings that a reader's hook leaves."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value[key] if key in value else value.get(key.lower())
    return value


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def arguments(text: Any, hook: Hook) -> Any:
    return loads(text, hook) if isinstance(text, str) else text


def _used(block: Any) -> bool:
    """To LiteLLM a `server_tool_use` is a call like the others; the provider's own tools are nobody's to run."""
    kind = _get(block, "type")
    return kind in ("tool_use", "mcp_tool_use") or (
        kind == "server_tool_use" and _get(block, "name") not in ("web_search", "web_fetch", "code_execution")
    )


def anthropic(values: Values, hook: Hook) -> Iterator[Run]:
    blocks: list[list[Any]] = []
    at: dict[str, list[Any]] = {}
    for name, value in values:
        kind = _get(value, "type") or name
        if kind == "message_start" or _get(value, "content") is not None:
            content = _items(_get(value, "message", "content")) + _items(_get(value, "content"))
            uses = [block for block in content if _used(block)]
            blocks += ([_get(block, "name"), _get(block, "input"), ""] for block in uses)
        elif kind == "content_block_start":
            block = _get(value, "content_block")
            made = [_get(block, "name"), _get(block, "input"), ""]
            at[_key(_get(value, "index"))] = made
            if _used(block):
                blocks.append(made)
        elif kind == "content_block_delta" and isinstance(part := _get(value, "delta", "partial_json"), str):
            at.setdefault(_key(_get(value, "index")), ["", None, ""])[2] += part
    for call, given, parts in blocks:
        yield call, given
        yield call, loads(parts, hook)


def chat(values: Values, hook: Hook) -> Iterator[Run]:
    added: dict[str, list[str]] = {}
    by_id: dict[str, list[str]] = {}
    for _, value in values:
        for choice in _items(_get(value, "choices")):
            number = _key(_get(choice, "index"))
            for carrier in ("delta", "message"):
                carried = _get(choice, carrier)
                pieces = [(f"legacy {number}", _get(carried, "function_call"), None)]
                for place, entry in enumerate(_items(_get(carried, "tool_calls"))):
                    index = _get(entry, "index")
                    where = f"{number} {_key(place if index is None else index)}"
                    inner = _get(entry, "function") or _get(entry, "custom")
                    pieces.append((where, inner, _get(entry, "id")))
                for where, inner, call_id in pieces:
                    name, text = _get(inner, "name"), _get(inner, "arguments")
                    if text is None:
                        text = _get(inner, "input")
                        yield name, text
                    else:
                        yield name, arguments(text, hook)
                    kept = added.setdefault(where, ["", ""])
                    kept[0] += name if isinstance(name, str) else ""
                    kept[1] += text if isinstance(text, str) else ""
                    if isinstance(call_id, str) and call_id:
                        by_id[where] = ["", ""]
                    kept = by_id.setdefault(where, ["", ""])
                    kept[0] = (name if isinstance(name, str) else "") or kept[0]
                    kept[1] += text if isinstance(text, str) else ""
    for call, parts in (*added.values(), *by_id.values()):
        yield call, loads(parts, hook)


_CALLS = ("function_call", "custom_tool_call", "mcp_call", "mcp_approval_request")


def responses(values: Values, hook: Hook) -> Iterator[Run]:
    names: dict[str, Any] = {}
    parts: dict[str, str] = {}
    for _, value in values:
        items = [
            _get(value, "item"),
            *_items(_get(value, "response", "output")),
            *_items(_get(value, "output")),
        ]
        for item in items:
            if _get(item, "type") in _CALLS:
                name, text = _get(item, "name"), _get(item, "arguments")
                yield name, _get(item, "input") if text is None else arguments(text, hook)
                for key in ("item_id", "output_index"):
                    found = _get(item, "id") if key == "item_id" else _get(value, "output_index")
                    if found not in (None, ""):
                        names[f"{key} {_key(found)}"] = name
        delta, done = _get(value, "delta"), _get(value, "arguments")
        if isinstance(delta, str) and _get(value, "type") != "response.output_text.delta":
            for key in ("item_id", "output_index"):
                where = f"{key} {_key(_get(value, key))}"
                parts[where] = parts.get(where, "") + delta
        if isinstance(done, str):
            yield names.get(f"item_id {_key(_get(value, 'item_id'))}", ""), loads(done, hook)
    for where, text in parts.items():
        if where in names:
            yield names[where], loads(text, hook)


def gemini(values: Values, hook: Hook) -> Iterator[Run]:
    for _, value in values:
        for candidate in _items(_get(value, "candidates")):
            for part in _items(_get(candidate, "content", "parts")):
                for key in ("functionCall", "function_call"):
                    call = _get(part, key)
                    if isinstance(call, dict):
                        yield _get(call, "name"), _get(call, "args")
                        for piece in _items(_get(call, "partialArgs")):
                            yield "a piece", _get(piece, "stringValue")


_STEPS = ("function_call", "mcp_server_tool_call")


def interactions(values: Values, hook: Hook) -> Iterator[Run]:
    at: dict[str, list[Any]] = {}
    for name, value in values:
        kind = _get(value, "event_type") or name
        begun, delta = _get(value, "step"), _get(value, "delta")
        listed = _items(_get(value, "interaction", "steps")) + _items(_get(value, "steps"))
        for step in (*listed, begun, delta):
            if _get(step, "type") in _STEPS:
                yield _get(step, "name"), _get(step, "arguments")
        where = _key(_get(value, "index"))
        if kind == "step.start":
            at[where] = [_get(begun, "name") if _get(begun, "type") in _STEPS else None, ""]
        elif isinstance(part := _get(delta, "arguments"), str) and where in at:
            at[where][1] += part
    for called, text in at.values():
        yield called, loads(text, hook)


def ollama(values: Values, hook: Hook) -> Iterator[Run]:
    for _, value in values:
        for call in _items(_get(value, "message", "tool_calls")):
            yield _get(call, "function", "name"), arguments(_get(call, "function", "arguments"), hook)


def converse(values: Values, hook: Hook) -> Iterator[Run]:
    opened: dict[str, list[Any]] = {}
    calls = []
    for name, value in values:
        where = _key(_get(value, "contentBlockIndex"))
        use = _get(value, "start", "toolUse")
        if name == "contentBlockStart" and isinstance(use, dict):
            opened[where] = [_get(use, "name"), ""]
            calls.append(opened[where])
        part = _get(value, "delta", "toolUse", "input")
        if name == "contentBlockDelta" and isinstance(part, str) and where in opened:
            opened[where][1] += part
        for block in _items(_get(value, "output", "message", "content")):
            if isinstance(_get(block, "toolUse"), dict):
                yield _get(block, "toolUse", "name"), _get(block, "toolUse", "input")
    for call, text in calls:
        yield call, loads(text, hook)


HOOKS: dict[str, Hook] = {"last key wins": None, "first key wins": first_wins, "any case": any_case}
