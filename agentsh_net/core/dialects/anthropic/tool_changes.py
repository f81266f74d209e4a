"""Tools that an Anthropic conversation adds on its way: `tool_addition` blocks in its messages, and those that a compaction keeps.

They may bring an MCP server's tools past the request's own `tools`. Whether any of them may be called is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentsh_net.core.dialects.anthropic.blocks import folded, spelled
from agentsh_net.core.values.strict_json import Path

# A part of `tool_addition`, which stands in every conversation that adds one: five bytes, as CPython finds them fastest.
SIGN: Final = b"_addi"


def added(request: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield what each addition adds, and where it stands: a definition (`definition`), or a reference to tools or to a server."""
    key = spelled(dict(request), "messages")
    messages = request.get(key)
    for at, message in enumerate(messages if isinstance(messages, list) else ()):
        if not isinstance(message, dict):
            continue
        inner = spelled(message, "content")
        content = message.get(inner)
        for number, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, dict):
                yield from _of_block(block, (key, at, inner, number))


def servers(tool: Mapping[str, Any]) -> list[str]:
    """Return the MCP servers that an addition names: all tools of one, or one of them."""
    fields = folded(dict(tool))
    definition = folded(fields.get("definition"))
    named = (fields.get("server_name"), fields.get("mcp_server_name"), definition.get("mcp_server_name"))
    return [name for name in named if isinstance(name, str)]


def _of_block(block: dict[str, Any], path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    kind = folded(block).get("type")
    kind = kind.strip().casefold() if isinstance(kind, str) else ""
    if kind == "tool_addition":
        key = spelled(block, "tool")
        if isinstance(block.get(key), dict):
            yield (*path, key), block[key]
    elif kind == "compaction":
        key = spelled(block, "tool_changes")
        changes = block.get(key)
        for at, change in enumerate(changes if isinstance(changes, list) else ()):
            if isinstance(change, dict):
                yield from _of_block(change, (*path, key, at))
