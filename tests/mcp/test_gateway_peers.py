"""Clients of the official SDK cannot tell that the gateway is there, on three transports and in both eras, but for what policy says."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_peers.everything import everything
from mcp_peers.overheard import HONEST, overheard
from running import Running, awaited, running

PEERS = Path(__file__).parent.parent / "mcp_peers"
ROOT = os.geteuid() == 0
TOKEN = "sesame"
# A user that may read this tree: as root the server becomes nobody, who may not read a home.
USER = {"user": "nobody"} if ROOT else {}


def free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(kind: str, official: list[str] | None = None) -> Iterator[int]:
    """Run a server of the SDK, or the official everything-server, and yield its port."""
    port = free()
    command = (
        [*official[:2], kind] if official else [sys.executable, str(PEERS / "sdk_server.py"), kind, str(port)]
    )
    env = os.environ | {"PORT": str(port)}
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 30
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline, "the peer does not start"
                    time.sleep(0.05)
            yield port
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A daemon with a gateway in front of the SDK's servers."""
    with ExitStack() as stack:
        http, sse = stack.enter_context(serving("http")), stack.enter_context(serving("sse"))
        io = {
            "id": "stdio",
            "type": "stdio",
            "command": sys.executable,
            "args": [str(PEERS / "sdk_stdio.py")],
        }
        servers: list[dict[str, Any]] = [
            {"id": "http", "type": "http", "url": f"http://127.0.0.1:{http}/mcp"},
            {"id": "sse", "type": "sse", "url": f"http://127.0.0.1:{sse}/sse"},
            {"id": "older", "type": "http", "url": f"http://127.0.0.1:{sse}/sse"},
            io,
            {"id": "asks", **{k: v for k, v in io.items() if k != "id"}},
        ]
        command, _ = everything()
        if command:
            port = stack.enter_context(serving("streamableHttp", command))
            servers.append({"id": "everything", "type": "http", "url": f"http://127.0.0.1:{port}/mcp"})
        key = {"id": "k", "type": "http", "scheme": "bearer", "credential": TOKEN}
        local = {"downstream_security": "k", **USER}
        policy = {
            "sandbox": {
                "mcp": {
                    "servers": servers,
                    "denied_tools": [{"tool": "rm"}],
                    "elicitation": {"policy": "alert", "per_server": {"asks": "block"}},
                    "output_inspection": {"enabled": True, "on_detection": "block"},
                }
            },
            "proxy": {"mode": "disabled"}, "network": {"mode": "off"},
            "gateway": {"enabled": True, "port": 0, "security_schemes": [key], "servers": {s["id"]: local for s in servers if s["type"] == "stdio"}},
        }  # fmt: skip
        yield stack.enter_context(running(tmp_path_factory.mktemp("daemon"), policy))


def play(
    here: Running,
    server: str,
    scene: Callable[[Client], Awaitable[None]],
    mode: Any = "auto",
    **callbacks: Any,
) -> None:
    url = f"{here.status()['proxy']['gateway']}/mcp/{server}"

    async def main() -> None:
        with anyio.fail_after(60):
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http,
                Client(streamable_http_client(url, http_client=http), mode=mode, **callbacks) as client,
            ):
                await scene(client)

    anyio.run(main)


WAYS = [
    ("http", "auto"),
    ("http", "legacy"),
    ("sse", "legacy"),
    ("sse", "auto"),
    ("older", "auto"),
    ("stdio", "legacy"),
    ("stdio", "auto"),
]


