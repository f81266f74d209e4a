"""An MCP server on the official SDK over Streamable HTTP, run as a program: `mcp_server.py ADDRESS PORT`."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("peer")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    server.run("streamable-http", host=sys.argv[1], port=int(sys.argv[2]))
