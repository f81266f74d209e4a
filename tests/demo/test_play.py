"""Whom the agent runs as, and what the play tells; the play itself is tests/cli/test_demo.py's."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from agentsh_net.demo import play


def test_the_agent_is_nobody_where_nobody_may_read_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr(play, "_can_read", lambda *_: True)
    assert play.readers_name(Path()) == "nobody"
    monkeypatch.setattr(play, "_can_read", lambda name, _: name == "alice")
    assert play.readers_name(Path()) == "alice"


def test_it_is_root_only_where_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(play, "_can_read", lambda *_: False)
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert play.readers_name(Path()) == "root"
    assert "runs as root" in json.loads(capsys.readouterr().out)["say"]


def test_a_user_that_does_not_exist_reads_nothing() -> None:
    assert not play._can_read("no such user", Path())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as somebody else")
def test_a_python_in_a_home_that_others_may_not_enter_is_read_by_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(home / "python"))
    assert not play._can_read("nobody", Path("/"))


def test_a_corner_that_cannot_be_had_is_told_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_: Path) -> None:
        raise PermissionError(1, "unshare: Operation not permitted")

    monkeypatch.setattr(play.box, "enter", refused)
    monkeypatch.setattr(play.signal, "signal", lambda *_: None)
    monkeypatch.setattr(play.sys, "argv", ["play", str(tmp_path), str(tmp_path)])
    assert play.main() == 1
    told = json.loads(capsys.readouterr().out)
    assert told["code"] == 3
    assert "CAP_SYS_ADMIN" in told["remedy"]
