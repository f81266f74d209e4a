"""What a process started and has not let go of, in whatever process group: found in /proc, held by pidfd, killed together.

Whom their own parents left behind is init's child by then, and found no more. When they are to die is not its business.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_HELD: Final = 256  # of one server; each is a descriptor of ours


class Descendants:
    """The descendants of one process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._held: dict[int, int] = {}  # pid -> pidfd

    def look(self) -> None:
        """Hold those that are there now: no signal of ours meets who has the same number later."""
        parents = [self._pid]
        for parent in parents:
            parents += [pid for pid in _children(parent) if self._hold(pid, parent)]

    def kill(self) -> None:
        """Kill those that were seen, and let go of them."""
        for pidfd in self._held.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        self._held.clear()

    def _hold(self, pid: int, parent: int) -> bool:
        if pid in self._held:
            return True
        try:
            pidfd = os.pidfd_open(pid) if len(self._held) < MAX_HELD else -1
        except OSError:
            pidfd = -1
        if pidfd < 0:
            return False
        if pid not in _children(parent):  # another has its number by now
            os.close(pidfd)
            return False
        self._held[pid] = pidfd
        return True


def _children(pid: int) -> list[int]:
    """Return the children of a process (proc_pid_tid_children(5)); none of one that is gone."""
    return [int(child) for tasks in _tasks(pid) for child in tasks.split()]


def _tasks(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                yield (task / "children").read_text()
