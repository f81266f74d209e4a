"""The cgroups of ours: /agentsh-net/sessions/ID.session for each agent that `exec` started, /agentsh-net/workers for the proxy.

Processes are moved by number, and told apart by nothing else. What the planes make of a cgroup is their business.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
from collections import OrderedDict
from pathlib import Path

from agentsh_net.core.abi.ip_packet import Packet
from agentsh_net.core.abi.wire import OwnIds
from agentsh_net.core.errors import MORE_FILES, NO_FILES, KernelError
from agentsh_net.core.nft.sockets import Sockets
from agentsh_net.kernel.cgroups import cgroup
from agentsh_net.kernel.sockets import clients

LAYER = "cgroups"
# Below the root and not below the daemon's own unit: agents outlive a restart of the daemon, whoever manages services.
NAME, SESSIONS, WORKERS = "agentsh-net", "sessions", "workers"
# No file of cgroupfs is called so, whatever a session is called.
_SUFFIX = ".session"
REMEDY = "run as root where cgroup v2 is mounted read-write (in a container: --cgroupns=private, and rw)"
# Records of a session that ended may still come; the eldest are forgotten.
_REMEMBERED = 4096
# Where nft looks for paths.
_NFT_ROOT = Path("/sys/fs/cgroup")
_INITIAL_NAMESPACE = 0xEFFFFFFB  # PROC_CGROUP_INIT_INO
# Below a namespace's root our cgroups are deeper than it looks: as deep as containers are nested in containers.
_DEEPEST = 8


class OwnCgroups:
    """The cgroups, made as far as they were not there. A session is whatever has a cgroup here, also of an earlier daemon."""

    def __init__(self, hierarchy: Path) -> None:
        """Make the parents. Raises KernelError."""
        self._hierarchy = hierarchy
        self._root = hierarchy / NAME
        self.sessions, self.workers = self._root / SESSIONS, self._root / WORKERS
        self._known: OrderedDict[int, str] = OrderedDict()  # cgroup id -> session id
        # Cgroups that are of no session; they stay so, and the kernel gives no id again.
        self._strange: set[int] = set()
        self._seen: list[str] = []  # the sessions there were when one last looked
        self._employed: dict[int, int] = {}  # process -> its pidfd: a number may be somebody else's by now
        self.ids = self._make()
        for session_id in self.live():
            self._remember(session_id)

    def _make(self) -> OwnIds:
        try:
            for path in (self.sessions, self.workers):
                path.mkdir(parents=True, exist_ok=True)
            return OwnIds(_id(self.sessions), _id(self.workers))
        except OSError as error:
            raise _refused("make", self._root, error) from error

    def make_again(self) -> None:
        """Make what somebody removed, and move the proxy back; `ids` are others then. Raises KernelError."""
        if not self.why_not():
            return
        if not (self._hierarchy / "cgroup.procs").exists():
            remedy = f"mount -t cgroup2 none {self._hierarchy}"
            raise KernelError(f"no cgroup v2 at {self._hierarchy} any more", layer=LAYER, remedy=remedy)
        self.ids = self._make()
        for pid in self._still_employed():
            _move(pid, self.workers)

    def live(self) -> list[str]:
        """Return the ids of the sessions that have a cgroup, sorted; those that were seen last where no file descriptor is left."""
        try:
            entries = [e.name for e in os.scandir(self.sessions) if e.is_dir(follow_symlinks=False)]
        except OSError as error:
            return self._seen.copy() if error.errno in NO_FILES else []
        self._seen = sorted(name.removesuffix(_SUFFIX) for name in entries if name.endswith(_SUFFIX))
        return self._seen.copy()

    def begin(self, session_id: str) -> None:
        """Make a session's cgroup. Raises KernelError, also where something still runs in it."""
        path = self._path(session_id)
        if _populated(path):
            raise KernelError(
                f"session {session_id} runs already",
                layer=LAYER,
                remedy="choose another --session, or end its agent",
            )
        self.make_again()
        try:
            path.mkdir(exist_ok=True)
            self._remember(session_id)
        except OSError as error:
            raise _refused("make", path, error) from error

    def enter(self, session_id: str, pid: int) -> None:
        """Move a process into a session's cgroup. Raises KernelError."""
        _move(pid, self._path(session_id))

    def employ(self, pid: int) -> None:
        """Move a process of the proxy's into the workers' cgroup. Raises KernelError."""
        _move(pid, self.workers)
        self._still_employed()
        with contextlib.suppress(OSError):  # it has ended already
            self._employed[pid] = os.pidfd_open(pid)

    def _still_employed(self) -> list[int]:
        """Return the proxy's processes that live, and forget the others."""
        for pid, pidfd in tuple(self._employed.items()):
            if select.select([pidfd], [], [], 0)[0]:  # readable: it has ended
                os.close(self._employed.pop(pid))
        return list(self._employed)

    def _is_at_work(self, pid: int) -> bool:
        """Say whether a process is where the proxy's belong; of one that ends just now it does not matter."""
        path = cgroup.of_process(Path(f"/proc/{pid}"))
        return path is None or path.endswith(f"/{NAME}/{WORKERS}")

    def ended(self) -> list[str]:
        """Return the sessions in which nothing runs any more."""
        return [session_id for session_id in self.live() if not _populated(self._path(session_id))]

    def end(self, session_id: str) -> None:
        """Remove a session's cgroup and those below it. Raises KernelError."""
        try:
            _remove_tree(self._path(session_id))
        except OSError as error:
            raise _refused("remove", self._path(session_id), error) from error

    def session_of(self, cgroup_id: int) -> str:
        """Return the session whose cgroup has this id, also when it is gone; empty for another."""
        return self._known.get(cgroup_id, "")

    def session_of_path(self, path: str) -> str:
        """Return the session whose cgroup this path (`/` is the root) is or is below; empty for another."""
        inside = path.removeprefix(f"/{NAME}/{SESSIONS}/")
        return inside.split("/", 1)[0].removesuffix(_SUFFIX) if inside != path else ""

    def session_of_process(self, pid: int) -> str:
        """Return the session in which a process runs; empty where it runs in none, or has ended."""
        return self.session_of_path(cgroup.of_process(Path(f"/proc/{pid}")) or "")

    def session_of_sender(self, packet: Packet) -> str | None:
        """Return the session in which the socket was made that sends such packets; empty where in none, None where nobody can say.

        Raises KernelError.
        """
        cgroup_id = clients.cgroup_of(packet)
        if not cgroup_id or cgroup_id in self._strange:
            return None if cgroup_id is None else ""
        found = self.session_of(cgroup_id) or self.members().get(cgroup_id, "")
        if not found:
            if len(self._strange) >= _REMEMBERED:
                self._strange.clear()
            self._strange.add(cgroup_id)
        return found

    def members(self) -> dict[int, str]:
        """Return the ids of all cgroups of all sessions: cgroup id -> session id."""
        found = {}
        for session_id in self.live():
            for folder, _, _ in os.walk(self._path(session_id)):
                with contextlib.suppress(OSError):
                    found[_id(Path(folder))] = session_id
        return found

    def sockets(self) -> Sockets:
        """Return how nftables finds these cgroups; nowhere where it looks for paths elsewhere."""
        try:
            below = self._root.relative_to(_NFT_ROOT)
        except ValueError:
            return Sockets()
        return Sockets(str(below / SESSIONS), str(below / WORKERS), _SUFFIX, _levels())

    def present(self, session_ids: tuple[str, ...]) -> tuple[str, ...]:
        """Return those that have a cgroup: nft takes no path that is not there."""
        return tuple(s for s in session_ids if self._path(s).is_dir())

    def describe(self) -> str:
        """Say where they are, for `status`."""
        return (
            f"{len(self.live())} sessions below {self.sessions} (cgroup {self.ids.sessions}), "
            f"the proxy exempt as {self.workers} (cgroup {self.ids.workers})"
        )

    def why_not(self) -> str:
        """Say what is not as it was made."""
        for path, number in ((self.sessions, self.ids.sessions), (self.workers, self.ids.workers)):
            try:
                if _id(path) != number:
                    return f"{path} is another cgroup than the one that was made"
            except OSError as error:
                return f"{path}: {error.strerror}"
        strays = [str(pid) for pid in self._still_employed() if not self._is_at_work(pid)]
        return f"not in {self.workers}: the proxy's process {', '.join(strays)}" if strays else ""

    def remove(self) -> None:
        """Remove whatever nothing runs in."""
        remove_empty(self._hierarchy)

    def _path(self, session_id: str) -> Path:
        return self.sessions / f"{session_id}{_SUFFIX}"

    def _remember(self, session_id: str) -> None:
        with contextlib.suppress(OSError):
            self._known[_id(self._path(session_id))] = session_id
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def remove_empty(hierarchy: Path) -> list[str]:
    """Remove every cgroup of ours in which nothing runs; return those that something runs in."""
    kept = []
    for folder, _, _ in os.walk(hierarchy / NAME, topdown=False):
        try:
            Path(folder).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            kept.append("/" + str(Path(folder).relative_to(hierarchy)))
    return kept


