"""From a fuzzer's bytes to hostile streams: each byte is a choice, so that what libFuzzer mutates are events and not punctuation.

A byte string that ran out chooses the first of everything, which is the honest form.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from agentsh_net.core.framing import event_stream

DENIED, ALLOWED = "mcp__fs__drop", "mcp__weather__get"
EVIL = "evil"

NAMES: Final = (
    DENIED, ALLOWED, "mcp__fs__", "drop", "", "mcp__weather__", "get", "MCP__FS__DROP", " mcp__fs__drop ",
    "mcp__fs__dr\u200bop", "mcp__fs__dro", "p", None, 7, [DENIED], {"name": DENIED},
)  # fmt: skip
PARTS: Final = (
    '{"a":1}', "", "{}", '{"a":', "1}", '"evil"}', ',"b":"evil"}', '{"a":"evil"}', '{"a":"e', 'vil"}',
    '{"a":"\\u0065vil"}', '{"a":1,"a":"evil"}', "null", "[1]", " ", "}", None, 5, {"a": EVIL},
)  # fmt: skip
INDICES: Final = (0, 1, 2, 3, -1, None, "0", "1", True, False, 1.0, 0.5, 10**20, [0], {})
REASONS: Final = ("tool_use", "end_turn", "tool_calls", "stop", "function_call", "length", None, "STOP", 3)
INPUTS: Final = ({}, {"a": 1}, {"a": EVIL}, None, "", '{"a":"evil"}', [EVIL], 0, {"a": {"b": [EVIL]}})
IDS: Final = ("call_1", "call_2", "", None, 3, "call_1 ")
JUNK: Final = (
    None,
    0,
    "",
    [],
    {},
    True,
    DENIED,
    "x" * 40,
    1e400,
    -(10**25),
    "\ud800",
    "tool_use",
    "function_call",
)


class Choices:
    """A fuzzer's bytes, taken one by one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def byte(self) -> int:
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.byte() % len(options)]

    def text(self) -> str:
        taken = self._data[self._at : self._at + 1 + self.byte() % 16]
        self._at += len(taken)
        return taken.decode("utf-8", "replace")


def spelled(value: Any, c: Choices) -> str:
    """Return JSON text, usually plain, else with whatever parsers disagree about."""
    if c.byte() < 176:
        return json.dumps(value)
    return _odd(value, c, 0)


def _string(text: str, c: Choices) -> str:
    plain = json.dumps(text)
    how = c.byte()
    if how < 160 or not text:
        return plain
    at = how % len(text)
    if how < 224 and text[at].isascii():
        return json.dumps(text[:at])[:-1] + f"\\u{ord(text[at]):04x}" + json.dumps(text[at + 1 :])[1:]
    if how >= 252 and len(text) > 1:
        return f"{json.dumps(text[:1])[:-1]}\n{json.dumps(text[1:])[1:]}"
    if how >= 240 and text.isascii():
        return (
            '"'
            + "".join(
                f"\\u{ord(char):04X}" if how >> at % 4 & 1 else f"\\u{ord(char):04x}"
                for at, char in enumerate(text)
            )
            + '"'
        )
    return json.dumps(text, ensure_ascii=False)


def _odd(value: Any, c: Choices, depth: int) -> str:
    if depth > 5 or not isinstance(value, (dict, list)):
        return _string(value, c) if isinstance(value, str) else json.dumps(value)
    if isinstance(value, list):
        return "[" + ",".join(_odd(item, c, depth + 1) for item in value) + "]"
    members: list[str] = []
    for key, item in value.items():
        how = c.byte()
        name, text = _string(key, c), _odd(item, c, depth + 1)
        if how >= 232:
            other = json.dumps(c.pick((*JUNK, *NAMES[:4], item)))
            twice = [f"{name}:{other}", f"{name}:{text}"]
            members += twice if how & 1 else twice[::-1]
        elif how >= 216:
            members.append(f" {name}\t:\n {text}".replace("\n", " " if how & 1 else "\n"))
        elif how >= 208:
            members.append(f"{json.dumps(key.upper() if how & 1 else key.title())}:{text}")
        elif how >= 200:
            continue
        elif how >= 192:
            members.append(f"{name}:{json.dumps(c.pick(JUNK))}")
        elif how >= 188:
            members.insert(0, f"{name}:{text}")
        else:
            members.append(f"{name}:{text}")
    return "{" + ",".join(members) + "}"


# ---- events: (name of the event line, value) ----

