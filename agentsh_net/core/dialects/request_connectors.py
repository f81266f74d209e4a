"""MCP servers that the provider is asked to call, confined to the tools that policy allows, in the words of each API.

The provider runs such a call before anybody sees it: what must not run is taken out of the request, made to wait for an approval
(which is judged), or the request is refused. Whether the server itself may be called was decided before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agentsh_net.core.dialects.anthropic import tool_changes as anthropic_tool_changes
from agentsh_net.core.dialects.anthropic.blocks import spelled
from agentsh_net.core.dialects.anthropic.tool_changes import added
from agentsh_net.core.naming.folding import visible
from agentsh_net.core.values.strict_json import Path
from agentsh_net.core.verdicts.connectors import Reach

_ADDRESSES: Final = ("server_url", "connector_id", "tunnel_id")
_MAX_NAME: Final = 100

# (label, address) -> what may be reached
Ask = Callable[[str, str], Reach]
Edits = dict[Path, Any]


class ConfinementError(Exception):
    """The denied tools of the server called `label` cannot be kept from the provider. The message is the client's."""

    def __init__(self, label: str, why: str) -> None:
        super().__init__(f"MCP server {visible(label, _MAX_NAME)!r}: {why}")
        self.label = label
        self.why = why


def confined(request: Mapping[str, Any], ask: Ask) -> Edits:
    """Return the edits after which no connector reaches a denied tool. Raises ConfinementError."""
    edits: Edits = {}
    for prefix, each in (((), request), *_batched(request)):
        for path, entry in _openai(each):
            edits |= _openai_edits((*prefix, *path), entry, ask)
        edits |= {(*prefix, *path): edit for path, edit in _anthropic_edits(each, ask).items()}
    return edits


def _batched(request: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the requests of a batch of Anthropic's."""
    key = spelled(dict(request), "requests")
    listed = request.get(key)
    for at, entry in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(entry, dict):
            inner = spelled(entry, "params")
            if isinstance(entry.get(inner), dict):
                yield (key, at, inner), entry[inner]


def _openai(request: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the tools of type `mcp` wherever they may stand; a gateway's stand under `mcp` once more."""
    key = spelled(dict(request), "tools")
    waiting: list[tuple[Path, Any]] = [((key,), request.get(key))]
    for name in ("input", "items"):
        where = spelled(dict(request), name)
        items = request.get(where)
        for at, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict):
                inner = spelled(item, "tools")
                waiting.append(((where, at, inner), item.get(inner)))
    while waiting:  # a loop, because depth is the sender's choice
        path, tools = waiting.pop()
        for at, tool in enumerate(tools if isinstance(tools, list) else ()):
            if not isinstance(tool, dict):
                continue
            here: Path = (*path, at)
            nested = spelled(tool, "tools")
            if isinstance(tool.get(nested), list):
                waiting.append(((*here, nested), tool[nested]))
            kind = tool.get(spelled(tool, "type"))
            addressed = any(tool.get(spelled(tool, name)) is not None for name in _ADDRESSES)
            if isinstance(kind, str) and kind.strip().casefold() == "mcp":
                inner = spelled(tool, "mcp")
                told = tool.get(inner)
                yield ((*here, inner), told) if isinstance(told, dict) else (here, tool)
            elif addressed and not isinstance(kind, str):
                yield here, tool


def _openai_edits(path: Path, entry: dict[str, Any], ask: Ask) -> Edits:
    label = _text(entry, "server_label")
    addresses = [a for name in _ADDRESSES if (a := _text(entry, name))]
    reach = ask(label, addresses[0] if addresses else "")
    if not reach.confined:
        return {}
    edits: Edits = {}
    if reach.known:
        key = spelled(entry, "allowed_tools")
        given = entry.get(key)
        names = given.get("tool_names") if isinstance(given, dict) else given
        left = _left(names, reach, label)
        if left != names:
            edits[*path, key] = {**given, "tool_names": left} if isinstance(given, dict) else left
    if reach.by_arguments or not reach.known:
        key = spelled(entry, "require_approval")
        if entry.get(key, "always") != "always":
            edits[*path, key] = "always"
    return edits


def _anthropic_edits(request: Mapping[str, Any], ask: Ask) -> Edits:
    key = spelled(dict(request), "mcp_servers")
    servers = request.get(key)
    edits: Edits = {}
    toolsets = list(_toolsets(request))
    beside = {name for _, tool in added(request) for name in anthropic_tool_changes.servers(tool)}
    # A thread that goes on has what was added to it before.
    continues = (
        _text(dict(thread), "type") == "continue"
        if isinstance(thread := request.get("thread"), dict)
        else False
    )
    for at, server in enumerate(servers if isinstance(servers, list) else ()):
        if not isinstance(server, dict):
            continue
        name = _text(server, "name")
        reach = ask(name, _text(server, "url"))
        if not reach.confined:
            continue
        if reach.by_arguments or not reach.known:
            raise ConfinementError(
                name, "policy denies some of its tools, which cannot be judged before the provider runs them"
            )
        if name in beside or continues:
            raise ConfinementError(
                name,
                "policy denies some of its tools, which the conversation may add where they cannot be kept back",
            )
        mine = [(path, tool) for path, tool in toolsets if _text(tool, "mcp_server_name") == name]
        if toolsets:
            for path, tool in mine:
                edits |= _toolset_edits(path, tool, reach, name)
        else:
            edits |= _server_edits((key, at), server, reach, name)
    return edits


def _toolsets(request: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    key = spelled(dict(request), "tools")
    tools = request.get(key)
    for at, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict) and _text(tool, "mcp_server_name"):
            yield (key, at), tool


def _toolset_edits(path: Path, tool: dict[str, Any], reach: Reach, name: str) -> Edits:
    """Enable the allowed tools by name and nothing else."""
    general, configs = tool.get("default_config"), tool.get("configs")
    general = general if isinstance(general, dict) else {}
    configs = configs if isinstance(configs, dict) else {}
    everything = general.get("enabled", True) is not False
    wanted: dict[str, Any] = {}
    for allowed in reach.allowed:
        own = configs.get(allowed)
        config = own if isinstance(own, dict) else {}
        if config.get("enabled", everything) is not False:
            wanted[allowed] = {**config, "enabled": True}
    if not wanted:
        raise _nothing_left(name)
    return {(*path, "default_config"): {**general, "enabled": False}, (*path, "configs"): wanted}


def _server_edits(path: Path, server: dict[str, Any], reach: Reach, name: str) -> Edits:
    """Name the allowed tools beside the server, as the API had it before toolsets."""
    given = server.get("tool_configuration")
    given = given if isinstance(given, dict) else {}
    left = _left(given.get("allowed_tools"), reach, name)
    if left == given.get("allowed_tools"):
        return {}
    return {(*path, "tool_configuration"): {**given, "allowed_tools": left}}


def _left(names: Any, reach: Reach, label: str) -> list[str]:
    """Return the allowed ones of the tools asked for."""
    left = [tool for tool in (names if isinstance(names, list) else reach.allowed) if tool in reach.allowed]
    if not left:
        raise _nothing_left(label)
    return left


def _nothing_left(name: str) -> ConfinementError:
    return ConfinementError(name, "policy denies every tool of it that is asked for")


def _text(entry: dict[str, Any], name: str) -> str:
    value = entry.get(spelled(entry, name))
    return value if isinstance(value, str) else ""
