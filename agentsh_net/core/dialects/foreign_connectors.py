"""MCP servers that a request names in the words of no dialect here: agents that a provider runs, Realtime sessions, LM Studio.

Such a request is not understood, so that everything in it that could be a server is taken for one. What is thought of a server is not
decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agentsh_net.core.dialects.base import Connector, RequestFacts
from agentsh_net.core.dialects.request_reading import ambiguous, may_name_server, too_many, unreadable
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.members import find, folded, plain

_KINDS: Final = frozenset({"mcp", "mcpserver", "mcptoolset", "remotemcp"})
_HOLDERS: Final = frozenset({"mcpservers", "mcpserver"})
# Keys that name a server whatever stands around them, and all that may hold its address.
_TELLING: Final = frozenset({"serverurl", "connectorid", "tunnelid", "mcpservername"})
_ADDRESSES: Final = frozenset({"serverurl", "connectorid", "tunnelid", "url", "uri", "httpurl"})
_LABELS: Final = ("serverlabel", "mcpservername", "name", "servername", "label", "id", "connectorid")
_HEADERS: Final = frozenset({"headers"})
_INTEGRATIONS: Final = "integrations"
_CONFIGURED: Final = "mcp/"

_MAX_CONNECTORS: Final = 64  # each told of in an event; no request has more


def read(body: bytes) -> RequestFacts:
    """Return the facts of a request body: its servers, and what leaves open which they are."""
    if not may_name_server(body):
        return RequestFacts()
    try:
        reading = strict_json.read(body)
    except ProtocolError as error:
        return RequestFacts(fault=unreadable(body, error))
    connectors = tuple(dict.fromkeys(_connectors(reading.value, held=False)))
    clashes = {plain(key) for key in reading.duplicates}
    fault = ambiguous(body, clashes & (_TELLING | _ADDRESSES | _HOLDERS | {"type", "tools", *_LABELS}))
    fault = fault or too_many(len(connectors), _MAX_CONNECTORS)
    return RequestFacts(connectors=connectors[:_MAX_CONNECTORS], fault=fault)


def _connectors(value: Any, *, held: bool) -> Iterator[Connector]:
    """Yield the servers in a value; `held`: it stands under a key that lists servers."""
    if isinstance(value, list):
        for item in value:
            yield from _connectors(item, held=held)
    elif isinstance(value, dict):
        fields = folded(value)
        kind = fields.get("type")
        kind = plain(kind.strip()).replace("-", "") if isinstance(kind, str) else ""
        if held or kind in _KINDS or any(isinstance(fields.get(key), str) for key in _TELLING):
            label = next((text for key in _LABELS if isinstance(text := fields.get(key), str) and text), "")
            found = [m.value for m in find(value, _ADDRESSES, _HEADERS) if isinstance(m.value, str)]
            yield from (Connector(label, address) for address in found or [""])
        else:
            for key, item in value.items():
                if plain(key) == _INTEGRATIONS and isinstance(item, list):
                    yield from filter(None, map(_configured, item))
                yield from _connectors(item, held=plain(key) in _HOLDERS)


def _configured(integration: Any) -> Connector | None:
    """Return the server that LM Studio knows by itself and is to call: `mcp/NAME`, as it is or as a plugin's id."""
    name = folded(integration).get("id") if isinstance(integration, dict) else integration
    if isinstance(name, str) and name.strip().lower().startswith(_CONFIGURED):
        return Connector(name.strip()[len(_CONFIGURED) :], "")
    return None