Made = tuple[str, Any]


def _calls_type(c: Choices) -> Any:
    return c.pick(
        (
            "tool_use",
            "tool_use",
            "server_tool_use",
            "mcp_tool_use",
            "text",
            "Tool_Use",
            "mcp_tool_result",
            None,
            "x",
        )
    )


def _block(c: Choices) -> dict[str, Any]:
    block = {"type": _calls_type(c), "id": c.pick(IDS), "name": c.pick(NAMES), "input": c.pick(INPUTS)}
    if block["type"] == "mcp_tool_use":
        block["server_name"] = c.pick(("fs", "weather", "", None))
    return block


def anthropic(c: Choices) -> Made:
    index = {"index": c.pick(INDICES)}
    match c.byte() % 12:
        case 0 | 1:
            made = {"type": "content_block_start", **index, "content_block": _block(c)}
        case 2 | 3:
            delta = {
                "type": c.pick(("input_json_delta", "input_json_delta", "text_delta", None)),
                "partial_json": c.pick(PARTS),
            }
            made = {"type": "content_block_delta", **index, "delta": delta}
        case 4:
            made = {"type": "content_block_stop", **index}
        case 5:
            made = {
                "type": "message_start",
                "message": {"role": "assistant", "content": [_block(c) for _ in range(c.byte() % 3)]},
            }
        case 6:
            made = {
                "type": "message_delta",
                "delta": {"stop_reason": c.pick(REASONS)},
                "usage": {"output_tokens": 4},
            }
        case 7:
            made = {"type": "message_stop"}
        case 8:
            made = {"type": "content_block_start", **index, "content_block": {"type": "text", "text": ""}}
        case 9:
            made = {"type": "content_block_delta", **index, "delta": {"type": "text_delta", "text": c.text()}}
        case 10:
            made = {
                "type": c.pick(("ping", "error", "content_block_surprise")),
                "error": {"type": "e", "message": "m"},
            }
        case _:
            made = {
                "type": c.pick(("content_block_start", "x", None)),
                "content_block": c.pick(JUNK),
                **index,
            }
    return str(made["type"]), made


def _chat_entry(c: Choices) -> dict[str, Any]:
    entry: dict[str, Any] = {"index": c.pick(INDICES)}
    how = c.byte()
    if how & 1:
        entry |= {"id": c.pick(IDS), "type": c.pick(("function", "custom", None, "x"))}
    inner: dict[str, Any] = {}
    if how & 2:
        inner["name"] = c.pick(NAMES)
    if how & 4:
        inner["input" if how & 16 else "arguments"] = c.pick(PARTS)
    entry["custom" if how & 8 else "function"] = inner
    if how & 32:
        del entry["index"]
    return entry


def chat(c: Choices) -> Made:
    delta: dict[str, Any]
    match c.byte() % 8:
        case 0 | 1 | 2:
            delta = {"tool_calls": [_chat_entry(c) for _ in range(1 + c.byte() % 2)]}
        case 3:
            delta = {"content": c.text()}
        case 4:
            delta = {"function_call": {"name": c.pick(NAMES), "arguments": c.pick(PARTS)}}
        case 5:
            return "", {"choices": c.pick(JUNK), "usage": {"total_tokens": 4}}
        case 6:
            delta = {"tool_calls": c.pick(JUNK)}
        case _:
            delta = {}
    carrier = c.pick(("delta", "delta", "delta", "message"))
    reason = c.pick((None, None, *REASONS))
    choices = [{"index": c.pick((0, 0, 0, *INDICES)), carrier: delta, "finish_reason": reason}]
    return "", {"id": "c", "object": "chat.completion.chunk", "choices": choices}


_ITEMS: Final = (
    "function_call", "function_call", "custom_tool_call", "mcp_call", "mcp_approval_request", "message",
    "local_shell_call", "tool_search_call", "Function_Call", None,
)  # fmt: skip


def _item(c: Choices) -> dict[str, Any]:
    kind = c.pick(_ITEMS)
    item: dict[str, Any] = {"type": kind, "id": c.pick(IDS), "call_id": c.pick(IDS), "name": c.pick(NAMES)}
    if kind == "message":
        return item | {"role": "assistant", "content": [{"type": "output_text", "text": c.text()}]}
    item["input" if kind == "custom_tool_call" else "arguments"] = c.pick(PARTS)
    if c.byte() & 1:
        item["namespace"] = c.pick(("mcp__fs", "mcp__weather", "", None))
    return item


