"""What an administrator's files let a client use: lists of servers that it may have, or may not, whoever declared them.

As the clients document them (Claude Code: managed MCP; Codex: requirements.toml; VS Code: chat.mcp.access and its policy file).
A user's own switches are `switches`' business.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Content = Callable[[Path], Any]  # what a file says; None where there is none, or none that can be read


@dataclass(frozen=True, slots=True)
class Ruling:
    """Which file keeps a client from a server, and which one allows the server by a command or URL that we would change."""

    off_in: Path | None = None
    bound_in: Path | None = None


FREE = Ruling()


def in_claude_code(
    content: Content,
    etc: Path,
    settings: Sequence[Path],
    source: Path,
    name: str,
    declared: Mapping[str, Any],
) -> Ruling:
    """Judge a server by the managed files and the lists in the user's and the project's `settings`, which they may shut out."""
    exclusive = etc / "claude-code/managed-mcp.json"
    if source != exclusive and content(exclusive) is not None:
        return Ruling(exclusive)
    managed = [
        etc / "claude-code/managed-settings.json",
        *sorted((etc / "claude-code/managed-settings.d").glob("*.json")),
    ]
    for file, rule in _rules(content, (*managed, *settings), "deniedMcpServers"):
        if any(_matches(rule, key, name, declared) for key in ("serverName", "serverCommand", "serverUrl")):
            return Ruling(file)
    alone = any(_member(content(file), "allowManagedMcpServersOnly") is True for file in managed)
    listing = [
        file
        for file in (managed if alone else [*managed, *settings])
        if isinstance(_member(content(file), "allowedMcpServers"), list)
    ]
    if not listing:
        return FREE
    rules = list(_rules(content, listing, "allowedMcpServers"))
    kind = "serverUrl" if "url" in declared else "serverCommand"
    key = kind if any(kind in rule for _, rule in rules) else "serverName"
    allowed = next((file for file, rule in rules if _matches(rule, key, name, declared)), None)
    if allowed is None:
        return Ruling(listing[0])
    return Ruling(bound_in=allowed) if key == kind else FREE


def in_codex(content: Content, etc: Path, name: str, declared: Mapping[str, Any]) -> Ruling:
    """Judge a server by the requirements, which name each by its command or URL; a table without servers allows none."""
    file = etc / "codex/requirements.toml"
    table = _member(content(file), "mcp_servers")
    if not isinstance(table, Mapping):
        return FREE
    identity = _member(table.get(name), "identity")
    key = "url" if "url" in declared else "command"
    known = _member(identity, key)
    return Ruling(bound_in=file) if known is not None and known == declared.get(key) else Ruling(file)


def in_vscode(content: Content, etc: Path, settings: Path) -> Ruling:
    """Say whether VS Code has MCP switched off as a whole; which single servers are off stands in a database of its own."""
    policy = etc / "vscode/policy.json"
    if _member(content(policy), "ChatMCP") == "none":
        return Ruling(policy)
    said = content(settings)
    off = _member(said, "chat.mcp.access") == "none" or _member(said, "chat.mcp.enabled") is False
    return Ruling(settings) if off else FREE


def _rules(content: Content, files: Sequence[Path], key: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for file in files:
        listed = _member(content(file), key)
        for rule in listed if isinstance(listed, list) else ():
            if isinstance(rule, Mapping):
                yield file, rule


def _matches(rule: Mapping[str, Any], key: str, name: str, declared: Mapping[str, Any]) -> bool:
    wanted = rule.get(key)
    if wanted is None:
        return False
    if key == "serverName":
        return bool(wanted == name)
    if key == "serverCommand":
        return bool("command" in declared and wanted == [declared["command"], *declared.get("args", [])])
    # Of fnmatch's signs only the star is one here.
    pattern = str(wanted).replace("[", "[[]").replace("?", "[?]")
    return "url" in declared and fnmatch.fnmatchcase(str(declared["url"]), pattern)


def _member(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None
