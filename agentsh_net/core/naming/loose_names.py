"""Spellings of clients and gateways that no rule of core.naming.aliases makes: what a name that means nothing else may still stand for.

Read backwards, so they are guesses: they bring a denied tool to the policy's attention, and let nothing pass as known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# What models and harnesses put before a tool's name, and clients take off again: OpenAI's and Gemini's own namespaces; Windsurf numbers
# its servers.
_BEFORE = re.compile(r"(?:functions|default_api)[.:/]|mcp[0-9]{1,3}_")
_BEGINS = ("functions", "default_api", "mcp")  # ... as all of them do

_SERVER_BEHIND = "_mcp_"  # LibreChat: tool, then server
_FIELDS = "____"  # LobeHub: server, tool, and the kind of plug-in
_PLUGIN = "mcp__plugin_"  # Claude Code: plug-in and server in one, then `__` and the tool

# A name on the wire has 128 characters, and of a plug-in's few are joints.
_LONGEST = 160
_MAX_CUTS = 16


def readings(name: str) -> list[str]:
    """Return other spellings of what a folded name may say, for the index to find."""
    found: list[str] = []
    if len(name) > _LONGEST:
        return found
    bare = name
    while bare.startswith(_BEGINS) and (before := _BEFORE.match(bare)) is not None:
        bare = bare[before.end() :]
    if bare != name:
        found.append(bare)
    tool, joint, server = bare.rpartition(_SERVER_BEHIND)
    if joint and tool and server:
        found.append(f"{server}__{tool}")
    if _FIELDS in bare:
        found.append("__".join(bare.split(_FIELDS)[:2]))
    if bare.startswith(_PLUGIN):
        found += _of_plugin(bare.removeprefix(_PLUGIN))
    return found


def _of_plugin(name: str) -> Iterator[str]:
    for _ in range(_MAX_CUTS):
        _, joint, name = name.partition("_")
        if not joint:
            return
        yield f"mcp__{name}"
