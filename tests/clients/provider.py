"""A scripted provider: lets the model call one tool of the server `files`, and ends the turn once the agent answers the call.

It speaks every wire that the agents do, and calls the tool by the name under which the agent offered it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from loopback.upstream import Conversation, Received, chunked, response

from agentsh_net.core.web.websocket import Opcode, Reader, frame

DONE = "All done."
_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3


def event(kind: str, **data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **data}))


def anthropic(tool: str) -> Iterator[bytes]:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 1},
    }  # fmt: skip
    yield event("message_start", message=message)
    if tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
        piece = {"type": "input_json_delta", "partial_json": '{"path": "/x"}'}
    else:
        block, piece = {"type": "text", "text": ""}, {"type": "text_delta", "text": DONE}
    yield event("content_block_start", index=0, content_block=block)
    yield event("content_block_delta", index=0, delta=piece)
    yield event("content_block_stop", index=0)
    reason = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=reason, usage={"output_tokens": 9})
    yield event("message_stop")


def responses(tool: str) -> Iterator[bytes]:
    space, _, name = tool.rpartition("/")
    if tool:
        item: dict[str, Any] = {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": '{"path": "/x"}',
            "status": "completed",
        } | ({"namespace": space} if space else {})  # fmt: skip
    else:
        said = [{"type": "output_text", "text": DONE, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": said}
    usage = {
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
    }  # fmt: skip
    answer = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "output": []}
    yield event("response.created", sequence_number=0, response={**answer, "status": "in_progress"})
    begun = item | ({"arguments": ""} if tool else {"content": []})
    yield event("response.output_item.added", sequence_number=1, output_index=0, item=begun)
    if tool:
        where = {"item_id": "fc_1", "output_index": 0}
        yield event(
            "response.function_call_arguments.delta", sequence_number=2, **where, delta=item["arguments"]
        )
        done = {"name": name, "arguments": item["arguments"]}
        yield event("response.function_call_arguments.done", sequence_number=3, **where, **done)
    else:
        where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        yield event("response.content_part.added", sequence_number=2, **where, part=said[0] | {"text": ""})
        yield event("response.output_text.delta", sequence_number=3, **where, delta=DONE)
    yield event("response.output_item.done", sequence_number=4, output_index=0, item=item)
    whole = {**answer, "status": "completed", "output": [item], "usage": usage}
    yield event("response.completed", sequence_number=5, response=whole)


def warmed() -> Iterator[bytes]:
    answer = {"id": "resp_0", "object": "response", "output": []}
    yield event("response.created", sequence_number=0, response={**answer, "status": "in_progress"})
    yield event("response.completed", sequence_number=1, response={**answer, "status": "completed"})


def chat(tool: str) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        made = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
        return b"data: %b\n\n" % orjson.dumps(made)

    yield chunk({"role": "assistant", "content": None if tool else ""})
    if tool:
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": tool, "arguments": ""}}
        yield chunk({"tool_calls": [call]})
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"path": "/x"}'}}]})
    else:
        yield chunk({"content": DONE})
    yield chunk({}, "tool_calls" if tool else "stop")
    yield b"data: [DONE]\n\n"


def gemini(tool: str) -> Iterator[bytes]:
    part = {"functionCall": {"name": tool, "args": {"path": "/x"}}} if tool else {"text": DONE}
    told = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": {"parts": [part], "role": "model"}, "index": 0, "finishReason": "STOP"}
    yield b"data: %b\r\n\r\n" % orjson.dumps({"candidates": [candidate], "usageMetadata": told})


def _names(tools: Any, space: str = "") -> Iterator[str]:
    """Yield the names of offered tools, those of a namespace behind it and a slash."""
    for tool in tools if isinstance(tools, list) else []:
        inner = tool.get("function", tool)
        yield from (f"{declared['name']}" for declared in tool.get("functionDeclarations", []))
        if tool.get("type") == "namespace":
            yield from _names(tool.get("tools"), tool["name"])
        elif name := inner.get("name"):
            yield f"{space}/{name}" if space else name


@dataclass
class Provider:
    """`answers` is what the agent said of the call, `requests` how many requests of the conversation with the tools came."""

    tool: str
    answers: list[Any] = field(default_factory=list)
    requests: int = 0
    called: str = ""  # the name on the wire

    async def __call__(self, conversation: Conversation, received: Received) -> None:
        line = received.line
        if received.values("upgrade"):
            await self._socket(conversation, received)
        elif not line.startswith(b"POST") or b"count_tokens" in line or b"countTokens" in line:
            await conversation.send(
                response(b'{"input_tokens": 5, "totalTokens": 5, "data": [], "models": []}')
            )
        elif b"/messages" in line:
            await self._stream(conversation, orjson.loads(received.body), anthropic, unseen="mcp__files__")
        elif b"/responses" in line:
            await self._stream(conversation, orjson.loads(received.body), responses)
        elif b"/chat/completions" in line:
            await self._stream(conversation, orjson.loads(received.body), chat)
        elif b":streamGenerateContent" in line:
            await self._stream(conversation, orjson.loads(received.body), gemini)
        elif b":generateContent" in line:  # the agent's own small questions
            data = b"".join(gemini("")).removeprefix(b"data: ").strip()
            await conversation.send(response(data))
        else:
            await conversation.send(response(b"{}"))

    async def _stream(
        self,
        conversation: Conversation,
        body: Any,
        wire: Callable[[str], Iterator[bytes]],
        unseen: str = "mcp__files/",
    ) -> None:
        await conversation.send(*chunked(*wire(self._next(body, unseen))))

    def _next(self, body: Any, unseen: str = "mcp__files/") -> str:
        """Return the name of the tool to call, nothing where the model is to say that it is done.

        `unseen`: Claude Code and Codex may offer an MCP server's tools only after a search; they know them by this all the same.
        """
        offered = list(_names(body.get("tools")))
        if not offered:
            return ""  # a title, a summary
        self.requests += 1
        results = list(_results(body))
        self.answers += results
        if results:
            return ""
        # Gemini CLI has a `read_file` of its own, too.
        self.called = next(
            (
                name
                for name in offered
                if name.endswith(self.tool) and "files" in name.removesuffix(self.tool)
            ),
            unseen + self.tool,
        )
        return self.called

    async def _socket(self, conversation: Conversation, received: Received) -> None:
        key = hashlib.sha1(received.values("sec-websocket-key")[0] + _ACCEPT, usedforsecurity=False).digest()
        agreed = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        await conversation.send(agreed + base64.b64encode(key) + b"\r\n\r\n")
        reader = Reader(masked=True, max_message=64 << 20)
        while data := await conversation.reader.read(1 << 16):
            for message in reader.feed(data):
                if message.control:
                    continue
                asked = orjson.loads(message.payload)
                # Codex opens the connection with a request that asks for nothing.
                warming = asked.get("generate") is False
                for made in warmed() if warming else responses(self._next(asked)):
                    await conversation.send(frame(Opcode.TEXT, made.partition(b"data: ")[2].strip()))


def _results(body: Any) -> Iterator[Any]:
    """Yield what the agent says of calls, in any wire."""
    for item in body.get("input", []) if isinstance(body.get("input"), list) else []:
        if item.get("type", "").endswith("call_output"):
            yield item
    for message in body.get("messages", []):
        if message.get("role") == "tool":
            yield message
        content = message.get("content")
        yield from (b for b in content if b.get("type") == "tool_result") if isinstance(content, list) else ()
    for content in body.get("contents", []):
        yield from (part for part in content.get("parts", []) if "functionResponse" in part)
