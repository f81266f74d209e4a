"""Who holds a socket, by its cookie: for packets that were refused long after their socket was made and connected.

Sockets of this network namespace only. Whoever cannot be found stays unnamed; nothing waits for a name.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink
from agentsh_net.kernel.process import Processes
from agentsh_net.kernel.sockets.diag import connected

# Looking walks every socket and /proc: at most this often (seconds), and one part in so many of the time, however many
# cookies are asked for.
_EVERY = 0.1
_SHARE = 20
# A flood is of few sockets; the eldest answers are forgotten, and looked for again.
_MOST_KNOWN = 1024


class SocketOwners:
    """Remembers what it found. `pid` 0 stands for nobody."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._known: OrderedDict[int, int] = OrderedDict()
        self._next_look = 0.0

    def by_cookie(self, cookies: Collection[int]) -> dict[int, int]:
        """Return cookie -> pid for those that are known or can be found now."""
        unknown = {c for c in cookies if c and c not in self._known}
        began = time.monotonic()
        if unknown and began >= self._next_look:
            self._look(unknown)
            took = time.monotonic() - began
            self._next_look = began + max(_EVERY, took * _SHARE)
        return {c: self._known[c] for c in cookies if c in self._known}

    def _look(self, cookies: Collection[int]) -> None:
        try:
            with Netlink(SOCK_DIAG) as connection:
                inodes = {s.inode: s.cookie for s in connected(connection) if s.cookie in cookies}
        except (OSError, KernelError):
            return  # no sock_diag here: they stay unnamed
        for inode, pid in self._processes.owners(set(inodes)).items():
            self._known[inodes[inode]] = pid
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
