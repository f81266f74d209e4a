"""A message that cannot be read for certain passes or not by fail_closed and by its danger, and is told of with its size and why."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agentsh_proxy.gateway.dependencies import Dependencies
from agentsh_proxy.gateway.doubts import Doubts, refusal
from agentsh_proxy.gateway.view import unfold
from gateway_front import snapshot

from agentsh_net.apart import INLINE
from agentsh_net.audit.call_events import Teller
from agentsh_net.core.model import Action, Verdict

PEER = {"id": "peer", "type": "http", "url": "http://127.0.0.1:1/mcp"}


def doubting(**mcp: Any) -> tuple[Doubts, list[dict[str, Any]]]:
    view, told = unfold(snapshot([PEER], **mcp)), []

    def emit(event: Any) -> None:
        told.append(event.to_json())

    around = Dependencies(
        snapshot=lambda: view.snapshot, charge=None, claim=None, unanswered=None, emit=emit, report=None, changed=None,
        customs=lambda: view.customs, counted=None, soon=None,
    )  # fmt: skip
    return Doubts(around, "peer", Teller(emit, "peer", "s1", via="gateway")), told


def facts(event: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(event[key] for key in ("type", "sender", "cause", "size", "action"))


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(
    ("closed", "danger", "cause", "action"),
    [
        (False, "", "malformed", "allow"),
        (True, "", "malformed", "block"),
        (False, "a call", "hostile", "block"),
    ],
)
def test_it_goes_by_fail_closed_unless_it_is_dangerous(
    side: str, closed: bool, danger: str, cause: str, action: str
) -> None:
    doubts, told = doubting(fail_closed=closed)
    verdict = (doubts.of_client if side == "client" else doubts.of_server)(7, "no JSON", danger)
    assert verdict.blocked is (action == "block")
    assert [facts(event) for event in told] == [("mcp_message_uninspected", side, cause, 7, action)]


@pytest.mark.parametrize("padding", [0, INLINE])
def test_what_a_message_asks_of_lenient_clients_is_judged_and_told_of(padding: int) -> None:
    doubts, told = doubting(sampling={"policy": "block"})
    asking = {
        "jsonrpc": "2.0",
        "id": float("nan"),
        "method": "sampling/createMessage",
        "params": {"x": "x" * padding},
    }
    holds = asyncio.run(doubts.held(json.dumps(asking).encode()))
    assert doubts.of_server(9, "an id that is no number", "", holds).blocked
    assert [event["type"] for event in told] == ["mcp_sampling_request", "mcp_message_uninspected"]
    assert facts(told[-1])[2:] == ("hostile", 9, "block")


def test_what_is_cut_or_reaches_nobody_is_told_of() -> None:
    doubts, told = doubting()
    doubts.oversize(1 << 30)
    doubts.undeliverable(5, "no client waits for it")
    assert doubts.opaque().blocked
    assert [facts(event)[1:] for event in told] == [
        ("server", "too_long", 1 << 30, "block"),
        ("server", "malformed", 5, "block"),
        ("server", "hostile", 0, "block"),
    ]
    assert told[0]["rule"] == "gateway.max_response"


def test_a_refusal_is_an_error_for_the_request_that_says_why() -> None:
    error = json.loads(refusal(3, Verdict(Action.BLOCK, "no JSON")))
    assert (error["id"], error["error"]["message"]) == (3, "[agentsh] message refused: no JSON")
