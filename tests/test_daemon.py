"""The daemon starts in order, tells what happened, and leaves as it was told to."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path
from socket import AF_INET, IPPROTO_TCP
from typing import Any

import pytest
from fake_kernel import FakeKernel
from loopback import until
from running import SERVERS, Running, awaited, policy, running

from agentsh_net.config import options
from agentsh_net.config.options import Options
from agentsh_net.core.audit.events import ToolCallIntercepted
from agentsh_net.core.errors import StoreError
from agentsh_net.core.network.plane import ConnectRecord, Fate, Plan
from agentsh_net.daemon import Daemon


def record(address: str, fate: Fate, **more: Any) -> ConnectRecord:
    return ConnectRecord(
        layer="ebpf", fate=fate, address=IPv6Address(address), port=8000, protocol=IPPROTO_TCP, family=AF_INET,
        time_ns=1_700_000_000_123_456_789, **more,
    )  # fmt: skip


def test_the_plan_is_in_force_when_the_daemon_says_that_it_is_ready(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        facts = json.loads((tmp_path / "ready").read_text())
        assert facts["layers"] == {"ebpf": "in force"}
        assert here.kernel.text() == "deny 10.9.0.1:0 evil\ntag 10.9.0.2:8000 good"
        started = here.await_event("daemon_started")
        assert started["layers"] == {"ebpf": "in force"}
        assert started["generation"] == 1
    assert not (tmp_path / "ready").exists()


def test_a_ready_file_of_a_killed_daemon_is_gone_before_anything_is_opened(tmp_path: Path) -> None:
    (tmp_path / "ready").write_text('{"pid": 1}')
    (tmp_path / "events.db").write_text("no database" * 100)
    with pytest.raises(StoreError), running(tmp_path, policy()):
        pytest.fail("it started")
    assert not (tmp_path / "ready").exists()


def test_audit_mode_refuses_nothing(tmp_path: Path) -> None:
    with running(tmp_path, policy(enforce_policy=False)) as here:
        assert "deny" not in here.kernel.text()
        assert here.status()["policy"]["mode"] == "audit"


def test_what_the_kernel_saw_is_told_with_its_time_process_and_reason(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        seen = record("::ffff:10.9.0.1", Fate.DENY, pid=77, comm="curl", exe="/usr/bin/curl", uid=1000)
        here.kernel.see(seen)
        event = here.await_event("mcp_network_connection")
        assert event["timestamp"] == "2023-11-14T22:13:20.123456Z"
        assert (event["action"], event["server_id"], event["remote_addr"]) == (
            "block",
            "evil",
            "10.9.0.1:8000",
        )
        assert (event["pid"], event["comm"], event["exe"], event["uid"]) == (
            77,
            "curl",
            "/usr/bin/curl",
            1000,
        )
        assert event["rule"] == "sandbox.mcp.denied_servers[0]"


def test_a_connection_says_whether_a_tool_call_of_its_session_explains_it(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        for session in ("a", "b"):
            here.kernel.see(record("::ffff:10.9.0.2", Fate.TAG, session_id=session, generation=1))
        called = ToolCallIntercepted(session_id="a", server_id="good", tool_name="t")
        here.on_loop(lambda: here.daemon.emit(called))
        explained = here.await_event("mcp_network_connection", lambda e: e["session_id"] == "a")
        flagged = here.await_event("mcp_network_connection", lambda e: e["session_id"] == "b")
        assert explained["correlated"]
        assert not flagged["correlated"]
        assert "no tool call of this session" in flagged["reason"]


def test_what_the_sweep_closed_at_the_start_is_told(tmp_path: Path) -> None:
    def prepare(here: Any) -> None:
        here.kernel.swept = [record("::ffff:10.9.0.1", Fate.DENY)]

    with running(tmp_path, policy(), prepare) as here:
        assert here.await_event("mcp_network_connection")["action"] == "block"


def test_what_the_kernel_saw_until_it_is_let_go_is_on_record_explained_or_not(tmp_path: Path) -> None:
    def prepare(here: Any) -> None:
        here.kernel.filenos = list  # nothing is read before the end

    with running(tmp_path, policy(), prepare) as here:
        unexplained = record("::ffff:10.9.0.2", Fate.TAG, session_id="a", generation=1)
        here.kernel.see(record("::ffff:10.9.0.1", Fate.DENY), unexplained)
    told = here.events("mcp_network_connection")
    assert {(event["server_id"], event["correlated"]) for event in told} == {("evil", False), ("good", False)}


@pytest.fixture
def ignored() -> Iterator[None]:
    """Signals that the daemon does not take do not end the tests."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("ignored")
