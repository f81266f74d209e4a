"""Row 25, said twice: whoever answers a HelloRetryRequest (RFC 8446, 4.1.4) with another name is judged by that name too.

OpenSSL takes the second name for the one that is meant, whatever the first was.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

import pytest
from attacks.net.test_sni import BAD, CUT, EVIL, EVIL_B, GOOD, WEB, Seen, Site
from netns import box, tls
from netns.scene import outcome
from netns.stage import EBPF

pytestmark = pytest.mark.kernel

CIPHER_CHANGE = tls.records(b"\1", kind=20)
EARLY = tls.extension(42, b"")


def asking(name: str, *others: bytes) -> bytes:
    """Return a hello without a key share, which a server asks to say again."""
    return tls.records(tls.message(tls.server_name(name.encode()), *others, tls.key_shares(none=True)))


def talk(first: list[bytes], second: list[bytes], *, wait: bool = True) -> Callable[[], str]:
    """Say parts, each in a segment of its own; wait for the server; say others."""

    def speak(client: socket.socket) -> bytes:
        for part in first:
            client.sendall(part)
        if wait:
            assert client.recv(4096)[5:6] == b"\2"  # a ServerHello, which this is one of
        for part in second:
            client.sendall(part)
        return client.recv(1)

    def action() -> str:
        with socket.create_connection((BAD, 443), 2) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return outcome(lambda: speak(client))  # cut at any word, not at the last alone

    return action


ANSWERS = {
    "at once": [CIPHER_CHANGE + tls.hello(EVIL_B)],
    "without a change of cipher": [tls.hello(EVIL_B)],
    "behind two changes of cipher": [CIPHER_CHANGE, CIPHER_CHANGE + tls.hello(EVIL_B)],
    "behind an alert": [tls.records(b"\1\x5a", kind=21) + tls.hello(EVIL_B)],
    "in two segments": tls.pieces(CIPHER_CHANGE + tls.hello(EVIL_B), 40),
    "in two records": [CIPHER_CHANGE + tls.records(tls.hello(EVIL_B)[5:], 60)],
    "by a shorter name than the first": [CIPHER_CHANGE + tls.hello(b"evil.test.")],
}


def answers() -> dict[str, Seen]:
    site = Site(EBPF)
    return {what: site.see(talk([asking(WEB)], parts)) for what, parts in ANSWERS.items()}


def test_a_second_hello_that_names_the_denied_server_is_refused_however_it_is_said() -> None:
    for what, seen in box.in_box(answers).items():
        assert (seen.said, seen.heard) == (CUT, [WEB]), what
        (event,) = seen.events
        assert (event.action, event.layer, event.sni, event.server_id) == ("block", "ebpf", EVIL, "evil"), (
            what
        )
        assert event.pid == seen.owner


def early() -> Seen:
    data = tls.records(bytes(1000), kind=23)
    return Site(EBPF).see(talk([asking(WEB, EARLY) + CIPHER_CHANGE + data, data], [tls.hello(EVIL_B)]))


def test_early_data_in_between_hides_nothing() -> None:
    seen = box.in_box(early)
    assert (seen.said, seen.heard, [e.sni for e in seen.events]) == (CUT, [WEB], [EVIL])


SAID = tls.hello(EVIL_B)[5:]  # without the header of its record
JOINED = tls.records(asking(WEB)[5:] + SAID[:1]) + tls.records(SAID[1:])
UNCLEAR = {
    "both in one segment": [asking(WEB) + tls.hello(EVIL_B)],
    "cut in its header": [asking(WEB), *tls.pieces(tls.hello(EVIL_B), 3)],
    "cut in its length": [asking(WEB), *tls.pieces(tls.hello(EVIL_B), 7)],
    "behind many records": [asking(WEB), CIPHER_CHANGE * 20 + tls.hello(EVIL_B)],
    "behind a record that nobody may send": [asking(WEB), b"\x14\3\3\xff\xff" + tls.hello(EVIL_B)],
    "garbled": [asking(WEB), tls.hello(b"web.test\0")],
    "behind a record of its first byte": [asking(WEB), tls.records(SAID[:1]) + tls.records(SAID[1:])],
    "behind an empty record": [asking(WEB), b"\x16\3\1\0\0" + tls.records(SAID)],
    "begun in the record of the first": tls.pieces(JOINED, len(asking(WEB))),
}


def unclear(unknown: str) -> dict[str, Seen]:
    site = Site(EBPF, on_unknown_sni=unknown)
    return {what: site.see(talk(parts, [], wait=False)) for what, parts in UNCLEAR.items()}


def test_what_no_honest_client_says_is_unknown() -> None:
    for what, seen in box.in_box(unclear, "block").items():
        assert EVIL not in seen.heard, what
        event = seen.events[-1]
        assert (event.action, event.layer, event.server_id) == ("block", "ebpf", "evil"), what
        assert "network.on_unknown_sni is block" in event.reason
    for what, seen in box.in_box(unclear, "tag").items():
        assert ("allow", "block") in [(e.action, e.would) for e in seen.events], what


def honest() -> dict[str, Seen]:
    site = Site(EBPF)
    hello = tls.hello(GOOD.encode())
    return {
        "the same name twice": site.see(talk([asking(GOOD)], [CIPHER_CHANGE + hello])),
        "a name of nobody's twice": site.see(talk([asking(WEB)], [CIPHER_CHANGE, tls.hello(WEB.encode())])),
        "TLS 1.3": site.visit(GOOD),
        "TLS 1.2": older(site),
    }


def older(site: Site) -> Seen:
    site.trust.maximum_version = ssl.TLSVersion.TLSv1_2
    return site.visit(GOOD)


ENCRYPTED = {
    "a message that begins as a hello does": tls.records(b"\1\xff" + bytes(38)),
    "many records": tls.records(bytes(200), 10, kind=23),
}


def encrypted() -> dict[str, Seen]:
    site = Site(EBPF)
    hello = tls.hello(WEB.encode())
    return {what: site.see(talk([hello], [CIPHER_CHANGE + said])) for what, said in ENCRYPTED.items()}


def test_nothing_is_read_into_what_is_encrypted() -> None:
    for what, seen in box.in_box(encrypted).items():
        assert (seen.said, seen.heard, seen.events) == ("connected", [WEB], []), what


def test_who_says_the_same_name_twice_is_answered_and_told_of_once() -> None:
    seen = box.in_box(honest)
    twice = seen["the same name twice"]
    assert (twice.said, twice.heard) == ("connected", [GOOD, GOOD])
    assert [(e.action, e.sni) for e in twice.events] == [("allow", GOOD)]
    nobody = seen["a name of nobody's twice"]
    assert (nobody.said, nobody.heard, nobody.events) == ("connected", [WEB, WEB], [])
    for version in ("TLS 1.3", "TLS 1.2"):
        assert (seen[version].heard, len(seen[version].events)) == ([GOOD], 1)
