"""The MCP servers that people have declared in their MCP clients, as this project declares them.

One row per client. A file that cannot be used is told, never fatal; how it is read safely is `user_file`'s business.
Values are never printed (they hold tokens), and a client's own placeholders are not expanded: they are the user's
words, and the environment may be root's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from agentsh_net.core.config import parse
from agentsh_net.core.errors import ConfigError
from agentsh_net.core.folding import fold, visible
from agentsh_net.core.scalars import MAX_ID
from agentsh_net.mcp_clients import user_file
from agentsh_net.mcp_clients.gateway_urls import Spelling, direct
from agentsh_net.mcp_clients.shim_wrapping import wrapped
from agentsh_net.mcp_clients.user_file import UnusableError

# Nobody uses this many; what lies beyond is noise that would slow the start down.
MAX_SERVERS = 512

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


# What Codex takes credentials from that stand in its environment.
FROM_ELSEWHERE = ("bearer_token_env_var", "env_http_headers")

# What clients put values for: ${VAR}, ${env:VAR}, ${input:x}, $VAR (Gemini), {env:VAR}, {file:x} (OpenCode).
PLACEHOLDER = re.compile(r"\$\{|\$[A-Za-z_]|\{(?:env|file|input):")


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its servers (`~` home, `$config` XDG_CONFIG_HOME, `.` working directory) and its spelling."""

    name: str
    files: tuple[str, ...]
    places: tuple[str, ...] = ("mcpServers",)  # `*` is any key
    keys: Mapping[str, str] = field(default_factory=dict)  # its key -> ours
    types: Mapping[str, str] = field(
        default_factory=dict
    )  # key that holds the URL -> transport, where no type says
    spelling: Spelling = field(default_factory=Spelling)  # of a URL that the gateway serves


CLIENTS = (
    Client("claude-code", ("./.mcp.json", "~/.claude.json"), ("mcpServers", "projects.*.mcpServers")),
    Client("claude-desktop", ("$config/Claude/claude_desktop_config.json",)),
    Client("cursor", ("~/.cursor/mcp.json", "./.cursor/mcp.json")),
    Client("vscode", ("$config/Code/User/mcp.json", "./.vscode/mcp.json"), ("servers",)),
    Client(
        "codex", ("~/.codex/config.toml",), ("mcp_servers",), {"http_headers": "headers"}, {"url": "http"}
    ),
    Client(  # `url` alone was HTTP+SSE in its first versions, and is Streamable HTTP first by now: read from the URL, as elsewhere
        "gemini",
        ("~/.gemini/settings.json", "./.gemini/settings.json"),
        keys={"httpUrl": "url"},
        types={"httpUrl": "http"},
        spelling=Spelling(key="httpUrl"),
    ),
    Client(
        "opencode",
        ("$config/opencode/opencode.json", "$config/opencode/opencode.jsonc", "./opencode.json"),
        ("mcp",),
        {"environment": "env"},
    ),
    Client(
        "cline",
        ("$config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",),
        types={"url": "sse"},
        spelling=Spelling("streamableHttp", typed=True),
    ),
)


@dataclass(frozen=True, slots=True)
class Declared:
    """A server as an entry of `sandbox.mcp.servers`, and where it was found."""

    declaration: dict[str, Any] = field(repr=False)
    client: str
    source: Path
    fills: bool = False  # the client adds a credential that stands elsewhere


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client's file declares a server, and the id that the server has here."""

    source: Path
    keys: tuple[str, ...]
    server_id: str
    client: str
    transport: str
    used: bool = True  # the client has it switched on
    spelling: Spelling = field(default_factory=Spelling)


@dataclass(frozen=True, slots=True)
class Unread:
    """A file, or a server in it, that could not be used."""

    source: Path
    reason: str

    def __str__(self) -> str:
        return f"{visible(str(self.source))}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Found:
    """What the clients of one user declare. Every declaration is one that `core.config` takes."""

    servers: tuple[Declared, ...]
    unread: tuple[Unread, ...]
    places: tuple[Place, ...] = ()  # every declaration, equal ones too


