"""A secret put into every place where one can stand is in no log, event, stored request, status, metric or list afterwards."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from running import awaited

SECRET = "S3CRET"  # and where it stood, so that a failure says which
BROKEN = b"{no json"
KEPT = "a-word-that-is-kept"  # it has to be found, or nothing was looked at

CREDENTIALS = {
    "x-api-key": f"{SECRET}-api-key",
    "Authorization": f"Bearer {SECRET}-bearer",
    "Cookie": f"a={SECRET}-cookie",
    "Proxy-Authorization": f"Basic {SECRET}-proxy",
    "x-goog-api-key": f"{SECRET}-goog",
    "X-Custom-Token": f"{SECRET}-custom",
}
CONNECTORS = {
    "openai": {"tools": [{"type": "mcp", "server_label": "x", "server_url": f"http://u:{SECRET}-url@h/mcp?t={SECRET}-query", "authorization": f"{SECRET}-connector", "headers": {"k": f"{SECRET}-header"}}]},
    "anthropic": {"mcp_servers": [{"type": "url", "name": "x", "url": f"http://h/mcp?a=1&who={SECRET}-query", "authorization_token": f"{SECRET}-token"}]},
}  # fmt: skip


class Peer(BaseHTTPRequestHandler):
    """A provider and an MCP server in one: each POST is answered in its own shape."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        asked = {} if body == BROKEN else json.loads(body)
        if "jsonrpc" in asked:
            tools = [{"name": "get", "inputSchema": {"type": "object"}}]
            results = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}, "tools/list": {"tools": tools}}  # fmt: skip
            answer = {"jsonrpc": "2.0", "id": asked.get("id"), "result": results.get(asked["method"], {"content": []})}  # fmt: skip
        else:
            call = {"type": "tool_use", "id": "t1", "name": "mcp__web__get", "input": {"badge": f"{SECRET}-999", "city": KEPT}}  # fmt: skip
            answer = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [call], "stop_reason": "tool_use"}  # fmt: skip
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("set-cookie", f"a={SECRET}-set-cookie")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def peer() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Peer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def policy(folder: Path, peer: int, dlp: str) -> dict[str, Any]:
    web = {"id": "web", "type": "http", "url": f"http://127.0.0.1:{peer}/mcp?api_key={SECRET}-server-url", "headers": {"Authorization": f"{SECRET}-server-header", "X-Env": "${SECRET_OF_ENV}"}}  # fmt: skip
    dead = {"id": "dead", "type": "http", "url": f"http://127.0.0.1:1/mcp?api_key={SECRET}-dead-url"}
    local = {"id": "fs", "type": "stdio", "command": "cat", "args": [f"--token={SECRET}-argument"], "env": {"KEY": f"{SECRET}-stdio-env"}}  # fmt: skip
    base = f"http://127.0.0.1:{peer}"
    return {
        "version": 1,
        "sandbox": {"mcp": {"enforce_policy": False, "servers": [web, dead, local]}},
        "proxy": {"port": 0, "providers": {"anthropic": {"base_url": base}, "openai": {"base_url": base + "/${SECRET_OF_ENV}/v1"}, "gone": {"dialect": "openai", "base_url": "http://127.0.0.1:1"}}},
        "dlp": {"mode": dlp, "custom_patterns": [{"name": "badge", "regex": f"{SECRET}-[0-9]{{3}}"}]},
        "llm_storage": {"store_bodies": True},
        "gateway": {
            "port": 0,
            "security_schemes": [
                {"id": "theirs", "type": "apiKey", "in": "header", "name": "X-Client", "credential": f"{SECRET}-client"},
                {"id": "ours", "type": "apiKey", "in": "query", "name": "k", "credential": f"{SECRET}-upstream"},
            ],
            "servers": {"web": {"downstream_security": "theirs", "upstream_security": "ours"}},
        },
        "metrics": {"listen": "127.0.0.1", "port": 0},
        "network": {"mode": "off"},
        "log": {"level": "debug"},
        "store": {"path": str(folder / "store" / "events.db")},
        "control": {"socket": str(folder / "c.sock")},
    }  # fmt: skip


