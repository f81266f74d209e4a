"""An overheard answer adds so many addresses for so long, and takes nothing away."""

from __future__ import annotations

from ipaddress import IPv4Address

from agentsh_net.core.configuration.settings import Resolve
from agentsh_net.core.network.hearsay import CAPS, Hearsay, Source

A, B = IPv4Address("203.0.113.1"), IPv4Address("203.0.113.2")
RESOLVER, STRANGER = Source.RESOLVER, Source.STRANGER


def pool(count: int, start: int = 0) -> list[IPv4Address]:
    return [IPv4Address(0x0A000000 + start + n) for n in range(count)]


def test_what_is_new_is_told_once_and_stands_for_ttl_and_grace() -> None:
    book = Hearsay(Resolve(grace=300))
    assert book.heard("evil", [A, B], ttl=60, source=RESOLVER, now=0) == (A, B)
    assert book.heard("evil", [A], ttl=60, source=RESOLVER, now=100) == ()
    book.expire(359)
    assert book.known() == {"evil": {A: RESOLVER, B: RESOLVER}}
    book.expire(360)
    assert book.known() == {"evil": {A: RESOLVER}}
    book.expire(460)
    assert book.known() == {}


def test_a_stranger_does_not_choose_how_long_he_is_believed() -> None:
    book = Hearsay(Resolve(grace=300))
    book.heard("evil", [A], ttl=3600, source=STRANGER, now=0)
    book.expire(300)
    assert book.known() == {}


def test_a_later_shorter_answer_shortens_nothing() -> None:
    book = Hearsay(Resolve(grace=300))
    book.heard("evil", [A], ttl=3600, source=RESOLVER, now=0)
    book.heard("evil", [A], ttl=0, source=STRANGER, now=1)
    book.expire(3899)
    assert book.known() == {"evil": {A: RESOLVER}}


def test_a_flood_of_lies_finds_no_room_and_makes_none() -> None:
    book = Hearsay(Resolve())
    book.heard("evil", [A], ttl=60, source=RESOLVER, now=0)
    taken = book.heard("evil", pool(1000), ttl=60, source=STRANGER, now=0)
    assert len(taken) == CAPS[STRANGER]
    assert book.over == 1000 - CAPS[STRANGER]
    assert A in book.known()["evil"]
    assert len(book.heard("evil", pool(1000, 5000), ttl=60, source=RESOLVER, now=0)) == CAPS[RESOLVER] - 1


def test_the_caps_are_per_name_and_names_out_of_watch_are_forgotten() -> None:
    book = Hearsay(Resolve())
    book.heard("evil", pool(16), ttl=60, source=STRANGER, now=0)
    assert book.heard("worse", [A], ttl=60, source=STRANGER, now=0) == (A,)
    book.keep(["worse"])
    assert book.known() == {"worse": {A: STRANGER}}
