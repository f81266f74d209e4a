"""The socket's place in the file system: one daemon at a time, a dead one's socket replaced, a live one's respected.

A lock file beside the socket says who lives; the kernel drops the lock with the process, however it ends.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentsh_net import lock_file
from agentsh_net.access import make_directory, share
from agentsh_net.control.errors import ControlError
from agentsh_net.control.peer import peer_of

_BACKLOG: Final = 64
_LONGEST: Final = 107  # bytes: sun_path less its NUL, unix(7)


@dataclass(frozen=True, slots=True)
class Listening:
    """A bound and listening socket, and the lock that makes it ours."""

    socket: socket.socket
    path: Path
    lock: lock_file.LockFile

    def release(self) -> None:
        """Remove socket and lock file. The lock goes last, so that nobody binds in between."""
        self.path.unlink(missing_ok=True)
        self.lock.release()


def listen(path: Path, mode: int = 0o660) -> Listening:
    """Bind a socket of the daemon, by default as the control socket is. Raises ControlError (already_running, config)."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    if len(os.fsencode(temporary)) > _LONGEST:
        raise ControlError(
            f"the socket path {path} is too long", kind="config", remedy="set control.socket to a shorter one"
        )
    try:
        make_directory(path.parent)
        lock = lock_file.take(lock_file.beside(path))
    except lock_file.HeldError as held:
        raise _already_running(held.pid) from None
    except OSError as error:
        raise ControlError(
            f"cannot make {path}: {error.strerror}",
            kind="config",
            remedy="set control.socket to a writable place",
        ) from error
    try:
        _refuse_what_lives(path)
        return Listening(_bind(path, temporary, mode), path, lock)
    except BaseException:
        lock.abandon()
        raise


def holder(path: Path) -> int | None:
    """Return the pid of the daemon that holds the socket's lock (0 if it has not written it yet), None if there is none."""
    return lock_file.holder(lock_file.beside(path))


def remove_stale(path: Path) -> list[str]:
    """Remove what a dead daemon left at `path` and return the files; a live one's are left alone. Raises OSError."""
    if holder(path) is not None:
        return []
    removed = []
    for left in (path, lock_file.beside(path)):
        try:
            left.unlink()
        except FileNotFoundError:
            continue
        removed.append(str(left))
    return removed


def _refuse_what_lives(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ControlError(
            f"{path} exists and is no socket",
            kind="config",
            remedy="remove it or set control.socket elsewhere",
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as probe:
        probe.settimeout(1)
        if probe.connect_ex(str(path)) not in {errno.ECONNREFUSED, errno.ENOENT}:
            raise _already_running(peer_of(probe).pid)


def _bind(path: Path, temporary: Path, mode: int) -> socket.socket:
    # Bound under another name and renamed when its mode is right: at no moment can others connect, and a dead
    # daemon's socket is replaced in one step.
    temporary.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        listening.bind(str(temporary))
        share(temporary, mode)
        listening.listen(_BACKLOG)
        temporary.rename(path)
    except OSError as error:
        listening.close()
        temporary.unlink(missing_ok=True)
        raise ControlError(
            f"cannot make {path}: {error.strerror}",
            kind="config",
            remedy="set control.socket to a writable place",
        ) from error
    return listening


def _already_running(pid: int) -> ControlError:
    return ControlError(
        f"agentsh-net is already running, {f'pid {pid}' if pid else 'in a process that cannot be seen from here'}",
        kind="already_running",
        remedy="see it with: agentsh-net status; end it with: agentsh-net down",
    )
