"""Session rules see flows between servers in time and turn, and never hold one server's calls against another's tools."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration.settings import Burst, CrossServer
from agentsh_net.core.flows.crossflow import MAX_CALLS, MAX_RELATED, Call, History, crossing
from agentsh_net.core.flows.tool_kind import Kind
from agentsh_net.core.model import Crossing

ON = CrossServer(enabled=True)
READ, SEND, WRITE, DESTRUCTIVE = Kind.READ, Kind.SEND, Kind.WRITE, Kind.DESTRUCTIVE


def read(server: str = "db", at: float = 0.0, turn: str = "t1") -> Call:
    return Call(server, "query", READ, at, turn, "c1")


def send(server: str = "mail", at: float = 1.0, turn: str = "t2") -> Call:
    return Call(server, "send_email", SEND, at, turn, "c2")


def history(*calls: Call, settings: CrossServer = ON) -> History:
    made = History()
    for call in calls:
        made = made.after(call, settings)
    return made


def rule(found: Crossing | None) -> str:
    return found.rule if found else ""


# Read, then send.


def test_what_one_server_read_is_not_sent_by_another() -> None:
    found = crossing(history(read(at=10)), send(at=14), ON)
    assert found is not None
    assert (found.rule, found.severity) == ("read_then_send", "critical")
    assert (
        found.reason
        == "mail/send_email would send out what db/query read 4 s before (read_then_send_window: 30 s)"
    )
    assert found.related == ({"server_id": "db", "tool_name": "query", "tool_call_id": "c1", "kind": "read"},)


@pytest.mark.parametrize(("at", "rule_"), [(30.0, "read_then_send"), (30.1, "")])
def test_it_holds_within_the_window_and_its_end(at: float, rule_: str) -> None:
    assert rule(crossing(history(read(at=0)), send(at=at), ON)) == rule_


def test_sending_on_the_server_that_was_read_from_is_its_own_business() -> None:
    assert crossing(history(read("mail")), send("mail"), ON) is None
    assert crossing(history(read("MAIL")), send("mail"), ON) is None


def test_sending_before_reading_sends_nothing_that_was_read() -> None:
    assert crossing(history(send()), read(at=2), ON) is None


def test_a_tool_that_does_both_is_source_and_sink() -> None:
    both = Call("hub", "fetch_and_post", READ | SEND, 1.0)
    assert rule(crossing(history(both), send(at=2), ON)) == "read_then_send"
    assert rule(crossing(history(read()), both, ON)) == "read_then_send"


def test_writing_is_no_sending_and_unknown_is_nothing() -> None:
    assert crossing(history(read()), replace(send(), kind=WRITE), ON) is None
    assert crossing(history(replace(read(), kind=Kind.UNKNOWN)), send(), ON) is None
    assert crossing(history(read()), replace(send(), kind=Kind.UNKNOWN), ON) is None


# Flow within a turn.


@pytest.mark.parametrize(("kind", "severity"), [(WRITE, "medium"), (DESTRUCTIVE, "high")])
def test_within_one_turn_what_was_read_is_written_nowhere_else(kind: Kind, severity: str) -> None:
    found = crossing(history(read(turn="t")), Call("fs", "x", kind, 1.0, "t"), ON)
    assert found is not None
    assert (found.rule, found.severity) == ("flow", severity)
    assert found.reason.endswith("what db/query read in the same turn")


def test_what_read_nothing_flows_nowhere() -> None:
    past = history(replace(read(turn="t"), kind=Kind.UNKNOWN), replace(read(turn="t"), kind=WRITE))
    assert crossing(past, Call("fs", "x", WRITE, 1.0, "t"), ON) is None


def test_a_turn_may_last_longer_than_the_window() -> None:
    assert rule(crossing(history(read(turn="t")), Call("fs", "x", WRITE, 200.0, "t"), ON)) == "flow"
    assert rule(crossing(history(read(turn="t")), send(at=200.0, turn="t"), ON)) == "flow"


@pytest.mark.parametrize(("mine", "theirs"), [("a", "b"), ("", ""), ("a", ""), ("", "b")])
def test_another_turn_and_an_unknown_one_are_not_the_same_turn(mine: str, theirs: str) -> None:
    assert crossing(history(read(turn=theirs)), Call("fs", "x", WRITE, 1.0, mine), ON) is None


def test_where_any_turn_counts_the_window_holds() -> None:
    any_turn = replace(ON, same_turn_only=False)
    past = history(read(at=0, turn="a"), settings=any_turn)
    for turn in ("b", ""):
        found = crossing(past, Call("fs", "x", WRITE, 30.0, turn), any_turn)
        assert found is not None
        assert found.reason == "fs/x would write what db/query read before"
    assert crossing(past, Call("fs", "x", WRITE, 31.0, "b"), any_turn) is None


# Bursts.


def test_the_call_after_a_full_burst_is_too_many_until_the_window_has_passed() -> None:
    limits = replace(ON, burst=Burst(3, 5.0))
    past = history(*(read(at=t) for t in (0.0, 1.0, 2.0)), settings=limits)
    found = crossing(past, read(at=4.9), limits)
    assert found is not None
    assert (found.rule, len(found.related)) == ("burst", 3)
    assert found.reason == "4 calls to server db within 5 s (burst: 3 calls)"
    assert crossing(past, read(at=5.0), limits) is None


def test_one_servers_burst_is_not_anothers() -> None:
    limits = replace(ON, burst=Burst(3, 5.0))
    past = history(*(read("evil", at=0.1 * n) for n in range(3)), settings=limits)
    assert rule(crossing(past, read("evil", at=1.0), limits)) == "burst"
    assert crossing(past, read("honest", at=1.0), limits) is None


# Scenarios: (server, kind, seconds, turn) of each call, and the rule that stops it.

SCENARIOS: dict[str, list[tuple[str, Kind, float, str, str]]] = {
    "a lone agent reads and reports on one server": [
        ("gh", READ, 0, "1", ""), ("gh", READ, 3, "2", ""), ("gh", SEND, 6, "3", ""), ("gh", WRITE, 7, "3", ""),
    ],
    "secrets are read, then mailed": [("vault", READ, 0, "1", ""), ("mail", SEND, 5, "2", "read_then_send")],
    "what was read is remembered longer than a burst lasts": [
        ("vault", READ, 0, "1", ""), ("mail", READ, 20, "2", ""), ("mail", SEND, 25, "3", "read_then_send"),
    ],
    "the mail is stopped again and again": [
        ("vault", READ, 0, "1", ""), ("mail", SEND, 5, "2", "read_then_send"), ("mail", SEND, 9, "3", "read_then_send"),
    ],
    "a long think lets the window pass": [("vault", READ, 0, "1", ""), ("mail", SEND, 45, "2", "")],
    "an injected order in one answer writes elsewhere": [("web", READ, 0, "1", ""), ("fs", WRITE, 0.1, "1", "flow")],
    "a plan over several answers writes elsewhere": [("web", READ, 0, "1", ""), ("fs", WRITE, 4, "2", "")],
    "a relay by way of a third server": [
        ("vault", READ, 0, "1", ""), ("notes", WRITE, 1, "2", ""), ("notes", READ, 2, "3", ""), ("mail", SEND, 3, "4", "read_then_send"),
    ],
    "two servers are read, one is told of it": [
        ("a", READ, 0, "1", ""), ("b", READ, 1, "1", ""), ("a", SEND, 2, "2", "read_then_send"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_call_of_a_scenario_is_stopped_or_passes(name: str) -> None:
    past = History()
    for server, kind, at, turn, expected in SCENARIOS[name]:
        call = Call(server, "tool", kind, at, turn)
        found = crossing(past, call, ON)
        assert rule(found) == expected, call
        if found is None:
            past = past.after(call, ON)


# Laws.

CALLS = st.lists(
    st.builds(
        Call,
        st.sampled_from(["a", "b", "c"]),
        st.just("tool"),
        st.sampled_from([READ, SEND, WRITE, DESTRUCTIVE, READ | SEND, Kind.UNKNOWN]),
        st.floats(0, 100),
        st.sampled_from(["", "1", "2"]),
    ),
    max_size=30,
).map(lambda calls: sorted(calls, key=lambda c: c.at))


def let_through(calls: list[Call], settings: CrossServer) -> list[Call]:
    past, passed = History(), []
    for call in calls:
        if crossing(past, call, settings) is None:
            past = past.after(call, settings)
            passed.append(call)
    return passed


@given(CALLS)
def test_switched_off_everything_passes(calls: list[Call]) -> None:
    assert let_through(calls, CrossServer(enabled=False)) == calls


@given(CALLS)
def test_a_session_of_one_server_is_stopped_by_its_own_bursts_only(calls: list[Call]) -> None:
    wide = replace(ON, burst=Burst(1000, 1.0))
    own = [replace(call, server_id="a") for call in calls]
    assert let_through(own, wide) == own


@given(CALLS)
def test_reading_is_never_stopped_by_other_servers(calls: list[Call]) -> None:
    wide = replace(ON, burst=Burst(1000, 1.0))
    passed = let_through(calls, wide)
    assert [c for c in passed if c.kind in (READ, Kind.UNKNOWN)] == [
        c for c in calls if c.kind in (READ, Kind.UNKNOWN)
    ]


@given(CALLS, CALLS)
def test_what_was_stopped_leaves_no_trace(calls: list[Call], more: list[Call]) -> None:
    passed = let_through(calls, ON)
    assert let_through(passed, ON) == passed


@given(CALLS)
def test_every_related_call_is_of_the_session_and_what_crosses_names_another_server(
    calls: list[Call],
) -> None:
    past = History()
    for call in calls:
        found = crossing(past, call, ON)
        if found is None:
            past = past.after(call, ON)
            continue
        assert 0 < len(found.related) <= MAX_RELATED
        servers = {related["server_id"] for related in found.related}
        assert servers == {call.server_id} if found.rule == "burst" else call.server_id not in servers


def test_a_history_is_bounded_in_number_and_time() -> None:
    past = history(*(read(at=float(n) / 100) for n in range(MAX_CALLS + 50)))
    assert len(past.calls) == MAX_CALLS
    assert len(past.after(read(at=10_000.0), ON).calls) == 1


def test_names_in_reasons_and_events_hide_nothing_and_stay_short() -> None:
    evil = Call("a\u202e" + "x" * 999, "\x1b[31m", READ, 0.0)
    found = crossing(history(evil), send(), ON)
    assert found is not None
    assert found.reason.isprintable()
    assert len(found.reason) < 600
    assert all(str(value).isprintable() and len(str(value)) < 200 for value in found.related[0].values())
