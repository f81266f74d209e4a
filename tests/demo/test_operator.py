"""The operator's commands are the product's own, and one that fails is told with what it said."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from agentsh_net.core.errors import KernelError
from agentsh_net.demo import operator
from agentsh_net.demo.operator import Operator


def test_a_policy_is_put_in_place_whole(tmp_path: Path) -> None:
    one = Operator(tmp_path)
    one.write({"version": 1})
    assert one.file.read_text() == "version: 1\n"
    one.write("version: 1 # mine\n")
    assert one.file.read_text() == "version: 1 # mine\n"
    assert one.cli("policy", "check", str(one.file))


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="status"):
        Operator(tmp_path).cli("status")
    assert Operator(tmp_path).cli("status", codes=(4,)) == ""


def test_a_daemon_that_does_not_start_says_why(tmp_path: Path) -> None:
    one = Operator(tmp_path)
    one.write("version: 2\n")
    with pytest.raises(KernelError, match=r"the daemon does not start: .*version"):
        one.start()
    one.stop()


def test_a_claim_is_awaited_and_given_up() -> None:
    said = iter([0, 0, 3])
    assert operator.awaited(lambda: next(said), 5, pause=0) == 3
    assert operator.awaited(lambda: 0, 0) == 0


def test_neither_keys_nor_proxies_nor_another_daemon_are_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "ANTHROPIC_AUTH_TOKEN", "AGENTSH_NET_SOCKET"):
        monkeypatch.setenv(name, "another's")
    told = Operator(tmp_path)._environ
    assert told["AGENTSH_NET_SOCKET"] == str(tmp_path / "control.sock")
    assert told["PATH"] == os.environ["PATH"]
    assert "another's" not in told.values()


def test_an_agent_that_is_hired_waits_until_it_is_to_play_and_its_report_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = (
        "import sys; line = sys.stdin.readline(); print('noise'); print('{\"heard\": \"%s\"}' % line.strip())"
    )
    monkeypatch.setattr(operator, "OURS", (sys.executable, "-c", said))
    one = Operator(tmp_path).hire("one", "nobody", "agent", [], tmp_path)
    assert one._process.poll() is None
    assert one.play() == [{"heard": "go"}]
    one.dismiss()
    idle = Operator(tmp_path).hire("two", "nobody", "agent", [], tmp_path)
    idle.dismiss()
    assert idle._process.returncode == -signal.SIGKILL
