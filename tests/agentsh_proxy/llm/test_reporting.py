"""Everything that was judged reaches the supervisor, bounded and in a shape it believes; what cannot be sent is counted."""

from __future__ import annotations

import asyncio

import pytest
from agentsh_proxy.llm import reporting
from agentsh_proxy.llm.reporting import Reporter, Subject
from loopback.proxy import snapshot

from agentsh_net.core.audit.events import EventsLost
from agentsh_net.core.dialects.base import Fault, Judged, Step
from agentsh_net.core.links import link
from agentsh_net.core.model import Action, Candidate, Crossing, ToolCall, Verdict

SUBJECT = Subject("s1", "req_1", "anthropic")
SERVERS = {server.id: server for server in snapshot().config.sandbox.mcp.servers}
VERDICT = Verdict(
    Action.BLOCK,
    "denied",
    "sandbox.mcp.denied_tools[0]",
    None,
    (Candidate("weather", "get", "sha256:1"), Candidate("files", "get")),
)


class Wire:
    def __init__(self, waiting: int = 0) -> None:
        self.sent: list[bytes] = []
        self.soon: list = []
        self.waiting = waiting
        self.reporter = Reporter(self.sent.append, lambda: self.waiting, self.soon.append)

    def events(self) -> list:
        while self.soon:
            self.soon.pop(0)()
        framer = link.Framer(link.MAX_FROM_WORKER)
        messages = [link.decode_from_worker(payload) for data in self.sent for payload in framer.feed(data)]
        self.sent.clear()
        return [link.event_from_worker(value) for message in messages for value in message.events]


def test_a_judged_call_is_told_with_everything_known_of_it():
    wire = Wire()
    wire.reporter.judged(
        Judged(ToolCall("mcp__weather__get", "toolu_1", {"city": "Bonn"}), VERDICT), SUBJECT, SERVERS
    )
    (event,) = wire.events()
    assert event.timestamp.endswith("Z") and len(event.timestamp) == 27
    assert (event.session_id, event.request_id, event.dialect) == ("s1", "req_1", "anthropic")
    assert (event.action, event.reason, event.rule) == ("block", "denied", "sandbox.mcp.denied_tools[0]")
    assert (event.tool_name, event.tool_call_id, event.input) == (
        "mcp__weather__get",
        "toolu_1",
        {"city": "Bonn"},
    )
    assert (event.server_id, event.server_type, event.server_addr) == (
        "weather",
        "http",
        "127.0.0.1:9",
    )
    assert event.tool_hash == "sha256:1"
    assert [c["server_id"] for c in event.candidates] == ["weather", "files"]


def test_what_cannot_be_read_is_told_with_the_rule_that_decided():
    wire = Wire()
    wire.reporter.fault(Fault("malformed_json", "x", cut=True), SUBJECT)
    wire.reporter.fault(Fault("unreadable_json", "x", cut=True, always=True), SUBJECT)
    assert [event.rule for event in wire.events()] == ["sandbox.mcp.fail_closed", "protocol"]


def test_of_a_flood_of_what_cannot_be_read_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr(reporting, "REFUSALS", 2)
    monkeypatch.setattr(reporting, "REFUSALS_A_SECOND", 1e-9)
    wire = Wire()

    async def tell() -> None:
        for _ in range(4):
            wire.reporter.fault(Fault("malformed_json", "x", cut=False), SUBJECT)
        wire.reporter.judged(Judged(ToolCall("a"), VERDICT), SUBJECT, SERVERS)

    asyncio.run(tell())
    kinds = ["llm_response_uninspected"] * 2 + ["events_lost", "mcp_tool_call_intercepted"]
    assert [event.type for event in wire.events()] == kinds


def test_who_waits_for_no_turn_of_the_loop_has_each_event_written_at_once():
    wire = Wire()
    wire.reporter = Reporter(wire.sent.append, lambda: 0, lambda flush: flush())
    for name in ("a", "b"):
        wire.reporter.judged(Judged(ToolCall(name), VERDICT), SUBJECT, SERVERS)
    assert len(wire.sent) == 2
    assert [event.tool_name for event in wire.events()] == ["a", "b"]


def test_one_turn_of_the_loop_is_one_message():
    wire = Wire()
    passed = Verdict(Action.ALLOW, "", "")
    wire.reporter.step(
        Step(
            b"",
            (Judged(ToolCall("a"), passed), Judged(ToolCall("b"), passed)),
            (Fault("malformed_json", "x", cut=False),),
        ),
        SUBJECT,
        SERVERS,
    )
    assert len(wire.soon) == 1
    assert wire.sent == []
    wire.soon[0]()
    assert len(wire.sent) == 1
    assert len(wire.events()) == 3


