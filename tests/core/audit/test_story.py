"""What belongs to a call is told apart from what happened beside it, and the verdict is that of the first who decided."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from agentsh_net.core.audit import story

IDS = count(1)


def event(kind: str, **fields: Any) -> dict[str, Any]:
    number = next(IDS)
    base = {"id": f"{number:04}", "timestamp": f"2026-01-01T00:00:00.{number:06}Z", "type": kind}
    return base | {"session_id": "s1", "action": "allow", "would": None, "reason": "", "rule": ""} | fields


def intent(**fields: Any) -> dict[str, Any]:
    candidates = [{"server_id": "weather", "tool_name": "get"}]
    return event("mcp_tool_call_intercepted", server_id="weather", candidates=candidates, tool_name="mcp__weather__get") | fields  # fmt: skip


def called(**fields: Any) -> dict[str, Any]:
    return event("mcp_tool_called", server_id="weather", tool_name="get", jsonrpc_id=1, pid=7) | fields


def result(**fields: Any) -> dict[str, Any]:
    return (
        event("mcp_tool_result_inspected", server_id="weather", tool_name="get", jsonrpc_id=1, pid=7) | fields
    )


def connection(**fields: Any) -> dict[str, Any]:
    base = {"server_id": "weather", "candidates": ["weather"], "session_id": "default", "correlated": False}
    return event("mcp_network_connection", **base | fields)


def test_one_call_through_all_layers_is_one_story_in_the_order_of_time() -> None:
    rows = [intent(), called(), connection(), result()]
    told = story.tell(rows[0], rows[1:2], rows[2:])
    assert list(told.events) == rows
    assert story.verdict(told) == ("allow", "")
    assert told.to_json()["connections"][0]["joined_by"] == "server and time"


@pytest.mark.parametrize(
    "other",
    [
        {"jsonrpc_id": 2},
        {"jsonrpc_id": "1"},
        {"jsonrpc_id": True},
        {"pid": 8},
        {"session_id": "s2"},
        {"server_id": "web"},
        {"tool_name": "list"},
    ],
)
def test_the_result_of_another_call_is_not_taken(other: dict[str, Any]) -> None:
    assert story.tell(None, [called()], [result(**other)]).results == ()


def test_of_two_results_under_one_id_the_first_after_the_call_is_its_own() -> None:
    before, call, own, later = result(), called(), result(), result()
    assert story.tell(None, [call], [before, own, later]).results == (own,)


@pytest.mark.parametrize(
    ("fields", "joined"),
    [
        ({}, True),
        ({"server_id": "other", "candidates": ["other", "WEATHER"]}, True),
        ({"server_id": "other", "candidates": ["other"]}, False),
        ({"correlated": True, "session_id": "s1"}, True),
        ({"correlated": True, "session_id": "s2"}, False),
        ({"session_id": "s2"}, False),
        ({"correlated": True}, True),
    ],
)
def test_a_connection_belongs_by_its_server_and_by_its_session_where_that_is_known(fields: dict[str, Any], joined: bool) -> None:  # fmt: skip
    told = story.tell(intent(), [called()], [connection(**fields)])
    assert bool(told.connections) is joined


@pytest.mark.parametrize(
    ("fields", "joined_by"),
    [
        ({"correlated": True, "session_id": "s1"}, "session"),
        # Of no known session: some call explains it, perhaps another's.
        ({"correlated": True}, "server and time"),
        ({"session_id": "s1"}, "server and time"),
    ],
)
def test_a_session_is_said_to_join_only_where_it_is_known(fields: dict[str, Any], joined_by: str) -> None:
    told = story.tell(intent(), [called()], [connection(**fields)])
    assert told.to_json()["connections"][0]["joined_by"] == joined_by


def test_a_call_that_never_arrived_is_joined_by_its_candidates() -> None:
    assert story.tell(intent(action="block"), [], [connection()]).connections


def test_the_verdict_is_the_first_block_and_an_audits_would_comes_after_it() -> None:
    audited = story.tell(intent(would="block"), [called()], [])
    assert story.verdict(audited) == ("would block", "intent")
    blocked = story.tell(intent(would="block"), [called(action="block")], [])
    assert story.verdict(blocked) == ("block", "execution")
    refused = story.tell(intent(), [called()], [connection(action="block")])
    assert story.verdict(refused) == ("block", "connection")


def test_what_a_session_rule_said_of_this_call_is_part_of_it() -> None:
    call = called(action="block", reason="a would send what b read")
    own = event("mcp_cross_server_blocked", reason="a would send what b read")
    other = event("mcp_cross_server_blocked", reason="c would send what d read")
    told = story.tell(None, [call], [own, other])
    assert told.session == (own,)
    assert story.verdict(told) == ("block", "execution")
