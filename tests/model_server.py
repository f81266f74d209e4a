"""An LLM provider in a thread, for tests: it speaks Anthropic's Messages, and what it answers is a function of the request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

# A request becomes a message (as JSON), or the events of a stream.
Answer = Callable[[Any], dict[str, Any] | Iterable[bytes]]


class Asked(NamedTuple):
    headers: dict[str, str]
    body: bytes


class Provider(NamedTuple):
    """Where it is, and what it was asked so far."""

    url: str
    asked: list[Asked]


def tool_use(name: str, arguments: Any = None, call_id: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if arguments is None else arguments}


def message(*content: dict[str, Any], stop_reason: str | None = "tool_use") -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def streamed(text: Iterable[str], call: dict[str, Any], arguments: Iterable[str]) -> Iterator[bytes]:
    """The events of a text in these pieces, and of a call whose arguments come in these."""
    yield event("message_start", message=message(stop_reason=None))
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in text:
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    yield event("content_block_stop", index=0)
    yield event("content_block_start", index=1, content_block=call)
    for piece in arguments:
        delta = {"type": "input_json_delta", "partial_json": piece}
        yield event("content_block_delta", index=1, delta=delta)
    yield event("content_block_stop", index=1)
    yield event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9})
    yield event("message_stop")


@contextmanager
def serving(answer: Answer, **headers: str) -> Iterator[Provider]:
    """Answer requests until the block ends; `headers` go with every answer, written with `_` for `-`."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            asked.append(Asked(dict(self.headers.items()), body))
            made = answer(json.loads(body))
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            if isinstance(made, dict):
                whole = json.dumps(made).encode()
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(whole)))
                self.end_headers()
                self.wfile.write(whole)
                return
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for frame in made:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(frame), frame))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Provider(f"http://127.0.0.1:{server.server_port}", asked)
        server.shutdown()
