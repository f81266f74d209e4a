"""Row 25 by a client who leaves no room in his socket for what is read of its connection: then nothing can be known, and it is refused."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Callable

import pytest
from attacks.net.test_sni import BAD, EVIL_B, Site
from netns import box, tls
from netns.scene import outcome
from netns.stage import EBPF

pytestmark = pytest.mark.kernel

SO_ATTACH_FILTER, SO_DETACH_FILTER, TCP_FASTOPEN, TCP_FASTOPEN_NO_COOKIE = 26, 27, 23, 34
ELSEWHERE = 9443  # the denied name is refused at every port
# Classic BPF: one instruction that the kernel makes several of, one that it makes one of, and the last.
LARGE, SMALL, LAST = (struct.pack("HBBI", *i) for i in ((0xB1, 0, 0, 0), (0, 0, 0, 0), (6, 0, 0, 0xFFFFFFFF)))


def fill(client: socket.socket) -> None:
    """Attach the largest filter that there is room for (net.core.optmem_max), as anybody may."""
    large = most(lambda n: fits(client, LARGE * n + LAST))
    small = most(lambda n: fits(client, LARGE * large + SMALL * n + LAST))
    assert attach(client, LARGE * large + SMALL * small + LAST)


def most(claim: Callable[[int], bool]) -> int:
    """Return the largest number below 4,000 of which the claim is true, as of all that are smaller."""
    least, beyond = 0, 4000
    while beyond - least > 1:
        middle = (least + beyond) // 2
        least, beyond = (middle, beyond) if claim(middle) else (least, middle)
    return least


def fits(client: socket.socket, code: bytes) -> bool:
    done = attach(client, code)
    if done:
        client.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
    return done


def attach(client: socket.socket, code: bytes) -> bool:
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held))
    return outcome(lambda: client.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)) == "connected"


def at_once(client: socket.socket) -> None:
    """Say the name in the SYN."""
    client.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
    client.sendto(tls.hello(EVIL_B), socket.MSG_FASTOPEN, (BAD, ELSEWHERE))


def afterwards(client: socket.socket) -> None:
    client.connect((BAD, ELSEWHERE))
    client.sendall(tls.hello(EVIL_B))


def said(how: Callable[[socket.socket], None], unknown: str) -> tuple[str, list[tuple[str, str]]]:
    """Return what a server heard that takes what a SYN carries, and what was told."""
    site = Site(EBPF, on_unknown_sni=unknown)
    heard: list[bytes] = []
    with site.there.socket(socket.AF_INET) as server:
        server.bind((BAD, ELSEWHERE))
        server.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 16)
        server.listen()
        server.settimeout(10)

        def talk() -> str:
            with socket.socket() as client:
                fill(client)
                return outcome(lambda: listen_to(client))

        def listen_to(client: socket.socket) -> None:
            how(client)  # kernels differ in whether who asks hears of the refusal
            connection, _ = server.accept()
            connection.settimeout(1)
            heard.append(connection.recv(4096))

        seen = site.see(talk)
    return b"".join(heard).decode("latin-1"), [(str(e.action), e.layer) for e in seen.events]


@pytest.mark.parametrize("unknown", ["tag", "block"])
@pytest.mark.parametrize("how", [at_once, afterwards], ids=["in the SYN", "behind it"])
def test_who_leaves_no_room_for_what_is_read_is_refused(
    how: Callable[[socket.socket], None], unknown: str
) -> None:
    heard, told = box.in_box(said, how, unknown)
    assert heard == ""
    assert told
    assert set(told) == {("block", "ebpf")}
