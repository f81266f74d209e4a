"""An MCP server on the official SDK, run as a program: `sdk_server.py http|json|stateless|sse PORT`.

POST /grow?name=X adds a tool and tells whoever listens (modern era: the SDK tells nobody else).
"""

from __future__ import annotations

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp.types import ToolAnnotations
from pydantic import Field
from starlette.requests import Request
from starlette.responses import PlainTextResponse

bus = InMemorySubscriptionBus()
server = MCPServer("peer", version="1.2.3", instructions="Use add for sums.", subscriptions=bus)


@server.tool(title="Sum", annotations=ToolAnnotations(readOnlyHint=True), meta={"vendor/x": 1})
def add(a: Annotated[int, Field(description="first")], b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def tell(ctx: Context, text: str) -> str:
    """Say a text in every way but by the result."""
    await ctx.log("info", text, logger_name="peer")
    await ctx.report_progress(1, 2, text)
    return "told"


@server.custom_route("/grow", methods=["POST"])
async def grow(request: Request) -> PlainTextResponse:
    name = request.query_params["name"]
    server.add_tool(lambda: name, name=name, description="grown")
    await bus.publish(ToolsListChanged())
    return PlainTextResponse(name)


def main(kind: str, port: int) -> None:
    if kind == "sse":
        server.run("sse", port=port)
    else:
        server.run(
            "streamable-http", port=port, json_response=kind == "json", stateless_http=kind == "stateless"
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
