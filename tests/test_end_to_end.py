"""The product as a user meets it: the program, a policy file, an official SDK pointed at the proxy, and what the CLI then tells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import pytest
import yaml
from running import awaited

TOOL = "mcp__weather__delete_city"


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def answer() -> Iterator[bytes]:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
    }
    yield event("message_start", message={**message, "usage": {"input_tokens": 1, "output_tokens": 1}})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": "I shall. "})
    yield event("content_block_stop", index=0)
    yield event(
        "content_block_start",
        index=1,
        content_block={"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {}},
    )
    yield event(
        "content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"city": "Ulm"}'}
    )
    yield event("content_block_stop", index=1)
    yield event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9})
    yield event("message_stop")


class Provider(BaseHTTPRequestHandler):
    """Streams the answer, whatever was asked, and notes the headers that reached it."""

    protocol_version = "HTTP/1.1"
    seen: list[dict[str, str]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        type(self).seen.append(dict(self.headers.items()))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for frame in answer():
            self.wfile.write(b"%x\r\n%b\r\n" % (len(frame), frame))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[str]:
    Provider.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class Program:
    """`agentsh-net run`, without the kernel's layers, so that any user can run this test."""

    def __init__(self, folder: Path, provider: str) -> None:
        self.folder, self.provider = folder, provider
        self.file, self.ready = folder / "policy.yaml", folder / "ready"

    def write(self, *denied: str) -> None:
        mcp = {
            "servers": [{"id": "weather", "type": "stdio", "command": "weather"}],
            "denied_tools": [{"server": "weather", "tool": tool} for tool in denied],
        }
        policy = {
            "version": 1,
            "sandbox": {"mcp": mcp},
            "network": {"mode": "off"},
            "proxy": {"port": 0, "providers": {"anthropic": {"base_url": self.provider}}},
            "store": {"path": str(self.folder / "events.db")},
            "control": {"socket": str(self.folder / "control.sock")},
        }
        scratch = self.file.with_suffix(".new")
        scratch.write_text(yaml.safe_dump(policy))
        scratch.rename(self.file)

    def cli(self, *arguments: str, code: int = 0) -> str:
        environ = os.environ | {"AGENTSH_NET_SOCKET": str(self.folder / "control.sock")}
        command = [sys.executable, "-m", "agentsh_net", *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def calls(self, *filters: str) -> list[dict[str, Any]]:
        return json.loads(self.cli("mcp", "calls", "--json", *filters))

    def ask(self, session: str = "") -> anthropic.types.Message:
        url = session or json.loads(self.ready.read_text())["proxy"] + "/anthropic"
        client = anthropic.Anthropic(api_key="sk-ant-secret", base_url=url, max_retries=0)
        with client.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "delete Ulm"}]
        ) as stream:
            return stream.get_final_message()


@contextmanager
def program(folder: Path, provider: str, *denied: str) -> Iterator[Program]:
    here = Program(folder, provider)
    here.write(*denied)
    command = [
        sys.executable,
        "-m",
        "agentsh_net",
        "run",
        "--config",
        str(here.file),
        "--ready-file",
        str(here.ready),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        awaited(lambda: here.ready.exists() or process.poll() is not None, within=30)
        assert process.poll() is None, (folder / "log").read_text()
        yield here
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, (folder / "log").read_text()


def test_a_denied_call_arrives_as_text_and_the_audit_says_why(tmp_path: Path, provider: str) -> None:
    with program(tmp_path, provider, "delete_*") as here:
        message = here.ask()
        notice = f"[agentsh] Tool '{TOOL}' blocked by policy: "
        assert [block.type for block in message.content] == ["text", "text"]
        assert message.content[0].text == "I shall. "
        assert message.content[1].text.startswith(notice)
        assert message.stop_reason == "end_turn"
        (call,) = awaited(lambda: here.calls("--action", "block"))
        assert (call["tool_name"], call["server_id"], call["input"]) == (TOOL, "weather", {"city": "Ulm"})
        assert call["rule"] == "sandbox.mcp.denied_tools[0]"
        assert call["reason"] in message.content[1].text
        assert "VERDICT      block" in here.cli("policy", "explain", "--tool", TOOL, code=1)
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("events.db*"))
    assert b"sk-ant-secret" not in stored
    assert b"sk-ant-secret" not in (tmp_path / "log").read_bytes()


def test_an_allowed_call_arrives_and_a_revocation_bites_the_next_one(tmp_path: Path, provider: str) -> None:
    with program(tmp_path, provider) as here:
        message = here.ask()
        assert (message.content[1].type, message.content[1].input) == ("tool_use", {"city": "Ulm"})
        assert message.stop_reason == "tool_use"
        here.write("delete_*")
        here.cli("reload")
        assert here.ask().content[1].type == "text"
        awaited(lambda: [call["action"] for call in here.calls()] == ["allow", "block"])


def test_a_call_belongs_to_the_session_whose_token_is_in_the_url(tmp_path: Path, provider: str) -> None:
    with program(tmp_path, provider) as here:
        told = json.loads(here.cli("session", "new", "--id", "agent-7", "--json"))
        here.ask(told["env"]["ANTHROPIC_BASE_URL"])
        (call,) = awaited(lambda: here.calls("--session", "agent-7"))
        assert call["tool_name"] == TOOL
        guess = told["env"]["ANTHROPIC_BASE_URL"].replace(told["token"], "x" * len(told["token"]))
        with pytest.raises(anthropic.PermissionDeniedError):
            here.ask(guess)
        assert len(Provider.seen) == 1
        assert not any(told["token"] in str(headers) for headers in Provider.seen)
