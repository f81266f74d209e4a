"""What is wrong at the start is told in the operator's words, and nothing that another daemon enforces is touched."""

from __future__ import annotations

import json
import os
import pwd
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from running import running
from test_daemon import policy

from agentsh_net import privileges, start
from agentsh_net.core.configuration.settings import Network
from agentsh_net.workers import unprivileged

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture(autouse=True)
def keeping_privileges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given up for good, they would be missed by whatever tests this process runs next; test_privileges is about them."""
    monkeypatch.setattr(privileges, "reduce", lambda: None)


def test_a_second_daemon_touches_nothing_of_the_first(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, policy()) as here:
        assert start.main(here.file, audit=None, ready_file=None) == start.EXIT_ENVIRONMENT
        assert "already" in capfd.readouterr().err
        assert here.status()["policy"]["generation"] == 1


def test_a_second_daemon_leaves_the_ready_file_of_the_first_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "second").mkdir()
    second = tmp_path / "second" / "policy.yaml"
    with running(tmp_path, policy()) as here:
        ready = tmp_path / "ready"
        wrote = ready.read_text()
        places = {"control": {"socket": str(tmp_path / "second" / "sock")}}
        places["store"] = {"path": str(tmp_path / "second" / "events.db")}
        second.write_text(json.dumps({"version": 1, "network": {"mode": "off"}, **places}))
        assert start.main(second, audit=None, ready_file=ready) == start.EXIT_ENVIRONMENT
        told = capfd.readouterr().err
        assert f"the ready file {ready} is of a daemon that runs, pid {os.getpid()}" in told
        assert "another --ready-file" in told
        assert ready.read_text() == wrote
        assert here.status()["policy"]["generation"] == 1


def test_the_daemon_may_open_as_many_files_as_the_system_lets_it(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 900), hard))
    try:
        assert start.main(tmp_path / "none.yaml", audit=None, ready_file=None) == start.EXIT_CONFIG
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_proc_it_does_not_start_and_says_what_to_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "_PROC", tmp_path / "mountinfo")
    assert start.main(tmp_path / "policy.yaml", audit=None, ready_file=None) == start.EXIT_ENVIRONMENT
    assert capsys.readouterr().err == "no procfs is mounted at /proc (fix: mount -t proc proc /proc)\n"


def test_the_workers_user_counts_as_ours_only_where_nobody_else_can_be_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start, "may_change_user", lambda: True)
    assert start.worker_uid(Network()) == unprivileged.identity().uid != NOBODY.pw_uid
    assert start.worker_uid(Network(scope="netns")) is None
    monkeypatch.setattr(start, "may_change_user", lambda: False)
    assert start.worker_uid(Network()) is None


def test_a_broken_file_at_the_start_is_told_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("version: 1\nsandbox: {mcp: {servers: 7, tool_policy: maybe}}\n")
    assert start.main(file, audit=None, ready_file=None) == start.EXIT_CONFIG
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"{file}: sandbox.mcp.") for line in lines)


def test_a_daemon_that_may_open_too_few_files_says_so_and_does_not_start(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps({"version": 1, "network": {"mode": "off"}, "proxy": {"mode": "disabled"}}))
    environ = os.environ | {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    command = ["prlimit", "--nofile=16", sys.executable, "-m", "agentsh_net", "run", "--config", policy]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == start.EXIT_ENVIRONMENT, done.stderr
    assert "LimitNOFILE=" in done.stderr
    assert "Traceback" not in done.stderr
