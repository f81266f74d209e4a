"""A refused request is told with whose it was and what it asked for, without what is secret in it; a flood of them is counted."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

import pytest
from agentsh_proxy import turned_away
from agentsh_proxy.turned_away import Refusals, TurnedAway
from loopback.client import raw

from agentsh_net.core.audit.refusals import McpRequestRefused
from agentsh_net.core.web.http_head import parse_request

SESSIONS = {sha256(b"tok").hexdigest(): "agent"}


def told(target: str, here: str = "") -> TurnedAway:
    head = parse_request(raw(target, b"Host: localhost"))
    return turned_away.turned_away(head, SESSIONS, here)


def test_whose_a_request_was_and_what_it_asked_for_is_told_without_token_and_query() -> None:
    assert told("/s/tok/mcp/peer?key=K") == TurnedAway("agent", "POST", "/s/[redacted]/mcp/peer")
    assert told("/s/guess/mcp/peer") == TurnedAway("default", "POST", "/s/[redacted]/mcp/peer")
    assert told("/mcp/peer", "mine") == TurnedAway("mine", "POST", "/mcp/peer")


def test_of_a_request_without_a_head_it_is_told_where_its_socket_was_made() -> None:
    assert turned_away.turned_away(None, SESSIONS, "mine") == TurnedAway("mine", "", "")
    assert turned_away.turned_away(None, SESSIONS, "") == TurnedAway("default", "", "")


def test_what_comes_too_fast_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turned_away, "REFUSALS", 2)
    monkeypatch.setattr(turned_away, "REFUSALS_A_SECOND", 1e-9)
    events: list[dict[str, Any]] = []
    refusals = Refusals(lambda event: events.append(event.to_json()), McpRequestRefused, "gateway", {413: "gateway.max_request"})  # fmt: skip

    async def refuse() -> None:
        for status in (413, 400, 400, 400):
            refusals.tell(TurnedAway("default"), status, "no")

    asyncio.run(refuse())
    assert [event["type"] for event in events] == ["mcp_request_refused"] * 2 + ["events_lost"]
    assert [event["rule"] for event in events[:2]] == ["gateway.max_request", "protocol"]
    assert (events[2]["layer"], events[2]["lost"]) == ("gateway", 1)
