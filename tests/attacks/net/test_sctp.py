"""Row 13 with real sockets: an association, however it is begun, and every path that it comes to have.

No connect hook sees SCTP, and the kernel itself opens paths to whatever addresses the other end names: both planes stop the packets.
A kernel without such sockets skips all of it (then `test_raw.py` forges a first packet): guests (`./dev vm`) have them.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from netns import box
from netns.scene import at, listening, opened, outcome, plan
from netns.stage import BAD, BAD6, NOT_HERE, OTHER, PLANES, Row, Seen, Stage, play
from netns.syscalls import sockaddr
from netns.tap import Tap

pytestmark = pytest.mark.kernel

V4, V6, ONE, MANY, SCTP = socket.AF_INET, socket.AF_INET6, socket.SOCK_STREAM, socket.SOCK_SEQPACKET, 132
# linux/sctp.h: options, and a control message
RTO, IDS, BIND_MORE, PEEL_OFF, CONNECT_SEVERAL, DESTINATION = 0, 29, 100, 102, 110, 7
QUICK = struct.pack("=iIII", 0, 100, 200, 100)  # first, greatest and least wait for an answer, in ms
NOTHING_LATER = socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0)
SETTINGS = Path("/proc/sys/net/sctp")
IN_UDP = 9899  # RFC 6951
NOBODY = "10.99.0.77"

LAYERS = ("ebpf", "nftables")
# A dropped first packet is tried again until the attacker gives up, or its kernel does.
SAYS = {layer: {"EPERM", "ETIMEDOUT", "ECONNREFUSED", "EINPROGRESS"} for layer in LAYERS}
# What the kernel sends by itself has nobody to be told.
UNTOLD = {layer: {"connected"} for layer in LAYERS}


@contextmanager
def sctp(family: int = V4, kind: int = ONE) -> Iterator[socket.socket]:
    """Yield a socket that is quick to try again, and that leaves nothing behind."""
    with socket.socket(family, kind, SCTP) as made:
        made.settimeout(1)
        made.setsockopt(SCTP, RTO, QUICK)
        made.setsockopt(*NOTHING_LATER)
        yield made


@contextmanager
def serving(stage: Stage, *addresses: str) -> Iterator[socket.socket]:
    """A server that is at all these addresses, and says so to whoever comes."""
    with listening(stage.there, addresses[0], 443, SCTP) as server:
        for address in addresses[1:]:
            server.setsockopt(SCTP, BIND_MORE, sockaddr(address, 443))
        yield server


def refused(stage: Stage) -> None:
    """Wait until a plane refuses something: the kernel sends in its own time."""
    before = stage._refusals()[0]
    box.await_that(lambda: stage._refusals()[0] > before)


def begun(family: int, address: str) -> Callable[[Stage], str]:
    def attack(stage: Stage) -> str:
        with sctp(family) as client:
            return outcome(lambda: client.connect((address, 443)))

    return attack


def implied(stage: Stage) -> str:
    """Sent without a connect: the association begins with the first message."""
    with sctp(V4, MANY) as client:
        return outcome(lambda: client.sendto(b"x", (BAD, 443)))


def several(stage: Stage) -> str:
    """One host by several addresses (sctp_connectx(3)), which are tried one after the other."""
    with sctp() as client:
        client.setblocking(False)
        said = outcome(
            lambda: client.setsockopt(SCTP, CONNECT_SEVERAL, sockaddr(NOBODY, 443) + sockaddr(BAD, 443))
        )
        refused(stage)
        return said


def beside(stage: Stage) -> str:
    """The denied address beside a message that is for somebody else (SCTP_DSTADDRV4)."""
    with sctp(V4, MANY) as client:
        client.setblocking(False)
        more = [(SCTP, DESTINATION, socket.inet_aton(BAD))]
        said = outcome(lambda: client.sendmsg([b"x"], more, 0, (NOBODY, 443)))
        refused(stage)
        return said


def second_path(kind: int) -> Callable[[Stage], str]:
    """An allowed server says that it is at the denied address too, and the kernel looks whether that is so."""

    def attack(stage: Stage) -> str:
        with serving(stage, OTHER, BAD), sctp(V4, kind) as client:
            said = outcome(lambda: client.connect((OTHER, 443)))
            refused(stage)
            return said

    return attack


def peeled_off(stage: Stage) -> str:
    """The same from a socket that was made of another's association."""
    with serving(stage, OTHER, BAD), sctp(V4, MANY) as client:
        client.connect((OTHER, 443))
        _, number = struct.unpack("=Ii", client.getsockopt(SCTP, IDS, 8))
        with peel_off(client, number):
            refused(stage)
            return "connected"


