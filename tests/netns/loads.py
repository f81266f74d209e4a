"""Clients for long tests: each calls again and again in a thread, and keeps what it was told, to be held against the record.

A call is its number in a tool's argument; of a denied tool (`rm`) every fourth. What a client had no whole answer to, as of a
worker that was killed, may be on record or not; what it had is there once.
"""

from __future__ import annotations

import http.client
import itertools
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from model_server import streamed, tool_use

from netns.scene import attempt

PAUSE = 0.05  # seconds between a client's calls
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "rm")]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
STDIO = f"""
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answers = {{"initialize": {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "s", "version": "1"}}}}, "tools/list": {{"tools": {TOOLS!r}}}}}
    if "id" in asked:
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {{"content": []}})}}), flush=True)
"""


class Load:
    """What one client did: `answered` calls by number, `refused` ones, and what went wrong, by its text. `leaks`: denied, and passed."""

    def __init__(self) -> None:
        self.answered: set[str] = set()
        self.refused: set[str] = set()
        self.broken: Counter[str] = Counter()
        self.leaks: list[str] = []

    def take(self, number: str, said: bytes, *, passed: bool) -> None:
        """Note what came of a call. One that nobody judged, as on a loaded machine, is refused too (fail_closed), with other words."""
        if passed:
            self.answered.add(number)
            if tool(number) == "rm":
                self.leaks.append(number)
        elif b"denied_tools" in said:
            self.refused.add(number)
        else:
            self.broken["refused unjudged"] += 1


def tool(number: str) -> str:
    return "echo" if int(number[1:]) % 4 else "rm"


def called(number: str) -> dict[str, Any]:
    params = {"name": tool(number), "arguments": {"number": number}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def answer(asked: Any) -> Iterator[bytes]:
    """Return the provider's stream: the call that the prompt asks for."""
    number = asked["messages"][-1]["content"]
    call = tool_use(f"mcp__web__{tool(number)}", call_id=number)
    return streamed(["so be it"], call, [f'{{"number": "{number}"}}'])


class McpServer(BaseHTTPRequestHandler):
    """An MCP server over HTTP without sessions. `reached`: the numbers of calls that came here, and how often."""

    protocol_version = "HTTP/1.1"
    reached: ClassVar[Counter[str]] = Counter()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = {
            "initialize": {
                **HELLO,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "p", "version": "1"},
            },
            "tools/list": {"tools": TOOLS},
        }
        if asked["method"] == "tools/call":
            self.reached[asked["params"]["arguments"]["number"]] += 1
        body = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": results.get(asked["method"], {"content": []})}).encode()  # fmt: skip
        self.send_response(200 if "id" in asked else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body) if "id" in asked else 0))
        self.end_headers()
        self.wfile.write(body if "id" in asked else b"")

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def mcp_over_http() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), McpServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()


class _Connection:
    """A kept connection to proxy or gateway, opened anew after a failure."""

    def __init__(self, base: str) -> None:
        self._host = base.removeprefix("http://")
        self._http: http.client.HTTPConnection | None = None

    def post(
        self, path: str, body: Any, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        self._http = self._http or http.client.HTTPConnection(self._host, timeout=60)
        try:
            self._http.request(
                "POST", path, json.dumps(body), {"content-type": "application/json", **headers}
            )
            response = self._http.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException):
            self._http.close()
            self._http = None
            raise


def of_model(load: Load, base: str) -> Callable[[str], None]:
    """Return what asks the model for a call and reads its stream."""
    connection = _Connection(base)

    def ask(number: str) -> None:
        body = {
            "model": "m",
            "max_tokens": 9,
            "stream": True,
            "messages": [{"role": "user", "content": number}],
        }
        response, stream = connection.post("/anthropic/v1/messages", body, {"x-api-key": "k"})
        if response.status != 200 or b"event: message_stop" not in stream:
            raise ConnectionError(f"{response.status} {stream[:80]!r}")
        load.take(number, stream, passed=b'"type": "tool_use"' in stream)

    return ask


def of_gateway(load: Load, base: str) -> Callable[[str], None]:
    """Return what makes a call through the gateway, in a session that is opened anew when it is gone."""
    connection = _Connection(base)
    session: dict[str, str] = {}
    accept = {"accept": "application/json, text/event-stream"}

    def call(number: str) -> None:
        if not session:
            hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
            response, _ = connection.post("/mcp/web", hello, accept)
            session.update(accept, **{"mcp-session-id": response.headers["mcp-session-id"] or ""})
        try:
            response, body = connection.post("/mcp/web", called(number), session)
        except (OSError, http.client.HTTPException):
            session.clear()
            raise
        if response.status != 200:
            session.clear()
            raise ConnectionError(f"{response.status} {body[:80]!r}")
        load.take(number, body, passed=b'"result"' in body)

    return call


def of_shim(load: Load, control: Path, stack: ExitStack) -> Callable[[str], None]:
    """Return what makes a call through a shim of its own, which ends with the stack."""
    command = [sys.executable, "-m", "agentsh_net", "--socket", str(control), "shim", "--server", "local", "--", sys.executable, "-c", STDIO]  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stack.callback(process.wait)
    stack.callback(process.terminate)

    def ask(message: dict[str, Any]) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        return process.stdout.readline()

    ask({"jsonrpc": "2.0", "id": 0, "method": "tools/list"})  # so that it is known what there is

    def call(number: str) -> None:
        said = ask(called(number))
        load.take(number, said, passed=b'"result"' in said)

    return call


def of_denied(load: Load, address: str, port: int) -> Callable[[str], None]:
    """Return what connects to a denied server."""

    def connect(number: str) -> None:
        said = attempt(address, port)
        load.refused.add(number)
        if said not in {"EPERM", "ECONNREFUSED"}:
            load.leaks.append(f"{number}: {said}")

    return connect


@contextmanager
def calling(letter: str, load: Load, call: Callable[[str], None]) -> Iterator[None]:
    """Make calls with numbers that begin with a letter until the block ends."""
    ended = threading.Event()

    def work() -> None:
        for count in itertools.count(1):
            try:
                call(f"{letter}{count}")
            except (OSError, ValueError, http.client.HTTPException) as error:
                load.broken[f"{type(error).__name__}: {error}"[:120]] += 1
            if ended.wait(PAUSE):
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
