"""The socket's place in the file system: one daemon at a time, a dead one's socket replaced, a live one's respected.

A lock file beside the socket says who lives; the kernel drops the lock with the process, however it ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentsh_net.access import make_directory, share
from agentsh_net.control.errors import ControlError
from agentsh_net.control.peer import peer_of

_TRIES: Final = 5  # a look by `holder` takes the lock for a moment; that must not be taken for a daemon
_PAUSE: Final = 0.05  # seconds between tries
_BACKLOG: Final = 64
_LONGEST: Final = 107  # bytes: sun_path less its NUL, unix(7)


@dataclass(frozen=True, slots=True)
class Listening:
    """A bound and listening socket, and the lock that makes it ours."""

    socket: socket.socket
    path: Path
    lock: int

    def release(self) -> None:
        """Remove socket and lock file. The lock goes last, so that nobody binds in between."""
        self.path.unlink(missing_ok=True)
        _lock_path(self.path).unlink(missing_ok=True)
        os.close(self.lock)


def listen(path: Path, mode: int = 0o660) -> Listening:
    """Bind a socket of the daemon, by default as the control socket is. Raises ControlError (already_running, config)."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    if len(os.fsencode(temporary)) > _LONGEST:
        raise ControlError(
            f"the socket path {path} is too long", kind="config", remedy="set control.socket to a shorter one"
        )
    try:
        make_directory(path.parent)
        lock = _take_lock(path)
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
        os.close(lock)
        raise


def holder(path: Path) -> int | None:
    """Return the pid of the daemon that holds the socket's lock (0 if it has not written it yet), None if there is none."""
    try:
        lock = os.open(_lock_path(path), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(lock, 20, 0) or b"0")
    finally:
        os.close(lock)
    return None


def remove_stale(path: Path) -> list[str]:
    """Remove what a dead daemon left at `path` and return the files; a live one's are left alone. Raises OSError."""
    if holder(path) is not None:
        return []
    removed = []
    for left in (path, _lock_path(path)):
        try:
            left.unlink()
        except FileNotFoundError:
            continue
        removed.append(str(left))
    return removed


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _take_lock(path: Path) -> int:
    for attempt in range(_TRIES):
        lock = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = int(os.pread(lock, 20, 0) or b"0")
            os.close(lock)
            if attempt + 1 == _TRIES:
                raise _already_running(pid) from None
            time.sleep(_PAUSE)
            continue
        if _is_current(lock, path):
            os.pwrite(lock, f"{os.getpid():<20}".encode(), 0)  # of one length: no moment without a number
            return lock
        os.close(lock)  # its last holder removed it between our open and our lock: take the new one
    raise ControlError(f"{_lock_path(path)} keeps changing", kind="busy", remedy="try again")


def _is_current(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), _lock_path(path).stat())
    except FileNotFoundError:
        return False


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
        f"agentsh-net is already running, pid {pid}",
        kind="already_running",
        remedy="see it with: agentsh-net status; end it with: agentsh-net down",
    )
