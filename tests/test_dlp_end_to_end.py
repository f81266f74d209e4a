"""DLP through the running product: two workers, an official SDK, a model that only ever sees tokens, and an audit without values."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import pytest
from running import awaited, running

EMAIL, CARD = "alice@example.com", "4111 1111 1111 1111"
TOKEN = re.compile(r"DLP_[A-Z0-9]+_[A-Z2-7]{16}")


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


class Model(BaseHTTPRequestHandler):
    """Writes back the tokens it was asked about, a character at a time, and calls a tool with them."""

    protocol_version = "HTTP/1.1"
    seen: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).seen.append(body)
        tokens = TOKEN.findall(body.decode())
        text, arguments = " and ".join(tokens), json.dumps({"to": tokens})
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
        }
        frames = [
            event("message_start", message={**message, "usage": {"input_tokens": 1, "output_tokens": 1}}),
            event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            *(event("content_block_delta", index=0, delta={"type": "text_delta", "text": c}) for c in text),
            event("content_block_stop", index=0),
            event(
                "content_block_start",
                index=1,
                content_block={"type": "tool_use", "id": "t", "name": "mcp__mail__send", "input": {}},
            ),
            *(
                event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": c})
                for c in arguments
            ),
            event("content_block_stop", index=1),
            event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9}),
            event("message_stop"),
        ]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for frame in frames:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(frame), frame))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[str]:
    Model.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_model_works_with_tokens_and_the_agent_with_values(tmp_path: Path, model: str) -> None:
    policy = {
        "sandbox": {"mcp": {"servers": [{"id": "mail", "type": "stdio", "command": "mail"}]}},
        "proxy": {"port": 0, "workers": 2, "providers": {"anthropic": {"base_url": model}}},
        "dlp": {"mode": "tokenize"},
        "metrics": {"listen": "127.0.0.1", "port": 0},
    }
    with running(tmp_path, policy) as here:
        base = here.status()["proxy"]["listen"] + "/anthropic"
        for _ in range(4):  # connections of their own, so that both workers take some
            client = anthropic.Anthropic(api_key="k", base_url=base, max_retries=0)
            content = f"mail {EMAIL} about {CARD}"
            with client.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": content}]
            ) as stream:
                message = stream.get_final_message()
            assert message.content[0].text == f"{EMAIL} and {CARD}"
            assert message.content[1].input == {"to": [EMAIL, CARD]}
        assert len({tuple(TOKEN.findall(body.decode())) for body in Model.seen}) == 1
        calls = awaited(lambda: len(found := here.events("mcp_tool_call_intercepted")) == 4 and found)
        assert {json.dumps(call["input"]) for call in calls} == {
            '{"to": ["[REDACTED:email]", "[REDACTED:credit_card]"]}'
        }
        counted = here.await_event("llm_request_redacted")
        assert (counted["mode"], counted["counts"]) == ("tokenize", {"email": 1, "credit_card": 1})
        assert here.on_loop(lambda: here.daemon.tally.redactions["email"]) == 4
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (EMAIL.encode(), CARD.encode()):
        assert secret not in b"".join(Model.seen)
        assert secret not in stored
