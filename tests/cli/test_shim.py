"""The plain command line of `shim` is read at once; all else is left to click, which reads it the same way."""

from __future__ import annotations

import pytest

from agentsh_net import places
from agentsh_net.cli import shim
from agentsh_net.core.configuration import scalars


def read(text: str):
    return shim.read(text.split())


def test_the_plain_line_is_read():
    found = read(
        "--socket /tmp/c.sock shim --server fs --hide-denied --fail-closed -- npx server --hide-denied -- /x"
    )
    assert (found.server, found.socket, found.hide, found.closed) == ("fs", "/tmp/c-shim.sock", True, True)
    assert found.command == ("npx", "server", "--hide-denied", "--", "/x")


def test_what_is_not_said_is_off():
    found = read("shim --server fs -- true")
    assert (found.socket, found.hide, found.closed) == ("/run/agentsh-net/control-shim.sock", False, False)


def test_the_socket_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("AGENTSH_NET_SOCKET", "/tmp/e.sock")
    assert read("shim --server fs -- true").socket == "/tmp/e-shim.sock"
    assert read("--socket /tmp/o.sock shim --server fs -- true").socket == "/tmp/o-shim.sock"


def test_of_two_the_last_counts():
    assert not read("shim --server fs --fail-closed --fail-open -- true").closed


@pytest.mark.parametrize(
    "text",
    [
        "", "status", "shim", "shim --help", "shim --server fs", "shim --server fs --", "shim --server fs true", "shim -- true",
        "shim --server fs --hide -- true", "shim --server=fs -- true", "run shim --server fs -- true", "--socket",
        "shim shim --server fs -- true", "-h shim --server fs -- true", "shim --server fs --socket x -- true",
    ],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_click(text):
    assert read(text) is None


def test_the_systems_daemon_is_asked_before_a_users_own(monkeypatch, tmp_path):
    system, own = tmp_path / "system.sock", tmp_path / "agentsh-net" / "control.sock"
    monkeypatch.setattr(places, "SYSTEM_SOCKET", str(system))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert read("shim --server fs -- true").socket == str(tmp_path / "system-shim.sock")
    own.parent.mkdir()
    (own.parent / "control-shim.sock").touch()
    assert read("shim --server fs -- true").socket == str(own.parent / "control-shim.sock")
    (tmp_path / "system-shim.sock").touch()
    assert read("shim --server fs -- true").socket == str(tmp_path / "system-shim.sock")


def test_an_id_may_be_as_long_as_one_in_a_policy_file():
    assert shim.MAX_ID == scalars.MAX_ID
