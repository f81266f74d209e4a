"""The one door to libnftables (python3-nftables): commits transactions, and knows by which netlink socket it does.

It only writes; it never lists, because libnftables would fetch every element of every table on the machine for that.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from agentsh_net.core.errors import KernelError
from agentsh_net.core.nft import text as nft_text
from agentsh_net.kernel.distribution import absent
from agentsh_net.kernel.netlink import NETFILTER

LAYER = "nftables"
REMEDY = "sudo apt install python3-nftables"
_MAX_COMPLAINT = 2000

Transaction = dict[str, Any]


class Library:
    """A context of libnftables in the network namespace in which it was made. Raises KernelError where there is none."""

    def __init__(self) -> None:
        before = _sockets()
        self._library: Any = _opened()
        new = [fd for fd, inode in _sockets().items() if before.get(fd) != inode and _is_netfilter(fd)]
        # Its own structures are no interface. Two that came at once (another thread's) cannot be told apart.
        self._fd = new[0] if len(new) == 1 else None
        if self._fd is not None:
            os.set_inheritable(self._fd, False)  # a child that had it too would own what we own

    def commit(self, transaction: Transaction | str) -> None:
        """Commit. Raises KernelError with nothing changed."""
        text = transaction if isinstance(transaction, str) else nft_text.render(transaction)
        code, _output, complaint = self._library.cmd(text)
        if code != 0:
            told = " ".join(str(complaint).split())[:_MAX_COMPLAINT]
            raise KernelError(
                f"nftables refused the ruleset: {told}", layer=LAYER, remedy="agentsh-net doctor"
            )

    @property
    def has_socket(self) -> bool:
        """Say whether its socket is known."""
        return self._fd is not None

    def socket(self) -> socket.socket | None:
        """Return a duplicate of its socket, which the caller closes; None where it is not known or is not what it was."""
        if self._fd is None or not _is_netfilter(self._fd):
            return None
        return socket.socket(fileno=os.dup(self._fd))

    def close(self) -> None:
        """Give the context back, and its socket with it."""
        self._library, self._fd = None, None


def _opened() -> Any:
    try:
        from nftables import Nftables
    except ImportError as error:  # no module, or another of that name
        reason, remedy = absent("python3-nftables", "nftables")
        raise KernelError(reason, layer=LAYER, remedy=remedy) from error
    try:
        library = Nftables()
    except OSError as error:
        raise KernelError(f"libnftables cannot be loaded: {error}", layer=LAYER, remedy=REMEDY) from error
    return library


def _sockets() -> dict[int, str]:
    """Return descriptor -> inode of this process's sockets; none without /proc."""
    found: dict[int, str] = {}
    try:
        entries = list(Path("/proc/self/fd").iterdir())
    except OSError:
        return found
    for entry in entries:
        try:
            where = os.readlink(entry)  # noqa: PTH115 - Path.readlink makes a path of `socket:[1]`
        except FileNotFoundError:  # the descriptor of the listing itself, or another thread's
            continue
        if where.startswith("socket:"):
            found[int(entry.name)] = where
    return found


def _is_netfilter(fd: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(fd)) as duplicate:
            return duplicate.family == socket.AF_NETLINK and duplicate.proto == NETFILTER
    except OSError:
        return False
