"""Real agents get exactly the calls that policy allows: `./dev clients` runs them (see `run`), and each row says what came of it.

A scripted provider lets the model call one tool of a stdio MCP server, and ends the turn once the agent answers the call.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from loopback.proxy import Proxy, snapshot
from loopback.upstream import Conversation, Received, Upstream, chunked, response

from agentsh_net.core.websocket import Opcode, Reader, frame

HERE = Path(__file__).parent
SECONDS = 90  # of one agent's run; a turn takes about five
DENIED, ALLOWED = "delete_files", "read_file"
_ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3


def event(kind: str, **data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **data}))


def anthropic_answer(tool: str) -> Iterator[bytes]:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 1},
    }  # fmt: skip
    yield event("message_start", message=message)
    if tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": f"mcp__files__{tool}", "input": {}}
        piece = {"type": "input_json_delta", "partial_json": '{"path": "/x"}'}
    else:
        block, piece = {"type": "text", "text": ""}, {"type": "text_delta", "text": "All done."}
    yield event("content_block_start", index=0, content_block=block)
    yield event("content_block_delta", index=0, delta=piece)
    yield event("content_block_stop", index=0)
    reason = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=reason, usage={"output_tokens": 9})
    yield event("message_stop")


def responses_answer(tool: str) -> Iterator[bytes]:
    if tool:
        item: dict[str, Any] = {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool, "namespace": "mcp__files",
            "arguments": '{"path": "/x"}', "status": "completed",
        }  # fmt: skip
    else:
        said = [{"type": "output_text", "text": "All done.", "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": said}
    usage = {
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
    }  # fmt: skip
    answer = {"id": "resp_1", "object": "response", "output": []}
    yield event("response.created", sequence_number=0, response={**answer, "status": "in_progress"})
    yield event("response.output_item.added", sequence_number=1, output_index=0, item=item)
    yield event("response.output_item.done", sequence_number=2, output_index=0, item=item)
    whole = {**answer, "status": "completed", "output": [item], "usage": usage}
    yield event("response.completed", sequence_number=3, response=whole)


@dataclass
class Provider:
    """Lets the model call `tool` until the agent answers; `answers` is what the agent said of the call."""

    tool: str
    answers: list[Any] = field(default_factory=list)
    turns: int = 0

    async def __call__(self, conversation: Conversation, received: Received) -> None:
        if received.values("upgrade"):
            await self._socket(conversation, received)
        elif b"/v1/messages" in received.line and b"count_tokens" not in received.line:
            body = orjson.loads(received.body)
            main = len(body.get("tools", [])) > 3  # the agent's own small questions bring few tools or none
            results = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
            tool = self._next([b for b in results if b.get("type") == "tool_result"]) if main else ""
            await conversation.send(*chunked(*anthropic_answer(tool)))
        elif b"/responses" in received.line and received.line.startswith(b"POST"):
            await conversation.send(*chunked(*self._responses(orjson.loads(received.body))))
        else:
            await conversation.send(response(b'{"input_tokens": 5, "data": [], "models": []}'))

    def _responses(self, body: dict[str, Any]) -> Iterator[bytes]:
        return responses_answer(
            self._next([i for i in body["input"] if i.get("type", "").endswith("_output")])
        )

    def _next(self, results: list[Any]) -> str:
        self.turns += 1
        self.answers += results
        return "" if results else self.tool

    async def _socket(self, conversation: Conversation, received: Received) -> None:
        key = hashlib.sha1(received.values("sec-websocket-key")[0] + _ACCEPT, usedforsecurity=False).digest()
        agreed = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        await conversation.send(agreed + base64.b64encode(key) + b"\r\n\r\n")
        reader = Reader(masked=True, max_message=64 << 20)
        while data := await conversation.reader.read(1 << 16):
            for message in reader.feed(data):
                for made in () if message.control else self._responses(orjson.loads(message.payload)):
                    await conversation.send(frame(Opcode.TEXT, made.partition(b"data: ")[2].strip()))


@dataclass(frozen=True)
class Agent:
    """One agent: how it is started, and what its user sees of a turn that goes on."""

    name: str
    start: Callable[[str, Path, list[str]], tuple[list[str], dict[str, str]]]
    websocket: bool = False


def claude_code(binary: str) -> Callable[[str, Path, list[str]], tuple[list[str], dict[str, str]]]:
    def start(base: str, home: Path, server: list[str]) -> tuple[list[str], dict[str, str]]:
        servers = {"mcpServers": {"files": {"command": server[0], "args": server[1:]}}}
        command = [
            binary, "-p", "go", "--strict-mcp-config", "--mcp-config", json.dumps(servers),
            "--allowedTools", f"mcp__files__{DENIED},mcp__files__{ALLOWED}",
        ]  # fmt: skip
        return command, {
            "HOME": str(home), "ANTHROPIC_API_KEY": "sk-ant-dummy", "ANTHROPIC_BASE_URL": f"{base}/anthropic",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }  # fmt: skip

    return start


def codex(
    binary: str, *, websocket: bool
) -> Callable[[str, Path, list[str]], tuple[list[str], dict[str, str]]]:
    def start(base: str, home: Path, server: list[str]) -> tuple[list[str], dict[str, str]]:
        settings = (
            f'model = "gpt-5"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
            f'base_url = "{base}/openai/v1"\nenv_key = "DUMMY_KEY"\nwire_api = "responses"\n'
            f"supports_websockets = {str(websocket).lower()}\n"
            f"[mcp_servers.files]\ncommand = {json.dumps(server[0])}\nargs = {json.dumps(server[1:])}\n"
        )
        (home / "config.toml").write_text(settings)
        command = [
            binary,
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "go",
        ]
        return command, {"HOME": str(home), "CODEX_HOME": str(home), "DUMMY_KEY": "k"}

    return start


async def run(agent: Agent, mode: str, tool: str, scratch: Path, python: str) -> list[str]:
    """Run one turn; return what is wrong with it."""
    home = scratch / f"{agent.name.replace(' ', '-')}-{mode}-{tool}"
    home.mkdir()
    ran = home / "ran"
    ran.touch()
    provider = Provider(tool)
    sockets = {"websockets": "inspect"} if agent.websocket else {}
    async with (
        Upstream(provider) as upstream,
        Proxy(snapshot(upstream.port, block_mode=mode, proxy=sockets)) as proxy,
    ):
        server = [python, str(HERE / "files_server.py"), str(ran)]
        command, environment = agent.start(f"http://127.0.0.1:{proxy.port}", home, server)
        process = await asyncio.create_subprocess_exec(
            *command,
            env={"PATH": os.environ["PATH"], **environment},
            cwd=home,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(SECONDS):
                out, err = await process.communicate()
        except TimeoutError:
            process.kill()
            return [f"did not end within {SECONDS} s"]
        proxy.service.reporter.flush()
        actions = {e["action"] for e in proxy.events if e["type"] == "mcp_tool_call_intercepted"}
    return [
        *_wrong(mode, tool, ran.read_text(), provider, out.decode(), actions),
        *([err.decode()[-500:]] if process.returncode else []),
    ]


def _wrong(mode: str, tool: str, ran: str, provider: Provider, out: str, actions: set[str]) -> Iterator[str]:
    if ran != ("" if tool == DENIED else f"{ALLOWED} /x\n"):
        yield f"the server ran {ran!r}, and the agent said {str(provider.answers)[:300]}"
    if actions != {"block" if tool == DENIED else "allow"}:
        yield f"the audit says {actions}"
    goes_on = tool == ALLOWED or mode == "steer"
    if goes_on and ("All done." not in out or not provider.answers):
        yield f"the turn did not go on: {out[-300:]!r}"
    if not goes_on and ("blocked by policy" not in out or provider.answers):
        yield f"the turn did not end with the notice: {out[-300:]!r}"


async def main(scratch: Path, claude_binary: str, codex_binary: str, python: str) -> int:
    agents = [
        Agent("claude code", claude_code(claude_binary)),
        Agent("codex", codex(codex_binary, websocket=False)),
        Agent("codex websocket", codex(codex_binary, websocket=True), websocket=True),
    ]
    failed = 0
    for agent in agents:
        for mode in ("replace", "steer"):
            for tool in (DENIED, ALLOWED):
                wrong = await run(agent, mode, tool, scratch, python)
                failed += bool(wrong)
                print(f"{agent.name:<16} {mode:<8} {tool:<13} {'; '.join(wrong) or 'ok'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:5])))
