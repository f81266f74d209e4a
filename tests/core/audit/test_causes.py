"""A call explains connections of its own session to its own server, for a while, if it was let through."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.audit.causes import MAX_REMEMBERED, WINDOW, Causes
from agentsh_net.core.audit.events import DEFAULT_SESSION


def call(
    server: str = "weather", session: str = "a", kind: str = "mcp_tool_called", **more: Any
) -> dict[str, Any]:
    return {"type": kind, "action": "allow", "session_id": session, "server_id": server, **more}


@pytest.mark.parametrize("kind", ["mcp_tool_called", "mcp_tool_call_intercepted"])
def test_a_call_explains_its_sessions_connections_to_its_server(kind: str) -> None:
    causes = Causes()
    assert causes.note(call(kind=kind), 0)
    assert causes.explain("a", ["WEATHER"], WINDOW)
    assert not causes.explain("a", ["weather"], WINDOW + 1)
    assert not causes.explain("a", ["mail"], 0)
    assert not causes.explain("b", ["weather"], 0)


def test_whoever_is_in_no_known_session_may_be_any() -> None:
    causes = Causes()
    causes.note(call(), 0)
    assert causes.explain(DEFAULT_SESSION, ["weather"], 0)
    causes.note(call("mail", DEFAULT_SESSION), 0)
    assert not causes.explain("a", ["mail"], 0), "a call of nobody's explains no session's connection"


def test_a_name_that_may_mean_several_servers_explains_each() -> None:
    causes = Causes()
    causes.note(
        call("", candidates=[{"server_id": "one", "tool_name": "t"}, {"server_id": "two", "tool_name": "t"}]),
        0,
    )
    assert causes.explain("a", ["two"], 0)
    assert causes.explain("a", ["x", "one"], 0)


@pytest.mark.parametrize(
    "event", [call() | {"action": "block"}, call(kind="mcp_tool_seen"), call(""), {}], ids=["blocked", "other", "nameless", "empty"]
)  # fmt: skip
def test_what_is_no_call_or_was_stopped_explains_nothing(event: dict[str, Any]) -> None:
    causes = Causes()
    causes.note(event, 0)
    assert not causes.explain("a", ["weather", ""], 0)


def test_there_is_an_end_to_what_is_remembered() -> None:
    causes = Causes()
    for n in range(MAX_REMEMBERED):
        causes.note(call(f"s{n}"), n)
    assert len(causes._last) == MAX_REMEMBERED
    assert not causes.explain("a", ["s0"], 0)
