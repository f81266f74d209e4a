"""What policy needs from a generateContent request: which MCP servers the provider is to call itself.

They stand in `tools[].mcpServers[]`; the same in a request that wraps one (Code Assist), and in what is put into the cache.
Functions that the client offers are its own: their calls are judged in the answer.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from agentsh_net.core.dialects.base import Connector, Fault, RequestFacts
from agentsh_net.core.dialects.request_offers import offering
from agentsh_net.core.dialects.request_reading import ambiguous, disguised, read_object, too_many
from agentsh_net.core.values.members import find, folded, plain, twice

# Gemini takes 128 functions a request; a request with more servers than that is not read further.
MAX_CONNECTORS: Final = 128

_SERVERS: Final = frozenset({"mcpservers", "mcpserver"})
# What these hold is the client's data or a schema, whatever its keys are.
_OPAQUE: Final = frozenset(
    {"contents", "systeminstruction", "functiondeclarations", "responseschema", "responsejsonschema"}
)
# Twice anywhere, these leave open what the provider is asked for.
_DECISIVE: Final = frozenset({"tools", "mcpservers", "name", "url", "streamablehttptransport", "request"})
_SIGN: Final = re.compile(rb"mcp_*s_*e_*r_*v_*e_*r")  # as keys are read here, without underscores
_HEADERS: Final = frozenset({"headers"})
_ADDRESS: Final = frozenset({"url", "uri", "httpurl"})


def read(body: bytes, *, stream: bool) -> RequestFacts:
    """Return the facts of a request body (content decoding is done by the caller); the path says whether the answer streams."""
    if not body.strip():
        return RequestFacts(stream=stream)
    lowered = body.lower()
    named = disguised(lowered) or (lowered.find(b"mcp") >= 0 and _SIGN.search(lowered) is not None)
    if not named and (plain_body := _object(body)) is not None:
        return RequestFacts(stream=stream, parsed=offering(plain_body))
    reading = read_object(body)
    if isinstance(reading, Fault):
        return RequestFacts(stream, fault=reading)
    clashes = {plain(key) for key in reading.duplicates} | twice(reading.value)
    connectors: list[Connector] = []
    for member in find(reading.value, _SERVERS, _OPAQUE):
        entries = member.value if isinstance(member.value, list) else [member.value]
        for entry in entries:
            if entry is not None:
                connectors += _named(entry, clashes)
    fault = ambiguous(body, clashes & _DECISIVE) or too_many(len(connectors), MAX_CONNECTORS)
    return RequestFacts(
        stream=stream, connectors=tuple(connectors[:MAX_CONNECTORS]), fault=fault, parsed=reading.value
    )


def _named(entry: Any, clashes: set[str]) -> list[Connector]:
    """Return an MCP server, once for each address it has; without a name and an address it is one that nobody declared."""
    if isinstance(entry, dict):
        clashes |= twice(entry)
    name = folded(entry).get("name")
    addresses = [member.value for member in find(entry, _ADDRESS, _HEADERS) if isinstance(member.value, str)]
    return [Connector(name if isinstance(name, str) else "", address) for address in addresses or [""]]


def _object(body: bytes) -> dict[str, Any] | None:
    """Return what a body says that every parser reads; None where it is no object."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
