"""One host has one canonical address, answers cannot teach us our own, and a DNS failure never makes us forget."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration.settings import Resolve
from agentsh_net.core.network import addresses
from agentsh_net.core.network.addresses import Book, canonical, home, literal, plain, refusal

A = ("mcp.example.com", "A")
AAAA = ("mcp.example.com", "AAAA")
FIRST, SECOND, V6 = ip_address("203.0.113.1"), ip_address("203.0.113.2"), ip_address("2001:db8::1")


def book(**settings: float) -> Book:
    made = Book(Resolve(**({"min_ttl": 5.0, "max_ttl": 3600.0, "grace": 300.0} | settings)))
    made.watch({"weather": "mcp.example.com"}, now=0)
    return made


def answer(
    made: Book, *found: object, key: object = A, ttl: float = 60, now: float = 0, jitter: float = 0
) -> list[str]:
    return made.answered(key, found, ttl=ttl, now=now, jitter=jitter)


@pytest.mark.parametrize(
    "spelling",
    ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1", "2002:a01:203:ffff:1:2:3:4"],
)
def test_every_spelling_of_an_ipv4_host_is_one_address(spelling: str) -> None:
    assert canonical(ip_address(spelling)) == IPv6Address("::ffff:10.1.2.3")
    assert plain(ip_address(spelling)) == IPv4Address("10.1.2.3")


def test_a_native_ipv6_address_is_itself_without_its_scope() -> None:
    assert canonical(IPv6Address("fe80::1%eth0")) == IPv6Address("fe80::1")
    assert plain(V6) == V6


@given(st.ip_addresses())
def test_canonical_is_a_fixed_point(address: IPv4Address | IPv6Address) -> None:
    assert canonical(canonical(address)) == canonical(address)


@pytest.mark.parametrize(
    ("host", "address"), [("10.0.0.1", "10.0.0.1"), ("[fd00::1]", "fd00::1"), ("fd00::1", "fd00::1")]
)
def test_a_literal_is_an_address_with_or_without_brackets(host: str, address: str) -> None:
    assert literal(host) == ip_address(address)


@pytest.mark.parametrize("host", ["example.com", "", "10.0.0", "localhost", "1.2.3.4.5"])
def test_a_name_is_not_a_literal(host: str) -> None:
    assert literal(host) is None


@given(st.text("0123456789.x:af[]²١ ", max_size=18))
def test_what_is_a_literal_is_what_the_standard_library_takes_for_one(host: str) -> None:
    try:
        address = ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        address = None
    assert literal(host) == address


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.9.9.9", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1",
     "255.255.255.255", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "198.51.100.7", "::ffff:198.51.100.7"],
)  # fmt: skip
def test_an_answer_cannot_teach_loopback_link_local_or_our_own_address(address: str) -> None:
    assert refusal(ip_address(address), {IPv4Address("198.51.100.7")})
    made = book()
    made.answered(A, [ip_address(address)], ttl=60, now=0, jitter=0, own={IPv4Address("198.51.100.7")})
    assert made.addresses() == {"weather": ()}


@pytest.mark.parametrize(
    "address", ["203.0.113.1", "1.1.1.1", "10.0.0.1", "192.168.1.1", "fd00::1", "2001:db8::1", "::5:6"]
)
def test_public_and_private_addresses_are_learnt(address: str) -> None:
    assert not refusal(ip_address(address), ())


def test_a_refused_address_does_not_take_its_neighbours_with_it() -> None:
    made = book()
    refused = answer(made, FIRST, ip_address("127.0.0.1"))
    assert refused == ["127.0.0.1: loopback"]
    assert made.addresses() == {"weather": (FIRST,)}


def test_all_addresses_of_both_kinds_are_known() -> None:
    made = book()
    answer(made, FIRST, SECOND)
    answer(made, V6, key=AAAA)
    assert made.addresses() == {"weather": (FIRST, SECOND, V6)}


def test_two_servers_of_one_name_have_the_same_addresses_and_lose_them_separately() -> None:
    made = book()
    made.watch({"weather": "mcp.example.com", "maps": "mcp.example.com"}, now=0)
    answer(made, FIRST)
    assert made.addresses() == {"weather": (FIRST,), "maps": (FIRST,)}
    made.watch({"maps": "mcp.example.com"}, now=1)
    assert made.addresses() == {"maps": (FIRST,)}


def test_an_address_that_a_later_answer_leaves_out_is_kept_for_the_grace_and_then_dropped() -> None:
    made = book(grace=300)
    answer(made, FIRST, ttl=60, now=0)
    answer(made, SECOND, ttl=60, now=60)
    assert made.addresses() == {"weather": (FIRST, SECOND)}
    answer(made, SECOND, ttl=60, now=359)
    assert made.addresses() == {"weather": (FIRST, SECOND)}
    answer(made, SECOND, ttl=60, now=360)
    assert made.addresses() == {"weather": (SECOND,)}


def test_an_hour_of_failures_forgets_nothing() -> None:
    made = book()
    answer(made, FIRST, ttl=60)
    for now in range(60, 3661, 60):
        made.failed(A, "timed out", now=now, jitter=0.5)
    assert made.addresses() == {"weather": (FIRST,)}


def test_an_answer_without_addresses_forgets_nothing() -> None:
    made = book()
    answer(made, FIRST, ttl=60)
    answer(made, ttl=60, now=1000)
    assert made.addresses() == {"weather": (FIRST,)}


def test_the_failure_of_one_kind_does_not_age_the_addresses_of_the_other() -> None:
    made = book(grace=10)
    answer(made, FIRST, ttl=5)
    answer(made, V6, key=AAAA, ttl=5)
    for now in range(5, 3600, 5):
        answer(made, FIRST, ttl=5, now=now)
        made.failed(AAAA, "SERVFAIL", now=now, jitter=0)
    assert made.addresses() == {"weather": (FIRST, V6)}


@pytest.mark.parametrize(("ttl", "due"), [(0, 5), (60, 60), (1 << 31, 3600)])
def test_the_ttl_is_kept_within_its_bounds(ttl: float, due: float) -> None:
    made = book()
    answer(made, FIRST, ttl=ttl)
    answer(made, V6, key=AAAA, ttl=86400)
    assert made.next_due() == due


def test_jitter_only_makes_the_next_question_earlier() -> None:
    made = book()
    answer(made, FIRST, ttl=100, jitter=0.5)
    answer(made, V6, key=AAAA, ttl=3600)
    assert made.next_due() == 95


def test_failures_are_retried_with_growing_and_bounded_patience() -> None:
    made, now, waits = book(), 0.0, []
    answer(made, V6, key=AAAA, ttl=1e9, now=1e9)
    for _ in range(8):
        made.failed(A, "timed out", now=now, jitter=0)
        waits.append(made.next_due() - now)
        now += waits[-1]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_new_name_is_due_at_once_and_a_known_one_keeps_its_time() -> None:
    made = book()
    answer(made, FIRST, ttl=60)
    answer(made, V6, key=AAAA, ttl=60)
    made.watch({"weather": "mcp.example.com", "maps": "maps.example.com"}, now=10)
    assert made.due(10) == [("maps.example.com", "A"), ("maps.example.com", "AAAA")]


def test_an_answer_for_a_name_no_longer_watched_is_dropped() -> None:
    made = book()
    made.watch({}, now=1)
    assert answer(made, FIRST) == []
    assert made.also("mcp.example.com", [FIRST], ttl=60, now=1)
    made.failed(A, "late", now=1, jitter=0)
    assert made.addresses() == {}
    assert made.next_due() is None


def test_literals_and_the_hosts_file_are_the_operators_word_even_for_loopback() -> None:
    made = book()
    made.watch({"here": "127.0.0.1", "named": "mcp.internal"}, now=0)
    made.given("mcp.internal", [ip_address("127.0.0.2")])
    assert made.addresses() == {"here": (ip_address("127.0.0.1"),), "named": (ip_address("127.0.0.2"),)}
    assert made.problems() == {}


def test_what_the_hosts_file_says_stands_as_long_as_the_name_is_watched() -> None:
    made = book()
    made.given("mcp.example.com", [ip_address("127.0.0.2")])
    made.watch({"maps": "mcp.example.com"}, now=1)
    assert made.addresses() == {"maps": (ip_address("127.0.0.2"),)}
    made.watch({}, now=2)
    made.watch({"maps": "mcp.example.com"}, now=3)
    assert made.addresses() == {"maps": ()}


def test_a_literal_asks_no_question() -> None:
    made = book()
    made.watch({"here": "10.0.0.1"}, now=0)
    assert made.due(1e9) == []


def test_a_flood_of_addresses_is_bounded_and_told_and_the_latest_answer_wins() -> None:
    made, limit = book(), addresses.MAX_ADDRESSES_PER_NAME
    told = answer(made, *(IPv4Address(0x0A000000 + i) for i in range(2 * limit)), now=0)
    assert told == [f"{limit} more: a name has room for {limit}"]
    assert len(made.addresses()["weather"]) == limit
    told = answer(made, *(IPv4Address(0x0B000000 + i) for i in range(limit)), now=1)
    assert told == [f"{limit} more: a name has room for {limit}"]  # the old ones
    known = made.addresses()["weather"]
    assert len(known) == limit
    assert all(int(a) >> 24 == 11 for a in known)


def test_only_names_of_which_nothing_is_known_are_problems() -> None:
    made = book()
    made.failed(A, "timed out", now=0, jitter=0)
    assert made.problems() == {"mcp.example.com": "A: timed out; AAAA: not asked yet"}
    answer(made, V6, key=AAAA)
    assert made.problems() == {}


@pytest.mark.parametrize(
    ("address", "leads_to"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.255.0.9", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "::1"),
        ("::1", "::1"),
        ("128.0.0.1", "128.0.0.1"),
        ("fd00::1", "fd00::1"),
    ],
)
def test_every_spelling_of_this_host_leads_home(address: str, leads_to: str) -> None:
    assert home(canonical(ip_address(address))) == canonical(ip_address(leads_to))


def test_what_was_known_before_a_restart_stands_until_dns_has_answered_and_for_the_grace_after_it() -> None:
    made = book(grace=300)
    made.recall("mcp.example.com", (FIRST, V6), now=0)
    for now in range(0, 3601, 60):
        made.failed(A, "timed out", now=now, jitter=0)
    assert made.addresses() == {"weather": (FIRST, V6)}
    answer(made, SECOND, now=3601)
    assert made.addresses() == {"weather": (SECOND, V6)}
    soon = book(grace=300)
    soon.recall("mcp.example.com", (FIRST,), now=0)
    answer(soon, SECOND, now=299)
    assert soon.addresses() == {"weather": (FIRST, SECOND)}
    answer(soon, SECOND, now=300)
    assert soon.addresses() == {"weather": (SECOND,)}


def test_what_is_learnt_is_known_at_once_whoever_asked_before() -> None:
    made = book()
    for learn, known in (
        (lambda: made.recall("mcp.example.com", (FIRST,), now=0), (FIRST,)),
        (lambda: made.also("mcp.example.com", (SECOND,), ttl=60, now=0), (FIRST, SECOND)),
        (
            lambda: made.given("mcp.example.com", (ip_address("127.0.0.1"),)),
            (ip_address("127.0.0.1"), FIRST, SECOND),
        ),
        (lambda: answer(made, V6, key=AAAA), (ip_address("127.0.0.1"), FIRST, SECOND, V6)),
    ):
        made.known("mcp.example.com")
        learn()
        assert made.known("mcp.example.com") == known


def test_what_is_recalled_is_held_to_the_same_rules_as_an_answer() -> None:
    made = book()
    made.recall("mcp.example.com", (ip_address("127.0.0.1"), SECOND, FIRST), now=0, own={SECOND})
    made.recall("elsewhere.example.com", (SECOND,), now=0)
    assert made.addresses() == {"weather": (FIRST,)}


def test_what_is_learnt_is_what_dns_said_and_not_what_the_operator_said() -> None:
    made = book()
    made.given("mcp.example.com", (SECOND,))
    answer(made, FIRST)
    answer(made, V6, key=AAAA)
    assert made.learnt() == {"mcp.example.com": (FIRST, V6)}


def test_what_the_stub_was_answered_stands_beside_our_own_answers() -> None:
    made = book()
    answer(made, FIRST, ttl=60)
    assert made.also("mcp.example.com", [SECOND, V6, ip_address("127.0.0.1")], ttl=60, now=10)
    assert made.addresses() == {"weather": (FIRST, SECOND, V6)}
    answer(made, FIRST, ttl=60, now=300)
    assert SECOND in made.addresses()["weather"]
    answer(made, FIRST, ttl=60, now=371)
    assert SECOND not in made.addresses()["weather"]


def test_no_answer_makes_shorter_how_long_another_may_be_gone_by() -> None:
    made, third = book(), ip_address("203.0.113.3")
    made.also("mcp.example.com", [SECOND], ttl=3600, now=0)
    made.also("mcp.example.com", [third], ttl=1, now=0)
    answer(made, SECOND, third, ttl=60, now=10)
    for now, known in (
        (200, (FIRST, SECOND, third)),
        (350, (FIRST, SECOND, third)),
        (400, (FIRST, SECOND)),
        (3899, (FIRST, SECOND)),
        (3900, (FIRST,)),
    ):
        answer(made, FIRST, now=now)
        assert made.addresses() == {"weather": known}, now


def test_of_what_was_answered_before_what_stays_longest_is_kept_where_there_is_little_room() -> None:
    made = book()
    answer(made, FIRST, now=0)
    answer(made, SECOND, now=10)
    many = [IPv4Address(0x0A000000 + n) for n in range(addresses.MAX_ADDRESSES_PER_NAME - 1)]
    answer(made, *many, now=20)
    assert set(made.addresses()["weather"]) == {SECOND, *many}


def test_what_the_stub_was_answered_beyond_the_bound_is_told() -> None:
    made = book()
    many = [IPv4Address(0x0A000000 + n) for n in range(addresses.MAX_ADDRESSES_PER_NAME)]
    assert made.also("mcp.example.com", many, ttl=60, now=0)
    assert not made.also("mcp.example.com", [FIRST], ttl=60, now=0)
    assert made.also("mcp.example.com", many[:1], ttl=60, now=0)


def test_a_question_is_hastened_but_not_within_the_smallest_ttl_nor_past_the_patience_after_a_failure() -> (
    None
):
    made = book()
    answer(made, FIRST, now=0, ttl=600)
    made.failed(AAAA, "SERVFAIL", now=0, jitter=0)
    assert not made.hasten("mcp.example.com", 0.5)
    made.failed(AAAA, "SERVFAIL", now=1, jitter=0)
    assert made.hasten("mcp.example.com", 5)
    assert A in made.due(5)
    assert not made.hasten("other.example.com", 5)


def test_the_state_of_a_name_tells_its_age_and_its_last_failure() -> None:
    made = book()
    assert made.state(1)["mcp.example.com"] == addresses.NameState((), (), None, "", 0)
    answer(made, FIRST, now=2)
    made.failed(AAAA, "SERVFAIL", now=3, jitter=0)
    made.failed(AAAA, "timed out", now=4, jitter=0)
    assert made.state(10)["mcp.example.com"] == addresses.NameState((FIRST,), (), 8, "AAAA: timed out", 2)
    answer(made, V6, key=AAAA, now=6)
    assert made.state(10)["mcp.example.com"] == addresses.NameState((FIRST, V6), (), 4, "", 0)


def test_an_answer_that_teaches_nothing_fails_and_says_why() -> None:
    for found, why in (((), "A: no address"), ((ip_address("127.0.0.1"),), "A: refused 127.0.0.1: ")):
        made = book()
        answer(made, *found)
        assert made.state(1)["mcp.example.com"].failure.startswith(why)


def test_everything_is_asked_again_whatever_patience_and_times_to_live_say() -> None:
    made = book()
    answer(made, FIRST, now=0)
    made.failed(AAAA, "SERVFAIL", now=0, jitter=0)
    made.ask_again(1)
    assert made.due(1) == [A, AAAA]