def peel_off(client: socket.socket, number: int) -> socket.socket:
    """Call sctp_peeloff(3)."""
    libc = ctypes.CDLL(None, use_errno=True)
    asked, length = ctypes.create_string_buffer(struct.pack("=ii", number, 0), 8), ctypes.c_uint(8)
    made = libc.getsockopt(client.fileno(), SCTP, PEEL_OFF, asked, ctypes.byref(length))
    if made < 0:
        raise OSError(ctypes.get_errno(), "sctp_peeloff")
    own = socket.socket(fileno=made)
    own.setsockopt(*NOTHING_LATER)
    return own


def added_later(stage: Stage) -> str:
    """The server takes on the denied address when everything stands (ASCONF, RFC 5061)."""

    def willing() -> None:
        for name in ("addip_enable", "addip_noauth_enable"):
            (SETTINGS / name).write_text("1")

    willing()
    stage.there.call(willing)
    with serving(stage, OTHER) as server, sctp() as client:
        said = outcome(lambda: client.connect((OTHER, 443)))
        server.setsockopt(SCTP, BIND_MORE, sockaddr(BAD, 443))
        refused(stage)
        return said


def in_datagrams(stage: Stage) -> str:
    """Wrapped in UDP by the kernel (RFC 6951)."""

    def wrapping(port: int) -> None:
        for name in ("udp_port", "encap_port"):
            (SETTINGS / name).write_text(str(port))

    with sctp():
        pass  # with its first socket the settings come
    wrapping(IN_UDP)
    try:
        return begun(V4, BAD)(stage)
    finally:
        wrapping(0)


def if_any(attack: Callable[[Stage], str]) -> Callable[[Stage], str]:
    """Say that this kernel has no such sockets, where that is so."""

    def mounted(stage: Stage) -> str:
        try:
            socket.socket(V4, ONE, SCTP).close()
        except OSError:
            return NOT_HERE
        return attack(stage)

    return mounted


association = if_any(begun(V4, BAD))


def row(attack: Callable[[Stage], str], says: dict[str, set[str]], **more: object) -> Row:
    return Row(if_any(attack), **{"protocol": "sctp", "unseen": True, **more}, says=says)


ROWS = {
    "one to one": row(begun(V4, BAD), SAYS),
    "one to one, v6": row(begun(V6, BAD6), SAYS, address=BAD6),
    "one to one, mapped": row(begun(V6, f"::ffff:{BAD}"), SAYS),
    "one to many, begun by a message": row(implied, UNTOLD),
    "several addresses": row(several, SAYS),
    "an address beside the message": row(beside, {layer: {"connected", "EAGAIN"} for layer in LAYERS}),
    "second path of an allowed server": row(second_path(ONE), UNTOLD),
    "second path, one to many": row(second_path(MANY), UNTOLD),
    "second path of an association that was peeled off": row(peeled_off, UNTOLD),
    "second path that is added later": row(added_later, UNTOLD),
    "in datagrams": row(in_datagrams, SAYS, protocol="udp", port=IN_UDP),
}


@pytest.fixture(scope="module", params=PLANES, ids="+".join)
def played(request: pytest.FixtureRequest) -> tuple[tuple[str, ...], dict[str, Seen]]:
    return request.param, play(ROWS, request.param)


@pytest.mark.parametrize("name", ROWS)
def test_no_association_has_a_path_to_the_denied_server(
    played: tuple[tuple[str, ...], dict[str, Seen]], name: str
) -> None:
    layers, seen = played
    ROWS[name].check_if_here(seen[name], layers)


def denied_meanwhile(layers: tuple[str, ...]) -> tuple[bytes, str, int] | None:
    """Have an association, deny its other end, and send more."""
    there = box.there()
    tap = Tap(there, (BAD,), marker=OTHER)
    try:
        server = listening(there, BAD, 443, SCTP)
    except OSError:
        return None
    with server, sctp() as client:
        client.connect((BAD, 443))
        client.send(b"before")
        peer, _ = server.accept()
        heard = peer.recv(64)
        _kernel = opened(plan(deny=(at(BAD),)), *layers)
        # What was acknowledged late is not of afterwards.
        box.await_that(lambda: tap.arrived() == 0)
        client.send(b"after")
        arrived = tap.arrived()
        peer.setblocking(False)
        return heard, outcome(lambda: peer.recv(64)), arrived


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_an_association_from_before_the_denial_carries_nothing_more(layers: tuple[str, ...]) -> None:
    """Row 15's kin: nobody can end it from outside (SOCK_DESTROY knows no SCTP), and nothing leaves by it."""
    seen = box.in_box(denied_meanwhile, layers)
    if seen is None:
        pytest.skip(f"this kernel ({os.uname().release}) has no such socket: the attack cannot be made")
    assert seen == (b"before", "EAGAIN", 0)
