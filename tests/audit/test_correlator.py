"""A connection is told as explained whichever of the two, it or the call's news, comes first; one without a call is flagged."""

from __future__ import annotations

import asyncio
from typing import Any

from agentsh_net.audit.correlator import MAX_WAITING, PATIENCE, Correlator
from agentsh_net.core.audit.causes import UNEXPLAINED
from agentsh_net.core.audit.events import Event, NetworkConnection

CALL = {"type": "mcp_tool_call_intercepted", "action": "allow", "session_id": "a", "server_id": "weather"}


def connection(**facts: Any) -> NetworkConnection:
    return NetworkConnection(**{"session_id": "a", "server_id": "weather", "reason": "allowed", **facts})


def told(events: list[Event]) -> list[tuple[bool, str]]:
    return [(e.correlated, e.reason) for e in events]


def test_after_a_call_it_is_told_at_once() -> None:
    put: list[Event] = []
    correlator = Correlator(put.append)
    correlator.note(CALL)
    correlator.take(connection())
    assert told(put) == [(True, "allowed")]


def test_a_call_whose_news_come_second_explains_it_all_the_same() -> None:
    async def body() -> list[Event]:
        put: list[Event] = []
        correlator = Correlator(put.append)
        correlator.take(connection())
        correlator.take(connection(server_id="mail"))
        assert put == []
        correlator.note(CALL)
        assert told(put) == [(True, "allowed")]
        return put

    asyncio.run(body())


def test_without_a_call_it_is_flagged_after_a_moment_with_its_reason() -> None:
    async def body() -> None:
        put: list[Event] = []
        correlator = Correlator(put.append)
        correlator.take(connection())
        await asyncio.sleep(PATIENCE / 2)
        correlator.take(connection(candidates=["other"]))
        async with asyncio.timeout(60):
            while len(put) < 2:
                await asyncio.sleep(0.01)
        assert told(put) == [(False, f"allowed; {UNEXPLAINED}")] * 2

    asyncio.run(body())


def test_a_refusal_waits_for_nothing_and_keeps_its_reason() -> None:
    put: list[Event] = []
    correlator = Correlator(put.append)
    correlator.take(connection(action="block", reason="denied"))
    correlator.note(CALL)
    correlator.take(connection(action="block", reason="denied"))
    assert told(put) == [(False, "denied"), (True, "denied")]


def test_a_flood_waits_no_longer_than_there_is_room_and_the_end_tells_the_rest() -> None:
    async def body() -> None:
        put: list[Event] = []
        correlator = Correlator(put.append)
        for _ in range(MAX_WAITING + 5):
            correlator.take(connection())
        assert len(put) == 5
        correlator.flush()
        assert len(put) == MAX_WAITING + 5

    asyncio.run(body())


def test_the_gateways_own_connection_is_told_at_once_as_it_said() -> None:
    put: list[Event] = []
    Correlator(put.append).take(connection(layer="proxy", correlated=True))
    assert told(put) == [(True, "allowed")]
