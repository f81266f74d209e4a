"""Tells when the files of a configuration changed: the truth is their stamps, inotify only says when to look.

Directories are watched, not files, so that an editor's rename and the `..data` swap of Kubernetes are seen. What is
done about a change is the daemon's business.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

# Device, inode, size, mtime and ctime in ns; None is a file that cannot be read.
Stamp = tuple[int, int, int, int, int] | None

# An editor writes in several steps within a few milliseconds; what is read half-written is refused and read again.
DEBOUNCE = 0.02
# Without inotify somebody waits for the reload; with it, this finds what it cannot see (network file systems,
# a directory above that is moved).
POLL = 1.0
POLL_BESIDE_INOTIFY = 5.0
# Seconds that a change waits for its writer to close the file. Who holds it open longer holds nothing back.
WRITER = 5.0
# As many links as the kernel follows (path_resolution(7)).
MAX_LINKS = 40

IN_NONBLOCK, IN_CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
IN_ONLYDIR = 0x01000000
# attrib, close_write, moved_from, moved_to, create, delete, delete_self, move_self: inotify(7).
EVENTS = 0x004 | 0x008 | 0x040 | 0x080 | 0x100 | 0x200 | 0x400 | 0x800 | IN_ONLYDIR


def stamp(result: os.stat_result) -> Stamp:
    """Return what changes whenever the content of a file does."""
    return (result.st_dev, result.st_ino, result.st_size, result.st_mtime_ns, result.st_ctime_ns)


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of the file that a path leads to."""
    try:
        return stamp(path.stat())
    except OSError:
        return None


def being_written(path: Path) -> bool:
    """Say whether somebody has a file open to write: no lease is given on it then (fcntl(2)).

    False where none can be had: another one's file without CAP_LEASE, a network file system.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return False
    try:
        # Who opens it to write right now has the kernel send this instead of SIGIO, which would end the daemon.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)  # and the lease goes with it
    return False


def directories(path: Path) -> set[Path]:
    """Return every directory where a name stands that decides which file `path` is, links followed one by one."""
    here: Path | None = path.absolute()
    found: set[Path] = set()
    for _ in range(MAX_LINKS):
        if here is None:
            break
        found.add(here.parent)
        link = next((part for part in (here, *here.parents) if part.is_symlink()), None)
        if link is not None:
            found.add(link.parent)
        here = _followed(here, link) if link is not None else None
    return found


def _followed(path: Path, link: Path) -> Path | None:
    try:
        return link.parent / link.readlink() / path.relative_to(link)
    except OSError:  # it went away meanwhile: the event of its directory leads here again
        return None


class Inotify:
    """A set of watched directories. Raises OSError where the kernel gives none (limits of inotify(7))."""

    def __init__(self, watched: Iterable[Path]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._checked(self._libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC))
        try:
            for path in watched:
                self._add(path)
        except OSError:
            self.close()
            raise

    def _add(self, path: Path) -> None:
        try:
            self._checked(self._libc.inotify_add_watch(self.fd, os.fsencode(path), EVENTS))
        except (FileNotFoundError, NotADirectoryError):
            return  # polling finds it when it comes

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def drain(self) -> None:
        """Forget what was reported; the stamps tell what it meant."""
        while True:
            try:
                os.read(self.fd, 64 << 10)
            except BlockingIOError:
                return

    def close(self) -> None:
        """Stop watching."""
        os.close(self.fd)


class Watch:
    """Calls `changed` on the loop after a file of the configuration changed, until `close`.

    `read` is the version of each file that is in force (`Loaded.read`); `follow` gives the next after a reload.
    """

    def __init__(
        self,
        path: Path,
        loop: asyncio.AbstractEventLoop,
        changed: Callable[[], None],
        *,
        read: Mapping[Path, Stamp] | None = None,
    ) -> None:
        self._path = path
        self._loop = loop
        self._changed = changed
        self._stamps: dict[Path, Stamp] = {}
        self._armed: dict[Path, tuple[int, int] | None] = {}
        self._inotify: Inotify | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._woken = False
        self._written_since: float | None = None
        self.follow(read or {})

    def follow(self, read: Mapping[Path, Stamp]) -> None:
        """Watch these files from the versions that were read; one that has changed since then is told."""
        self._stamps = dict.fromkeys((self._path, *read))
        self._arm()  # before the stamps are taken: what happens in between is seen by one of them
        self._stamps = {path: read[path] if path in read else stamp_of(path) for path in self._stamps}
        self._look_in(0)

    def close(self) -> None:
        """Stop watching; `changed` is not called any more."""
        self._disarm()
        if self._timer is not None:
            self._timer.cancel()

    def _look_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._woken = False
        self._arm()
        self._look_in(POLL if self._inotify is None else POLL_BESIDE_INOTIFY)
        now = {path: stamp_of(path) for path in self._stamps}
        if now == self._stamps:
            return
        # Half a file may be a policy too, one without the denials that come last. Inotify tells when it is closed.
        if any(map(being_written, now)) and self._patient():
            self._look_in(POLL)
            return
        self._written_since = None
        self._stamps = now
        self._changed()

    def _patient(self) -> bool:
        now = self._loop.time()
        self._written_since = now if self._written_since is None else self._written_since
        return now - self._written_since < WRITER

    def _arm(self) -> None:
        """Watch the directories that matter now; they are others after a link was moved or a folder made anew."""
        wanted = {folder: _identity(folder) for path in self._stamps for folder in directories(path)}
        if wanted == self._armed:
            return
        self._disarm()
        self._armed = wanted
        try:
            self._inotify = Inotify(wanted)
        except OSError:
            return  # none is to be had (inotify(7)): it is looked every second
        self._loop.add_reader(self._inotify.fd, self._wake)

    def _disarm(self) -> None:
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify.fd)
            self._inotify.close()
            self._inotify = None

    def _wake(self) -> None:
        if self._inotify is not None:
            self._inotify.drain()
        if not self._woken:  # the first event sets the time, so that a busy directory cannot put it off
            self._woken = True
            self._look_in(DEBOUNCE)


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        result = folder.stat()
    except OSError:
        return None
    return result.st_dev, result.st_ino
