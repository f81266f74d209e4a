"""Where programs, maps and links are pinned: a directory of ours on a BPF file system that outlives this process.

What is pinned there is attachment.py's business. Nothing is ever mounted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.cgroups import cgroup
from agentsh_net.kernel.limits import is_a_part, sees_the_host

# Which bpffs to use, for who knows better than `_why_mortal`: a directory on one, or `none`.
VARIABLE = "AGENTSH_NET_BPFFS"
_DEFAULT = Path("/sys/fs/bpf")
_NAME = "agentsh-net"
_LAYER = "ebpf"
_PROC = Path("/proc")


def directory(hierarchy: Path) -> Path:
    """Return where the pins of whoever enforces in a hierarchy go; it may not be there yet. Raises KernelError saying why there is no such place, with a remedy where somebody is in the way."""
    asked = os.environ.get(VARIABLE, "")
    if asked == "none":
        raise KernelError(f"{VARIABLE} is none", layer=_LAYER)
    base = Path(asked or _DEFAULT)
    if why := _why_unusable(base) or ("" if asked else _why_mortal(base, hierarchy)):
        raise KernelError(why, layer=_LAYER)
    ours = base / _NAME
    found = ours / str(hierarchy.stat().st_ino)
    for path in (ours, found):
        if os.path.lexists(path):
            _require_ours(path)
    return found


def make(path: Path) -> None:
    """Make a directory in `directory`, and that one. Raises OSError, and KernelError where something is there that is not ours."""
    for each in (path.parent.parent, path.parent, path):
        with contextlib.suppress(FileExistsError):
            each.mkdir(mode=0o700)
        _require_ours(each)


def inodes(path: Path) -> dict[str, int]:
    """Return name -> inode number of what is pinned in a directory; nothing where there is no such directory any more. Raises OSError."""
    try:
        return {entry.name: entry.inode() for entry in os.scandir(path)}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def left(cgroup_id: int) -> list[Path]:
    """Return the directories with pins of whoever enforced in a hierarchy, on every bpffs that can be seen."""
    return [path for path in everyones() if path.name == str(cgroup_id)]


def everyones() -> list[Path]:
    """Return the directories with pins, of whatever hierarchy."""
    bases = [mount.point for mount in cgroup.mounts("bpf")]
    if (asked := os.environ.get(VARIABLE, "")) not in {"", "none"}:
        bases.append(Path(asked))
    ours = [base / _NAME for base in dict.fromkeys(bases)]
    found = [path / name for path in ours if not _why_not_ours(path) for name in inodes(path)]
    return [path for path in found if not _why_not_ours(path)]


def clear(place: Path, *, keep: set[str]) -> None:
    """Remove the directories with pins in a place, but those of these names. Raises OSError."""
    for name in inodes(place).keys() - keep:
        remove(place / name)


def remove(path: Path) -> None:
    """Remove a daemon's directory with its pins, and the ones above it where nothing else is in them. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for above in (path.parent, path.parent.parent):
        with contextlib.suppress(OSError):  # it is not empty
            above.rmdir()


def _why_unusable(base: Path) -> str:
    """Say why nothing can be pinned at a place, or why somebody else could take away what is."""
    try:
        found = base.stat()
        read_only = os.statvfs(base).f_flag & os.ST_RDONLY
    except OSError as error:
        return f"{base}: {error.strerror}"
    device = f"{os.major(found.st_dev)}:{os.minor(found.st_dev)}"
    if device not in {mount.device for mount in cgroup.mounts("bpf")}:
        return f"no bpffs at {base}"
    if read_only:
        return f"{base} is mounted read-only"
    others = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    if others or found.st_uid not in {0, os.geteuid()}:
        return f"others may remove what lies in {base}"
    return ""


def _why_mortal(base: Path, hierarchy: Path, proc: Path = _PROC) -> str:
    """Say why pins there might go before the enforcement should: it is not the first process's bpffs, or not its cgroups."""
    if not sees_the_host(proc):
        return f"{base} may be a container's: the host's processes cannot be seen"
    try:
        theirs = (proc / "1/root" / base.relative_to("/")).stat()
    except OSError as error:
        return f"{base} may be a container's: the host's cannot be seen ({error.strerror})"
    if not os.path.samestat(theirs, base.stat()):
        return f"{base} is not the host's"
    return f"the cgroup root {hierarchy} is not the host's" if is_a_part(hierarchy) else ""


def _why_not_ours(path: Path) -> str:
    try:
        found = path.lstat()
    except OSError as error:
        return f"{path}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is no directory"
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return f"{path} is another user's, or open to others"
    return ""


def _require_ours(path: Path) -> None:
    if why := _why_not_ours(path):
        raise KernelError(why, layer=_LAYER, remedy=f"see who made it, then remove it: rm -r {path}")
