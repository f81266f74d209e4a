"""Packets and frames made by hand, and the sockets that let one send them. Checksums are left to whoever would care."""

from __future__ import annotations

import ctypes
import mmap
import socket
import struct
import subprocess
from ipaddress import ip_address

from netns.box import HERE_V4, HERE_V6, Namespace

IP, IPV6, ARP, VLAN, QINQ, LOCAL_EXPERIMENTAL, ALL = 0x0800, 0x86DD, 0x0806, 0x8100, 0x88A8, 0x88B5, 3
UDP, SCTP = 17, 132
_SOL_PACKET, _PACKET_QDISC_BYPASS = 263, 20
_PACKET_TX_RING, _PACKET_VNET_HDR, _TP_STATUS_SEND_REQUEST = 13, 15, 1
_AF_XDP, _SOL_XDP = 44, 283
_SIOCGIFHWADDR = 0x8927


def udp(payload: bytes = b"x", port: int = 443) -> bytes:
    """Return a datagram."""
    return struct.pack(">HHHH", 40000, port, 8 + len(payload), 0) + payload


def v4(
    destination: str, payload: bytes, protocol: int = UDP, *, version: int = 4, options: bytes = b""
) -> bytes:
    """Return an IPv4 packet from here; `version` lies about its version."""
    words = 5 + len(options) // 4
    head = struct.pack(">BBHHHBBH", version << 4 | words, 0, words * 4 + len(payload), 1, 0, 64, protocol, 0)
    return head + ip_address(HERE_V4).packed + ip_address(destination).packed + options + payload


def checksum(head: bytes | bytearray) -> bytes:
    """Return the checksum of an IPv4 header without options, whatever stands in its place."""
    total = sum(struct.unpack(">10H", bytes(head[:10]) + bytes(2) + bytes(head[12:20])))
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)


def v6(destination: str, payload: bytes, first: int = UDP) -> bytes:
    """Return an IPv6 packet from here."""
    head = struct.pack(">IHBB", 6 << 28, len(payload), first, 64)
    return head + ip_address(HERE_V6).packed + ip_address(destination).packed + payload


def frame(to: bytes, kind: int, packet: bytes, *tags: int) -> bytes:
    """Return an Ethernet frame, with a tag for VLAN 0 (a priority tag) of each of these kinds."""
    return (
        to
        + bytes(6)
        + b"".join(struct.pack(">HH", tag, 0) for tag in tags)
        + struct.pack(">H", kind)
        + packet
    )


def send_frame(
    data: bytes, to: bytes, *, kind: int = socket.SOCK_RAW, says: int = 0, bypass: bool = False
) -> None:
    """Send by a packet socket at the device `here`; `says` is the protocol that the kernel is told, `bypass` skips its queue."""
    with socket.socket(socket.AF_PACKET, kind, 0) as sender:
        if bypass:
            sender.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        sender.sendto(data, ("here", says, 0, 0, to))


def send_with_header(data: bytes, to: bytes) -> None:
    """Send as a hypervisor does, behind a header that speaks of offloads (struct virtio_net_hdr)."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
        sender.sendto(bytes(10) + data, ("here", 0, 0, 0, to))


def send_by_ring(data: bytes, to: bytes, *, bypass: bool = False) -> None:
    """Send out of memory shared with the kernel (packet_mmap.rst): all but the frame's first bytes stays there."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        if bypass:
            sender.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        sender.setsockopt(_SOL_PACKET, _PACKET_TX_RING, struct.pack("=IIII", 4096, 1, 2048, 2))
        with mmap.mmap(sender.fileno(), 4096) as ring:
            ring[32 : 32 + len(data)] = data
            ring[:16] = struct.pack("@LII", _TP_STATUS_SEND_REQUEST, len(data), 0)
            sender.sendto(b"", ("here", 0, 0, 0, to))


def hardware_address(namespace: Namespace, device: str) -> bytes:
    """Return the MAC address of a device in a namespace."""
    listed = namespace.call(
        lambda: (
            subprocess.run(
                ["ip", "-o", "link", "show", device], check=True, capture_output=True, text=True
            ).stdout
        )
    )
    return bytes.fromhex(listed.partition("link/ether ")[2][:17].replace(":", ""))


def send_by_xdp(data: bytes) -> None:
    """Send a frame by an AF_XDP socket at the device `here` (include/uapi/linux/if_xdp.h)."""
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int, what: str) -> None:
        if result < 0:
            raise OSError(ctypes.get_errno(), what)

    with socket.socket(_AF_XDP, socket.SOCK_RAW, 0) as sender:
        chunks, size = 16, 2048
        memory = mmap.mmap(-1, chunks * size)
        memory[: len(data)] = data
        where = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        # XDP_UMEM_REG
        sender.setsockopt(_SOL_XDP, 4, struct.pack("=QQIIII", where, chunks * size, size, 0, 0, 0))
        for ring in (5, 6, 3):  # XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_TX_RING
            sender.setsockopt(_SOL_XDP, ring, struct.pack("=I", chunks))
        # XDP_MMAP_OFFSETS: rx, tx, fr, cr
        offsets = struct.unpack("=16Q", sender.getsockopt(_SOL_XDP, 1, 128))
        producer, descriptors = offsets[4], offsets[6]
        ring = mmap.mmap(sender.fileno(), descriptors + chunks * 16, offset=0x80000000)  # XDP_PGOFF_TX_RING
        address = struct.pack("=HHIII", _AF_XDP, 1 << 1, socket.if_nametoindex("here"), 0, 0)  # XDP_COPY
        check(libc.bind(sender.fileno(), address, len(address)), "bind AF_XDP")
        struct.pack_into("=QII", ring, descriptors, 0, len(data), 0)
        struct.pack_into("=I", ring, producer, 1)
        check(libc.sendto(sender.fileno(), None, 0, socket.MSG_DONTWAIT, None, 0), "send by AF_XDP")