def test_a_refusal_is_written_at_once_and_what_waited_goes_before_it():
    wire = Wire()
    wire.reporter.judged(Judged(ToolCall("a"), Verdict(Action.ALLOW, "", "")), SUBJECT, SERVERS)
    wire.reporter.judged(Judged(ToolCall("b"), VERDICT), SUBJECT, SERVERS)
    assert len(wire.sent) == 1
    wire.soon[0]()  # finds nothing more to write
    assert [(event.tool_name, event.action) for event in wire.events()] == [("a", "allow"), ("b", "block")]


def test_names_of_any_length_and_kind_are_told():
    wire = Wire()
    wire.reporter.judged(Judged(ToolCall("\ud800" * 9000, "x" * 99999), VERDICT), SUBJECT, SERVERS)
    (event,) = wire.events()
    assert len(event.tool_name) <= link.MAX_TEXT


def test_batches_keep_the_bounds_of_the_link():
    wire = Wire()
    for _ in range(1200):
        wire.reporter.judged(Judged(ToolCall("a", "", "y" * 4000), VERDICT), SUBJECT, SERVERS)
    assert len(wire.events()) == 1200


def test_where_the_supervisor_does_not_read_events_are_counted_as_lost():
    wire = Wire(waiting=reporting.MAX_WAITING)
    for _ in range(3):
        wire.reporter.judged(Judged(ToolCall("a"), VERDICT), SUBJECT, SERVERS)
    assert wire.events() == []
    wire.waiting = 0
    wire.reporter.judged(Judged(ToolCall("b"), VERDICT), SUBJECT, SERVERS)
    told = wire.events()
    assert [type(e) for e in told][-1] is EventsLost
    assert told[-1].lost == 3


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://evil.example/mcp?key=secret", "https://evil.example/mcp"),
        ("https://evil.example/mcp#secret", "https://evil.example/mcp"),
        ("https://me:secret@evil.example/m@p", "https://evil.example/m@p"),
        ("https://me:sec@ret@evil.example", "https://evil.example"),
        ("https:\\\\me:secret@evil.example\\mcp", "https:\\\\evil.example\\mcp"),
        ("//secret@evil.example", "//evil.example"),
        ("connector_gmail", "connector_gmail"),
    ],
)
def test_a_connector_is_told_without_the_secrets_of_its_url(url, told):
    wire = Wire()
    wire.reporter.connector("evil", url, VERDICT, SUBJECT)
    (event,) = wire.events()
    assert (event.server_id, event.server_url, event.action) == ("evil", told, "block")


def test_what_a_session_rule_stopped_is_told_with_the_calls_that_led_to_it():
    wire = Wire()
    crossing = Crossing("flow", "high", "it flows", ({"server_id": "db"},))
    verdict = Verdict(Action.BLOCK, "it flows", "sandbox.mcp.cross_server.flow", crossing=crossing)
    wire.reporter.judged(Judged(ToolCall("a"), verdict), SUBJECT, SERVERS)
    intercepted, crossed = wire.events()
    assert (intercepted.type, crossed.type) == ("mcp_tool_call_intercepted", "mcp_cross_server_blocked")
    assert (crossed.severity, crossed.related_calls, crossed.session_id) == (
        "high",
        [{"server_id": "db"}],
        SUBJECT.session_id,
    )
    assert crossed.rule == intercepted.rule


def test_a_pair_made_of_the_models_own_words_is_told_in_bounds_and_in_utf8():
    wire = Wire()
    name = "x\ud800" + "y" * link.MAX_TEXT
    verdict = Verdict(
        Action.BLOCK, "denied", candidates=(Candidate("evil\udc00", name), Candidate("fs", name))
    )
    call = ToolCall(f"mcp__evil\udc00__{name}", "toolu_\ud800", {"a": 1})
    wire.reporter.judged(Judged(call, verdict), SUBJECT, SERVERS)
    (event,) = wire.events()
    assert event.server_id == "evil\\udc00"
    assert event.tool_call_id == "toolu_\\ud800"
    assert [len(c["tool_name"]) for c in event.candidates] == [link.MAX_TEXT] * 2
    assert event.candidates[0]["tool_name"].startswith("x\\ud800y")


def test_a_tool_is_told_with_the_family_in_which_a_client_looks_it_up():
    wire = Wire()
    for call in (ToolCall("left_click", toolset="computer"), ToolCall("get", namespace="mcp__weather")):
        wire.reporter.judged(Judged(call, VERDICT), SUBJECT, SERVERS)
    assert [event.tool_name for event in wire.events()] == ["computer.left_click", "mcp__weather.get"]