def test_sighup_has_the_file_read_again_and_sigterm_ends_the_daemon(tmp_path: Path) -> None:
    here = Running(tmp_path, policy())

    async def main() -> int:
        wanted = Options(here.file, None, tmp_path / "ready")
        loaded = options.load(wanted, {})
        daemon = Daemon(wanted, loaded, logging.getLogger("test.daemon"), lambda _: here.kernel)
        running = asyncio.create_task(daemon.run())
        async with asyncio.timeout(60):
            await until((tmp_path / "ready").exists)
            daemon.state.reloading.close()  # which watches the file
            here.write(policy(denied="good"))
            os.kill(os.getpid(), signal.SIGHUP)
            await until(lambda: here.events("policy_reloaded"))
            os.kill(os.getpid(), signal.SIGTERM)
            return await running

    assert asyncio.run(main()) == 0
    assert here.kernel.text() == "tag 10.9.0.1:8000 evil\ndeny 10.9.0.2:0 good"


def test_servers_that_run_for_the_gateway_are_looked_through_where_the_policy_is_another(tmp_path: Path) -> None:  # fmt: skip
    with running(tmp_path, policy()) as here:
        denied: list[bool] = []
        judge = lambda: here.daemon.state.current.snapshot.judge_server("good").blocked
        here.daemon.stdio.follow = lambda: denied.append(judge())  # type: ignore[method-assign]
        here.write(policy(denied="good"))
        here.client.call("reload")
        assert denied and all(denied)


def test_a_layer_taken_away_is_back_within_two_looks(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        here.kernel.gone = True
        assert (
            here.await_event("layer_state_changed", lambda e: e["state"] == "not in force")["layer"] == "ebpf"
        )
        here.await_event("layer_state_changed", lambda e: e["state"] == "in force")
        assert not here.kernel.gone


def test_a_layer_taken_away_while_a_reload_waits_for_names_is_told_by_status_and_put_back(
    tmp_path: Path,
) -> None:
    with running(tmp_path, policy()) as here:
        lock = here.daemon.state.current.lock
        asyncio.run_coroutine_threadsafe(lock.acquire(), here.loop).result(10)  # as a reload holds it
        here.kernel.broken, here.kernel.gone = "held open", True
        assert not here.status()["layers"][0]["in_force"]
        here.kernel.broken = ""
        here.await_event("layer_state_changed", lambda e: e["state"] == "in force")
        assert here.status()["layers"][0]["in_force"]
        here.on_loop(lock.release)


@pytest.mark.parametrize(("on_exit", "left"), [("remove", "removed"), ("keep", "kept")])
def test_the_end_is_told_and_does_what_on_exit_says(tmp_path: Path, on_exit: str, left: str) -> None:
    with running(tmp_path, {**policy(), "network": {"mode": "enforce", "on_exit": on_exit}}) as here:
        pass
    assert here.exit == 0
    assert here.kernel.closed == left
    assert here.events("daemon_stopped")[0]["layers"] == {"ebpf": left}
    assert not (tmp_path / "control.sock").exists()


def test_who_has_it_stopped_may_have_everything_removed_whatever_on_exit_says(tmp_path: Path) -> None:
    with running(tmp_path, {**policy(), "network": {"mode": "enforce", "on_exit": "keep"}}) as here:
        here.client.call("stop", remove=True)
        awaited(lambda: here.exit == 0)
    assert here.kernel.closed == "removed"
    assert here.events("daemon_stopped")[0]["layers"] == {"ebpf": "removed"}


@pytest.mark.parametrize(("inherited", "left"), [(True, "kept"), (False, "removed")])
def test_a_start_that_fails_leaves_what_an_earlier_daemon_enforced_and_nothing_of_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, inherited: bool, left: str
) -> None:
    def prepare(here: Any) -> None:
        here.kernel.broken, here.kernel.inherited = "the required layer cannot be had", inherited

    kernel: list[FakeKernel] = []
    with (
        pytest.raises(Exception, match="required layer"),
        running(
            tmp_path,
            policy(),
            lambda here: (prepare(here), kernel.append(here.kernel)),  # type: ignore[func-returns-value]
        ),
    ):
        pytest.fail("it started")
    assert kernel[0].closed == left
    assert ("agentsh-net down --force" in caplog.text) is inherited


def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(StoreError) as told, running(tmp_path, policy()):
        pytest.fail("it started")
    assert "move it aside" in told.value.remedy
    assert path.read_bytes() == before


def test_trouble_of_the_store_before_there_is_a_record_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = Running(tmp_path, policy())
    wanted = Options(here.file, None, None)
    daemon = Daemon(wanted, options.load(wanted, {}), logging.getLogger("test"), lambda _: here.kernel)
    daemon._on_store_trouble(StoreError("events.db is corrupt"))
    assert "store: events.db is corrupt" in caplog.text


