"""Reads the packets that the nftables plane logs (NFLOG over netlink): the events of hosts where eBPF cannot load.

Loses nothing silently: what the kernel could not deliver is counted by the gaps in its sequence numbers.
"""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from agentsh_net.core.abi import netlink, nflog
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.netlink import NETFILTER, RECEIVE, Netlink
from agentsh_net.kernel.nft.library import LAYER
from agentsh_net.kernel.nft.table_owner import process_of

_GROUPS = Path("/proc/thread-self/net/netfilter/nfnetlink_log")  # group, port of the socket, ...
# Some 8,000 records, packed: a burst of them is held whole. In a longer flood whatever is read is this far behind, and what
# was lost is told as late: a larger buffer would hold no more of it, and lag by more.
SOCKET_BUFFER = 2 << 20
# Records per call, and what the last datagram holds beyond them (some 60): a few milliseconds of the caller's work at most, so
# that a flood keeps neither it from a reload nor a proxy worker from the CPU.
_BATCH = 16
_SO_RCVBUFFORCE = 33  # not in Python's socket module


class Nflog:
    """The one reader of a log group in this network namespace. Hears nothing before `listen`."""

    def __init__(self, group: int) -> None:
        """Open the socket, whose descriptor stays the same. Raises KernelError."""
        self._group = group
        self._netlink = Netlink(NETFILTER)
        _grow(self._netlink.socket)
        self._netlink.socket.setblocking(False)
        self._sequence: int | None = None
        self.lost = 0

    def listen(self) -> None:
        """Bind the group. Raises KernelError, with the remedy where somebody else reads it; may be tried again."""
        try:
            self._netlink.ask(nflog.CONFIG, nflog.bind(self._group))
        except OSError as error:
            if error.errno == errno.EBUSY:
                return  # it is this socket's already: packets came in so fast that the answer of the try before was lost
            raise KernelError(
                f"no log group {self._group}: {error.strerror}", layer=LAYER, remedy=_remedy(error)
            ) from error

    def fileno(self) -> int:
        """Return the descriptor that is readable while there are records."""
        return self._netlink.socket.fileno()

    def records(self) -> list[nflog.Logged]:
        """Return what was logged since the last call, a batch at most."""
        found: list[nflog.Logged] = []
        for _ in range(_BATCH):  # datagrams may hold none of ours
            if len(found) >= _BATCH:
                break
            try:
                data = self._netlink.socket.recv(RECEIVE)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise KernelError(f"the log group broke: {error.strerror}", layer=LAYER) from error
                continue  # told once per overflow; the next sequence number says how many
            found += self._read(data)
        return found

    def close(self) -> None:
        """Let the group go."""
        self._netlink.close()

    def _read(self, data: bytes) -> list[nflog.Logged]:
        found = []
        try:
            for message in netlink.messages(data):
                self._count(nflog.sequence(message))
                logged = nflog.parse(message)
                if logged is not None:
                    found.append(logged)
        except KernelError:
            self.lost += 1
        return found

    def _count(self, sequence: int | None) -> None:
        if sequence is None:
            return
        if self._sequence is not None:
            self.lost += (sequence - self._sequence - 1) & 0xFFFFFFFF
        elif sequence:
            self.lost += sequence  # the group's numbers start at 0 when it is bound
        self._sequence = sequence


def reader_of(group: int) -> int | None:
    """Return the process that reads a group in this network namespace, 0 for one that cannot be seen; None where nobody does, or it is not told."""
    try:
        rows = [line.split() for line in _GROUPS.read_text(encoding="ascii").splitlines()]
    except OSError:
        return None
    return next((process_of(int(port)) for number, port, *_ in rows if int(number) == group), None)


def _grow(connection: socket.socket) -> None:
    """Ask for the large buffer; without CAP_NET_ADMIN over the machine, take what the limit allows."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, SOCKET_BUFFER)
    except PermissionError:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER)


def _remedy(error: OSError) -> str:
    # The group belongs to another socket, or we lack CAP_NET_ADMIN.
    if error.errno == errno.EPERM:
        return "end the program that reads it (agentsh-net doctor says which), or set network.nflog_group to a number that no other program reads, and run as root"
    return "a kernel with CONFIG_NETFILTER_NETLINK_LOG: sudo modprobe nfnetlink_log"