def responses(c: Choices) -> Made:
    where = {"output_index": c.pick(INDICES)}
    match c.byte() % 8:
        case 0 | 1:
            made = {"type": "response.output_item.added", **where, "item": _item(c)}
        case 2 | 3:
            made = {"type": "response.output_item.done", **where, "item": _item(c)}
        case 4:
            kind = c.pick(("function_call_arguments", "custom_tool_call_input", "mcp_call_arguments"))
            end = c.pick(("delta", "delta", "done"))
            key = "delta" if end == "delta" else "arguments"
            made = {"type": f"response.{kind}.{end}", "item_id": c.pick(IDS), **where, key: c.pick(PARTS)}
        case 5:
            kind = c.pick(("completed", "created", "in_progress", "incomplete", "failed"))
            output = [_item(c) for _ in range(c.byte() % 3)]
            made = {
                "type": f"response.{kind}",
                "response": {"id": "r", "object": "response", "output": output},
            }
        case 6:
            made = {"type": "response.output_text.delta", **where, "item_id": c.pick(IDS), "delta": c.text()}
        case _:
            made = {
                "type": c.pick(("error", "response.surprise", "response.output_item.done")),
                "item": c.pick(JUNK),
            }
    return str(made["type"]), made | {"sequence_number": c.byte()}


def _gemini_part(c: Choices) -> dict[str, Any]:
    match c.byte() % 6:
        case 0 | 1:
            return {"functionCall": {"name": c.pick(NAMES), "args": c.pick(INPUTS)}}
        case 2:
            return {"text": c.text()}
        case 3:
            call: dict[str, Any] = {"willContinue": c.pick((True, False, None))}
            if c.byte() & 1:
                call["name"] = c.pick(NAMES)
            if c.byte() & 1:
                call["partialArgs"] = [{"jsonPath": "$.a", "stringValue": c.pick(("x", "ev", "il", EVIL))}]
            return {"functionCall": call}
        case 4:
            return {"function_call": {"name": c.pick(NAMES), "args": c.pick(INPUTS)}}
        case _:
            return {"functionCall": c.pick(JUNK)}


def gemini(c: Choices) -> Made:
    parts: Any = [_gemini_part(c) for _ in range(1 + c.byte() % 2)]
    candidate = {
        "content": {"parts": parts, "role": "model"},
        "index": c.pick((0, 0, *INDICES)),
        "finishReason": c.pick(REASONS),
    }
    if c.byte() > 240:
        return "", {"candidates": c.pick(JUNK)}
    return "", {"candidates": [candidate]}


def _step(c: Choices) -> dict[str, Any]:
    kind = c.pick(
        (
            "function_call",
            "function_call",
            "mcp_server_tool_call",
            "model_output",
            "google_search_call",
            "Function_Call",
            None,
        )
    )
    step = {"type": kind, "id": c.pick(IDS), "name": c.pick(NAMES), "arguments": c.pick(INPUTS)}
    if kind == "mcp_server_tool_call":
        step["server_name"] = c.pick(("fs", "weather", "", None))
    return step


def interactions(c: Choices) -> Made:
    index = {"index": c.pick(INDICES)}
    made: dict[str, Any]
    match c.byte() % 8:
        case 0 | 1:
            made = {"event_type": "step.start", **index, "step": _step(c)}
        case 2:
            made = {
                "event_type": "step.delta",
                **index,
                "delta": {"type": "arguments_delta", "arguments": c.pick(PARTS)},
            }
        case 3:
            made = {"event_type": "step.stop", **index}
        case 4:
            kind = c.pick(("completed", "created", "status_update", "surprise"))
            made = {"event_type": f"interaction.{kind}", "interaction": {"status": c.pick(("requires_action", *REASONS)), "steps": [_step(c) for _ in range(c.byte() % 3)]}}  # fmt: skip
        case 5:
            made = {
                "event_type": "step.delta",
                **index,
                "delta": c.pick(({"type": "text", "text": "a"}, _step(c))),
            }
        case 6:
            made = {
                "event_type": "step.start",
                **index,
                "step": c.pick(({"type": "model_output"}, {"type": "google_search_call"})),
            }
        case _:
            made = {"event_type": c.pick(("error", "step.start", "x", None)), "step": c.pick(JUNK), **index}
    return str(made["event_type"]), made


