"""What policy needs from a Messages request: whether the answer streams, and which MCP servers the provider is to call itself.

The request itself is never changed, and nothing else in it is our business.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from typing import Any, Final

import orjson

from agentsh_net.core.dialects.anthropic.blocks import folded
from agentsh_net.core.dialects.anthropic.tool_changes import SIGN, added, servers
from agentsh_net.core.dialects.base import Connector, Fault, RequestFacts
from agentsh_net.core.dialects.request_reading import ambiguous, read_object, too_many
from agentsh_net.core.values.strict_json import Reading

# The API takes 20 MCP servers a request; a list beyond this is no request that it would serve.
_MAX_CONNECTORS: Final = 64

# Twice anywhere, these leave open what the provider is asked for; the second group only where connectors are named.
_DECISIVE: Final = frozenset({"stream", "mcp_servers", "tools"})
_NAMING: Final = frozenset({"type", "name", "url", "mcp_server_name"})

# Every way in which tools name a server; the `mcp` in the names of an agent's own tools is none.
# Go's clients read the long s as an `s`.
_NAMES_SERVER: Final = re.compile(rb"mcp_(?:(?:s|\xc5\xbf|\\u017f)erver_name|tool(?:s|\xc5\xbf|\\u017f)et)")
_LONG: Final = 64 << 10  # of such a body the tools are a small part, and are looked through alone
_BACKSLASH: Final = b"\\"
_ESCAPED_ASCII: Final = re.compile(rb"\\u00[0-7]")

# Keys that name no server, as the API spells them: to ask for all of a request's at once costs a third of folding their case.
_ORDINARY: Final = frozenset(
    {
        "model", "messages", "max_tokens", "stream", "system", "tools", "tool_choice", "metadata", "stop_sequences", "temperature",
        "top_k", "top_p", "thinking", "service_tier",
    }
)  # fmt: skip

# What almost every request says; made once, since a frozen dataclass costs more to make than the body costs to parse.
_STREAMED: Final = RequestFacts(stream=True)
_WHOLE: Final = RequestFacts()


def read(body: bytes) -> RequestFacts:
    """Return the facts of a request body (content decoding is done by the caller)."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _strictly(body)
    if not isinstance(value, dict) or body.find(SIGN) >= 0 or body.count(b'"stream"') > 1:
        return _strictly(body)
    if body.find(_BACKSLASH) >= 0 and _spells_ascii(body):
        return _strictly(body)
    alone = offers = "tools" in value
    connects = False
    if not _ORDINARY.issuperset(value):
        # Few, where the body may be a megabyte; one that stands twice is among them.
        keys = ",".join(value).casefold()
        offers, connects = "tools" in keys, "mcp_servers" in keys
        alone = alone and keys.count("tools") == 1
    if connects or (offers and _may_name_server(body, value["tools"] if alone else None)):
        return _strictly(body)
    streams = value.get("stream") is True
    if offers and (not alone or value["tools"]):
        return RequestFacts(stream=streams, parsed=value)
    return _STREAMED if streams else _WHOLE


def _strictly(body: bytes) -> RequestFacts:
    """Return the facts of a body that names connectors, or that may be read in two ways."""
    reading = read_object(body)
    if isinstance(reading, Fault):
        return RequestFacts(fault=reading)
    return _facts(body, reading)


def _spells_ascii(body: bytes) -> bool:
    """Say whether a character that JSON has no need to escape may be an escape."""
    return body.find(b"\\u00") >= 0 and _ESCAPED_ASCII.search(body) is not None


def _may_name_server(body: bytes, tools: Any) -> bool:
    """Say whether a tool may stand for a server, or leave open which tools count; None: what the tools are is not plain."""
    if body.count(b'"tools"') > 1:
        return True
    told = body
    if len(body) > _LONG and tools is not None:
        with contextlib.suppress(orjson.JSONEncodeError):  # nested deeper than it writes
            told = orjson.dumps(tools)
    return _NAMES_SERVER.search(told.lower()) is not None


def _facts(body: bytes, reading: Reading) -> RequestFacts:
    value: dict[str, Any] = reading.value
    top = folded(value)
    repeated = {key.casefold() for key in reading.duplicates}
    if len(top) < len(value):
        keys = [key.casefold() for key in value]
        repeated |= {key for key in keys if keys.count(key) > 1}
    declared, toolsets = _listed(top.get("mcp_servers")), _toolsets(top.get("tools"))
    additions = [tool for _, tool in added(value)]
    decisive = _DECISIVE | _NAMING if declared or toolsets else _DECISIVE
    facts = RequestFacts(
        stream=value.get("stream") is True,
        fault=ambiguous(body, repeated & decisive),
        parsed=value,
        adds_tools=bool(additions),
    )
    connectors = _connectors(declared, toolsets, additions)
    if isinstance(connectors, Fault):
        return replace(facts, fault=connectors)
    return replace(facts, connectors=connectors)


def _connectors(
    declared: list[Any], toolsets: list[dict[str, Any]], additions: list[dict[str, Any]]
) -> tuple[Connector, ...] | Fault:
    """Return every server that is declared, or named by a tool; the fault of those that cannot be judged."""
    found: dict[str, Connector] = {}
    for entry in declared:
        server = folded(entry)
        name, url = server.get("name"), server.get("url")
        clash = isinstance(entry, dict) and len(server) < len(entry)
        if not isinstance(name, str) or not isinstance(url, str) or clash or name in found:
            return _malformed("an entry of mcp_servers has no name and url of its own")
        found[name] = Connector(name, url)
    for toolset in toolsets:
        name = toolset.get("mcp_server_name")
        if not isinstance(name, str):
            return _malformed("an mcp_toolset names no server")
        found.setdefault(name, Connector(name, ""))
    for name in (name for tool in additions for name in servers(tool)):
        found.setdefault(name, Connector(name, ""))
    return too_many(len(found), _MAX_CONNECTORS) or tuple(found.values())


def _listed(value: Any) -> list[Any]:
    """Return the entries of a list; a thing that is neither null nor a list is one (malformed) entry."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _toolsets(tools: Any) -> list[dict[str, Any]]:
    """Return the tools that stand for a whole MCP server."""
    found = []
    for tool in _listed(tools):
        entry = folded(tool)
        kind = entry.get("type")
        if "mcp_server_name" in entry or (
            isinstance(kind, str) and kind.strip().casefold().startswith("mcp_toolset")
        ):
            found.append(entry)
    return found


def _malformed(detail: str) -> Fault:
    return Fault("malformed_connector", detail, cut=True)
