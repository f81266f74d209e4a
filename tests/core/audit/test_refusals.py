"""A refused request's event says by whom, what was asked for and with which status it was answered."""

from __future__ import annotations

from agentsh_net.core.audit.event_types import from_json
from agentsh_net.core.audit.refusals import McpRequestRefused, RequestRefused


def test_either_kind_comes_back_from_its_json_with_what_it_told() -> None:
    for event in (
        RequestRefused(action="block", method="POST", path="/v1/messages", status=413, dialect="anthropic"),
        McpRequestRefused(action="block", method="GET", path="/mcp/x", status=401),
    ):
        assert from_json(event.to_json()) == event
        assert {"method", "path", "status"} <= event.to_json().keys()
