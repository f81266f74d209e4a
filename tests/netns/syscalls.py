"""System calls that Python's socket module does not let one misuse: any sockaddr, sendmmsg, io_uring. Errors come as their names."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import socket
import struct
from collections.abc import Callable
from ipaddress import ip_address

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_IO_URING_SETUP, _IO_URING_ENTER, _PIDFD_GETFD = 425, 426, 438  # the same on every architecture
_OFF_SQ_RING, _OFF_SQES = 0, 0x10000000
_ENTER_GETEVENTS = 1
SENDMSG, CONNECT, SENDTO, SEND_ZC, SENDMSG_ZC = 9, 16, 26, 47, 48  # IORING_OP_*


def sockaddr(address: str, port: int, family: int | None = None) -> bytes:
    """Return a sockaddr_in or sockaddr_in6 by the address; `family` lies about it."""
    spelt = ip_address(address)
    if spelt.version == 4:
        return (
            struct.pack("=H", socket.AF_INET if family is None else family)
            + struct.pack(">H", port)
            + spelt.packed
            + bytes(8)
        )
    head = struct.pack("=H", socket.AF_INET6 if family is None else family)
    return head + struct.pack(">HI", port, 0) + spelt.packed + bytes(4)


def connect(client: socket.socket, where: bytes) -> str:
    """Call connect(2)."""
    return _said(_libc.connect(client.fileno(), where, len(where)))


def sendto(client: socket.socket, data: bytes, where: bytes, flags: int = 0) -> str:
    """Call sendto(2)."""
    return _said(_libc.sendto(client.fileno(), data, len(data), flags, where, len(where)))


def sendmmsg(client: socket.socket, data: bytes, *where: bytes) -> tuple[int, str]:
    """Call sendmmsg(2) with one message for each address; return how many were sent, and what the next was told."""
    keep, messages = [], b""
    for address in where:
        header, buffers = _msghdr(data, address)
        keep.append(buffers)
        messages += header + bytes(8)
    vector = ctypes.create_string_buffer(messages, len(messages))
    sent = max(0, _libc.sendmmsg(client.fileno(), vector, len(where), 0))
    if sent == len(where):
        return sent, "connected"
    rest = where[sent]
    return sent, sendto(client, data, rest)


def pidfd_getfd(pid: int, fd: int) -> socket.socket:
    """Take a socket out of another process (pidfd_getfd(2))."""
    pidfd = os.pidfd_open(pid)
    try:
        taken = _libc.syscall(
            ctypes.c_long(_PIDFD_GETFD), ctypes.c_int(pidfd), ctypes.c_int(fd), ctypes.c_uint(0)
        )
    finally:
        os.close(pidfd)
    if taken < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    return socket.socket(fileno=taken)


def through_ring(
    opcode: int, client: socket.socket, where: bytes, data: bytes = b"x", *, thread: bool = False
) -> str:
    """Do one operation by io_uring(7); `thread`: the kernel's own thread submits it, not this one (SQPOLL)."""
    header, buffers = _msghdr(data, where)
    keep = [
        buffers,
        payload := ctypes.create_string_buffer(data, len(data)),
        address := ctypes.create_string_buffer(where, len(where)),
        message := ctypes.create_string_buffer(header, len(header)),
    ]
    at, length, offset, address_length = {
        CONNECT: (ctypes.addressof(address), 0, len(where), 0),
        SENDMSG: (ctypes.addressof(message), 1, 0, 0),
        SENDMSG_ZC: (ctypes.addressof(message), 1, 0, 0),
        # The address as `addr2` and `addr_len`: sendto(2).
        SENDTO: (ctypes.addressof(payload), len(data), ctypes.addressof(address), len(where)),
        SEND_ZC: (ctypes.addressof(payload), len(data), ctypes.addressof(address), len(where)),
    }[opcode]
    entry = struct.pack(
        "=BBHiQQIIQ4xH18x", opcode, 0, 0, client.fileno(), offset, at, length, 0, 1, address_length
    )
    result = _ring(entry, thread=thread)
    assert keep
    return "connected" if result >= 0 else errno.errorcode[-result]


def _ring(entry: bytes, *, thread: bool) -> int:
    """Submit one entry to a ring of its own and return its result (include/uapi/linux/io_uring.h)."""
    parameters = bytearray(120)
    # Behind sq_entries and cq_entries: IORING_SETUP_SQPOLL.
    struct.pack_into("=I", parameters, 8, 2 if thread else 0)
    buffer = (ctypes.c_char * len(parameters)).from_buffer(parameters)
    ring = _libc.syscall(ctypes.c_long(_IO_URING_SETUP), ctypes.c_uint(4), buffer)
    if ring < 0:
        raise OSError(ctypes.get_errno(), "io_uring_setup")
    sq = struct.unpack_from("=10I", parameters, 40)  # head tail mask entries flags dropped array
    cq = struct.unpack_from("=10I", parameters, 80)  # head tail mask entries overflow cqes
    size = max(sq[6] + 4 * 4, cq[5] + 16 * 8)
    try:
        rings = mmap.mmap(ring, size, flags=mmap.MAP_SHARED, offset=_OFF_SQ_RING)
        entries = mmap.mmap(ring, 64 * 4, flags=mmap.MAP_SHARED, offset=_OFF_SQES)
        entries[:64] = entry
        struct.pack_into("=I", rings, sq[6], 0)
        struct.pack_into("=I", rings, sq[1], struct.unpack_from("=I", rings, sq[1])[0] + 1)
        flags = _ENTER_GETEVENTS | (2 if thread else 0)  # IORING_ENTER_SQ_WAKEUP
        done = _libc.syscall(ctypes.c_long(_IO_URING_ENTER), ring, 1, 1, flags, None, 0)
        if done < 0:
            raise OSError(ctypes.get_errno(), "io_uring_enter")
        head = struct.unpack_from("=I", rings, cq[0])[0]
        return int(struct.unpack_from("=Qi", rings, cq[5] + 16 * (head & 3))[1])
    finally:
        os.close(ring)


def _msghdr(data: bytes, where: bytes) -> tuple[bytes, list[object]]:
    """Return a struct msghdr and what must live as long as it does."""
    payload, name = (
        ctypes.create_string_buffer(data, len(data)),
        ctypes.create_string_buffer(where, len(where)),
    )
    vector = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(payload), len(data)), 16)
    header = struct.pack(
        "=QI4xQQQQI4x", ctypes.addressof(name), len(where), ctypes.addressof(vector), 1, 0, 0, 0
    )
    return header, [payload, name, vector]


def _said(result: int) -> str:
    return "connected" if result >= 0 else errno.errorcode[ctypes.get_errno()]


def available(action: Callable[[], object]) -> bool:
    """Say whether this kernel has what `action` needs."""
    try:
        action()
    except OSError:
        return False
    return True
