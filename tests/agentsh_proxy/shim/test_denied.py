"""A server that policy denies is not started under the shim, and its client gets an answer to whatever it asks."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from running import Running, awaited, running
from shim_process import CALL, LISTED, PING, command, line

from agentsh_net.core.mcp.gate import BLOCKED


def policy(*denied: str) -> dict[str, Any]:
    servers = [{"id": "s", "type": "stdio", "command": "declared"}]
    mcp = {"servers": servers, "denied_servers": [{"id": server} for server in denied]}
    return {"sandbox": {"mcp": mcp}, "proxy": {"mode": "disabled"}, "network": {"mode": "off"}}


def shim(here: Running, *server: str) -> subprocess.Popen[bytes]:
    words = command(*server, socket=here.folder / "control.sock")
    return subprocess.Popen(
        words, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # unbuffered: `line` asks the pipe whether there is more


def say(process: subprocess.Popen[bytes], *messages: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(message + b"\n" for message in messages))
    process.stdin.flush()


def test_it_is_not_started_and_every_request_is_refused(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with running(tmp_path, policy("s")) as here:
        process = shim(here, "sh", "-c", f"echo > {started}; cat")
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
    assert not started.exists()


def test_it_ends_with_its_signal_and_where_policy_allows_the_server_again(tmp_path: Path) -> None:
    with running(tmp_path, policy("s")) as here:
        process = shim(here, "cat")
        say(process, PING)
        assert b"denied" in line(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
        process.communicate()
        process = shim(here, "cat")
        say(process, PING)
        assert b"denied" in line(process)
        here.write(policy())
        here.await_event("policy_reloaded")
        say(process, PING)  # to be started again, by a client that sees it end
        process.communicate(timeout=60)
        assert process.returncode == 126


def test_one_that_is_denied_while_it_runs_is_asked_nothing_any_more(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        process = shim(here, "cat")
        say(process, PING)
        assert line(process) == PING + b"\n"
        here.write(policy("s"))
        here.await_event("policy_reloaded")

        def refused() -> bool:  # once the news is there
            say(process, PING)
            return b"server s is denied by policy" in line(process)

        awaited(refused)
        say(process, LISTED)
        assert json.loads(line(process))["error"]["code"] == BLOCKED
        process.communicate(timeout=60)
