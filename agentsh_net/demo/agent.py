"""The scripted agent on the official SDKs (anthropic, mcp), run as a program under `agentsh-net exec`: `agent SCENARIO...`.

It does what agents do: asks the model, calls the tools that the model's answer asks for, brings back the results. It does not
know whether anybody watches. It begins when it is given a line. Prints one JSON object per scenario: which honest calls
succeeded, and what it was refused.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentsh_net.demo import cast, files_server, model
from agentsh_net.demo.scenarios import BY_NAME, Scenario, Scene, Turn, Way, credentials
from agentsh_net.mcp_clients.shim_wrapping import words

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic
    from mcp import Client

PATIENCE: Final = 30.0  # seconds for a scenario; each takes well under one on a quiet machine
ROUNDS: Final = 5  # answers of the model in one conversation


class Agent:
    """One agent: where its model is, and the servers it is connected to."""

    def __init__(self, anthropic: Callable[[], AsyncAnthropic], gateway: str, stack: AsyncExitStack) -> None:
        self._anthropic = anthropic  # the SDK takes a second to import: only who asks a model waits for it
        self._gateway = gateway
        self._stack = stack
        self._files: Client | None = None  # its child lives as long as the agent
        self._asking: AsyncAnthropic | None = None
        self._http: httpx2.AsyncClient | None = None
        self.honest = 0
        self.refused: list[str] = []

    async def get_ready(self, names: Iterable[str]) -> None:
        """Start the server that is a program, as agents do before anything is asked of them."""
        if any(cast.FILES in scene.servers for name in names for scene in BY_NAME[name].scenes):
            await self._client(cast.FILES, self._stack)

    async def play(self, scenario: Scenario) -> None:
        """Play a scenario, one conversation after another."""
        secret = secret_of(scenario)
        for number, scene in enumerate(scenario.scenes):
            name, prompt = f"{scenario.name}/{number}", scene.prompt.replace("{secret}", secret)
            async with AsyncExitStack() as stack:
                match scenario.way:
                    case Way.MODEL:
                        clients = {server: await self._client(server, stack) for server in scene.servers}
                        await self._converse(name, prompt, scene, clients)
                    case Way.CODE:
                        clients = {server: await self._client(server, stack) for server in scene.servers}
                        for turn in scene.turns:
                            await self._call(clients[turn.server], turn, model.filled(turn.arguments, secret))
                    case Way.DIRECT:
                        await self._directly(scene.turns[0], secret)
                    case Way.AROUND:
                        await self._around(name, prompt)

    async def _converse(self, name: str, prompt: str, scene: Scene, clients: Mapping[str, Client]) -> None:
        tools, places = await offers(scene, clients)
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        client = self._asking = self._asking or self._anthropic()
        for _ in range(ROUNDS):
            said = await self._ask(client, name, messages, tools)
            uses = [block for block in said if block["type"] == "tool_use"]
            self.refused += [b["text"] for b in said if b["type"] == "text" and "[agentsh]" in b["text"]]
            if not uses:
                return
            results = []
            for use in uses:
                server, tool = places[use["name"]]
                honest = any(t.honest and (t.server, t.tool) == (server, tool) for t in scene.turns)
                turn = Turn(server, tool, honest=honest)
                text = await self._call(clients[server], turn, use["input"])
                results.append({"type": "tool_result", "tool_use_id": use["id"], "content": text})
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": results}]

    async def _ask(
        self, client: AsyncAnthropic, name: str, messages: list[Any], tools: list[Any]
    ) -> list[dict[str, Any]]:
        """Ask a model and return the blocks of its answer."""
        async with client.messages.stream(
            model=model.NAME, max_tokens=1024, messages=messages, tools=tools, metadata={"user_id": name}
        ) as stream:
            message = await stream.get_final_message()
        kept = {"text": ("type", "text"), "tool_use": ("type", "id", "name", "input")}
        return [{key: getattr(block, key) for key in kept[block.type]} for block in message.content]

    async def _call(self, client: Client, turn: Turn, arguments: Mapping[str, Any]) -> str:
        """Call a tool and return what it said, or what was said instead."""
        from mcp import MCPError

        try:
            result = await client.call_tool(turn.tool, dict(arguments))
        except MCPError as error:
            self.refused.append(str(error))
            return str(error)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            self.refused.append(text)
        else:
            self.honest += turn.honest
        return text

    async def _client(self, server: str, stack: AsyncExitStack) -> Client:
        """Connect to a server: over the shim where it is a program, else through the gateway."""
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client

        if server != cast.FILES:
            return await self._remote(f"{self._gateway}/{server}", stack)
        if self._files is None:
            ours = [sys.executable, "-m", "agentsh_net"]
            command = [*words(ours, cast.FILES), sys.executable, "-m", files_server.__name__]
            started = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
            self._files = await self._stack.enter_async_context(Client(stdio_client(started)))
            await self._files.list_tools()
        return self._files

    async def _remote(self, url: str, stack: AsyncExitStack) -> Client:
        """Connect to a server by its URL. One HTTP client for all: each reads the whole trust store when it is made."""
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        if self._http is None:
            self._http = await self._stack.enter_async_context(httpx2.AsyncClient(timeout=PATIENCE))
        return await stack.enter_async_context(Client(streamable_http_client(url, http_client=self._http)))

    async def _directly(self, turn: Turn, secret: str) -> None:
        """Call a tool without asking anybody: neither gateway nor model."""
        try:
            async with AsyncExitStack() as stack:
                client = await self._remote(cast.url(turn.server), stack)
                await self._call(client, turn, model.filled(turn.arguments, secret))
        except Exception as error:  # noqa: BLE001 - whatever the SDK makes of a refused connection
            self.refused.append(reason(error))

    async def _around(self, name: str, prompt: str) -> None:
        """Ask the provider without the proxy."""
        from anthropic import APIConnectionError

        direct = anthropic(cast.provider_url())
        try:
            await self._ask(direct, name, [{"role": "user", "content": prompt}], [])
        except APIConnectionError as error:
            self.refused.append(reason(error))


def anthropic(base_url: str | None = None) -> AsyncAnthropic:
    """Return the SDK's client; where its provider is says the environment, by `exec`, or who asks for another."""
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(api_key="demo", base_url=base_url, max_retries=0)