def test_tools_are_known_again_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        report = {"server_id": "good", "ok": True, "tools": [{"name": "get"}]}
        here.on_loop(lambda: here.daemon._on_report(report))
        assert here.await_event("mcp_tool_seen")["tool_name"] == "get"
        awaited(lambda: next(s for s in here.status()["servers"] if s["server_id"] == "good")["tools"] == 1)
    with running(tmp_path, policy()) as here:
        assert next(s for s in here.status()["servers"] if s["server_id"] == "good")["tools"] == 1
        # changed while the daemon was away: told, and blocked by its pin
        here.on_loop(
            lambda: here.daemon._on_report(
                {"server_id": "good", "ok": True, "tools": [{"name": "get", "title": "x"}]}
            )
        )
        told = here.await_event("mcp_tool_changed")
        assert told["changes"]
        assert (told["action"], told["would"]) == ("block", None)
        verdict = awaited(lambda: _blocked(here.client.call("explain", tool="get", server="good", args={})))
        assert "pin" in verdict["reason"] or "chang" in verdict["reason"]


def test_a_changed_tool_would_be_blocked_in_audit_mode(tmp_path: Path) -> None:
    with running(tmp_path, policy(enforce_policy=False)) as here:
        for definition in ({"name": "get"}, {"name": "get", "title": "x"}):
            report = {"server_id": "good", "ok": True, "tools": [definition]}
            here.on_loop(lambda report=report: here.daemon._on_report(report))
        told = here.await_event("mcp_tool_changed")
        assert (told["action"], told["would"]) == ("allow", "block")


def _blocked(explanation: dict[str, Any]) -> dict[str, Any] | None:
    return explanation["verdict"] if explanation["verdict"]["action"] == "block" else None


def test_a_report_that_is_unsound_is_refused_and_the_daemon_goes_on(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        here.on_loop(lambda: here.daemon._on_report({"server_id": "good", "ok": True, "tools": "many"}))
        here.on_loop(
            lambda: here.daemon._on_report({"server_id": "good", "ok": True, "tools": [{"name": "get"}]})
        )
        here.await_event("mcp_tool_seen")


def test_a_worker_that_is_killed_is_told_in_the_log_and_by_an_event(tmp_path: Path, caplog: Any) -> None:
    with running(tmp_path, {"proxy": {"port": 0}}) as here:
        [worker] = here.status()["proxy"]["workers"]
        os.kill(worker["pid"], signal.SIGKILL)
        told = here.await_event("worker_exited")
        assert (told["pid"], told["status"]) == (worker["pid"], "signal SIGKILL")
        [line] = awaited(lambda: [r for r in caplog.records if "worker" in r.getMessage()])
        assert line.levelname == "WARNING"
        assert line.getMessage() == (
            "a proxy worker ended: signal SIGKILL; its open streams ended, and another takes its place"
        )


def test_a_refusal_that_a_client_has_heard_outlives_the_worker_that_said_it(tmp_path: Path) -> None:
    with running(tmp_path, {**policy(servers=SERVERS[:1]), "gateway": {"enabled": True, "port": 0}}) as here:
        url = json.loads((tmp_path / "ready").read_text())["gateway"]
        [worker] = here.status()["proxy"]["workers"]
        client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        fields = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        for number in range(50):
            params = {"name": "wipe", "arguments": {}}
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            client.request("POST", "/mcp/evil", json.dumps(call), fields)
            assert b"blocked by policy" in client.getresponse().read()
        os.kill(worker["pid"], signal.SIGKILL)
        here.await_event("worker_exited")
        told = awaited(lambda: len(found := here.events("mcp_tool_called", limit=100)) == 50 and found)
        assert {event["jsonrpc_id"] for event in told} == set(range(50))
        assert {event["action"] for event in told} == {"block"}


def test_a_policy_that_is_being_put_in_force_as_the_daemon_stops_is_on_record(tmp_path: Path) -> None:
    begun, gate = threading.Event(), threading.Event()
    with running(tmp_path, policy()) as here:
        apply = here.kernel.apply

        def slow(plan: Plan) -> None:
            begun.set()
            assert gate.wait(60)
            apply(plan)

        here.kernel.apply = slow  # type: ignore[method-assign]
        here.write(policy("good"))
        assert begun.wait(60)
        here.on_loop(here.daemon.state.stop)
        awaited(lambda: here.daemon.state.current.lock._waiters, within=20)  # type: ignore[attr-defined] # the end of it
        gate.set()
    assert "deny 10.9.0.2:0 good" in here.kernel.text()
    kinds = [event["type"] for event in here.events()]
    assert kinds == ["daemon_started", "policy_reloaded", "daemon_stopped"]


def test_a_change_that_does_not_end_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentsh_net.daemon.CHANGE_SECONDS", 0.05)
    with running(tmp_path, policy()) as here:
        here.on_loop(lambda: asyncio.ensure_future(here.daemon.state.current.lock.acquire()))
        awaited(here.daemon.state.current.lock.locked)
    assert here.events("daemon_stopped")
