"""A process is described from /proc within bounds, by the cgroup that was recorded, and never guessed when it is gone."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from agentsh_net.kernel import process
from agentsh_net.kernel.process import Process, Processes, container_of

CONTAINER = "3f" * 32


@pytest.mark.parametrize(
    "path",
    [
        f"/docker/{CONTAINER}",
        f"/system.slice/docker-{CONTAINER}.scope",
        f"/kubepods.slice/kubepods-pod1.slice/cri-containerd-{CONTAINER}.scope",
        f"/machine.slice/libpod-{CONTAINER}.scope/container",
    ],
)
def test_a_container_is_known_by_its_cgroup(path: str) -> None:
    assert container_of(path) == CONTAINER


@pytest.mark.parametrize("path", ["", "/", "/user.slice", f"/x/{CONTAINER}0", "/docker/" + "3f" * 31])
def test_what_is_no_container_id_is_none(path: str) -> None:
    assert container_of(path) == ""


def test_a_living_process_has_its_executable_and_name() -> None:
    processes = Processes(None)
    assert processes.describe(os.getpid()).exe == os.path.realpath(sys.executable)
    assert processes.comm(os.getpid()) == Path("/proc/self/comm").read_text().strip()


@pytest.mark.parametrize("pid", [0, -1, 1 << 30])
def test_a_process_that_is_not_there_is_described_by_nothing(pid: int) -> None:
    processes = Processes(None)
    assert processes.describe(pid) == Process()
    assert processes.comm(pid) == ""


def fake_proc(root: Path, pid: int, cgroup: str) -> Path:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "cgroup").write_text(f"4:memory:/v1\n0::{cgroup}\n")
    return root / "proc"


def test_the_recorded_cgroup_counts_not_the_one_the_process_moved_to(tmp_path: Path) -> None:
    hierarchy = tmp_path / "cgroup"
    (hierarchy / "then").mkdir(parents=True)
    (hierarchy / "now").mkdir()
    processes = Processes(hierarchy, fake_proc(tmp_path, 42, "/now"))
    assert processes.describe(42, (hierarchy / "then").stat().st_ino).cgroup == "/then"
    assert processes.describe(42, (hierarchy / "now").stat().st_ino).cgroup == "/now"
    assert processes.describe(42).cgroup == "/now"


def test_the_cgroup_of_a_process_that_is_gone_is_still_found_by_its_id(tmp_path: Path) -> None:
    hierarchy = tmp_path / "cgroup"
    (hierarchy / "a").mkdir(parents=True)
    assert Processes(hierarchy, tmp_path).describe(42, (hierarchy / "a").stat().st_ino).cgroup == "/a"


def test_the_memory_of_cgroups_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_REMEMBERED", 4)
    processes = Processes(tmp_path, tmp_path)
    for number in range(1, 20):
        processes.describe(42, 1 << 50 | number)
    assert len(processes._cgroups) == 4


def test_the_owner_of_a_socket_is_found_by_its_inode() -> None:
    with socket.socket() as mine:
        inode = os.fstat(mine.fileno()).st_ino
        assert Processes(None).owners([inode, 0, 1 << 40]) == {inode: os.getpid()}


def test_no_wanted_socket_is_no_walk() -> None:
    assert Processes(None, Path("/nonexistent")).owners([]) == {}
    assert Processes(None, Path("/nonexistent")).owners([7]) == {}