@pytest.mark.parametrize(("server", "mode"), WAYS)
def test_tools_are_listed_and_called_and_denied_ones_refused(here: Running, server: str, mode: str) -> None:
    async def scene(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert "add" in [tool.name for tool in tools]
        for number in range(3):
            answer = await client.call_tool("add", {"a": number})
            assert answer.structured_content == {"result": number + 2}
        with pytest.raises(MCPError, match="blocked by policy"):
            await client.call_tool("rm", {"path": "/"})

    play(here, server, scene, mode)
    told = awaited(
        lambda: [
            e for e in here.events("mcp_tool_called") if e["server_id"] == server and e["tool_name"] == "rm"
        ]
    )
    assert (told[0]["action"], told[0]["via"]) == ("block", "gateway")
    seen = [e["tool_name"] for e in here.events("mcp_tool_seen") if e["server_id"] == server]
    assert seen.count("add") == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_progress_comes_before_the_answer(here: Running, mode: str) -> None:
    async def scene(client: Client) -> None:
        steps: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            assert (total, message) == (3, None)
            steps.append(done)

        answer = await client.call_tool("slow", {"steps": 3}, progress_callback=progress)
        assert isinstance(answer.content[0], types.TextContent) and answer.content[0].text == "done"
        assert steps == [1, 2, 3]

    play(here, "stdio", scene, mode)


@pytest.mark.parametrize(("server", "mode"), WAYS)
def test_what_a_server_tells_by_itself_reaches_its_client_unless_it_is_poison(
    here: Running, server: str, mode: str
) -> None:
    seen: list[str] = []
    callbacks, scene = overheard(seen)
    play(here, server, scene, mode, **callbacks)
    assert sorted(seen) == sorted(HONEST)

    def blocked() -> set[str]:
        told = [e for e in here.events("mcp_tool_result_inspected") if e["server_id"] == server]
        return {e["method"] for e in told if e["action"] == "block"}

    awaited(lambda: blocked() == {"notifications/message", "notifications/progress"})


async def accept(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    assert context is not None and params is not None
    return types.ElicitResult(action="accept", content={"name": "Ada"})


def test_what_a_server_asks_reaches_the_user_and_the_answer_the_server(here: Running) -> None:
    async def scene(client: Client) -> None:
        answer = await client.call_tool("ask", {})
        assert isinstance(answer.content[0], types.TextContent) and answer.content[0].text == "accept"

    play(here, "stdio", scene, "legacy", elicitation_callback=accept)
    event = here.await_event("mcp_elicitation_request", lambda e: e["server_id"] == "stdio")
    assert event["action"] == "allow"


def test_what_a_server_may_not_ask_never_reaches_the_user(here: Running) -> None:
    async def never(context: Any, params: Any) -> Any:
        raise AssertionError("the user was asked")

    async def scene(client: Client) -> None:
        with pytest.raises(MCPError, match="elicitation blocked by policy"):
            await client.call_tool("ask", {})

    play(here, "asks", scene, "legacy", elicitation_callback=never)
    event = here.await_event("mcp_elicitation_request", lambda e: e["server_id"] == "asks")
    assert event["action"] == "block"


def test_the_official_everything_server_runs_behind_it(here: Running) -> None:
    command, why = everything()
    if not command:
        print(why)
        pytest.skip(why)

    async def scene(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert len(tools) > 5
        answer = await client.call_tool("echo", {"message": "hi"})
        assert isinstance(answer.content[0], types.TextContent) and "hi" in answer.content[0].text

    play(here, "everything", scene, "legacy")


def test_without_its_credential_nobody_starts_a_server_as_its_user(here: Running) -> None:
    url = f"{here.status()['proxy']['gateway']}/mcp/stdio"
    before = set(here.on_loop(lambda: here.daemon.stdio.pids))
    answer = httpx2.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    assert answer.status_code == 401
    assert set(here.on_loop(lambda: here.daemon.stdio.pids)) <= before


def test_status_says_where_the_gateway_listens(here: Running) -> None:
    assert here.status()["proxy"]["gateway"].startswith("http://127.0.0.1:")


def test_a_session_of_an_agent_has_a_url_of_its_own(here: Running) -> None:
    told = here.client.call("session.new", session_id="agent-9")
    url = f"{told['env']['AGENTSH_NET_MCP_URL']}/http"
    assert "OPENAI_BASE_URL" not in told["env"]  # the LLM proxy is off

    async def main() -> None:
        async with Client(streamable_http_client(url)) as client:
            await client.call_tool("add", {"a": 1})

    anyio.run(main)
    here.await_event("mcp_tool_called", lambda e: e["session_id"] == "agent-9" and e["tool_name"] == "add")


def test_a_reload_denies_and_the_next_call_is_refused(here: Running) -> None:
    import yaml

    text = here.file.read_text()
    policy = yaml.safe_load(text)
    policy["sandbox"]["mcp"]["denied_tools"].append({"server": "http", "tool": "add"})

    async def scene(client: Client) -> None:
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"result": 3}
        here.file.write_text(yaml.safe_dump(policy))
        await anyio.to_thread.run_sync(lambda: here.client.call("reload"))
        with pytest.raises(MCPError, match="blocked by policy"):
            await client.call_tool("add", {"a": 1})

    try:
        play(here, "http", scene)
    finally:
        here.file.write_text(text)
        here.client.call("reload")
