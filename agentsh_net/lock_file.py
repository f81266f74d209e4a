"""A file that one process at a time holds, and that says which one. The kernel lets go of it with the process, however that ends.

For whatever two daemons must not share. What to tell the operator about the other one is the caller's business.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TRIES: Final = 5  # a look by `holder` takes the lock for a moment; that must not be taken for a daemon
_PAUSE: Final = 0.05  # seconds between tries
_DIGITS: Final = 20


class HeldError(Exception):
    """Somebody else holds it: process `pid`, 0 where it cannot be told (not written yet, or of another container)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        super().__init__(f"held by process {pid}")


@dataclass(frozen=True, slots=True)
class LockFile:
    """A held lock."""

    path: Path
    descriptor: int

    def stands(self) -> bool:
        """Say whether the file is still where it was: who removes it lets others take a new one."""
        return _is_current(self.descriptor, self.path)

    def release(self) -> None:
        """Remove the file and let go of it, in this order: nobody takes a file that is about to be removed."""
        if self.stands():
            self.path.unlink(missing_ok=True)
        os.close(self.descriptor)

    def abandon(self) -> None:
        """Let go of it and leave the file."""
        os.close(self.descriptor)


def beside(path: Path) -> Path:
    """Return the lock file's place for what lies at `path`."""
    return path.with_name(path.name + ".lock")


def take(path: Path) -> LockFile:
    """Take the lock file at `path`, made where it is not there. Raises HeldError; OSError where it cannot be made."""
    for attempt in range(_TRIES):
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_current(lock, path):
                os.pwrite(lock, f"{os.getpid():<{_DIGITS}}".encode(), 0)  # of one length: always a number
                return LockFile(path, lock)
        except BlockingIOError:
            if attempt + 1 == _TRIES:
                pid = _written(lock)
                os.close(lock)
                raise HeldError(pid) from None
            time.sleep(_PAUSE)
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # or its last holder removed it between our open and our lock: take the new one
    raise HeldError(0)


def holder(path: Path) -> int | None:
    """Return the pid of the process that holds the lock file (0 if it cannot be told), None where nobody does. Raises OSError."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _written(lock)
    finally:
        os.close(lock)
    return None


def _is_current(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False


def _written(lock: int) -> int:
    """Return the holder's pid as it wrote it, 0 where that number is another process here: it counted in another container."""
    with contextlib.suppress(ValueError):
        pid = int(os.pread(lock, _DIGITS, 0) or b"0")
        return pid if pid and _has_open(pid, lock) else 0
    return 0


def _has_open(pid: int, lock: int) -> bool:
    """Say whether a process has this very file open; of one that may not be looked into it is believed."""
    ours = os.fstat(lock)
    try:
        descriptors = list(Path(f"/proc/{pid}/fd").iterdir())
    except PermissionError:
        return True
    except OSError:
        return False
    for descriptor in descriptors:
        with contextlib.suppress(OSError):  # it was closed meanwhile
            if os.path.samestat(descriptor.stat(), ours):
                return True
    return False
