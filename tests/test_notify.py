"""Starters learn that the daemon is ready, whole or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest
from few_files import no_file_left
from running import OFF, running

from agentsh_net import lock_file
from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import ConfigError
from agentsh_net.notify import (
    claim_ready_file,
    read_ready_file,
    remove_ready_file,
    say_alive,
    sd_notify,
    write_ready_file,
)


def test_the_service_manager_gets_the_state(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(60)
        assert sd_notify("READY=1", {"NOTIFY_SOCKET": str(path)})
        assert manager.recv(64) == b"READY=1"


def test_an_abstract_address_works_too() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("")  # autobind: the kernel picks an abstract name
        manager.settimeout(60)
        name = manager.getsockname().decode()
        assert sd_notify("STOPPING=1", {"NOTIFY_SOCKET": "@" + name[1:]})
        assert manager.recv(64) == b"STOPPING=1"


def test_without_a_service_manager_nothing_is_sent() -> None:
    assert not sd_notify("READY=1", {})


def test_a_manager_that_asks_for_it_hears_that_the_daemon_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "notify"
    monkeypatch.setenv("NOTIFY_SOCKET", str(path))
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(60)
        with running(tmp_path, OFF):
            while manager.recv(64) != b"READY=1":
                pass
            assert [manager.recv(64) for _ in range(3)] == [b"WATCHDOG=1"] * 3


@pytest.mark.parametrize(
    "asked", [{}, {"WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"}]
)
def test_who_does_not_ask_hears_nothing_of_it(asked: dict[str, str]) -> None:
    asyncio.run(say_alive(asked))  # ends at once


def test_a_daemon_that_can_open_nothing_more_is_alive_and_stops_in_order(tmp_path: Path) -> None:
    """systemd would have ended it after two minutes, while its log filled with what was called a bug."""
    path = tmp_path / "notify"
    environ = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "2000"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(60)

        async def body() -> None:
            alive = asyncio.create_task(say_alive(environ))
            await asyncio.to_thread(manager.recv, 64)
            with no_file_left():
                for _ in range(3):
                    assert await asyncio.to_thread(manager.recv, 64) == b"WATCHDOG=1"
                assert not sd_notify("STOPPING=1", environ)
            alive.cancel()

        asyncio.run(body())


def test_the_ready_file_replaces_an_older_one_and_leaves_no_scratch(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.write_text("old")
    write_ready_file(path, {"pid": 7})
    assert json.loads(path.read_text()) == {"pid": 7}
    assert [p.name for p in tmp_path.iterdir()] == ["ready"]


def test_a_ready_file_that_cannot_be_is_a_problem_of_the_option(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "ready", tmp_path / "file" / "ready"):
        (tmp_path / "file").touch()
        with pytest.raises(ConfigError, match=r"--ready-file: found .*/ready \("):
            remove_ready_file(path)
        with pytest.raises(ConfigError, match="--ready-file"):
            write_ready_file(path, {})


def test_what_is_no_file_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    """`--ready-file /dev/stdout` of root's would take the device away from everybody."""
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    for path, what in ((pipe, "no regular file"), (folder, "a directory")):
        with pytest.raises(ConfigError, match=rf"--ready-file: found {path} \({what}\)"):
            remove_ready_file(path)
        with pytest.raises(ConfigError, match=what):
            write_ready_file(path, {})
    assert pipe.is_fifo()
    assert folder.is_dir()


def test_a_link_in_the_scratch_files_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / f".ready.{os.getpid()}").symlink_to(tmp_path / "victim")
    write_ready_file(tmp_path / "ready", {"pid": 7})
    assert (tmp_path / "victim").read_text() == "precious"
    assert json.loads((tmp_path / "ready").read_text()) == {"pid": 7}


def test_a_service_manager_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert not sd_notify("READY=1", {"NOTIFY_SOCKET": str(tmp_path / "gone")})


def test_a_ready_file_is_removed_whether_there_is_one_or_not(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.touch()
    remove_ready_file(path)
    remove_ready_file(path)
    assert not path.exists()


def test_what_is_read_is_what_a_daemon_wrote_and_nothing_else(tmp_path: Path) -> None:
    path, pipe = tmp_path / "ready", tmp_path / "pipe"
    os.mkfifo(pipe)
    assert read_ready_file(path) == read_ready_file(tmp_path) == read_ready_file(pipe) == {}
    write_ready_file(path, {"pid": 7, "control": "/run/x"})
    assert read_ready_file(path) == {"pid": 7, "control": "/run/x"}
    for text in ("[7]", "{", "[" * 100_000, '{"x": ' + "1" * 70_000 + "}"):
        path.write_text(text)
        assert read_ready_file(path) == {}


def test_the_file_of_a_daemon_that_was_killed_goes_and_that_of_one_that_runs_stays(tmp_path: Path) -> None:
    path, theirs = tmp_path / "ready", tmp_path / "control"
    write_ready_file(path, {"pid": os.getpid(), "control": str(theirs)})
    lock = lock_file.take(lock_file.beside(theirs))
    try:
        with pytest.raises(ControlError, match=f"a daemon that runs, pid {os.getpid()}"):
            claim_ready_file(path, "/run/ours")
        assert path.exists()
    finally:
        lock.release()
    claim_ready_file(path, "/run/ours")
    assert not path.exists()


@pytest.mark.parametrize("place", ["/proc/ready", "{tmp_path}/" + "r" * 255])
def test_a_file_that_could_not_be_written_is_told_of_before_anything_is_enforced(tmp_path, place) -> None:
    path = Path(place.format(tmp_path=tmp_path))
    with pytest.raises(ConfigError, match=r"--ready-file: found .* \("):
        claim_ready_file(path, "/run/ours")
    claim_ready_file(tmp_path / "ready", "/run/ours")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="a file of another user's is made by root")
def test_what_another_user_wrote_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    write_ready_file(path, {"control": "/run/x"})
    os.chown(path, 65534, 65534)
    assert read_ready_file(path) == {}
