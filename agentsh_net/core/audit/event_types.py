"""Which event types there are, and how one is read back from JSON. What they hold is `events`' business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from agentsh_net.core.audit import events, refusals
from agentsh_net.core.audit.events import Event
from agentsh_net.core.errors import ProtocolError

EVENT_TYPES: Mapping[str, type[Event]] = {
    cls.type: cls
    for cls in (
        events.ToolCallIntercepted,
        events.ToolCalled,
        events.ToolResultInspected,
        events.NetworkConnection,
        events.ToolSeen,
        events.ToolChanged,
        events.ToolRemoved,
        events.ServerSeen,
        events.ServerChanged,
        events.ToolAltered,
        events.SamplingRequest,
        events.ElicitationRequest,
        events.ToolsListChanged,
        events.MessageUninspected,
        events.ServerRefused,
        refusals.McpRequestRefused,
        events.ServerStopped,
        events.CrossServerBlocked,
        events.ConnectorRequest,
        events.LlmDirectConnection,
        events.UndeclaredConnection,
        events.ResponseUninspected,
        events.RequestRedacted,
        events.RequestLimited,
        refusals.RequestRefused,
        events.PolicyReloaded,
        events.PolicyRejected,
        events.LayerStateChanged,
        events.EventsLost,
        events.DaemonStarted,
        events.DaemonStopped,
        events.WorkerExited,
    )
}


@cache
def _known(kind: type[Event]) -> frozenset[str]:
    return frozenset({"type", *(f.name for f in fields(kind))})


def from_json(value: Mapping[str, Any]) -> Event:
    """Return the event a JSON object describes. Raises ProtocolError for an unknown type or an unknown field."""
    cls = EVENT_TYPES.get(str(value.get("type")))
    if cls is None:
        raise ProtocolError(f"unknown event type {value.get('type')!r}")
    unknown = value.keys() - _known(cls)  # type: ignore[arg-type] # mypy takes the hash of events for that of their types
    if unknown:
        raise ProtocolError(f"event {cls.type} has no field {min(unknown)!r}")
    return cls(**{k: v for k, v in value.items() if k != "type"})
