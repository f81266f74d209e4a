"""An MCP server on the official SDK over stdio, with a tool for each thing a server can ask of its client."""

from __future__ import annotations

import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import BaseModel

server = MCPServer("peer", version="1.2.3", instructions="Use add for sums.")


class Name(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def rm(path: str) -> str:
    """Remove a file."""
    print(f"REMOVED {path}", file=sys.stderr, flush=True)
    return "removed"


@server.tool()
async def slow(ctx: Context, steps: int = 3) -> str:
    """Take some steps and tell of each."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps)
        await anyio.sleep(0.01)
    return "done"


@server.tool()
async def tell(ctx: Context, text: str) -> str:
    """Say a text in every way but by the result."""
    await ctx.log("info", text, logger_name="peer")
    await ctx.report_progress(1, 2, text)
    return "told"


@server.tool()
async def hang() -> str:
    """Never end by itself."""
    try:
        await anyio.sleep_forever()
    finally:
        print("CANCELLED", file=sys.stderr, flush=True)
    return "never"


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask the user for a name."""
    answer = await ctx.elicit("Who are you?", Name)
    return f"{answer.action}"


@server.tool()
async def consult(ctx: Context) -> str | InputRequiredResult:
    """Ask the user for a name, as the revision of 2026-07-28 does it."""
    if ctx.input_responses:
        return f"heard {len(ctx.input_responses)}"
    form = ElicitRequestFormParams(message="Who are you?", requested_schema=Name.model_json_schema())
    return InputRequiredResult(input_requests={"who": ElicitRequest(params=form)})


if __name__ == "__main__":
    server.run("stdio")
