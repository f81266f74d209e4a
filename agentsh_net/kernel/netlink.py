"""The one door to netlink sockets: requests with their answers, and the errors mapped to KernelError.

What the messages mean is core's business (core.abi).
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from agentsh_net.core.abi import netlink
from agentsh_net.core.errors import KernelError

ROUTE = 0
SOCK_DIAG = 4
NETFILTER = 12
# The kernel fills dump datagrams up to 32 KiB (netlink(7)); a smaller buffer would cut them.
RECEIVE = 1 << 15
# A kernel answers at once; whoever waits longer waits for nothing.
TIMEOUT = 5.0


REMEDY = "allow AF_NETLINK here (systemd: RestrictAddressFamilies=), on a kernel with nfnetlink and sock_diag"


class Netlink:
    """A netlink socket of the network namespace in which it was made."""

    def __init__(self, protocol: int) -> None:
        """Open the socket. Raises KernelError where the kernel lacks the protocol."""
        try:
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
            self.socket.bind((0, 0))
        except OSError as error:
            raise KernelError(
                f"no netlink socket of protocol {protocol}: {error.strerror}", remedy=REMEDY
            ) from error
        self.socket.settimeout(TIMEOUT)
        self._sequence = 0

    def ask(self, kind: int, body: bytes, *, flags: int = 0) -> list[netlink.Message]:
        """Send a request and return its answers up to the acknowledgement or the end of the dump. Raises OSError."""
        return list(self._answers(kind, body, flags=flags))

    def _answers(self, kind: int, body: bytes, *, flags: int) -> Iterator[netlink.Message]:
        self._sequence += 1
        dump = flags & netlink.DUMP == netlink.DUMP
        flags |= netlink.REQUEST | (0 if dump else netlink.ACK)
        self.socket.send(netlink.message(kind, flags, self._sequence, body))
        while True:
            for message in netlink.messages(self.socket.recv(RECEIVE)):
                if message.sequence != self._sequence:
                    continue  # the rest of an answer that nobody waited for
                if message.type == netlink.DONE:
                    return
                number = message.errno
                if number:
                    raise OSError(number, os.strerror(number))
                if number == 0:
                    return
                yield message

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def missing(error: OSError) -> bool:
    """Say whether an error only means that what was asked for is not there."""
    return error.errno in {errno.ENOENT, errno.ESRCH}