def post(base: str, path: str, body: Any, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=60)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, data, {"content-type": "application/json", **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def traffic(ready: dict[str, Any]) -> None:
    proxy, gateway = ready["proxy"], ready["gateway"]
    said = [{"role": "user", "content": f"my badge is {SECRET}-123, {KEPT}"}]
    for path in ("/anthropic/v1/messages", "/openai/v1/responses", "/gone/v1/chat/completions", "/nobody/x"):
        asked = {"model": "m", "messages": said, "input": said, **CONNECTORS.get(path.split("/")[1], {})}
        post(proxy, f"{path}?key={SECRET}-key&beta=1", asked, CREDENTIALS)
        post(proxy, path, BROKEN, CREDENTIALS)
    post(proxy, f"/s/{SECRET}-token/anthropic/v1/messages", {}, CREDENTIALS)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}  # fmt: skip
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get", "arguments": {"badge": f"{SECRET}-777", "a": KEPT}}}  # fmt: skip
    accept = {**CREDENTIALS, "accept": "application/json, text/event-stream"}
    for server in ("web", "dead", f"nobody?k={SECRET}-nobody"):
        for message in (hello, call):
            post(gateway, f"/mcp/{server}", message, {**accept, "X-Client": f"{SECRET}-client"})
    assert post(gateway, "/mcp/web", hello, {**accept, "X-Client": f"{SECRET}-wrong"}) == 401


def seen(folder: Path, ready: dict[str, Any], environ: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield all that the program shows and leaves, with where it was."""
    commands = ["status", "status --json", "doctor --config policy.yaml", "policy check policy.yaml", "reload", "session list --json", "llm requests --json"]  # fmt: skip
    commands += [
        f"mcp {kind} --json" for kind in ("calls", "events", "tools", "servers", "detections", "pins list")
    ]
    for command in commands:
        ran = subprocess.run([sys.executable, "-m", "agentsh_net", *command.split()], capture_output=True, env=environ, cwd=folder)  # fmt: skip
        yield command, ran.stdout + ran.stderr
    for page in ("metrics", "healthz", ""):
        with urllib.request.urlopen(f"{ready['metrics']}/{page}") as answer:
            yield f"/{page}", answer.read()


def processes(daemon: int) -> Iterator[tuple[str, bytes]]:
    """Yield what everybody sees of the daemon and of those that it started, and what the latter were given; none leaves a core."""
    children = [
        int(n)
        for task in Path(f"/proc/{daemon}/task").iterdir()
        for n in (task / "children").read_text().split()
    ]
    assert children
    for pid in (daemon, *children):
        yield f"cmdline of {pid}", Path(f"/proc/{pid}/cmdline").read_bytes()
        assert re.search(r"Max core file size +0 ", Path(f"/proc/{pid}/limits").read_text()), pid
        if pid != daemon and os.access(f"/proc/{pid}/environ", os.R_OK):
            yield f"environment of {pid}", Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.parametrize("dlp", ["redact", "tokenize"])
def test_no_secret_is_told_or_kept(tmp_path: Path, peer: int, dlp: str) -> None:
    file, ready = tmp_path / "policy.yaml", tmp_path / "ready"
    file.write_text(yaml.safe_dump(policy(tmp_path, peer, dlp)))
    environ = {
        **os.environ,
        "SECRET_OF_ENV": f"{SECRET}-environment",
        "AGENTSH_NET_SOCKET": str(tmp_path / "c.sock"),
    }
    command = [sys.executable, "-m", "agentsh_net", "run", "--config", str(file), "--ready-file", str(ready)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
    try:
        awaited(lambda: ready.exists() or process.poll() is not None)
        facts = json.loads(ready.read_text())
        traffic(facts)
        awaited(lambda: len(list((tmp_path / "store").rglob("*.answer"))) >= 2)
        file.write_text(file.read_text() + f"foo: {SECRET}-of-a-broken-file\n")
        shown = {**dict(seen(tmp_path, facts, environ)), **dict(processes(process.pid))}
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, (tmp_path / "log").read_text()
    kept = {str(path): path.read_bytes() for path in [tmp_path / "log", *(tmp_path / "store").rglob("*")] if path.is_file()}  # fmt: skip
    for where, what in {**shown, **kept}.items():
        # What a provider answers is kept as it came (DLP is about what leaves); events have it masked.
        what = what.replace(f"{SECRET}-999".encode(), b"") if where.endswith(".answer") else what  # noqa: PLW2901
        at = what.find(SECRET.encode())
        assert at < 0, f"{where}: {what[max(0, at - 60) : at + 60]!r}"
    assert KEPT in shown["mcp calls --json"].decode()
    assert any(KEPT.encode() in what for where, what in kept.items() if where.endswith(".request"))
    assert b"unknown key" in shown["reload"]
