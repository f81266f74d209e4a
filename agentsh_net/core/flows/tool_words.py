"""The words in an identifier: snake_case, camelCase, kebab-case, dots, slashes, and the prefixes that clients put before names.

What a name resolves to is core.naming.names' business; here it is only taken apart.
"""

from __future__ import annotations

import re

from agentsh_net.core.naming.folding import normal

# `mcp__server__tool`, `mcp_server_tool`, `server__tool`, `functions.tool`: what clients put before a tool's own name.
PREFIX = re.compile(r"(?:mcp__.{1,128}?__|mcp[_-](?=[A-Za-z0-9])|functions[.:])")
DOUBLE = re.compile(r"[A-Za-z0-9_.-]{1,64}?__(?=[A-Za-z])")

# HTTPServer -> HTTP Server, readFile -> read File, file2 -> file 2
SPLIT = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

MAX_NAME = 512  # characters; real names have at most 128


def words(name: str) -> tuple[str, ...]:
    """Return the words of an identifier, case folded; letters of other scripts in a run of their own are one word."""
    name = name[:MAX_NAME]
    if name.isascii():
        return tuple(word.lower() for word in SPLIT.findall(name))
    parts = re.split(r"[\W_]+", name)
    return tuple(word for part in parts for word in ((normal(part),) if not part.isascii() else words(part)))


def without_prefix(name: str) -> str:
    """Return a tool's own name without what a client put before it."""
    name = name[:MAX_NAME]
    match = PREFIX.match(name) or DOUBLE.match(name)
    return name[match.end() :] if match and match.end() < len(name) else name
