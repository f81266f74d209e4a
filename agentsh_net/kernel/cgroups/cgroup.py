"""Finds the cgroup v2 hierarchy: where it is mounted, and which path a cgroup id means. Hybrid hosts mount it anywhere.

Makes and moves nothing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agentsh_net.core.errors import KernelError

MOUNTINFO = "/proc/self/mountinfo"
REMEDY = "mount -t cgroup2 none /sys/fs/cgroup, or boot with systemd.unified_cgroup_hierarchy=1"
# A host with more cgroups than this is searched no further for an id.
_MAX_CGROUPS = 20_000


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount: its root within the file system, where it is, and the file system's device as `major:minor`."""

    root: str
    point: Path
    device: str


def root(mountinfo: str | None = None) -> Path:
    """Return the mount point of the cgroup v2 hierarchy. Raises KernelError where there is none."""
    # Where it is mounted twice, the first mount of the whole hierarchy serves; a mount of a part would not see everybody.
    points = sorted(mounts("cgroup2", mountinfo), key=lambda found: found.root != "/")
    if not points:
        raise KernelError("no cgroup v2 hierarchy is mounted", layer="ebpf", remedy=REMEDY)
    return points[0].point


def hierarchy() -> Path | None:
    """Return the mount point of the cgroup v2 hierarchy, None on a host without one."""
    try:
        return root()
    except KernelError:
        return None


def mounts(kind: str, mountinfo: str | None = None) -> list[Mount]:
    """Return where file systems of a kind are mounted (proc_pid_mountinfo(5))."""
    found = []
    for line in (
        Path(MOUNTINFO).read_text(encoding="utf-8") if mountinfo is None else mountinfo
    ).splitlines():
        fields = line.split(" ")
        if "-" in fields and fields[fields.index("-") + 1] == kind:
            found.append(Mount(_unescaped(fields[3]), Path(_unescaped(fields[4])), fields[2]))
    return found


def _unescaped(field: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field


def of_process(process: Path) -> str | None:
    """Return the path of a process's cgroup (`/proc/PID`) in the version 2 hierarchy; None of one that has ended."""
    try:
        lines = (process / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")


def path_of(hierarchy: Path, cgroup_id: int) -> str:
    """Return the path of the cgroup with this id below the hierarchy (`/` is the root), or nothing. Ids are inode numbers."""
    stack, visited = [hierarchy], 0
    while stack and visited < _MAX_CGROUPS:
        folder = stack.pop()
        visited += 1
        try:
            if folder.stat().st_ino == cgroup_id:
                return "/" + str(folder.relative_to(hierarchy)).removeprefix(".")
            stack += [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue  # gone meanwhile
    return ""
