"""Row 25 by a client who connects one socket again and again until a connection begins with the number of one that was let pass.

The kernel goes on from a socket's last number, and the window of whoever was connected to decides how far: a server of the
attacker's own steers it. It offers no time stamps, by which the kernel would choose anew.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading

import pytest
from attacks.net.test_sni import BAD, EVIL, EVIL_B, WEB, Seen, Site, disconnect, refused
from netns import box, packets, tls
from netns.scene import outcome
from netns.stage import EBPF

pytestmark = pytest.mark.kernel

OWN = "10.99.0.77"  # nobody's: the attacker's server reads and writes frames
SYN, ACK, PUSH = 0x02, 0x10, 0x08
WRAP = 1 << 32
LARGEST, SCALE = 65535, 14  # of windows
# From a connection's number to that of the socket's next one: the SYN, the largest window, and two (tcp_disconnect).
BESIDES = 3


class Steering:
    """A server whose windows lead a socket's next connections to the number `target`. `begun`: those of connections to others."""

    def __init__(self, there: box.Namespace) -> None:
        self.target = self.seen = 0
        self.begun: list[int] = []
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._here = packets.hardware_address(box.Namespace(here), "here")
        self._frames = there.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(packets.IP))
        self._frames.bind(("there", packets.IP))
        address = packets.hardware_address(there, "there").hex(":")
        subprocess.run(["ip", "neigh", "add", OWN, "lladdr", address, "dev", "here"], check=True)
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def left(self) -> int:
        """How far from the target the socket's next connection begins if its window is 0."""
        return (self.target - self.seen - BESIDES) % WRAP

    def visit(self, client: socket.socket) -> None:
        """Connect to it, learn its window, and disconnect."""
        client.connect((OWN, 80))
        client.recv(1)
        disconnect(client)

    def _serve(self) -> None:
        while True:
            packet = self._frames.recv(1 << 16)[14:]
            if packet[9] != socket.IPPROTO_TCP:
                continue
            segment = packet[(packet[0] & 15) * 4 :]
            port, number = struct.unpack_from(">H2xI", segment)
            if segment[13] == SYN and packet[16:20] == socket.inet_aton(OWN):
                self.seen = number
                self._answer(port)
            elif segment[13] == SYN:
                self.begun.append(number)

    def _answer(self, port: int) -> None:
        scaling = struct.pack(">BBBB", 3, 3, SCALE, 1)
        if self.left <= LARGEST:
            first, then = self.left, 0
        else:
            first, then = 0, min((self.left - BESIDES) >> SCALE, LARGEST)
        self._send(port, SYN | ACK, 5000, first, scaling)
        self._send(port, ACK | PUSH, 5001, then, data=b"!")

    def _send(
        self, port: int, flags: int, number: int, window: int, options: bytes = b"", data: bytes = b""
    ) -> None:
        words, expected = 5 + len(options) // 4, (self.seen + 1) % WRAP
        segment = struct.pack(">HHIIBBHHH", 80, port, number, expected, words << 4, flags, window, 0, 0)
        segment += options + data
        ends = socket.inet_aton(OWN) + socket.inet_aton(box.HERE_V4)
        whole = ends + struct.pack(">HH", socket.IPPROTO_TCP, len(segment)) + segment + bytes(len(data) % 2)
        # A sum of ones' complements (RFC 9293, 3.1) is a remainder.
        total = sum(struct.unpack(f">{len(whole) // 2}H", whole)) % 0xFFFF
        segment = segment[:16] + struct.pack(">H", 0xFFFF - total) + segment[18:]
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 1, 0, 64, socket.IPPROTO_TCP, 0) + ends
        head = head[:10] + packets.checksum(head) + head[12:]
        self._frames.send(packets.frame(self._here, packets.IP, head + segment))


def numbered() -> tuple[Seen, list[str | None], list[int]]:
    site = Site(EBPF)
    steering = Steering(site.there)

    def allowed(client: socket.socket) -> None:
        steering.visit(client)  # so that it is known with which number the next one begins
        client.connect((BAD, 443))
        client.sendall(tls.hello(WEB.encode()))
        client.recv(1)
        client.sendall(tls.records(bytes(9), kind=23))  # behind which nothing of it is read any more
        disconnect(client)

    def denied(client: socket.socket) -> None:
        (steering.target,) = steering.begun
        while True:
            steering.visit(client)
            if steering.left <= LARGEST:  # and so it was the last step
                break
        client.connect((BAD, 443))
        client.sendall(tls.hello(EVIL_B))
        client.recv(1)

    with socket.socket() as client:
        client.settimeout(5)
        allowed(client)
        before = list(site.server.heard)
        seen = site.see(lambda: outcome(lambda: denied(client)))
        return seen, before, steering.begun


def test_a_connection_that_begins_as_one_did_that_was_let_pass_is_read_from_its_beginning() -> None:
    seen, before, (first, second) = box.in_box(numbered)
    assert (before, first) == ([WEB], second)
    assert refused(seen, EVIL)
