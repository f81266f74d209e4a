"""`exec` becomes the agent once the daemon has moved it; what it cannot do it says before it starts anything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import Running, running

MINE = [] if os.geteuid() else ["--as", "nobody"]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, {"proxy": {"mode": "disabled"}}) as daemon:
        yield daemon


def run(socket: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agentsh_net", "--socket", str(socket), "exec", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environ)


def test_the_process_that_asked_is_the_agent(here: Running) -> None:
    done = run(
        here.folder / "control.sock",
        *MINE,
        "--session",
        "one",
        "--",
        "sh",
        "-c",
        "echo $$ $AGENTSH_NET_SESSION; exit 3",
    )
    pid, token = done.stdout.split()
    assert done.returncode == 3
    assert here.kernel.cgroups.inside["one"] == [int(pid)]
    assert len(token) == 43


def test_a_command_that_cannot_be_started_has_the_status_that_shells_give_it(here: Running) -> None:
    socket = here.folder / "control.sock"
    assert run(socket, *MINE, "--", "/no/such/command").returncode == 127
    assert run(socket, *MINE, "--", "/etc").returncode == 126


def test_a_base_url_of_another_gateway_is_said_to_be_replaced(tmp_path: Path) -> None:
    with running(tmp_path, {"proxy": {"port": 0}}) as here:
        done = run(here.folder / "control.sock", *MINE, "--", "env", OPENAI_BASE_URL="http://mine")
        assert "OPENAI_BASE_URL was set" in done.stderr
        assert f"OPENAI_BASE_URL={here.daemon.state.proxy_url}/s/" in done.stdout


def test_without_a_daemon_no_agent_is_started(tmp_path: Path) -> None:
    done = run(tmp_path / "nobody", *MINE, "--", "echo", "started")
    assert (done.returncode, done.stdout) == (4, "")


@pytest.mark.parametrize(
    "arguments", [[], ["--"], ["--session"], ["--as", "no such user", "--", "true"]], ids=str
)
def test_a_command_line_that_says_nothing_to_run_is_a_mistake(tmp_path: Path, arguments: list[Any]) -> None:
    assert run(tmp_path / "nobody", *arguments).returncode == 2
