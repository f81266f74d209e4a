"""Row 25 by the kernel's own TLS, which encrypts below the socket: what is judged is what leaves, whatever was written.

Who chooses the key chooses what comes out: here a ClientHello, of which nothing was written. This kernel may have no such TLS:
guests (`./dev vm`) have.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Callable

import pytest
from attacks.net.test_sni import BAD, EVIL, GOOD, Seen, Site, refused
from netns import box, tls
from netns.scene import outcome
from netns.stage import EBPF
from netns.syscalls import available

pytestmark = pytest.mark.kernel

# linux/tcp.h, linux/tls.h
TCP_ULP, SOL_TLS, TLS_TX, TLS_SET_RECORD_TYPE = 31, 282, 1, 1
TLS_1_2, AES_GCM_128, HANDSHAKE = 0x0303, 51, 22
KEY, SALT, NONCE, SEAL = bytes(range(16)), b"salt", 8, 16


def written_for(wanted: bytes, nonce: bytes) -> bytes:
    """Return what has to be written that `wanted` leaves: in counter mode (NIST SP 800-38D) either becomes the other."""
    counter = (SALT + nonce + struct.pack(">I", 2)).hex()
    cipher = ["openssl", "enc", "-aes-128-ctr", "-K", KEY.hex(), "-iv", counter]
    return subprocess.run(cipher, input=wanted, capture_output=True, check=True).stdout


def encrypted(name: str) -> Callable[[], str]:
    """Say the name by a record that begins with its nonce and ends with its seal, where a hello has padding."""
    hello = tls.message(tls.server_name(name.encode()), tls.key_shares(), tls.extension(21, bytes(SEAL)))
    nonce = hello[:NONCE]
    keys = struct.pack("=HH8s16s4s8x", TLS_1_2, AES_GCM_128, nonce, KEY, SALT)
    written = written_for(hello[NONCE:-SEAL], nonce)

    def talk() -> str:
        with socket.create_connection((BAD, 443), 2) as client:
            client.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
            client.setsockopt(SOL_TLS, TLS_TX, keys)
            client.sendmsg([written], [(SOL_TLS, TLS_SET_RECORD_TYPE, bytes([HANDSHAKE]))])
            said = outcome(lambda: client.recv(1))
            return "answered" if said == "connected" else said

    return talk


def there_is_one() -> bool:
    """Say whether this kernel has TLS of its own; a socket takes to it when it is connected."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        return available(lambda: client.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls"))


def said() -> dict[str, Seen] | None:
    if not there_is_one():
        return None
    site = Site(EBPF)
    return {name: site.see(encrypted(name)) for name in (EVIL, GOOD)}


def test_what_leaves_is_judged_and_not_what_was_written() -> None:
    seen = box.in_box(said)
    if seen is None:
        pytest.skip(f"this kernel ({os.uname().release}) has no TLS of its own: the attack cannot be made")
    assert refused(seen[EVIL])
    assert (seen[GOOD].said, seen[GOOD].heard) == ("answered", [GOOD])
