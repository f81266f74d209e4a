"""What a process started is found in whatever process group, and only what still is its own is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agentsh_net.workers import descendants
from agentsh_net.workers.descendants import Descendants


@contextlib.contextmanager
def family() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Yield a process whose child, in a session of its own, has a child in another, and that one's number."""
    inner = (
        "import subprocess; p = subprocess.Popen(['sleep', '60'], start_new_session=True); "
        "print(p.pid, flush=True); p.wait()"
    )
    outer = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {inner!r}], start_new_session=True).wait()"
    with subprocess.Popen([sys.executable, "-c", outer], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        grandchild = int(parent.stdout.readline())
        held = os.pidfd_open(grandchild)
        try:
            yield parent, grandchild
        finally:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(held, signal.SIGKILL)  # its parents end with it
            os.close(held)
            parent.kill()


def test_descendants_in_other_sessions_are_killed_and_they_alone() -> None:
    with family() as (parent, grandchild), family() as (other, _):
        kin = Descendants(parent.pid)
        kin.look()
        kin.look()  # finds nobody twice
        assert grandchild in kin._held and len(kin._held) == 2 and parent.pid not in kin._held
        kin.kill()
        assert parent.wait(20) == 0  # its child is gone, and it was not killed itself
        assert other.poll() is None


def test_no_more_are_held_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descendants, "MAX_HELD", 1)
    with family() as (parent, _):
        kin = Descendants(parent.pid)
        kin.look()
        assert len(kin._held) == 1
        kin.kill()


def test_who_has_the_number_of_a_child_that_is_gone_is_not_held() -> None:
    with family() as (parent, grandchild), family() as (_, stranger):
        kin = Descendants(parent.pid)
        assert not kin._hold(stranger, parent.pid)
        assert not kin._hold(grandchild, parent.pid)  # which is no child of it
        assert kin._held == {}


def test_a_process_that_is_gone_has_none() -> None:
    with family() as (parent, _):
        pass
    kin = Descendants(parent.pid)
    kin.look()
    assert kin._held == {}
    kin.kill()
