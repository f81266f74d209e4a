"""What a client was shown of a server is what its calls are held against, and the registry knows of it before the client does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from agentsh_proxy.gateway import offer as module
from agentsh_proxy.gateway.dependencies import Dependencies
from agentsh_proxy.gateway.offer import Offer, Unnamed
from agentsh_proxy.gateway.view import unfold
from gateway_front import FakeCharges, snapshot

from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.gate import Call
from agentsh_net.core.mcp.jsonrpc import Response
from agentsh_net.core.model import PinState, Verdict
from agentsh_net.core.trust import identity
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pins, trust

PEER = {"id": "peer", "type": "http", "url": "http://127.0.0.1:1/mcp"}


class Front:
    """An offer over a snapshot of the test's; `learns`: the registry takes up what is reported, one change later."""

    def __init__(self, *, learns: bool = True, gateway: dict[str, Any] | None = None, **mcp: Any) -> None:
        self.made = lambda **offers: unfold(snapshot([PEER], gateway=gateway, offers=offers, **mcp))
        self.view = self.made()
        self.learns = learns
        self.reports: list[dict[str, Any]] = []
        charges = FakeCharges()
        around = Dependencies(
            snapshot=lambda: self.view.snapshot, charge=charges.of_the_wire, claim=lambda *_: None, unanswered=lambda: False,
            emit=lambda _: None, report=self.reports.append, changed=self._changed, customs=lambda: (), counted=lambda _: None, soon=lambda work: work(),
        )  # fmt: skip
        self.offer = Offer(around, "peer", lambda: self.view.places["peer"])

    def page(self, *names: str) -> None:
        listed = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        (message,) = jsonrpc.parse(jsonrpc.response(1, {"tools": listed})).messages
        assert isinstance(message, Response)
        asyncio.run(self.offer.page(message, 100, continues=False))

    def blocks(self, tool: str, arguments: Any = None) -> bool:
        call = Call(1, tool, arguments)
        return self.offer.judge(self.view.snapshot, call, "default", lambda *_: True).blocked

    async def _changed(self) -> None:
        if self.learns:
            self.view = self.made(peer=[tool["name"] for tool in self.reports[-1]["tools"]])
        else:
            await asyncio.sleep(60)


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tools of the calls that were judged, and not known."""
    judge, judged = module.mcp_judging.judge_call, list[str]()

    def judging(*given: Any) -> Verdict:
        judged.append(given[3].tool)
        return judge(*given)

    monkeypatch.setattr(module.mcp_judging, "judge_call", judging)
    return judged


def shown_otherwise(name: str) -> Response:
    listed = [{"name": name, "description": "other", "inputSchema": {"type": "object"}}]
    (message,) = jsonrpc.parse(jsonrpc.response(1, {"tools": listed})).messages
    assert isinstance(message, Response)
    return message


def test_a_page_waits_until_the_registry_knows_its_tools_and_is_told_once() -> None:
    front = Front()
    front.page("a", "b")
    assert [tool["name"] for tool in front.reports[0]["tools"]] == ["a", "b"]
    assert front.view.snapshot.registry.tool("peer", "b") is not None
    front.page("a", "b")
    assert len(front.reports) == 1


def test_a_supervisor_that_is_busy_holds_up_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLING", 0.02)
    front = Front(learns=False)
    front.page("a")
    assert len(front.reports) == 1


def test_what_is_left_out_or_denied_is_hidden_where_the_settings_say_so() -> None:
    tools = [{"name": name} for name in ("get_a", "rm", "get_b")]
    assert Front(gateway={"servers": {"peer": {"allow_tools": ["get_*"]}}}).offer.hidden(tools) == (1,)
    denied: dict[str, Any] = {"tool_policy": "denylist", "denied_tools": [{"tool": "get_b"}]}
    assert Front(**denied).offer.hidden(tools) == ()
    assert Front(gateway={"servers": {"peer": {"hide_denied": True}}}, **denied).offer.hidden(tools) == (2,)


def test_a_tool_that_is_left_out_is_blocked_by_that_rule() -> None:
    offer = Front(gateway={"servers": {"peer": {"allow_tools": ["get_*"]}}}).offer
    assert offer.left_out("get_a") is None
    verdict = offer.left_out("rm")
    assert verdict is not None and (verdict.blocked, verdict.rule) == (
        True,
        "gateway.servers.peer.allow_tools",
    )


def test_a_server_is_held_to_what_it_said_last_and_to_the_pins_in_force() -> None:
    front = Front(version_pinning={"on_change": "block"})
    offer = front.offer

    def blocked() -> bool:
        return offer.shown(front.view.snapshot)("get") is not None

    said = identity.instructions("Be kind.")
    pins = Pins.of((), [Identity("peer", Aspect.INSTRUCTIONS, PinState.TRUSTED, said, said)])
    trusting = replace(front.view, snapshot=front.view.snapshot.evolve(pins=pins))
    offer.facts = {**offer.facts, "instructions": "Be cruel.", "era": "legacy"}
    assert not blocked()
    front.view = trusting
    assert blocked()
    offer.facts = {**offer.facts, "instructions": "Be kind."}
    assert not blocked()
    offer.facts = {**offer.facts, "instructions": "Be cruel."}
    assert blocked()
    front.view = front.made()
    assert not blocked()


def test_a_verdict_that_holds_for_every_call_of_a_seen_tool_is_worked_out_once_until_the_policy_changes(
    worked_out: list[str],
) -> None:
    front = Front(denied_tools=[{"tool": "rm"}])
    front.view = front.made(peer=["get", "rm"])
    for _ in range(2):
        assert [front.blocks(tool) for tool in ("get", "rm", "unheard_of")] == [False, True, False]
    assert worked_out == ["get", "rm", "unheard_of", "unheard_of"]  # names of a client's making have no end
    front.view = unfold(snapshot([PEER], offers={"peer": ["get", "rm"]}, denied_tools=[{"tool": "get"}]))
    assert [front.blocks(tool) for tool in ("get", "rm")] == [True, False]


def test_a_verdict_that_was_worked_out_ends_with_what_the_server_shows(worked_out: list[str]) -> None:
    front = Front(version_pinning={"on_change": "block"})
    front.view = front.made(peer=["get"])
    tool = front.view.snapshot.registry.tool("peer", "get")
    assert tool is not None
    front.view = unfold(front.view.snapshot.evolve(pins=Pins.of((trust(tool, "now"),))))
    assert not front.blocks("get")
    front.learns = False
    front.offer.listing.add(shown_otherwise("get"), 100, continues=False)
    assert front.blocks("get")
    assert worked_out == ["get", "get"]


@pytest.mark.parametrize(
    ("policy", "arguments"),
    [
        ({"rate_limits": {"enabled": True}}, [{}, {}]),
        ({"cross_server": {"enabled": True}}, [{}, {}]),
        ({"denied_tools": [{"tool": "get", "args": {"path": {"glob": "/etc/*"}}}]}, [{"path": "/a"}, {"path": "/etc/b"}]),
    ],
)  # fmt: skip
def test_a_verdict_that_another_call_may_not_get_is_not_remembered(
    policy: dict[str, Any], arguments: list[dict[str, Any]], worked_out: list[str]
) -> None:
    front = Front(**policy)
    front.view = front.made(peer=["get"])
    verdicts = [front.blocks("get", each) for each in arguments]
    assert worked_out == ["get", "get"]
    assert verdicts == [False, "denied_tools" in policy]


def test_clients_without_a_session_are_known_by_who_they_say_they_are_and_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_UNNAMED", 2)
    unnamed, offers = Unnamed(), [Front().offer for _ in range(4)]
    fields = {"user-agent": "a", "accept": "x"}
    assert unnamed.known("s", fields, offers[0]) is offers[0]
    assert unnamed.known("s", {**fields, "accept": "y"}, offers[1]) is offers[0]
    assert unnamed.known("s", {**fields, "authorization": "Bearer b"}, offers[1]) is offers[1]
    assert unnamed.known("s", fields, offers[2]) is offers[0]
    # One too many: who came longest ago is forgotten.
    assert unnamed.known("other", fields, offers[2]) is offers[2]
    assert unnamed.known("s", fields, offers[3]) is offers[0]
    assert unnamed.known("s", {**fields, "authorization": "Bearer b"}, offers[3]) is offers[3]