async def offers(
    scene: Scene, clients: Mapping[str, Client]
) -> tuple[list[dict[str, Any]], dict[str, tuple[str, str]]]:
    """Return the tools as the model is offered them, and which (server, tool) each name is: of two of one name the last."""
    tools: dict[str, dict[str, Any]] = {}
    places: dict[str, tuple[str, str]] = {}
    for server, client in clients.items():
        for tool in (await client.list_tools()).tools:
            name = model.name_of(scene, Turn(server, tool.name))
            tools[name] = {"name": name, "description": tool.description, "input_schema": tool.input_schema}
            places[name] = server, tool.name
    return list(tools.values()), places


def secret_of(scenario: Scenario) -> str:
    """Return the secret that lies in the agent's directory for a scenario."""
    return Path(credentials(scenario.name)).read_text(encoding="utf-8").strip()


def reason(error: BaseException | None) -> str:
    """Return the operating system's error behind an exception, in groups, causes and contexts; else the exception's words."""
    found = _os_error(error)
    return errno.errorcode[found.errno or 0] if found else str(error)


def _os_error(error: BaseException | None) -> OSError | None:
    if error is None or (isinstance(error, OSError) and error.errno in errno.errorcode):
        return error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    behind = (_os_error(each) for each in (*inner, error.__cause__, error.__context__))
    return next((each for each in behind if each), None)


def learn(names: Iterable[str]) -> None:
    """Import the SDKs that scenarios need; a second and more of work, which the garbage collector would prolong by a fifth."""
    gc.disable()
    import mcp  # noqa: F401 - so that it is there later

    if any(BY_NAME[name].way in (Way.MODEL, Way.AROUND) for name in names):
        import anthropic  # noqa: F401 - as above
    gc.enable()


async def play(agent: Agent, names: Iterable[str]) -> None:
    """Play scenarios and say how each went."""
    for name in names:
        agent.honest, agent.refused = 0, []
        try:
            async with asyncio.timeout(PATIENCE):
                await agent.play(BY_NAME[name])
        except Exception:  # noqa: BLE001 - a scenario that is not reported counts as failed, and the next one is played
            traceback.print_exc()
            continue
        said = {"scenario": name, "honest": agent.honest, "refused": agent.refused}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


async def main(names: list[str]) -> None:
    """Get ready, wait for a line on standard input, play."""
    learn(names)
    async with AsyncExitStack() as stack:
        agent = Agent(anthropic, os.environ["AGENTSH_NET_MCP_URL"], stack)
        await agent.get_ready(names)
        if await asyncio.to_thread(sys.stdin.readline):
            await play(agent, names)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
