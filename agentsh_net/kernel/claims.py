"""Whose the planes are: one daemon for each cgroup hierarchy, one for each network namespace, since two would undo each other.

The kernel holds a claim for as long as the process lives, and no file is needed, which another container would not see: a lock
on the hierarchy's root, and an empty table that belongs to one netlink socket and goes with it (Linux 5.12).
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentsh_net.core.errors import KernelError
from agentsh_net.core.nft import batch as nft_batch
from agentsh_net.core.nft import dump as nft_dump
from agentsh_net.core.nft import ruleset as nft_ruleset
from agentsh_net.kernel.netlink import NETFILTER, Netlink
from agentsh_net.kernel.nft.table import Table
from agentsh_net.kernel.nft.table_owner import process_of
from agentsh_net.kernel.nft.writer import sent

TABLE: Final = "agentsh_net_daemon"
# A daemon that was killed this moment still holds what its threads are in the middle of.
_TRIES: Final = 5
_PAUSE: Final = 0.1  # seconds between tries
_LOCKS = Path("/proc/locks")


class TakenError(KernelError):
    """Another daemon that lives enforces there: process `pid`, 0 where it cannot be seen from here."""

    def __init__(self, what: str, pid: int, *, layer: str) -> None:
        self.pid = pid
        who = f"process {pid}" if pid else "in a process that cannot be seen from here (another container)"
        end = f"end it first (sudo kill {pid})" if pid else "end it first"
        super().__init__(
            f"another agentsh-net, {who}, enforces in {what}",
            layer=layer,
            remedy=f"{end}, or run this one with network.mode: off, or in a container of its own",
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that is this process's until `release`, or its end."""

    release: Callable[[], None]


def claim_hierarchy(root: Path) -> Claim | None:
    """Claim the programs and the cgroups of ours at a hierarchy's root; None where a stranger keeps us from it.

    Raises TakenError. Whoever may open the directory may lock it too: only one who could be the daemon is heeded.
    """
    descriptor = _opened(root)
    if descriptor is None:
        return None
    pid = _lock(descriptor)
    if pid is None:
        return Claim(lambda: os.close(descriptor))
    os.close(descriptor)
    if pid and not _may_enforce(pid):
        return None
    raise TakenError(f"the cgroup hierarchy {root}", pid, layer="ebpf")


def claim_namespace() -> Claim | None:
    """Claim the tables of this network namespace; None where the kernel has no such claim. Raises TakenError, KernelError."""
    holding = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETFILTER)
    try:
        made = _claimed(holding)
    except BaseException:
        holding.close()
        raise
    if made:
        return Claim(holding.close)
    holding.close()
    return None


def hierarchy_holder(root: Path) -> int | None:
    """Return the process that claimed a hierarchy, 0 for one that cannot be seen, None where nobody did."""
    descriptor = _opened(root)
    if descriptor is None:
        return None
    try:
        pid = _lock(descriptor, shared=True)
    finally:
        os.close(descriptor)
    return pid if pid is None or not pid or _may_enforce(pid) else None


def namespace_holder() -> int | None:
    """Return the process that claimed this network namespace or owns tables of ours, 0 for one that cannot be seen. Raises KernelError."""
    with Netlink(NETFILTER) as connection:
        for name in (TABLE, nft_ruleset.TABLE, nft_ruleset.BRIDGE):
            try:
                found = Table(connection, nft_dump.INET, name).found()
            except OSError:
                return None  # no nf_tables, or not for us: said where the layer is opened
            if found is not None and found.owner:
                return process_of(found.owner)
    return None


def _claimed(holding: socket.socket) -> bool:
    """Say whether the table is this socket's now. Raises TakenError, KernelError."""
    pid: int | None = None
    for attempt in range(_TRIES):
        pid = namespace_holder()
        if pid is None and _made(holding):
            return True
        if pid is None and (pid := namespace_holder()) is None:  # else it came in between
            return False
        if attempt + 1 < _TRIES:
            time.sleep(_PAUSE)
    raise TakenError("this network namespace", pid or 0, layer="nftables")


def _made(holding: socket.socket) -> bool:
    try:
        with Netlink(NETFILTER) as connection:  # somebody's plain one may be there
            replaces = Table(connection, nft_dump.INET, TABLE).found() is not None
        batch = nft_batch.anew(nft_dump.INET, TABLE, flags=nft_batch.OWNER, replaces=replaces)
        return sent(holding, batch) == 0
    except OSError:
        return False  # no nf_tables, or not for us: said where the layer is opened


def _opened(root: Path) -> int | None:
    try:
        return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None  # said where programs are to be attached


def _lock(descriptor: int, *, shared: bool = False) -> int | None:
    """Lock it and return None, or who has it, 0 where that cannot be seen."""
    for attempt in range(_TRIES):
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno != errno.EWOULDBLOCK:
                raise KernelError(
                    f"the cgroup hierarchy cannot be locked: {error.strerror}", layer="ebpf"
                ) from error
            if attempt + 1 < _TRIES:
                time.sleep(_PAUSE)
        else:
            return None
    return _holder(os.fstat(descriptor))


def _holder(locked: os.stat_result) -> int:
    """Return whoever has an exclusive lock on it (proc_locks(5)); one who could be the daemon before others."""
    place = f"{os.major(locked.st_dev):02x}:{os.minor(locked.st_dev):02x}:{locked.st_ino}"
    found = 0
    with suppress(OSError):
        for line in _LOCKS.read_text(encoding="ascii").splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5] == place:
                found = int(fields[4])
                if _may_enforce(found):
                    return found
    return found


def _may_enforce(pid: int) -> bool:
    """Say whether a process is root's or our own user's, as another daemon would be."""
    try:
        return Path(f"/proc/{pid}").stat().st_uid in {0, os.geteuid()}
    except OSError:
        return False
