"""Other network namespaces are found once each and entered without the caller leaving its own."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from netns import box

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel import net_namespaces

pytestmark = pytest.mark.kernel


def mine() -> int:
    return os.stat("/proc/thread-self/ns/net").st_ino


def test_each_other_namespace_is_found_once_and_entered() -> None:
    def inside() -> tuple[int, bool, bool]:
        child = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", "echo ready; exec sleep 60"], stdout=subprocess.PIPE
        )
        child.stdout.readline()
        twin = subprocess.Popen(
            ["nsenter", f"--net=/proc/{child.pid}/ns/net", "sh", "-c", "echo ready; exec sleep 60"],
            stdout=subprocess.PIPE,
        )
        twin.stdout.readline()
        wanted, home = os.stat(f"/proc/{child.pid}/ns/net").st_ino, mine()
        found = [path for path in net_namespaces.others() if path.stat().st_ino == wanted]
        there = net_namespaces.within(found[0], mine)
        for process in (child, twin):
            process.send_signal(signal.SIGKILL)
            process.wait()
        return len(found), there == wanted, mine() == home

    assert box.in_box(inside) == (1, True, True)


def test_our_own_namespace_is_not_another() -> None:
    assert mine() not in {path.stat().st_ino for path in net_namespaces.others()}


def test_a_namespace_that_is_gone_raises(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        net_namespaces.within(tmp_path / "gone", mine)


def test_each_namespace_is_entered_in_turn_but_for_those_that_are_gone(tmp_path: Path) -> None:
    def inside() -> tuple[list[int], list[int], bool]:
        home = mine()
        children = [
            subprocess.Popen(
                ["unshare", "-n", "sh", "-c", "echo ready; exec sleep 60"], stdout=subprocess.PIPE
            )
            for _ in range(2)
        ]
        for child in children:
            child.stdout.readline()
        first, second = (Path(f"/proc/{child.pid}/ns/net") for child in children)
        wanted = [path.stat().st_ino for path in (first, second)]
        found = net_namespaces.in_each([first, tmp_path / "gone", second], lambda: [mine()])
        for child in children:
            child.kill()
            child.wait()
        return found, wanted, mine() == home

    found, wanted, at_home = box.in_box(inside)
    assert found == wanted
    assert len(set(wanted)) == 2
    assert at_home


def test_what_fails_in_a_namespace_is_raised_and_not_taken_for_one_that_is_gone() -> None:
    def fails() -> list[int]:
        raise PermissionError("of the sweep's own")

    with pytest.raises(PermissionError, match="own"):
        net_namespaces.in_each([Path("/proc/self/ns/net")], fails)


def test_where_no_thread_is_left_the_kernel_is_said_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(KernelError, match="can't start new thread") as refused:
        net_namespaces.in_each([], list)
    assert "TasksMax=" in refused.value.remedy


def test_the_number_of_namespaces_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_namespaces, "MAX_NAMESPACES", 3)
    for pid in range(1, 10):
        (tmp_path / str(pid) / "ns").mkdir(parents=True)
        (tmp_path / str(pid) / "ns/net").write_text("")
    assert len(list(net_namespaces.others(tmp_path))) == 3
