"""Who is at the other end of a Unix socket, as the kernel says (unix(7), SO_PEERCRED), and whether it may ask anything.

The socket's mode (0660) is the first fence; this one holds where a mode was changed by hand.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from typing import Final

_SO_PEERGROUPS: Final = 59  # asm-generic/socket.h, Linux 4.13; Python has no name for it
_UCRED: Final = struct.Struct("iII")


@dataclass(frozen=True, slots=True)
class Peer:
    """A process at the moment it connected (or, for a listening socket, when it began to listen)."""

    pid: int
    uid: int
    gid: int
    groups: frozenset[int] = frozenset()

    def may_ask(self, daemon_uid: int, group: int | None) -> bool:
        """Say whether it is root, the daemon's own user, or a member of the group."""
        return self.uid in {0, daemon_uid} or (group is not None and group in {self.gid, *self.groups})


def peer_of(sock: socket.socket) -> Peer:
    """Return the process at the other end. Raises OSError."""
    pid, uid, gid = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return Peer(pid, uid, gid, _groups(sock))


def daemon_uid() -> int:
    """Return the user that asks nobody: the one this process runs as."""
    return os.geteuid()


def _groups(sock: socket.socket) -> frozenset[int]:
    # From the kernel and not from the name service: no look-up that could wait, and the groups it really has.
    try:
        packed = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, 1024)  # Python allows no more: 256 groups
    except OSError:  # more groups than fit, or a kernel before 4.13: only uid and gid count then
        return frozenset()
    return frozenset(gid for (gid,) in struct.iter_unpack("I", packed))
