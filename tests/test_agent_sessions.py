"""A session lasts from the process that asked for it to the last one in its cgroup; then its token is void and its row is gone."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from running import Running, awaited, running

from agentsh_net.control.errors import ControlError
from agentsh_net.control.peer import Peer
from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.abi.sock_diag import TCP
from agentsh_net.core.audit.events import ToolCallIntercepted
from agentsh_net.core.audit.joining import mark
from agentsh_net.core.errors import KernelError, StoreError
from agentsh_net.store import connect, queries, writer

POLICY: dict[str, Any] = {"proxy": {"mode": "disabled"}}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, POLICY) as daemon:
        yield daemon


def listed(here: Running) -> list[tuple[str, bool]]:
    return [(row["session_id"], row["running"]) for row in here.client.call("session.list")]


def test_who_asks_is_moved_and_told_what_its_agent_needs(here: Running) -> None:
    told = here.client.call("session.exec", session_id="mine")
    assert here.kernel.cgroups.inside == {"mine": [os.getpid()]}
    assert here.kernel.plan.sessions == ("mine",)
    assert told["session_id"] == "mine"
    assert told["env"] == {"AGENTSH_NET_SESSION": told["token"]}
    assert "LLM proxy is off" in told["warnings"][0]
    assert listed(here) == [("mine", True)]


def test_a_session_in_which_nothing_runs_is_cleared_away_with_its_token(here: Running) -> None:
    here.client.call("session.new", session_id="for-people")
    here.client.call("session.exec", session_id="mine")
    here.kernel.cgroups.empty.append("mine")
    awaited(lambda: listed(here) == [("for-people", False)])
    awaited(lambda: here.kernel.plan.sessions == ())
    assert here.daemon.state.sessions.ids() == ["for-people"]


def test_a_session_that_no_cgroup_ends_is_ended_by_hand_and_its_token_is_void(tmp_path: Path) -> None:
    with running(tmp_path, {"proxy": {"port": 0}}) as here:
        for name in ("for-people", "another"):
            here.client.call("session.new", session_id=name)
        here.client.call("session.end", session_id="for-people")
        assert listed(here) == [("another", False)]
        assert [*here.daemon.state.pool.greeting()[0].sessions.values()] == ["another"]
        assert sessions_stored(here) == ["another"]


def test_a_session_is_not_ended_by_hand_while_its_agent_runs_nor_where_there_is_none(here: Running) -> None:
    here.client.call("session.exec", session_id="mine")
    for name, why in {"mine": "an agent runs", "others": "there is no session", "../x": "session id"}.items():
        with pytest.raises(ControlError, match=why):
            here.client.call("session.end", session_id=name)
    assert listed(here) == [("mine", True)]


def sessions_stored(here: Running) -> list[str]:
    with suppress(StoreError):  # as long as it is being made
        return [session.session_id for session in queries.load_sessions(here.folder / "events.db")]
    return []


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "BUSY_TIMEOUT", 0.05)
    monkeypatch.setattr(writer, "RETRY_DELAY", 0.05)


@pytest.mark.usefixtures("_impatient")
def test_while_the_store_takes_no_change_an_ended_sessions_token_is_void_all_the_same(tmp_path: Path) -> None:
    with running(tmp_path, {"proxy": {"port": 0}}) as here:
        here.client.call("session.new", session_id="for-people")
        here.client.call("session.exec", session_id="mine")
        with closing(sqlite3.connect(here.folder / "events.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            here.kernel.cgroups.empty.append("mine")
            awaited(lambda: [*here.daemon.state.pool.greeting()[0].sessions.values()] == ["for-people"])
            awaited(lambda: here.kernel.plan.sessions == ())
            awaited(lambda: here.daemon.state.writer.status().trouble)
        here.await_event("layer_state_changed", lambda e: e["layer"] == "store")
        awaited(lambda: sessions_stored(here) == ["for-people"])


@pytest.mark.usefixtures("_impatient")
def test_a_database_that_is_made_anew_knows_the_sessions_there_are(here: Running) -> None:
    here.client.call("session.new", session_id="for-people")
    for left in here.folder.glob("events.db*"):
        left.unlink()
    here.client.call("session.new", session_id="later")
    awaited(lambda: sessions_stored(here) == ["for-people", "later"])


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("method", ["session.new", "session.exec"])
def test_a_session_that_cannot_be_stored_is_not_opened_and_its_old_token_stays_valid(
    here: Running, method: str
) -> None:
    old = here.client.call("session.new", session_id="mine")["token"]
    before = here.daemon.state.sessions.digests()
    with closing(sqlite3.connect(here.folder / "events.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ControlError, match="locked"):
            here.client.call(method, session_id="mine")
    assert here.daemon.state.sessions.digests() == before
    assert here.daemon.state.sessions.of(old) == "mine"


def test_an_ended_session_that_the_kernel_does_not_take_away_is_tried_again_and_told_once(
    here: Running, caplog: Any
) -> None:
    here.client.call("session.exec", session_id="mine")
    here.kernel.broken, tries = "no more room", here.kernel.tries
    here.kernel.cgroups.empty.append("mine")
    awaited(lambda: here.kernel.tries >= tries + 2)
    here.kernel.broken = ""
    awaited(lambda: here.kernel.plan.sessions == ())
    told = [record.getMessage() for record in caplog.records if "no more room" in record.getMessage()]
    assert told == ["the planes still know sessions that have ended: no more room"]


def test_a_second_agent_in_a_running_session_is_refused_and_the_first_keeps_its_token(here: Running) -> None:
    here.client.call("session.exec", session_id="mine")
    before = here.daemon.state.sessions.digests()
    with pytest.raises(ControlError, match="runs already"):
        here.client.call("session.exec", session_id="mine")
    assert here.daemon.state.sessions.digests() == before


@pytest.mark.parametrize("name", ["../x", "a/b", "default"])
def test_a_name_that_is_no_name_makes_nothing(here: Running, name: str) -> None:
    with pytest.raises(ControlError, match="session id"):
        here.client.call("session.exec", session_id=name)
    assert here.kernel.cgroups.inside == {}


@pytest.fixture
def anothers() -> Iterator[int]:
    """A process of a user who did not ask."""
    with subprocess.Popen(["sleep", "600"], user=65534) as process:
        yield process.pid
        process.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start a process of another user")
def test_a_process_that_is_not_seen_or_is_anothers_by_now_is_moved_nowhere(here: Running, anothers: int) -> None:  # fmt: skip
    for peer in (Peer(0, 0, 0), Peer(2**22 + 1, 0, 0), Peer(anothers, 1000, 1000)):
        asked = here.daemon.state.agents.start("mine", peer, "")
        with pytest.raises(ControlError, match="does not see the process"):
            asyncio.run_coroutine_threadsafe(asked, here.loop).result(60)
        assert here.kernel.cgroups.inside == {}


def test_where_the_planes_refuse_the_session_it_does_not_begin(here: Running) -> None:
    here.kernel.broken = "no more room"
    with pytest.raises(ControlError, match="no more room"):
        here.client.call("session.exec", session_id="mine")
    here.kernel.broken = ""
    assert here.kernel.cgroups.inside == {}
    assert listed(here) == []


def without_cgroups(here: Running) -> None:
    here.kernel.cgroups = None


def test_without_cgroups_the_agent_is_told_that_nobody_can_tell_it_apart(tmp_path: Path) -> None:
    with running(tmp_path, POLICY, without_cgroups) as here:
        told = here.client.call("session.exec", session_id="mine")
        assert any("no cgroup" in warning for warning in told["warnings"])


def test_every_worker_is_known_as_ours_before_it_serves(tmp_path: Path) -> None:
    with running(tmp_path, {"proxy": {"port": 0}}) as here:
        assert here.kernel.cgroups.workers == here.daemon.state.pool.pids


def test_who_runs_in_a_session_is_of_it_whatever_token_it_shows(here: Running) -> None:
    mine = here.client.call("session.exec", session_id="mine")["token"]
    other = here.client.call("session.new", session_id="other")["token"]
    agents, inside, outside = here.daemon.state.agents, Peer(os.getpid(), 0, 0), Peer(1, 0, 0)
    assert [agents.of(token, inside) for token in ("", "no such", other, mine)] == ["mine"] * 4
    assert [agents.of(token, outside) for token in ("", "no such", other, mine)] == [
        "default", "default", "other", "mine",
    ]  # fmt: skip


def test_the_workers_know_whether_a_session_has_a_cgroup(tmp_path: Path) -> None:
    with running(tmp_path, {"proxy": {"port": 0}}) as here:
        greeting = here.daemon.state.pool.greeting
        here.client.call("session.new", session_id="for-people")
        assert not greeting()[0].placed
        here.client.call("session.exec", session_id="mine")
        assert greeting()[0].placed
        here.kernel.cgroups.empty.append("mine")
        awaited(lambda: not greeting()[0].placed)


def test_a_connection_is_of_the_session_that_the_kernel_says(here: Running) -> None:
    here.kernel.cgroups.senders = {1: "mine", 3: None}
    loopback = ip_address("127.0.0.1")
    of = here.daemon.arbiter.whose
    assert [of(Packet(loopback, loopback, TCP, port, 80)) for port in (1, 2, 3)] == ["mine", "", None]


def test_nobody_elses_call_carries_out_what_a_session_with_a_cgroup_was_told_to(here: Running) -> None:
    here.client.call("session.exec", session_id="mine")
    here.client.call("session.new", session_id="for-people")
    arbiter = here.daemon.arbiter
    for session_id in ("mine", "for-people"):
        event = ToolCallIntercepted(
            id=f"e-{session_id}",
            session_id=session_id,
            input={},
            candidates=[{"server_id": "fs", "tool_name": "read", "tool_hash": ""}],
        )
        arbiter.note(event.to_json())
    claimed = [arbiter.claim("fs", "read", lambda: mark({}), who) for who in ("default", "default", "mine")]
    assert [intent and intent.session_id for intent in claimed] == ["for-people", None, "mine"]


PACKET = Packet(ip_address("::1"), ip_address("::1"), TCP, 1, 80)


def test_where_the_kernel_does_not_answer_nobody_can_say_whose_a_connection_is(here: Running) -> None:
    def fails(packet: Packet) -> str:
        raise KernelError("no socket left")

    here.kernel.cgroups.session_of_sender = fails
    assert here.daemon.arbiter.whose(PACKET) is None


def test_without_cgroups_no_connection_is_a_sessions(tmp_path: Path) -> None:
    with running(tmp_path, POLICY, without_cgroups) as here:
        assert here.daemon.arbiter.whose(PACKET) == ""


def test_who_shows_another_sessions_token_is_told_once_over_whatever_way(here: Running, caplog: Any) -> None:
    here.client.call("session.exec", session_id="mine")
    other = here.client.call("session.new", session_id="other")["token"]
    for _ in range(2):
        here.daemon.state.agents.of(other, Peer(os.getpid(), 0, 0))
        here.daemon.arbiter.contradicted("mine", "other")
        here.daemon.arbiter.contradicted("mine", "no\nsession")
    told = [record.getMessage() for record in caplog.records if "shows the token" in record.getMessage()]
    assert told == [
        "session mine shows the token of session other: what it does is told, and held to, as mine"
    ]