def ollama(c: Choices) -> Made:
    message: dict[str, Any] = {"role": "assistant", "content": c.text()}
    match c.byte() % 4:
        case 0 | 1:
            message["tool_calls"] = [
                {"function": {"name": c.pick(NAMES), "arguments": c.pick(INPUTS)}}
                for _ in range(1 + c.byte() % 2)
            ]
        case 2:
            message["tool_calls"] = c.pick(JUNK)
        case _:
            pass
    return "", {"model": "m", "message": message, "done": c.pick((False, True))}


def converse(c: Choices) -> Made:
    index = {"contentBlockIndex": c.pick(INDICES)}
    match c.byte() % 7:
        case 0 | 1:
            use = {"name": c.pick(NAMES), "toolUseId": c.pick(IDS)}
            return "contentBlockStart", {**index, "start": {"toolUse": use}}
        case 2:
            return "contentBlockDelta", {**index, "delta": {"toolUse": {"input": c.pick(PARTS)}}}
        case 3:
            return "contentBlockStop", index
        case 4:
            return "contentBlockDelta", {**index, "delta": {"text": c.text()}}
        case 5:
            return "messageStop", {"stopReason": c.pick(REASONS)}
        case _:
            return c.pick(("messageStart", "metadata", "x", "contentBlockStart")), {
                "role": "assistant",
                "start": c.pick(JUNK),
            }


# ---- framings ----

Builder = Callable[[Choices], Made]
MOST: Final = 40  # events
_ENDS: Final = ("\n", "\n", "\r\n", "\r")


def made(build: Builder, c: Choices) -> Iterator[Made]:
    """Yield events while there are choices left."""
    for count in range(MOST):
        if count and not c.left:
            return
        yield build(c)


def sse(events: Iterable[Made], c: Choices) -> bytes:
    """Return a stream of events."""
    out = "\ufeff" if c.byte() > 250 else ""
    end = c.pick(_ENDS)
    for kind, value in events:
        name, text = kind, spelled(value, c)
        how = c.byte()
        if how > 248:
            end = c.pick(_ENDS)
        if how > 240:
            name = c.pick(("", "content_block_start", "response.output_item.done", "error", "x"))
        if how > 232:
            text = text.replace(", ", f",{end}data: ", 1 + how % 3)
        lines = [f"event: {name}"] if name and how < 224 else []
        lines.append(("data:" if 200 < how < 210 else "data: ") + text)
        if 190 < how < 200:
            lines.insert(how % 2, f": {c.text()}".replace("\r", "").replace("\n", ""))
        if 184 < how <= 190:
            lines.append(f"data: {c.pick(('[DONE]', '', '{}', text))}")
        if 166 < how <= 170:
            lines[how % len(lines)] = "\ufeff" + lines[how % len(lines)]
        if 180 < how <= 184:
            lines = [f"{c.pick(('id', 'retry', 'data ', 'Data'))}: {text}", *lines]
        out += end.join(lines) + (end if 176 < how <= 180 else end * 2)
        if 170 < how <= 176:
            out += f"data: [DONE]{end}{end}"
    return out.encode("utf-8", "surrogatepass")


def array(events: Iterable[Made], c: Choices) -> bytes:
    """Return a stream that is one JSON array."""
    texts = [spelled(value, c) for _, value in events]
    return (
        c.pick(("[", "[", "[\n", " [")) + c.pick((",", ",\r\n", ", ")).join(texts) + c.pick(("]", "]\n", ""))
    ).encode("utf-8", "surrogatepass")


def lines(events: Iterable[Made], c: Choices) -> bytes:
    """Return a stream of lines."""
    out = ""
    for _, value in events:
        out += spelled(value, c) + c.pick(("\n", "\n", "\r\n", "", " ", "\r"))
    return out.encode("utf-8", "surrogatepass")


def messages(events: Iterable[Made], c: Choices, *, wrap: bool) -> bytes:
    """Return a stream of Amazon's messages."""
    out = b""
    for kind, value in events:
        name, payload = kind, spelled(value, c).encode("utf-8", "surrogatepass")
        how = c.byte()
        if wrap:
            name = "chunk"
            payload = json.dumps({"bytes": b64encode(payload).decode(), "p": "ab"}).encode()
        if how > 246:
            name = c.pick(("contentBlockStart", "chunk", "x", ""))
        headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
        if how in {240, 241}:
            headers[":message-type"] = c.pick(("exception", "error", "Event", ""))
        message = event_stream.make(headers, payload)
        if how == 242:
            message = message[:-1] + bytes([message[-1] ^ 1])
        out += message
    return out
