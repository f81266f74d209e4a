"""One question gets one answer, however often it is asked; sessions are apart, bounded, and survive a reload."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.configuration.settings import Burst, CrossServer
from agentsh_net.core.flows import session_ledger
from agentsh_net.core.flows.session_ledger import ProposedCall, SessionLedger
from agentsh_net.core.model import Crossing, Server, Transport
from agentsh_net.core.registry import Registry
from agentsh_net.core.trust.pins import tool_of

ON = CrossServer(enabled=True, burst=Burst(100, 5.0))


def registry(**offers: list[dict[str, Any]]) -> Registry:
    made = Registry(tuple(Server(sid, Transport.STDIO) for sid in offers))
    for sid, listed in offers.items():
        made, _ = made.register(sid, [tool_of(sid, d) for d in listed])
    return made


OFFERED = registry(
    db=[{"name": "query"}, {"name": "peek", "annotations": {"readOnlyHint": True}}],
    mail=[{"name": "send"}, {"name": "frob", "annotations": {"readOnlyHint": False, "openWorldHint": True}}],
)


def ledger(settings: CrossServer = ON, *, audit: bool = False) -> SessionLedger:
    made = SessionLedger()
    made.follow(settings, OFFERED, audit=audit)
    return made


def yes() -> bool:
    return True


def no() -> bool:
    return False


def asked(server: str, tool: str, session: str = "s", key: str = "", turn: str = "") -> ProposedCall:
    return ProposedCall(server, tool, session, turn, key, key)


def test_a_flow_is_seen_over_questions_and_named() -> None:
    it = ledger()
    assert it.take(asked("db", "query"), 0.0, yes) is True
    answer = it.take(asked("mail", "send"), 1.0, yes)
    assert isinstance(answer, Crossing)
    assert answer.rule == "read_then_send"


def test_hints_of_the_registered_definition_count_and_unregistered_tools_go_by_their_name() -> None:
    it = ledger()
    assert it.take(asked("db", "peek"), 0.0, yes) is True
    assert isinstance(it.take(asked("mail", "frob"), 1.0, yes), Crossing)
    assert isinstance(it.take(asked("mail", "forward_unseen"), 1.0, yes), Crossing)


def test_sessions_are_apart() -> None:
    it = ledger()
    it.take(asked("db", "query", "one"), 0.0, yes)
    assert it.take(asked("mail", "send", "two"), 1.0, yes) is True


def test_a_call_asked_about_twice_is_answered_alike_and_counted_once() -> None:
    it = ledger(CrossServer(enabled=True, burst=Burst(2, 5.0)))
    for _ in range(5):
        assert it.take(asked("db", "query", key="k1"), 0.0, yes) is True
    assert it.take(asked("db", "query", key="k2"), 0.0, yes) is True
    first = it.take(asked("db", "query", key="k3"), 0.0, yes)
    assert isinstance(first, Crossing)
    assert it.take(asked("db", "query", key="k3"), 99.0, yes) == first


def test_the_rate_is_charged_last_and_only_for_what_no_rule_is_against() -> None:
    it = ledger()
    charged: list[str] = []

    def charge() -> bool:
        charged.append("!")
        return True

    it.take(asked("db", "query"), 0.0, charge)
    it.take(asked("mail", "send"), 1.0, charge)
    assert charged == ["!"]


def test_what_is_over_its_rate_did_not_happen() -> None:
    it = ledger()
    assert it.take(asked("db", "query"), 0.0, no) is False
    assert it.take(asked("mail", "send"), 1.0, yes) is True


def test_what_was_stopped_did_not_happen_but_in_an_audit() -> None:
    limits = CrossServer(enabled=True, burst=Burst(1, 5.0))
    for audit, later in ((False, True), (True, False)):
        it = ledger(limits, audit=audit)
        it.take(asked("db", "query"), 0.0, yes)
        assert isinstance(it.take(asked("db", "query"), 4.0, yes), Crossing)
        assert (it.take(asked("db", "query"), 6.0, yes) is True) is later


def test_switched_off_only_the_rate_decides_and_nothing_is_kept() -> None:
    it = ledger(CrossServer())
    it.take(asked("db", "query"), 0.0, yes)
    assert it.take(asked("mail", "send"), 1.0, no) is False
    it.follow(ON, OFFERED, audit=False)
    assert it.take(asked("mail", "send"), 1.0, yes) is True


def test_a_reload_forgets_nothing() -> None:
    it = ledger()
    it.take(asked("db", "query"), 0.0, yes)
    it.follow(CrossServer(enabled=True, read_then_send_window=60.0), OFFERED, audit=False)
    assert isinstance(it.take(asked("mail", "send"), 45.0, yes), Crossing)


def test_sessions_and_answers_are_bounded_and_the_idle_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_ledger, "MAX_SESSIONS", 2)
    monkeypatch.setattr(session_ledger, "MAX_ANSWERS", 3)
    it = ledger()
    for session in ("busy", "idle", "busy", "new"):
        it.take(asked("db", "query", session), 0.0, yes)
    assert isinstance(it.take(asked("mail", "send", "busy"), 1.0, yes), Crossing)
    assert it.take(asked("mail", "send", "idle"), 1.0, yes) is True
    for key in "abcdef":
        it.take(asked("db", "query", key=key), 0.0, yes)
    assert [it.take(asked("db", "query", key=key), 0.0, no) for key in "fedc"] == [True, True, True, False]
