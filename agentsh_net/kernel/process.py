"""Says what a process is: executable, cgroup, container. From /proc, soon after the fact, and remembered within bounds.

A process that is gone is described by what was recorded of it; nothing is guessed from another with the same pid.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from agentsh_net.core.values.recent import remember
from agentsh_net.kernel.cgroups import cgroup

# Recent cgroups and processes of a busy host; an entry is a few hundred bytes.
_REMEMBERED = 4096
# Descriptors looked at when sockets are matched with processes: a host with more is described in part.
_MAX_DESCRIPTORS = 200_000
# Docker, containerd, CRI-O and podman put the 64 hex digits of the container into the cgroup's name.
_CONTAINER = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")


@dataclass(frozen=True, slots=True)
class Process:
    """What is known of a process; empty where it is not."""

    exe: str = ""
    cgroup: str = ""
    container_id: str = ""


class Processes:
    """Describes processes, by a cache that is no larger than it says."""

    def __init__(self, hierarchy: Path | None, proc: Path = Path("/proc")) -> None:
        """Take the cgroup v2 mount point, None where the host has none."""
        self._hierarchy = hierarchy
        self._proc = proc
        self._cgroups: OrderedDict[int, str] = OrderedDict()

    def describe(self, pid: int, cgroup_id: int = 0) -> Process:
        """Return what is known of a process now; the cgroup is the one that was recorded, where its id is given."""
        if pid <= 0:
            return Process()
        path = self._cgroup(pid, cgroup_id)
        return Process(self._exe(pid), path, container_of(path))

    def comm(self, pid: int) -> str:
        """Return the name of a process, or nothing."""
        try:
            return (self._proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").rstrip("\n")
        except OSError:
            return ""

    def owners(self, inodes: Collection[int]) -> dict[int, int]:
        """Return socket inode -> pid for the sockets that a process holds now."""
        wanted = {f"socket:[{inode}]": inode for inode in inodes if inode}
        found: dict[int, int] = {}
        left = _MAX_DESCRIPTORS
        for pid in self._pids() if wanted else ():
            try:
                for entry in os.scandir(self._proc / pid / "fd"):
                    left -= 1
                    inode = wanted.get(_readlink(entry.path))
                    if inode is not None:
                        found.setdefault(inode, int(pid))
            except OSError:
                continue  # gone meanwhile, or not ours to look at
            if left <= 0 or len(found) == len(wanted):
                break
        return found

    def _pids(self) -> list[str]:
        try:
            return [entry.name for entry in self._proc.iterdir() if entry.name.isdigit()]
        except OSError:
            return []

    def _exe(self, pid: int) -> str:
        return _readlink(str(self._proc / str(pid) / "exe")).removesuffix(" (deleted)")

    def _cgroup(self, pid: int, cgroup_id: int) -> str:
        if cgroup_id and cgroup_id in self._cgroups:
            self._cgroups.move_to_end(cgroup_id)
            return self._cgroups[cgroup_id]
        path = cgroup.of_process(self._proc / str(pid)) or ""
        if cgroup_id and self._hierarchy is not None:
            if not path or _inode(self._hierarchy / path.lstrip("/")) != cgroup_id:
                path = cgroup.path_of(self._hierarchy, cgroup_id)
            remember(self._cgroups, cgroup_id, path, _REMEMBERED)
        return path


def container_of(path: str) -> str:
    """Return the container id that a cgroup path names, or nothing."""
    found = _CONTAINER.search(path)
    return found[1] if found else ""


def _readlink(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
