"""Writes our tables: makes each anew without a gap, as one that nobody else may change where the kernel has such, and deletes it.

A table of Linux 6.9 may belong to the netlink socket that made it, and stay when that is closed: root's `nft flush ruleset`
passes it by, and every other change of it is refused, as long as this process lives. libnftables cannot make one, so tables
are made over its own socket and filled by it afterwards. Older kernels have plain tables; what is taken away is put back then.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable

from agentsh_net.core.errors import KernelError
from agentsh_net.core.nft import batch as nft_batch
from agentsh_net.core.nft import dump as nft_dump
from agentsh_net.kernel.netlink import NETFILTER, RECEIVE
from agentsh_net.kernel.nft.library import LAYER, Library, Transaction
from agentsh_net.kernel.nft.table import Commits, Table
from agentsh_net.kernel.nft.table_owner import process_of
from agentsh_net.kernel.readers import wait_for_readers

# What a kernel answers that knows no such table: Linux before 6.9, before 5.12.
_UNKNOWN = {errno.EOPNOTSUPP, errno.EINVAL}
# Somebody may delete the table between a look and the batch; who does so more often wants to.
_TRIES = 3
TOO_OLD = "this kernel has none that stay when their owner dies (Linux 6.9 has)"
NO_SOCKET = "the socket of libnftables is not to be told"


class Writer:
    """Whoever writes our tables in one network namespace. `plain` says why tables cannot be owned; empty where they can."""

    def __init__(self, library: Library, commits: Commits) -> None:
        self._library = library
        self._commits = commits
        self.plain = "" if library.has_socket else NO_SOCKET

    def run(self, transaction: Transaction | str) -> None:
        """Commit by libnftables. Raises KernelError with nothing changed; OSError."""
        with self._commits.ours():
            self._library.commit(transaction)

    def replace(self, table: Table, bridge: Table, fill: Callable[[str], Transaction | str]) -> None:
        """Make `table` what `fill` returns for its name, whatever it was. Raises KernelError, OSError.

        While one of the two is made the other stands: a packet that found the old hooks before the new ones were there, and
        their rules after the switch, would meet neither. Whichever a predecessor left empty, as it died, is made first.
        """
        found = table.found()
        if found is not None and found.flags & nft_batch.OWNER and not self.owns(found):
            raise _refused(errno.EPERM, table)
        stood = table.stands()
        if stood:
            self._filled(bridge, fill)
            wait_for_readers()
        try:
            self._filled(table, fill)
        finally:
            if table.stands():
                if stood or bridge.stands():
                    wait_for_readers()
                self.remove(bridge)

    def remove(self, table: Table) -> None:
        """Delete a table; one that is not there is no error. Raises KernelError, OSError."""
        number = self._batch(nft_batch.gone(table.family, table.plain_name)) if table.found() else 0
        if number not in {0, errno.ENOENT}:
            raise _refused(number, table)

    def owns(self, found: nft_dump.Table) -> bool:
        """Say whether a table belongs to us."""
        return bool(found.flags & nft_batch.OWNER) and found.owner == self._port()

    def why_plain(self) -> str:
        """Ask the kernel, without changing anything, why tables could not be owned; empty where they can."""
        if not self._library.has_socket:
            return NO_SOCKET
        with self._socket() as connection:
            number = sent(connection, nft_batch.trial(nft_dump.INET, f"agentsh_net_{os.getpid()}"))
        return "" if number == errno.ENOENT else TOO_OLD if number in _UNKNOWN else os.strerror(number)

    def close(self) -> None:
        """Let go: tables that are ours stay, and are nobody's."""
        self._library.close()

    def _filled(self, table: Table, fill: Callable[[str], Transaction | str]) -> None:
        self._anew(table)
        try:
            self.run(fill(table.plain_name))
        except KernelError:
            self.remove(table)  # an empty one is no fence
            raise

    def _anew(self, table: Table) -> None:
        """Make a table that is there and empty, whatever it was."""
        number = self._made(table)
        # It may be something else that is not known: then it is refused again.
        if number in _UNKNOWN and not self.plain:
            self.plain = self.why_plain()
            number = self._made(table)
        if number:
            raise _refused(number, table)

    def _made(self, table: Table) -> int:
        """Do it; return the number of the first error."""
        number = 0
        for _ in range(_TRIES):
            flags, replaces = 0 if self.plain else nft_batch.OWNED, table.found() is not None
            batch = nft_batch.anew(table.family, table.plain_name, flags=flags, replaces=replaces)
            number = self._batch(batch)
            if number != errno.ENOENT:  # else somebody deleted it meanwhile
                break
        return number

    def _batch(self, data: bytes) -> int:
        """Send a batch, by the socket of libnftables where that is known; return the number of its first error."""
        with self._commits.ours(), self._socket() as connection:
            return sent(connection, data)

    def _socket(self) -> socket.socket:
        theirs = self._library.socket()
        if theirs is not None:
            return theirs
        return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETFILTER)

    def _port(self) -> int:
        theirs = self._library.socket()
        if theirs is None:
            return 0
        with theirs:
            port, _groups = theirs.getsockname()
            return int(port)


def sent(connection: socket.socket, data: bytes) -> int:
    """Send a batch and return the number of its first error. The kernel has answered when the call returns."""
    _read(connection)  # what libnftables may have left
    connection.send(data)
    return nft_batch.refusal(_read(connection))


def _read(connection: socket.socket) -> list[bytes]:
    answers = []
    while True:
        try:
            answers.append(connection.recv(RECEIVE, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return answers


def _refused(number: int, table: Table) -> KernelError:
    found = table.found()
    if number == errno.EPERM and found is not None and found.owner:
        pid = process_of(found.owner)
        who = f"process {pid}" if pid else "a process that cannot be seen from here"
        remedy = f"end it first: sudo kill {pid}" if pid else "end the other agentsh-net first"
        return KernelError(f"table {table.name} belongs to {who}", layer=LAYER, remedy=remedy)
    return KernelError(
        f"nftables refused table {table.name}: {os.strerror(number)}",
        layer=LAYER,
        remedy="agentsh-net doctor",
    )