def possible() -> str:
    """Say where our cgroups would be, and how nftables would find them. Raises KernelError where none could be made."""
    hierarchy = cgroup.root()
    if not os.access(hierarchy, os.W_OK, effective_ids=True) or os.statvfs(hierarchy).f_flag & os.ST_RDONLY:
        raise KernelError(f"{hierarchy} may not be written", layer=LAYER, remedy=REMEDY)
    if not hierarchy.is_relative_to(_NFT_ROOT):
        return f"{hierarchy / NAME}, which nftables cannot find: it looks below {_NFT_ROOT}"
    how = "by its level" if _levels() == (2,) else "at any level: this is a cgroup namespace"
    return f"{hierarchy / NAME}, found by nftables {how}"


def _levels() -> tuple[int, ...]:
    """Return the levels at which the kernel may count the parents of our cgroups.

    From Linux 6.11 on (and where that was backported) levels count from the namespace's root, else from the real one.
    """
    extra = 0 if _id(Path("/proc/self/ns/cgroup")) == _INITIAL_NAMESPACE else _DEEPEST
    return tuple(range(2, 3 + extra))


def _populated(path: Path) -> bool:
    try:
        return "populated 1" in (path / "cgroup.events").read_text(encoding="ascii")
    except OSError as error:
        return error.errno in NO_FILES  # who cannot look does not say that nothing runs there


def _move(pid: int, path: Path) -> None:
    try:
        (path / "cgroup.procs").write_text(str(pid), encoding="ascii")
    except OSError as error:
        raise _refused(f"move process {pid} into", path, error) from error


def _remove_tree(path: Path) -> None:
    for folder, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(FileNotFoundError):
            Path(folder).rmdir()


def _id(path: Path) -> int:
    return path.stat().st_ino


def _refused(what: str, path: Path, error: OSError) -> KernelError:
    busy = error.errno in {errno.EBUSY, errno.EOPNOTSUPP}
    remedy = "a cgroup v2 hierarchy without threaded cgroups at its root" if busy else REMEDY
    remedy = MORE_FILES if error.errno in NO_FILES else remedy
    return KernelError(f"cannot {what} {path}: {error.strerror}", layer=LAYER, remedy=remedy)
