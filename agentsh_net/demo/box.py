"""A private corner of the kernel: a cgroup, mounts and a network of its own, so that nothing of the machine is attached to or filtered.

For the demonstration only. `corner` is its maker's side, `enter` is what the first process in it does.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentsh_net.core.errors import KernelError
from agentsh_net.demo import cast

LINK, THERE = "here", "there"  # the two ends of the wire to everybody else
_NEWNS, _NEWCGROUP, _NEWNET = 0x00020000, 0x02000000, 0x40000000  # sched.h
_REC_PRIVATE: Final = 0x4000 | 0x40000
_DETACH: Final = 2
_PR_SET_PDEATHSIG: Final = 1
_PATIENCE: Final = 5.0  # seconds for the kernel to let a killed process's cgroup go
_NAME: Final = "agentsh-net-demo-"


def cgroup_mount() -> Path | None:
    """Return where cgroup v2 is mounted and no other mount covers it, None where it is not."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] == "cgroup2" and Path(fields[4], "cgroup.procs").exists():
            return Path(fields[4])
    return None


@contextlib.contextmanager
def corner() -> Iterator[Path]:
    """Make a cgroup, and end everything in it afterwards. Raises KernelError."""
    mount = cgroup_mount()
    if mount is None:
        raise KernelError(
            "cgroup v2 is not mounted", layer="cgroups", remedy="mount -t cgroup2 none /sys/fs/cgroup/unified"
        )
    cgroup = mount / f"{_NAME}{secrets.token_hex(4)}"
    try:
        cgroup.mkdir()
    except OSError as error:
        raise KernelError(
            f"no cgroup can be made under {mount}: {error.strerror}", layer="cgroups",
            remedy="run it as root on the machine itself, not in a container without CAP_SYS_ADMIN",
        ) from error  # fmt: skip
    try:
        yield cgroup
    finally:
        _remove(cgroup)


def enter(cgroup: Path) -> None:
    """Move this process into the corner: cgroup, mounts, network. Raises OSError. It ends when its parent does."""
    _check(_libc().prctl(_PR_SET_PDEATHSIG, signal.SIGTERM), "prctl")
    os.umask(0o022)  # the agent, another user, reads what is written here
    (cgroup / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    _check(_libc().unshare(_NEWNET | _NEWNS | _NEWCGROUP), "unshare")
    _mount(None, "/", None, _REC_PRIVATE)
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    for point in reversed(re.findall(r"^\S+ \S+ \S+ \S+ (/sys/fs/cgroup\S*) ", mounts, re.MULTILINE)):
        _check(_libc().umount2(point.encode(), _DETACH), f"umount {point}")
    _mount("none", "/sys/fs/cgroup", "cgroup2", 0)
    _ip("link", "set", "lo", "up")


def leave_network() -> None:
    """Take a network namespace of this process's own. Raises OSError."""
    _check(_libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")
    _check(_libc().unshare(_NEWNET), "unshare")


def wire(pid: int) -> None:
    """Join this network and that of a process by a wire, and take our address on it."""
    _ip("link", "add", LINK, "type", "veth", "peer", "name", THERE, "netns", str(pid))
    _ip("addr", "add", f"{cast.HERE}/24", "dev", LINK)
    _ip("link", "set", LINK, "up")


def _remove(cgroup: Path) -> None:
    """End what runs in a cgroup, and remove it; it stays busy for a moment after its last process was killed."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            (cgroup / "cgroup.kill").write_text("1", encoding="ascii")
        with contextlib.suppress(OSError):
            for folder, _, _ in os.walk(cgroup, topdown=False):
                Path(folder).rmdir()
        if not cgroup.exists():
            return
        time.sleep(0.01)
    raise KernelError(
        f"cgroup {cgroup} is still busy", layer="cgroups", remedy=f"rmdir {cgroup} when it is not"
    )


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    def encoded(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    _check(_libc().mount(encoded(source), target.encode(), encoded(kind), flags, None), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
