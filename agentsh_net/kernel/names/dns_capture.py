"""Sees the DNS answers that come to this machine, whoever asked: a packet socket (packet(7)) behind a filter for port 53.

Why a packet socket, and neither a log rule of nftables nor an eBPF program: it belongs to neither plane, so that it serves where
only one of them can be had; it sees loopback and what is forwarded to containers; it changes nothing about a packet; and its
filter costs every other packet some 60 ns. What it cannot see: DNS over TLS, HTTPS or another port; and of a fragmented answer it
sees the first part (to have the kernel put IPv4 together costs every packet on the machine another 100 ns), which has us ask
ourselves. It holds no packet up: that is the stub's business.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from typing import NamedTuple

from agentsh_net.core.errors import KernelError

LAYER = "dns"
_REMEDY = "run as root, or with CAP_NET_RAW; or set network.resolve.snoop_dns: false"
# About 2,000 answers by the kernel's accounting: a second's worth while the reader applies a plan.
BUFFER = 4 << 20
# Answers a call: of the costliest that can be made (7 ms each) a tenth of a second, then the caller does its other work.
BATCH = 16
_FRAME = 1 << 16  # the largest IP packet; what a device put together beyond that is cut

_ETH_P_ALL = 0x0003
_SOL_PACKET, _STATISTICS, _IGNORE_OUTGOING = 263, 6, 23
_SO_TIMESTAMPNS, _SO_ATTACH_FILTER, _SO_RCVBUFFORCE = 35, 26, 33

# Classic BPF (linux/filter.h). Offsets are from the IP header, because the socket is SOCK_DGRAM.
_LOAD, _BYTE, _HALF, _INDIRECT, _HEADER_LENGTH = 0x28, 0x30, 0x28, 0x48, 0xB1
_EQUAL, _ANY, _RETURN = 0x15, 0x45, 0x06
_PROTOCOL = 0xFFFFF000  # SKF_AD_OFF + SKF_AD_PROTOCOL
_FILTER = (
    (_HALF, 0, 0, _PROTOCOL),
    (_EQUAL, 0, 8, 0x0800),  # 1: IPv4, or go on at 10
    (_BYTE, 0, 0, 9),
    (_EQUAL, 1, 0, 17),
    (_EQUAL, 0, 15, 6),  # 4: TCP, or refuse
    (_HALF, 0, 0, 6),
    (_ANY, 13, 0, 0x1FFF),  # 6: not the first fragment: refuse
    (_HEADER_LENGTH, 0, 0, 0),
    (_INDIRECT, 0, 0, 0),
    (_EQUAL, 9, 10, 53),  # 9: the source port
    (_EQUAL, 0, 9, 0x86DD),  # 10: IPv6, or refuse
    (_BYTE, 0, 0, 6),
    (_EQUAL, 4, 0, 17),
    (_EQUAL, 3, 0, 6),
    (_EQUAL, 0, 5, 44),  # 14: the first fragment, or refuse
    (_HALF, 0, 0, 48),
    (_EQUAL, 2, 3, 53),
    (_HALF, 0, 0, 40),  # 17: the source port
    (_EQUAL, 0, 1, 53),
    (_RETURN, 0, 0, 0xFFFFFFFF),
    (_RETURN, 0, 0, 0),
)


class Captured(NamedTuple):
    """A packet from its IP header on, and when it came (wall-clock nanoseconds, by the kernel)."""

    time_ns: int
    data: bytes


class DnsCapture:
    """The socket, in the network namespace of its maker."""

    def __init__(self) -> None:
        """Begin to listen. Raises KernelError, with the remedy."""
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, 0)
        except OSError as error:
            raise KernelError(f"no packet socket: {error.strerror}", layer=LAYER, remedy=_REMEDY) from error
        try:
            self._prepare()
        except OSError as error:
            self._socket.close()
            raise KernelError(f"no DNS capture: {error.strerror}", layer=LAYER, remedy=_REMEDY) from error
        self.seen = 0
        self.lost = 0

    def fileno(self) -> int:
        """Return the descriptor that is readable while there are answers."""
        return self._socket.fileno()

    def packets(self) -> list[Captured]:
        """Return what came since the last call, a batch at most. Raises KernelError."""
        found: list[Captured] = []
        for _ in range(BATCH):
            try:
                data, ancillary, _flags, _from = self._socket.recvmsg(_FRAME, 64)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.ENETDOWN:  # a device went; the others are listened at
                    continue
                raise KernelError(f"the DNS capture broke: {error.strerror}", layer=LAYER) from error
            found.append(Captured(_stamp(ancillary), data))
        self.seen += len(found)
        return found

    def count_lost(self) -> int:
        """Return how many answers the kernel dropped because nobody read them in time. Raises KernelError."""
        try:
            statistics = self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 8)
        except OSError as error:
            raise KernelError(f"the DNS capture is gone: {error.strerror}", layer=LAYER) from error
        self.lost += int(struct.unpack("=II", statistics)[1])  # asking sets the kernel's count back to 0
        return self.lost

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    def _prepare(self) -> None:
        code = b"".join(struct.pack("=HBBI", *instruction) for instruction in _FILTER)
        held = ctypes.create_string_buffer(code, len(code))
        program = struct.pack(
            "HxxxxxxP" if struct.calcsize("P") == 8 else "HxxP", len(_FILTER), ctypes.addressof(held)
        )
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER)
        except PermissionError:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        # Linux 4.20: sending stays as quick as it was.
        self._socket.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        self._socket.setblocking(False)
        _bind(self._socket)


def _bind(packets: socket.socket) -> None:
    """Bind to every device that there is and will be, which Python's own bind() cannot say. Raises OSError."""
    address = struct.pack("=HHiHBB8s", socket.AF_PACKET, socket.htons(_ETH_P_ALL), 0, 0, 0, 0, b"")
    if ctypes.CDLL(None, use_errno=True).bind(packets.fileno(), address, len(address)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _stamp(ancillary: list[tuple[int, int, bytes]]) -> int:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) >= 16:
            seconds, nanoseconds = struct.unpack("=qq", data[:16])
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return 0
