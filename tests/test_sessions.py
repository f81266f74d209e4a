"""A session's token is known to its agent only: what is kept can name the session, not speak for it."""

from __future__ import annotations

import hashlib

import pytest

from agentsh_net.core.errors import ProtocolError
from agentsh_net.sessions import MAX_SESSIONS, Sessions
from agentsh_net.store.records import SessionRecord


def test_a_token_is_long_and_only_its_digest_is_kept() -> None:
    sessions = Sessions()
    token, record = sessions.new("agent-1", "2026-01-01T00:00:00Z")
    sessions.add(record)
    assert len(token) >= 43
    digest = hashlib.sha256(token.encode()).hexdigest()
    assert record == SessionRecord("agent-1", digest, "2026-01-01T00:00:00Z")
    assert sessions.digests() == {digest: "agent-1"}
    assert token not in str(vars(sessions))


def test_a_session_asked_for_again_gets_another_token_and_the_old_one_is_void() -> None:
    sessions = Sessions()
    (old, first), (new, second) = (sessions.new("a", "t") for _ in range(2))
    assert old != new
    assert sessions.digests() == {}
    for record in (first, second):
        sessions.add(record)
        assert sessions.digests() == {record.token_sha256: "a"}
    assert second.token_sha256 == hashlib.sha256(new.encode()).hexdigest()


def test_sessions_survive_a_restart() -> None:
    sessions = Sessions()
    sessions.load([SessionRecord("a", "d1", "t"), SessionRecord("b", "d2", "t")])
    assert sessions.digests() == {"d1": "a", "d2": "b"}
    assert sessions.ids() == ["a", "b"]


@pytest.mark.parametrize("session_id", ["", "default", "a/b", "../x", "-a", "a b", "x" * 65, "é"])
def test_an_id_that_cannot_stand_in_a_url_is_refused(session_id: str) -> None:
    with pytest.raises(ProtocolError, match="session id"):
        Sessions().new(session_id, "t")


def test_there_is_an_end_to_sessions() -> None:
    sessions = Sessions()
    sessions.load(SessionRecord(f"s{n}", f"d{n}", "t") for n in range(MAX_SESSIONS))
    with pytest.raises(ProtocolError, match="already"):
        sessions.new("one-more", "t")
