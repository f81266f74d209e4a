"""A server that policy denies does not run under the shim: it is not started, or ended; its client gets an answer to whatever it asks."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from running import Running, awaited, running
from shim_process import CALL, LISTED, PING, command, line, started

from agentsh_net.core.mcp.gate import BLOCKED


def policy(*denied: str) -> dict[str, Any]:
    servers = [{"id": "s", "type": "stdio", "command": "declared"}]
    mcp = {"servers": servers, "denied_servers": [{"id": server} for server in denied]}
    return {"sandbox": {"mcp": mcp}, "proxy": {"mode": "disabled"}, "network": {"mode": "off"}}


def shim(here: Running, *server: str) -> subprocess.Popen[bytes]:
    words = command(*server, socket=here.folder / "control.sock")
    # Unbuffered: `line` asks the pipe whether there is more.
    return subprocess.Popen(
        words, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def say(process: subprocess.Popen[bytes], *messages: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(message + b"\n" for message in messages))
    process.stdin.flush()


def test_it_is_not_started_and_every_request_is_refused(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    with running(tmp_path, policy("s")) as here:
        process = shim(here, "sh", "-c", f"echo > {mark}; cat")
        say(process, CALL, b'{"jsonrpc":"2.0","method":"notifications/initialized"}', LISTED, b"oops", PING)
        errors = [json.loads(line(process)) for _ in range(4)]
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, b"")
        assert b"s is not started: server s is denied" in err
        assert [error["id"] for error in errors] == [1, 3, None, 2]
        assert {error["error"]["code"] for error in (errors[0], errors[1], errors[3])} == {BLOCKED}
        assert "Tool 't' blocked by policy: server s is denied" in errors[0]["error"]["message"]
        assert "server s is denied by policy" in errors[1]["error"]["message"]
        told = here.await_event("mcp_tool_called")
        assert (told["action"], told["rule"]) == ("block", "sandbox.mcp.denied_servers[0]")
        told = here.await_event("mcp_server_refused")
        assert (told["action"], told["rule"], told["via"]) == (
            "block",
            "sandbox.mcp.denied_servers[0]",
            "shim",
        )
        assert told["pid"] == process.pid
    assert not mark.exists()


def refused(process: subprocess.Popen[bytes], *ids: int) -> None:
    """Read the policy's error for each of these requests."""
    for id_ in ids:
        error = json.loads(line(process))
        assert (error["id"], error["error"]["code"]) == (id_, BLOCKED)
        assert "server s is denied" in error["error"]["message"]


def test_who_closes_behind_its_questions_has_all_the_answers(tmp_path: Path) -> None:
    asked = [b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % id_ for id_ in range(2000)]
    with running(tmp_path, policy("s")) as here:
        process = shim(here, "cat")
        out, _ = process.communicate(b"".join(asked), timeout=60)
        assert process.returncode == 0
        assert [json.loads(line)["id"] for line in out.splitlines()] == [*range(2000)]


