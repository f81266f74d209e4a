"""`run` hands its options to the daemon and ends with the daemon's exit code."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import agentsh_net.start
from agentsh_net.cli.main import cli


@pytest.fixture
def started(monkeypatch):
    calls = []

    def main(config, *, audit, ready_file, socket):
        calls.append(
            (str(config) if config else None, audit, str(ready_file) if ready_file else None, socket)
        )
        return 3

    monkeypatch.setattr(agentsh_net.start, "main", main)
    return calls


@pytest.mark.parametrize(
    ("args", "passed"),
    [
        ([], (None, None, None)),
        (["--audit"], (None, True, None)),
        (["--enforce", "--config", "p.yaml", "--ready-file", "r"], ("p.yaml", False, "r")),
    ],
)
def test_options_reach_the_daemon_and_its_exit_code_comes_back(run, started, socket, args, passed):
    assert run("run", *args).exit_code == 3
    assert started == [(*passed, socket)]


@pytest.mark.parametrize("both", [("--audit", "--enforce"), ("--enforce", "--audit")])
def test_to_audit_and_to_enforce_exclude_each_other(run, started, both):
    result = run("run", *both)
    assert result.exit_code == 2
    assert "--audit and --enforce exclude each other" in result.stderr
    assert started == []


def test_the_socket_that_clients_would_ask_is_the_one_it_listens_on(started):
    CliRunner().invoke(cli, ["--socket", "here.sock", "run"])
    CliRunner().invoke(cli, ["run"], env={"AGENTSH_NET_SOCKET": "/run/there.sock"})
    CliRunner().invoke(cli, ["run"])  # then the file says it
    assert [call[3] for call in started] == [Path("here.sock").absolute(), Path("/run/there.sock"), None]
