"""An MCP server on the official SDK with a prompt, a resource and a template, run as a program: `sdk_lists.py stdio|PORT FILE`.

FILE holds what it says of each when it starts.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer


def main(where: str, file: str) -> None:
    said = Path(file).read_text()
    server = MCPServer("lists", version="1")

    @server.tool()
    def add(a: int) -> int:
        """Add one."""
        return a + 1

    @server.prompt(description=said)
    def greet(who: str) -> str:
        return f"Greet {who}."

    @server.resource("memo://today", description=said)
    def today() -> str:
        return "sunny"

    @server.resource("memo://{day}/notes", description=said)
    def notes(day: str) -> str:
        return day

    if where == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", port=int(where))


if __name__ == "__main__":
    main(*sys.argv[1:])
