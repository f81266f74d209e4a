"""What policy needs from a Responses request: stream or not, the MCP servers the provider is to call, the calls it approves.

A stored prompt (`prompt.id`) may bring servers that no request shows: such a request cannot be read whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from agentsh_net.core.dialects.base import Connector, Fault, RequestFacts
from agentsh_net.core.dialects.openai_responses.items import Call, folded, read_call
from agentsh_net.core.dialects.openai_responses.kept_calls import repeats_calls
from agentsh_net.core.dialects.request_reading import (
    ambiguous,
    disguised,
    may_name_server,
    read_object,
    truth,
)
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.members import text_of

# OpenAI refuses more than 128 tools; a request with more connectors than tools can be is not read further.
MAX_CONNECTORS: Final = 128

# Twice anywhere, these leave open what the provider is asked for; the second group only where connectors or approvals are.
_DECISIVE: Final = frozenset({"stream", "tools", "input", "items"})
_NAMING: Final = frozenset(
    {
        "type", "server_label", "server_url", "connector_id", "tunnel_id", "approve", "approval_request_id", "id", "name",
        "arguments",
    }
)  # fmt: skip
_KINDS: Final = frozenset({"mcp", "connector"})
_ADDRESSES: Final = ("server_url", "connector_id", "tunnel_id")

# A connector or an approval; the `mcp` in the names of an agent's own tools is none. Found byte by byte before the expression is asked.
_ADDRESSED: Final = (b"connector", b"tunnel_id", b"server_url")
_MCP: Final = re.compile(rb'mcp(?:_approval|(?:\\.[0-9a-f]*|[^\w"\\])*")')  # white space may be an escape
_ONCE: Final = (b'"stream"', b'"tools"', b'"input"')


def read(body: bytes) -> RequestFacts:
    """Return the facts of a request body (content decoding is done by the caller)."""
    if not body.strip():
        return RequestFacts()  # a GET of a stored response
    if (plain := _plain(body)) is not None:
        return plain
    reading = read_object(body)
    if isinstance(reading, Fault):
        return RequestFacts(fault=reading)
    clashes = {key.casefold() for key in reading.duplicates}
    top = _fold(reading.value, clashes)
    connectors = tuple(dict.fromkeys(_connectors(top, clashes)))
    # `items` are added to a conversation, which a later request goes on with.
    approvals = tuple(call for key in ("input", "items") for call in _approvals(top.get(key), clashes))
    decisive = _DECISIVE | _NAMING if connectors or approvals or may_name_server(body) else _DECISIVE
    fault = ambiguous(body, clashes & decisive)
    if fault is None and isinstance(top.get("prompt"), dict):
        fault = Fault(
            "stored_prompt", "a stored prompt may bring MCP servers that no request shows", cut=False
        )
    if fault is None and len(connectors) + len(approvals) > MAX_CONNECTORS:
        fault = Fault(
            "too_many_connectors", f"more than {MAX_CONNECTORS} MCP servers and approvals", cut=True
        )
    return RequestFacts(
        stream=truth(top.get("stream")),
        connectors=connectors[:MAX_CONNECTORS],
        fault=fault,
        approvals=approvals[:MAX_CONNECTORS],
        parsed=reading.value,
    )


def _plain(body: bytes) -> RequestFacts | None:
    """Return the facts of a body that names no connector and can be read in one way; None where that is not certain."""
    lowered = body.lower()
    if _is_suspect(lowered) or any(lowered.count(key) > 1 for key in _ONCE):
        return None
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    top = folded(value)
    if isinstance(top.get("prompt"), dict):
        return None
    telling = b'"tools"' in body or repeats_calls(value)
    return RequestFacts(stream=truth(top.get("stream")), parsed=value if telling else None)


def _is_suspect(lowered: bytes) -> bool:
    """Say whether a body may name a connector or approve a call, plainly or in disguise."""
    if any(lowered.find(word) >= 0 for word in _ADDRESSED) or disguised(lowered):
        return True
    return lowered.find(b"mcp") >= 0 and _MCP.search(lowered) is not None


def _fold(value: Any, clashes: set[str]) -> dict[str, Any]:
    """Return an object with its keys casefolded, noting those that differ by case alone."""
    found = folded(value)
    if isinstance(value, dict) and len(found) < len(value):
        clashes |= {key for key, times in Counter(map(str.casefold, value)).items() if times > 1}
    return found


def _connectors(top: Mapping[str, Any], clashes: set[str]) -> Iterator[Connector]:
    """Yield every MCP server: in `tools`, and in the items of `input` that bring tools of their own."""
    yield from _offered(top.get("tools"), clashes)
    for item in (*_listed(top.get("input")), *_listed(top.get("items"))):
        yield from _offered(_fold(item, clashes).get("tools"), clashes)


def _offered(tools: Any, clashes: set[str]) -> Iterator[Connector]:
    entries = _listed(tools)[::-1]
    while entries:  # a loop, because depth is the sender's choice
        tool = _fold(entries.pop(), clashes)
        kind = tool.get("type")
        addresses = [tool[key] for key in _ADDRESSES if tool.get(key) is not None]
        if text_of(kind).strip().casefold() in _KINDS or (addresses and not isinstance(kind, str)):
            # Mistral's connectors have no label: their id names them.
            label = text_of(tool.get("server_label")) or text_of(tool.get("connector_id"))
            # Where there are two addresses, nobody but the provider knows which it takes.
            yield from (Connector(label, text_of(address)) for address in addresses or [""])
        entries += _listed(tool.get("tools"))[::-1]  # of a namespace


def _approvals(items: Any, clashes: set[str]) -> Iterator[ToolCall]:
    """Yield the calls of MCP servers that the request lets the provider run."""
    proposed: dict[str, Call] = {}
    for entry in _listed(items):
        item = _fold(entry, clashes)
        kind = text_of(item.get("type")).strip().casefold()
        if kind == "mcp_approval_request":
            call = read_call(item)
            proposed[call.id] = call
        elif kind == "mcp_approval_response" and truth(item.get("approve")):
            of = text_of(item.get("approval_request_id"))
            call = proposed.get(of) or Call(kind="mcp_approval_request", id=of)
            yield replace(call, flaw="").asked()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
