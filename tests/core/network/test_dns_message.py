"""A DNS answer is read as an independent reader reads it; whatever bytes come, reading ends soon, with a value or ProtocolError."""

from __future__ import annotations

from ipaddress import ip_address
from itertools import pairwise
from time import perf_counter

import dns.exception
import dns.message
import dns.rdatatype
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.network.dns_message import MAX_RECORDS, Message, ascribe, mentioned, parse, wire_name

EVIL = wire_name("evil.test")
LABELS = st.text("abcXYZ019-", min_size=1, max_size=20)
NAMES = st.lists(LABELS, min_size=1, max_size=6).map(".".join)


def answer(question: str, *rrsets: tuple[str, int, str, list[str]], edns: bool = False) -> bytes:
    query = dns.message.make_query(question, "A", use_edns=0 if edns else -1)
    made = dns.message.make_response(query)
    made.answer += [
        dns.rrset.from_text(f"{name}.", ttl, "IN", kind, *found) for name, ttl, kind, found in rrsets
    ]
    return made.to_wire()


def said(message: Message, *watched: str) -> dict[bytes, tuple[list[str], int]]:
    found = ascribe(message, {wire_name(name) for name in watched})
    return {name: (sorted(str(a) for a in given.addresses), given.ttl) for name, given in found.items()}


def test_all_addresses_of_the_question_are_read_with_the_smallest_ttl() -> None:
    data = answer(
        "EVIL.test",
        ("evil.TEST", 60, "A", ["10.0.0.1", "10.0.0.2"]),
        ("evil.test", 30, "AAAA", ["2001:db8::1"]),
        edns=True,
    )
    message = parse(data)
    assert message.whole
    assert said(message, "evil.test") == {EVIL: (["10.0.0.1", "10.0.0.2", "2001:db8::1"], 30)}
    assert said(message, "other.test") == {}


def test_addresses_are_those_of_every_alias_on_the_way() -> None:
    data = answer(
        "www.innocent.test",
        ("www.innocent.test", 50, "CNAME", ["evil.test."]), ("evil.test", 300, "CNAME", ["edge.cdn.test."]),
        ("edge.cdn.test", 20, "A", ["10.0.0.1"]),
    )  # fmt: skip
    message = parse(data)
    watched = ("evil.test", "www.innocent.test", "cdn.test")
    assert said(message, *watched) == {
        EVIL: (["10.0.0.1"], 20),
        wire_name("www.innocent.test"): (["10.0.0.1"], 20),
    }


def test_an_address_beside_the_chain_is_the_questions_only() -> None:
    data = answer("evil.test", ("other.test", 60, "A", ["10.0.0.9"]))
    assert said(parse(data), "evil.test", "other.test") == {EVIL: (["10.0.0.9"], 60)}


def test_the_address_hints_of_https_records_are_addresses() -> None:
    data = answer(
        "evil.test",
        ("evil.test", 60, "HTTPS", ["1 . alpn=h2 ipv4hint=10.0.0.1,10.0.0.2 ipv6hint=2001:db8::1"]),
    )
    assert said(parse(data), "evil.test") == {EVIL: (["10.0.0.1", "10.0.0.2", "2001:db8::1"], 60)}
    alias = answer(
        "evil.test", ("evil.test", 60, "HTTPS", ["0 edge.test."]), ("edge.test", 5, "A", ["10.0.0.1"])
    )
    assert said(parse(alias), "evil.test") == {EVIL: (["10.0.0.1"], 5)}


def test_a_loop_of_aliases_ends() -> None:
    data = answer("evil.test", ("evil.test", 1, "CNAME", ["b.test."]), ("b.test", 1, "CNAME", ["evil.test."]))
    assert said(parse(data), "evil.test", "b.test") == {}
    assert mentioned(parse(data), {EVIL, wire_name("z.test")}) == {EVIL}


def test_a_label_with_a_dot_in_it_is_not_two_labels() -> None:
    data = answer("evil.test", ("evil.test", 60, "A", ["10.0.0.1"])).replace(
        b"\x04evil\x04test\0", b"\x09evil.test\0"
    )
    assert said(parse(data), "evil.test") == {}


def test_what_was_cut_is_told_and_what_is_there_is_read() -> None:
    data = answer(
        "evil.test", ("evil.test", 60, "A", ["10.0.0.1"]), ("evil.test", 60, "AAAA", ["2001:db8::1"])
    )
    assert parse(data[:-3]).whole is False
    assert said(parse(data[:-3]), "evil.test") == {EVIL: (["10.0.0.1"], 60)}
    truncated = bytearray(data)
    truncated[2] |= 0x02  # TC
    assert parse(bytes(truncated)).whole is False