def find(home: Path, *, cwd: Path, config_home: Path | None = None, uid: int | None = None) -> Found:
    """Return the servers declared by the MCP clients of a user; `uid` is who may own the files (default: home's owner).

    Equal declarations of one id are one; others get their client's name behind the id.
    """
    bases = {"~": home, "$config": config_home or home / ".config", ".": cwd}
    owner = user_file.Owner(home, uid)
    servers: dict[str, Declared] = {}
    unread: list[Unread] = []
    places: list[Place] = []
    left = MAX_SERVERS
    for client, source in _files(bases):
        try:
            entries = list(islice(_entries(owner.content(source), client), left + 1))
        except UnusableError as error:
            unread.append(Unread(source, str(error)))
            continue
        if len(entries) > left:
            unread.append(Unread(source, f"servers past the first {MAX_SERVERS} of all clients are left out"))
        for keys, entry in entries[:left]:
            name, own = direct(keys[-1], entry)
            if _switched_off(own):  # the client does not use it: neither do we
                places.append(
                    Place(source, keys, name, client.name, _transport(own, client), False, client.spelling)
                )
                continue
            declared = _unwrapped({"id": name, **_declaration(own, client)})
            found = Declared(
                declared,
                client.name,
                source,
                isinstance(own, Mapping) and any(key in own for key in FROM_ELSEWHERE),
            )
            fault = _fault(found.declaration)
            if fault:
                unread.append(Unread(source, f"server {visible(name, 64)}: {fault}"))
            else:
                server_id = _add(servers, found)
                places.append(
                    Place(
                        source,
                        keys,
                        server_id,
                        client.name,
                        found.declaration["type"],
                        spelling=client.spelling,
                    )
                )
        left = max(0, left - len(entries))
    return Found(tuple(servers.values()), tuple(unread), tuple(places))


def _switched_off(entry: Any) -> bool:
    return isinstance(entry, Mapping) and (entry.get("enabled") is False or entry.get("disabled") is True)


def _files(bases: Mapping[str, Path]) -> list[tuple[Client, Path]]:
    """Return every file with its client, once each: the working directory may be the home."""
    files: dict[Path, Client] = {}
    for client in CLIENTS:
        for file in client.files:
            base, _, relative = file.partition("/")
            files.setdefault(bases[base] / relative, client)
    return [(client, path) for path, client in files.items()]


def _entries(content: Any, client: Client) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the entries of a client's file, each with its keys in the file."""
    for place in client.places:
        for keys, table in _reach(content, place.split("."), ()):
            yield from (((*keys, name), entry) for name, entry in table.items())


def _reach(
    value: Any, steps: list[str], keys: tuple[str, ...]
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


def _unwrapped(declaration: dict[str, Any]) -> dict[str, Any]:
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


def _declaration(entry: Any, client: Client) -> dict[str, Any]:
    """Return an entry in our spelling, with the keys of its transport alone."""
    if not isinstance(entry, Mapping):
        return {}
    ours = {client.keys.get(key, key): value for key, value in entry.items()}
    command, args = ours.get("command"), ours.get("args") or []
    if isinstance(command, list) and command:
        command, args = command[0], [*command[1:], *args]
    transport = _transport(entry, client)
    if transport == "stdio":
        given = {"command": command, "args": args, "env": _texts(ours.get("env"))}
    else:
        given = {"url": ours.get("url"), "headers": _texts(ours.get("headers"))}
    return {"type": transport, **{key: value for key, value in given.items() if value}}


def _transport(entry: Mapping[str, Any], client: Client) -> str:
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
    url = str(entry.get("url", ""))
    return "sse" if url.partition("?")[0].rstrip("/").endswith("/sse") else "http"


def _texts(value: Any) -> Any:
    """Return a table of texts; clients take numbers and booleans for them."""
    if not isinstance(value, Mapping):
        return value
    return {
        k: v if isinstance(v, str) else json.dumps(v, default=str) for k, v in value.items() if v is not None
    }


def _fault(declaration: dict[str, Any]) -> str:
    """Say why a declaration is none, or return an empty text."""
    try:
        parse({"sandbox": {"mcp": {"servers": [declaration]}}})
    except ConfigError as error:
        problem = error.problems[0]
        return f"{problem.path.removeprefix('sandbox.mcp.servers[0].')}: found {problem.found}; expected {problem.expected}"
    return ""


def _add(servers: dict[str, Declared], found: Declared) -> str:
    """Add a server under its id, or under one that its client's name makes distinct; return the id."""
    name = str(found.declaration["id"])
    count = 1
    while (taken := servers.get(fold(str(found.declaration["id"])))) is not None:
        if _same(taken.declaration, found.declaration):
            return str(taken.declaration["id"])
        suffix = f"-{found.client}" if count == 1 else f"-{found.client}-{count}"
        renamed = {**found.declaration, "id": name[: MAX_ID - len(suffix)] + suffix}
        found = replace(found, declaration=renamed)
        count += 1
    servers[fold(str(found.declaration["id"]))] = found
    return str(found.declaration["id"])


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return {**one, "id": ""} == {**other, "id": ""}
