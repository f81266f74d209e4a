"""Which process owns a table, or reads a log group: the one that holds the netlink socket to which it belongs."""

from __future__ import annotations

import os
from pathlib import Path

from agentsh_net.kernel.netlink import NETFILTER

_SOCKETS = Path("/proc/thread-self/net/netlink")  # those of this thread's network namespace
_PROTOCOL, _PORT, _INODE = 1, 2, 9  # columns


def process_of(port: int) -> int:
    """Return the process that holds the netfilter socket of this port, 0 where none can be seen."""
    inode = _inode(port)
    if not inode:
        return 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and _holds(folder / "fd", f"socket:[{inode}]"):
            return int(folder.name)
    return 0


def _inode(port: int) -> int:
    try:
        lines = _SOCKETS.read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return 0
    for fields in map(str.split, lines):
        if (int(fields[_PROTOCOL]), int(fields[_PORT])) == (NETFILTER, port):
            return int(fields[_INODE])
    return 0


def _holds(folder: Path, link: str) -> bool:
    try:
        return any(os.readlink(entry) == link for entry in folder.iterdir())  # noqa: PTH115 - it is no path
    except OSError:  # it ended, or is somebody else's
        return False