def test_more_records_than_are_read_are_told_as_a_cut() -> None:
    many = [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(MAX_RECORDS + 1)]
    message = parse(answer("evil.test", ("evil.test", 60, "A", many)))
    assert (message.whole, len(message.records)) == (False, MAX_RECORDS)


@pytest.mark.parametrize(
    "data",
    [b"", bytes(11), bytes(12), answer("evil.test")[:14], dns.message.make_query("evil.test", "A").to_wire()],
    ids=["empty", "short", "query flag", "no question", "a query"],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(data)


@pytest.mark.parametrize("name", ["", "a..b", "x" * 64 + ".test", ".".join(["a" * 60] * 5), "\xe9.test"])
def test_what_is_no_name_has_no_wire_form(name: str) -> None:
    with pytest.raises(ProtocolError):
        wire_name(name)


def test_names_that_point_in_circles_cost_a_bounded_time() -> None:
    owners = b"\xc0\x0c" * 2
    circle = bytes.fromhex("0001 8180 0001 0400 0000 0000") + b"\xc0\x0c" + b"\0\1\0\1" + owners * 500
    deep = bytes.fromhex("0001 8180 0001 ffff 0000 0000") + b"\x01a" * 126 + b"\0" + b"\0\1\0\1"
    deep += (b"\xc0\x0c" + b"\0\1\0\1" + bytes(4) + b"\0\4" + bytes(4)) * 4000
    began = perf_counter()
    with pytest.raises(ProtocolError):
        parse(circle)
    assert parse(deep).whole is False
    assert perf_counter() - began < 0.5


@given(
    question=NAMES,
    aliases=st.lists(NAMES, max_size=3),
    addresses=st.lists(st.ip_addresses(), max_size=8),
    edns=st.booleans(),
)
def test_it_reads_what_dnspython_writes(
    question: str, aliases: list[str], addresses: list[object], edns: bool
) -> None:
    chain = [question, *(alias for alias in dict.fromkeys(aliases) if alias.lower() != question.lower())]
    chain = list({name.lower(): name for name in chain}.values())
    rrsets = [(a, 60, "CNAME", [f"{b}."]) for a, b in pairwise(chain)]
    for kind, version in (("A", 4), ("AAAA", 6)):
        if found := [str(a) for a in addresses if a.version == version]:
            rrsets.append((chain[-1], 60, kind, found))
    message = parse(answer(question, *rrsets, edns=edns))
    assert message.whole
    assert message.question == wire_name(question)
    expected = {ip_address(a) for a in map(str, addresses)}
    for name in chain:
        assert {*ascribe(message, {wire_name(name)}).get(wire_name(name), _NOTHING).addresses} == expected


class _NOTHING:
    addresses = ()


@given(st.integers(0, 3), st.binary(max_size=600))
def test_any_bytes_are_read_or_refused(answers: int, data: bytes) -> None:
    asked = b"\1a\4test\0\0\1\0\1"
    try:
        message = parse(b"\0\1\x81\x80\0\1" + answers.to_bytes(2, "big") + bytes(4) + asked + data)
    except ProtocolError:
        assert answers
        return
    assert len(message.records) <= MAX_RECORDS + 64 * 128
    ascribe(message, {message.question})


@given(st.data())
def test_a_damaged_answer_gives_no_address_that_an_independent_reader_does_not_see(
    data: st.DataObject,
) -> None:
    good = bytearray(
        answer(
            "evil.test",
            ("evil.test", 9, "CNAME", ["edge.test."]),
            ("edge.test", 60, "A", ["10.0.0.1", "10.0.0.2"]),
        )
    )
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(12, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        theirs = dns.message.from_wire(bytes(good), ignore_trailing=True)
    except (dns.exception.DNSException, ValueError, UnicodeError):
        return  # a stricter reader; what matters is that ours does not see other things where both read
    try:
        ours = parse(bytes(good))
    except ProtocolError:
        return
    if any(rrset.rdtype in {64, 65} for rrset in theirs.answer):
        return
    seen = {r.to_text() for rrset in theirs.answer if rrset.rdtype in {1, 28} for r in rrset}
    assert {str(r.address) for r in ours.records} <= seen or not ours.whole
