"""The catalog of MCP clients: where each keeps its servers, and how it spells them.

One row per client. Which declarations there are, and reading files, is `declarations`' business.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentsh_net.mcp_clients.gateway_urls import Spelling
from agentsh_net.mcp_clients.shim_wrapping import wrapped

# How clients spell transports. "remote" is Streamable HTTP first.
TYPES = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "remote": "http",
    "sse": "sse",
}

# Further keys that clients give a URL under.
URLS = {"serverUrl": "url"}

# What Codex takes credentials from that stand in its environment.
_FROM_ELSEWHERE = ("bearer_token_env_var", "env_http_headers")


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its servers (`~` home, `$config` XDG_CONFIG_HOME, `.` working directory, or an absolute path) and its spelling."""

    name: str
    files: tuple[str, ...]
    places: tuple[tuple[str, ...], ...] = (("mcpServers",),)  # keys in each other; `*` is any
    keys: Mapping[str, str] = field(default_factory=dict)  # its key -> ours
    # Key that holds the URL -> transport, where no type says.
    types: Mapping[str, str] = field(default_factory=dict)
    spelling: Spelling = field(default_factory=Spelling)  # of a URL that the gateway serves


CLIENTS = (
    Client(
        "claude-code",
        ("./.mcp.json", "~/.claude.json", "/etc/claude-code/managed-mcp.json"),
        (("mcpServers",), ("projects", "*", "mcpServers")),
    ),
    Client("claude-desktop", ("$config/Claude/claude_desktop_config.json",)),
    Client("cursor", ("~/.cursor/mcp.json", "./.cursor/mcp.json")),
    Client(  # the settings had them before mcp.json was there
        "vscode",
        (
            "$config/Code/User/mcp.json",
            "./.vscode/mcp.json",
            "$config/Code/User/settings.json",
            "./.vscode/settings.json",
        ),
        (("servers",), ("mcp", "servers")),
    ),
    Client(
        "codex",
        ("~/.codex/config.toml", "./.codex/config.toml", "/etc/codex/config.toml"),
        (("mcp_servers",),),
        {"http_headers": "headers"},
        {"url": "http"},
    ),
    Client(  # `url` alone was HTTP+SSE in its first versions, and is Streamable HTTP first by now: read from the URL, as elsewhere
        "gemini",
        ("~/.gemini/settings.json", "./.gemini/settings.json", "/etc/gemini-cli/settings.json"),
        keys={"httpUrl": "url"},
        types={"httpUrl": "http"},
        spelling=Spelling(key="httpUrl"),
    ),
    Client(
        "opencode",
        (
            "$config/opencode/opencode.json",
            "$config/opencode/opencode.jsonc",
            "./opencode.json",
            "./opencode.jsonc",
        ),
        (("mcp",),),
        {"environment": "env"},
    ),
    Client(  # its command line has its own; the extension had them with VS Code before it was 4.0
        "cline",
        (
            "~/.cline/data/settings/cline_mcp_settings.json",
            "~/.cline/mcp.json",
            "$config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
        types={"url": "sse"},
        spelling=Spelling("streamableHttp", typed=True),
    ),
    Client("windsurf", ("~/.codeium/windsurf/mcp_config.json", "~/.codeium/mcp_config.json")),
    Client(
        "zed",
        ("$config/zed/settings.json", "./.zed/settings.json"),
        (("context_servers",),),
        types={"url": "http"},
    ),
    Client("copilot-cli", ("~/.copilot/mcp-config.json", "./.github/mcp.json")),
    Client("junie", ("~/.junie/mcp/mcp.json", "./.junie/mcp/mcp.json")),
    Client(
        "roo-code",
        (
            "$config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            "./.roo/mcp.json",
        ),
        types={"url": "sse"},
        spelling=Spelling("streamable-http", typed=True),
    ),
    Client("kiro", ("~/.kiro/settings/mcp.json", "./.kiro/settings/mcp.json")),
    Client("amazon-q", ("~/.aws/amazonq/mcp.json", "./.amazonq/mcp.json")),
    Client("lm-studio", ("~/.lmstudio/mcp.json",)),
    Client("amp", ("$config/amp/settings.json", "./.amp/settings.json"), (("amp.mcpServers",),)),
    Client("crush", ("$config/crush/crush.json", "./crush.json", "./.crush.json"), (("mcp",),)),
    Client(  # a fork of Gemini CLI
        "qwen-code",
        ("~/.qwen/settings.json", "./.qwen/settings.json"),
        keys={"httpUrl": "url"},
        types={"httpUrl": "http"},
        spelling=Spelling(key="httpUrl"),
    ),
    Client("antigravity", ("~/.gemini/antigravity/mcp_config.json",)),
    Client("rovo-dev", ("~/.rovodev/mcp.json",)),
)


def fills(entry: Any) -> bool:
    """Say whether the client adds a credential that stands elsewhere."""
    return isinstance(entry, Mapping) and any(key in entry for key in _FROM_ELSEWHERE)


def files(bases: Mapping[str, Path]) -> list[tuple[Client, Path]]:
    """Return every file with its client, once each: the working directory may be the home."""
    files: dict[Path, Client] = {}
    for client in CLIENTS:
        for file in client.files:
            base, _, relative = file.partition("/")
            files.setdefault(bases[base] / relative, client)
    return [(client, path) for path, client in files.items()]


def entries(content: Any, client: Client) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the entries of a client's file, each with its keys in the file."""
    for place in client.places:
        for keys, table in _reach(content, place, ()):
            yield from (((*keys, name), entry) for name, entry in table.items())


def _reach(
    value: Any, steps: tuple[str, ...], keys: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    if not isinstance(value, Mapping):
        return
    if not steps:
        yield keys, value
    elif steps[0] == "*":
        for name, inner in value.items():
            yield from _reach(inner, steps[1:], (*keys, name))
    elif steps[0] in value:
        yield from _reach(value[steps[0]], steps[1:], (*keys, steps[0]))


def switched_off(entry: Any) -> bool:
    """Say whether the client does not use a server: neither do we."""
    return isinstance(entry, Mapping) and (entry.get("enabled") is False or entry.get("disabled") is True)


def unwrapped(declaration: dict[str, Any]) -> dict[str, Any]:
    """Return a declaration whose server runs under the shim as it was before, under the id it has there."""
    command, args = declaration.get("command"), declaration.get("args", [])
    if (
        not isinstance(command, str)
        or not isinstance(args, list)
        or not all(isinstance(a, str) for a in args)
    ):
        return declaration
    inner = wrapped([command, *args])
    if inner is None:
        return declaration
    own = {"command": inner.command[0], "args": list(inner.command[1:])}
    kept = {key: value for key, value in declaration.items() if key not in {"id", "command", "args"}}
    return {"id": inner.server_id, **kept, **{key: value for key, value in own.items() if value}}


def declaration(entry: Any, client: Client) -> dict[str, Any]:
    """Return an entry in our spelling, with the keys of its transport alone."""
    if not isinstance(entry, Mapping):
        return {}
    ours = {client.keys.get(key, URLS.get(key, key)): value for key, value in entry.items()}
    command, args = ours.get("command"), ours.get("args") or []
    if isinstance(command, list) and command:
        command, args = command[0], [*command[1:], *args]
    kind = transport(entry, client)
    if kind == "stdio":
        given = {"command": command, "args": args, "env": _texts(ours.get("env"))}
    else:
        given = {"url": ours.get("url"), "headers": _texts(ours.get("headers"))}
    return {"type": kind, **{key: value for key, value in given.items() if value}}


def transport(entry: Mapping[str, Any], client: Client) -> str:
    """Return how a client reaches an entry: what its type says, or what the client makes of its keys."""
    named = entry.get("type", entry.get("transport"))
    if isinstance(named, str) and named in TYPES:
        return TYPES[named]
    if "command" in entry:
        return "stdio"
    by_key = next(
        (client.types[key] for key in ("httpUrl", "url") if key in entry and key in client.types), None
    )
    if by_key:
        return by_key
    url = str(next((entry[key] for key in ("url", *URLS) if key in entry), ""))
    return "sse" if url.partition("?")[0].rstrip("/").endswith("/sse") else "http"


def _texts(value: Any) -> Any:
    """Return a table of texts; clients take numbers and booleans for them."""
    if not isinstance(value, Mapping):
        return value
    return {
        k: v if isinstance(v, str) else json.dumps(v, default=str) for k, v in value.items() if v is not None
    }
