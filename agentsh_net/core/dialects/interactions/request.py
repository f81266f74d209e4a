"""What policy needs from a request for an interaction: whether it streams, and which MCP servers the provider is to call itself.

They stand in `tools[]` with the type `mcp_server`. An agent that is kept with the provider may bring servers that no request shows.
"""

from __future__ import annotations

from typing import Any, Final

from agentsh_net.core.dialects import foreign_connectors
from agentsh_net.core.dialects.base import Fault, RequestFacts
from agentsh_net.core.dialects.request_reading import ambiguous, read_object
from agentsh_net.core.values.members import folded, plain, twice

_DECISIVE: Final = frozenset({"stream", "tools", "agent"})


def read(body: bytes) -> RequestFacts:
    """Return the facts of a request body (content decoding is done by the caller)."""
    if not body.strip():
        return RequestFacts()  # a stored interaction is asked for
    reading = read_object(body)
    if isinstance(reading, Fault):
        return RequestFacts(fault=reading)
    value: Any = reading.value
    named = foreign_connectors.read(body)
    top = folded(value)
    clashes = ({plain(key) for key in reading.duplicates} | twice(value)) & _DECISIVE
    fault = named.fault or ambiguous(body, clashes)
    if fault is None and top.get("agent") not in (None, ""):
        fault = Fault(
            "stored_agent",
            "an agent of the provider's may bring MCP servers that no request shows",
            cut=False,
        )
    return RequestFacts(
        stream=top.get("stream") is True, connectors=named.connectors, fault=fault, parsed=value
    )