def test_it_ends_with_its_signal_and_where_policy_allows_the_server_again(tmp_path: Path) -> None:
    with running(tmp_path, policy("s")) as here:
        process = shim(here, "cat")
        say(process, PING)
        refused(process, 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
        process.communicate()
        process = shim(here, "cat")
        say(process, PING)
        refused(process, 2)
        here.write(policy())
        assert process.wait(timeout=60) == 126  # to be started again, by a client that sees it end
        assert b"start it anew" in process.communicate()[1]


# Reads nothing and answers nothing: what it is asked stays in flight.
DEAF = "trap 'echo asked >> {mark}' TERM; {launched} & echo $! > {mark}.new; mv {mark}.new {mark}; while :; do sleep 0.05; done"


def test_one_that_is_denied_while_it_runs_is_ended_and_what_is_in_flight_is_answered(tmp_path: Path) -> None:
    mark = tmp_path / "ended"
    with running(tmp_path, policy()) as here:
        process = shim(here, "sh", "-c", f"cat > {mark}.asked; echo > {mark}; exec sleep 600")
        say(process, LISTED, PING)
        awaited(lambda: Path(f"{mark}.asked").exists() and PING in Path(f"{mark}.asked").read_bytes())
        here.write(policy("s"))
        refused(process, 3, 2)
        awaited(mark.exists)  # its input has ended
        told = here.await_event("mcp_server_stopped")  # though it took a signal
        assert {
            k: told[k] for k in ("action", "rule", "server_id", "via", "sessions", "requests", "pid")
        } == {
            "action": "block",
            "rule": "sandbox.mcp.denied_servers[0]",
            "server_id": "s",
            "via": "shim",
            "sessions": 1,
            "requests": 2,
            "pid": process.pid,
        }
        say(process, PING)
        refused(process, 2)
        assert here.await_event("mcp_server_refused")["method"] == "ping"
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0
        assert err.count(b"the server is ended: ") == 1


def test_one_that_does_not_end_is_killed_and_so_is_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    patience = "relay.DENIED_PATIENCE = 0.2; relay.KILL_AFTER = 0.5"
    stubborn = DEAF.format(mark=mark, launched="(trap '' TERM; exec sleep 600)")
    socket = tmp_path / "control.sock"
    with (
        running(tmp_path, policy()) as here,
        started("sh", "-c", stubborn, patience=patience, socket=socket) as process,
    ):
        awaited(mark.exists)
        launched = int(mark.read_text())
        here.write(policy("s"))
        here.await_event("mcp_server_stopped")
        assert "asked" in mark.read_text()  # to end, before that
        awaited(lambda: not Path(f"/proc/{launched}").exists())
        say(process, PING)
        refused(process, 2)


def test_what_left_its_server_long_before_the_denial_is_killed_too(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    daemonized = f"setsid sh -c 'sleep 600 & echo $! > {mark}.new; mv {mark}.new {mark}'; cat"
    patience = "relay.DENIED_PATIENCE = 0.2; relay.KILL_AFTER = 0.5"
    socket = tmp_path / "control.sock"
    with (
        running(tmp_path, policy()) as here,
        started("sh", "-c", daemonized, patience=patience, socket=socket) as process,
    ):
        awaited(mark.exists)
        orphan = int(mark.read_text())
        awaited(lambda: f"PPid:\t{process.pid}\n" in Path(f"/proc/{orphan}/status").read_text())
        here.write(policy("s"))
        here.await_event("mcp_server_stopped")
        awaited(lambda: not Path(f"/proc/{orphan}").exists())


def test_a_client_that_goes_at_once_leaves_nothing_of_a_denied_server_behind(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    launched = f"(trap '' TERM; exec sleep 600 > /dev/null 2>&1) & echo $! > {mark}.new; mv {mark}.new {mark}"
    with running(tmp_path, policy()) as here:
        process = shim(here, "sh", "-c", f"{launched}; cat")
        awaited(mark.exists)
        orphan = os.pidfd_open(int(mark.read_text()))
        try:
            here.write(policy("s"))
            here.await_event("mcp_server_stopped")  # `cat` ends with its input, before anything is killed
            process.communicate(timeout=60)
            assert process.returncode == 0
            assert select.select([orphan], [], [], 10)[0] == [orphan]
        finally:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(orphan, signal.SIGKILL)
            os.close(orphan)


def test_what_a_server_left_behind_outlives_it_where_nothing_is_denied(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    daemonized = (
        f"setsid sh -c 'sleep 600 > /dev/null 2>&1 & echo $! > {mark}.new; mv {mark}.new {mark}'; cat"
    )
    with running(tmp_path, policy()) as here:
        process = shim(here, "sh", "-c", daemonized)
        awaited(mark.exists)
        process.communicate(timeout=60)
        orphan = os.pidfd_open(int(mark.read_text()))
    try:
        assert process.returncode == 0
        assert select.select([orphan], [], [], 0)[0] == []
    finally:
        signal.pidfd_send_signal(orphan, signal.SIGKILL)
        os.close(orphan)


def test_a_signal_ends_it_while_its_server_is_being_ended(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with running(tmp_path, policy()) as here:
        process = shim(here, "sh", "-c", DEAF.format(mark=mark, launched="(trap '' TERM; exec sleep 600)"))
        awaited(mark.exists)
        launched = int(mark.read_text())
        say(process, PING)
        here.write(policy("s"))
        refused(process, 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
        awaited(lambda: not Path(f"/proc/{launched}").exists())
        process.communicate()


def test_without_a_daemon_it_is_refused_as_before_and_the_next_policy_is_found(tmp_path: Path) -> None:
    with running(tmp_path, policy("s")) as here:
        process = shim(here, "cat")
        say(process, PING)
        refused(process, 2)
    say(process, PING, CALL)
    refused(process, 2, 1)
    with running(tmp_path, policy("s")) as here:
        here.await_event("mcp_server_refused", lambda event: event["method"] == "ping")
        awaited(lambda: here.status()["shims"])  # without being asked anything
        say(process, LISTED)
        refused(process, 3)
        here.await_event("mcp_server_refused", lambda event: event["method"] == "tools/list")
    say(process, PING)
    refused(process, 2)
    with running(tmp_path, policy()):
        assert process.wait(timeout=60) == 126
    out, err = process.communicate()
    assert out == b""
    assert b"Traceback" not in err and b"UNJUDGED" not in err


def test_one_that_was_denied_while_the_daemon_was_away_is_ended_though_nobody_calls_a_tool(
    tmp_path: Path,
) -> None:
    with running(tmp_path, policy()) as here:
        process = shim(here, "sleep", "600")
        say(process, PING)
        awaited(lambda: here.status()["shims"])
    with running(tmp_path, policy("s")) as here:
        refused(process, 2)
        assert here.await_event("mcp_server_stopped")["requests"] == 1
        say(process, PING)
        refused(process, 2)
        process.communicate(timeout=60)


def test_a_client_that_reads_no_more_and_one_that_does_not_wait_for_the_daemon_are_let_go(
    tmp_path: Path,
) -> None:
    with running(tmp_path, policy("s")) as here:
        process = shim(here, "cat")
        say(process, PING)
        refused(process, 2)
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        say(process, PING)
        assert process.wait(timeout=60) == 0
        assert b"Traceback" not in process.stderr.read()
        process = shim(here, "cat")
        say(process, PING)
        refused(process, 2)
        go_on = threading.Event()
        here.loop.call_soon_threadsafe(go_on.wait)  # it answers nobody
        try:
            say(process, PING)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=5) == 128 + signal.SIGTERM  # less than it waits for the daemon
        finally:
            go_on.set()
        process.communicate()
