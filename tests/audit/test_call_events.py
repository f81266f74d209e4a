"""What a shim's events say is bounded and is text, whatever either side wrote."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from agentsh_net.audit.call_events import MALFORMED, MAX_DETAIL, SERVER_BURST, Teller
from agentsh_net.core.audit.events import Event
from agentsh_net.core.links.link import MAX_INPUT, MAX_TEXT
from agentsh_net.core.mcp.gate import Asking, Call
from agentsh_net.core.model import Action, Candidate, Verdict

ALLOW = Verdict(Action.ALLOW, "fine", "a.rule", None, (Candidate("fs", "t", "sha256:1"),))


def told(act: Any) -> dict[str, Any]:
    events: list[Event] = []
    act(Teller(events.append, "fs", "s1", via="shim", who={"pid": 5, "uid": 6}))
    (event,) = events
    return event.to_json()


def test_a_call_says_who_what_and_why() -> None:
    event = told(lambda teller: teller.called(Call("x", "t", {"a": 1}), ALLOW, None))
    assert (event["type"], event["session_id"], event["server_id"], event["via"]) == (
        "mcp_tool_called",
        "s1",
        "fs",
        "shim",
    )
    assert (event["pid"], event["uid"], event["reason"], event["rule"]) == (5, 6, "fine", "a.rule")
    assert event["tool_hash"] == "sha256:1"


def test_a_draft_is_the_event_of_a_call_but_for_what_is_the_calls_own() -> None:
    call = Call("x", "t", {"a": 1})
    event = told(lambda teller: teller.called(call, ALLOW, None))
    draft = Teller(lambda _: None, "fs", "s1", via="shim", who={"pid": 5, "uid": 6}).draft(call, ALLOW)
    assert draft | {"jsonrpc_id": "x", "input": {"a": 1}} == event


def test_long_arguments_and_names_are_cut_and_measured() -> None:
    event = told(lambda teller: teller.called(Call(1, "n" * 100_000, {"a": "x" * 100_000}), ALLOW, None))
    assert len(event["tool_name"]) == MAX_TEXT
    assert event["input"]["length"] > MAX_INPUT
    assert len(event["input"]["truncated"]) == MAX_INPUT
    assert len(event["input"]["sha256"]) == 64


def test_half_a_surrogate_pair_is_spelt_out() -> None:
    event = told(lambda teller: teller.called(Call(1, "a\ud800", None), ALLOW, None))
    assert event["tool_name"] == "a\\ud800"


def test_what_the_server_wants_is_quoted_and_bounded() -> None:
    asking = Asking(0, 9, "elicitation/create", {"message": "m" * 10_000})
    event = told(lambda teller: teller.asked(asking, ALLOW))
    assert (event["type"], event["jsonrpc_id"]) == ("mcp_elicitation_request", 9)
    assert len(event["detail"]) == MAX_DETAIL
    asking = Asking(0, 9, "sampling/createMessage", None)
    assert told(lambda teller: teller.asked(asking, ALLOW))["type"] == "mcp_sampling_request"


def test_news_and_what_could_not_be_read() -> None:
    assert told(lambda teller: teller.list_changed())["type"] == "mcp_tools_list_changed"
    verdict = Verdict(Action.ALLOW, "why", "", Action.BLOCK)
    event = told(lambda teller: teller.uninspected("server", MALFORMED, 12, verdict))
    assert (event["type"], event["sender"], event["cause"], event["size"]) == (
        "mcp_message_uninspected",
        "server",
        "malformed",
        12,
    )
    assert (event["action"], event["would"], event["via"]) == ("allow", "block", "shim")


def test_what_a_server_causes_by_itself_is_bounded_and_what_a_client_does_is_not() -> None:
    events: list[Event] = []
    teller = Teller(events.append, "fs", "s1", via="gateway")

    async def cause() -> None:
        for number in range(SERVER_BURST + 500):
            teller.list_changed()
            teller.called(Call(number, "t", None), ALLOW, None)
            teller.result("t", number, (), 5, ALLOW)

    asyncio.run(cause())
    counts = Counter(event.type for event in events)
    assert counts["mcp_tools_list_changed"] < SERVER_BURST + 100
    assert counts["events_lost"]
    assert counts["mcp_tool_called"] == counts["mcp_tool_result_inspected"] == SERVER_BURST + 500


def test_malformed_messages_of_a_server_and_what_it_asks_are_bounded_too() -> None:
    events: list[Event] = []
    teller = Teller(events.append, "fs", "s1", via="gateway")

    async def cause() -> None:
        for _ in range(SERVER_BURST + 500):
            teller.uninspected("server", MALFORMED, 5, ALLOW)
            teller.asked(Asking(0, 1, "sampling/createMessage", {}), ALLOW)
            teller.uninspected("client", MALFORMED, 5, ALLOW)

    asyncio.run(cause())
    senders = Counter(event.to_json().get("sender", event.type) for event in events)
    assert senders["server"] + senders["mcp_sampling_request"] < SERVER_BURST + 100
    assert senders["client"] == SERVER_BURST + 500
