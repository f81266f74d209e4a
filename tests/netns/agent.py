"""An agent on the official SDKs, run as a program under `exec`: asks a model, and does what its answer says.

`agent.py DIRECT ALONE SHIM...`: what it asks the model for are lines of JSON on standard input, each `{"call": [server, tool,
arguments], "model": bool}`; server `notes` runs under the shim of this command, `calc` is reached through the gateway, any other at
the URL DIRECT. When all is done it connects to ALONE by itself. Prints a JSON object a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from contextlib import AsyncExitStack
from typing import Any

from anthropic import Anthropic
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client


def asked_of_the_model(call: list[Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the texts and the tool calls of the model's answer."""
    model = Anthropic(api_key="k", max_retries=0)
    message = model.messages.create(
        model="m", max_tokens=99, messages=[{"role": "user", "content": json.dumps(call)}]
    )
    texts = [block.text for block in message.content if block.type == "text"]
    return texts, [
        {"id": b.id, "name": b.name, "input": b.input} for b in message.content if b.type == "tool_use"
    ]


async def executed(clients: dict[str, Client], name: str, arguments: dict[str, Any]) -> str:
    _, server, tool = name.split("__")
    try:
        async with AsyncExitStack() as stack:
            client = clients.get(server) or await stack.enter_async_context(Client(DIRECT))
            result = await client.call_tool(tool, arguments)
    except MCPError as error:
        return f"refused: {error}"
    return ("error: " if result.is_error else "") + result.content[0].text


DIRECT = sys.argv[1]


async def main(alone: str, shim: list[str]) -> None:
    async with AsyncExitStack() as stack:
        gateway = os.environ["AGENTSH_NET_MCP_URL"]
        notes = stdio_client(StdioServerParameters(command=shim[0], args=shim[1:], env=dict(os.environ)))
        clients = {
            "calc": await stack.enter_async_context(Client(f"{gateway}/calc")),
            "notes": await stack.enter_async_context(Client(notes)),
        }
        for line in sys.stdin:
            wish = json.loads(line)
            server, tool, arguments = wish["call"]
            name = f"mcp__{server}__{tool}"
            texts, calls = asked_of_the_model(wish["call"]) if wish["model"] else ([], [])
            if not wish["model"]:
                calls = [{"id": "", "name": name, "input": arguments}]
            said = [await executed(clients, call["name"], call["input"]) for call in calls]
            print(json.dumps({"texts": texts, "ids": [c["id"] for c in calls], "said": said}), flush=True)
    host, _, port = alone.rpartition(":")
    socket.create_connection((host, int(port)), 5).close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2], sys.argv[3:]))
