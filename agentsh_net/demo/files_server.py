"""The server of files, on the official SDK over stdio, run as a program by the agent: it reads and deletes what lies in its directory."""

from __future__ import annotations

from pathlib import Path

from agentsh_net.demo import cast


def read_file(path: str) -> str:
    """Return a file's text."""
    return Path(path).read_text(encoding="utf-8")


def delete_file(path: str) -> str:
    """Delete a file."""
    Path(path).unlink()
    return f"{path} is deleted"


def main() -> None:
    """Serve until standard input ends."""
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    server = MCPServer(cast.FILES)
    reads = ToolAnnotations(read_only_hint=True)
    server.add_tool(read_file, description=cast.READ_FILE, annotations=reads)
    server.add_tool(delete_file, description=cast.DELETE_FILE)
    server.run("stdio")


if __name__ == "__main__":
    main()
