"""One daemon at a time: a dead one's socket is replaced, a live one's and a stranger's file are respected."""

import errno
import os
import socket
import subprocess
import sys

import pytest

from agentsh_net.control import socket_file
from agentsh_net.control.errors import ControlError
from agentsh_net.control.socket_file import holder, listen, remove_stale


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "control.sock"


@pytest.fixture
def listening(path):
    made = listen(path)
    yield made
    made.socket.close()
    if path.exists():
        made.release()


def connects(path):
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


def test_the_socket_is_open_to_owner_and_group_only(listening, path):
    assert path.stat().st_mode & 0o777 == 0o660
    assert path.parent.stat().st_mode & 0o777 == 0o750
    assert connects(path)


def test_nothing_is_left_after_release(listening, path):
    listening.socket.close()
    listening.release()
    assert list(path.parent.iterdir()) == []


def test_the_lock_names_its_holder(listening, path):
    assert holder(path) == os.getpid()
    listening.socket.close()
    listening.release()
    assert holder(path) is None


def test_a_second_daemon_is_refused_with_the_pid_of_the_first(listening, path):
    with pytest.raises(ControlError, match=f"already running, pid {os.getpid()}") as refused:
        listen(path)
    assert refused.value.kind == "already_running"
    assert connects(path)


DIE = (
    "import os, sys; from pathlib import Path; from agentsh_net.control.socket_file import listen\n"
    "listen(Path(sys.argv[1])); os._exit(9)"
)


@pytest.fixture
def crashed(path):
    subprocess.run([sys.executable, "-c", DIE, path], check=False)
    assert path.is_socket() and not connects(path)
    return path


def test_the_socket_of_a_daemon_that_crashed_is_replaced(crashed):
    made = listen(crashed)
    assert connects(crashed)
    made.socket.close()
    made.release()


def test_what_a_crash_left_is_removed_on_request(crashed):
    assert remove_stale(crashed) == [str(crashed), f"{crashed}.lock"]
    assert list(crashed.parent.iterdir()) == []
    assert remove_stale(crashed) == []


def test_a_live_daemons_socket_is_never_removed(listening, path):
    assert remove_stale(path) == []
    assert connects(path)


def test_a_live_socket_without_our_lock_is_respected(path):
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(path))
        stranger.listen()
        with pytest.raises(ControlError, match=f"pid {os.getpid()}"):
            listen(path)
        assert connects(path)


def test_a_file_that_is_no_socket_is_kept_and_the_lock_let_go(path):
    path.parent.mkdir()
    path.write_text("precious")
    with pytest.raises(ControlError, match="no socket"):
        listen(path)
    assert path.read_text() == "precious"
    assert holder(path) is None


def test_a_socket_that_cannot_be_made_is_a_config_error_and_leaves_nothing_open(path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(socket_file, "share", refuse)
    with pytest.raises(ControlError, match=r"cannot make .*: no") as refused:
        listen(path)
    assert (refused.value.kind, holder(path)) == ("config", None)
    assert [left.name for left in path.parent.iterdir()] == ["control.sock.lock"]


def test_a_socket_half_made_by_a_daemon_of_the_same_pid_is_in_nobodys_way(path):
    path.parent.mkdir()
    path.with_name(f"control.sock.{os.getpid()}").touch()  # in a container it is the same after each crash
    made = listen(path)
    assert connects(path)
    made.socket.close()
    made.release()


def test_a_lock_file_that_is_a_link_is_not_followed(path, tmp_path):
    path.parent.mkdir()
    (tmp_path / "victim").write_text("precious")
    path.with_name("control.sock.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(ControlError, match="cannot make"):
        listen(path)
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_path_too_long_for_a_socket_is_a_config_error(tmp_path):
    with pytest.raises(ControlError, match="too long") as refused:
        listen(tmp_path / ("x" * 120))
    assert refused.value.kind == "config"


def test_a_place_that_cannot_be_made_is_a_config_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ControlError, match="cannot make"):
        listen(tmp_path / "file" / "control.sock")
