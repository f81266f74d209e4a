"""`run` hands its options to the daemon and ends with the daemon's exit code."""

import pytest

import agentsh_net.start


@pytest.fixture
def started(monkeypatch):
    calls = []

    def main(config, *, audit, ready_file):
        calls.append((str(config) if config else None, audit, str(ready_file) if ready_file else None))
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
def test_options_reach_the_daemon_and_its_exit_code_comes_back(run, started, args, passed):
    assert run("run", *args).exit_code == 3
    assert started == [passed]
