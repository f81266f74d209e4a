"""A refused request is told with whose it was and what it asked for, without what is secret in it; a flood of them is counted."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

import pytest
from agentsh_proxy import refused_requests
from agentsh_proxy.refused_requests import Refusals, RefusedRequest
from loopback.client import raw

from agentsh_net.core.audit.refusals import McpRequestRefused
from agentsh_net.core.web.http_head import parse_request

SESSIONS = {sha256(b"tok").hexdigest(): "agent"}


def told(target: str, here: str = "") -> RefusedRequest:
    head = parse_request(raw(target, b"Host: localhost"))
    return refused_requests.refused_request(head, SESSIONS, here)


def test_whose_a_request_was_and_what_it_asked_for_is_told_without_token_and_query() -> None:
    assert told("/s/tok/mcp/peer?key=K") == RefusedRequest("agent", "POST", "/s/[redacted]/mcp/peer")
    assert told("/s/guess/mcp/peer") == RefusedRequest("default", "POST", "/s/[redacted]/mcp/peer")
    assert told("/mcp/peer", "mine") == RefusedRequest("mine", "POST", "/mcp/peer")


def test_of_a_request_without_a_head_it_is_told_where_its_socket_was_made() -> None:
    assert refused_requests.refused_request(None, SESSIONS, "mine") == RefusedRequest("mine", "", "")
    assert refused_requests.refused_request(None, SESSIONS, "") == RefusedRequest("default", "", "")


def test_what_comes_too_fast_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_requests, "REFUSALS", 2)
    monkeypatch.setattr(refused_requests, "REFUSALS_A_SECOND", 1e-9)
    events: list[dict[str, Any]] = []
    refusals = Refusals(lambda event: events.append(event.to_json()), McpRequestRefused, "gateway", {413: "gateway.max_request"})  # fmt: skip

    async def refuse() -> None:
        for status in (413, 400, 400, 400):
            refusals.tell(RefusedRequest("default"), status, "no")

    asyncio.run(refuse())
    assert [event["type"] for event in events] == ["mcp_request_refused"] * 2 + ["events_lost"]
    assert [event["rule"] for event in events[:2]] == ["gateway.max_request", "protocol"]
    assert (events[2]["layer"], events[2]["lost"]) == ("gateway", 1)
    refusals.finish()
    assert [event["lost"] for event in events[3:]] == [1]
