"""A network's own translator is found by what DNS says of one name, and its spellings of an address are those of RFC 6052."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest

from agentsh_net.core.network.nat64 import MAX_PREFIXES, Prefix, prefixes, spelled_out

# RFC 6052, 2.4.
TABLE = {
    "2001:db8::/32": "2001:db8:c000:221::",
    "2001:db8:100::/40": "2001:db8:1c0:2:21::",
    "2001:db8:122::/48": "2001:db8:122:c000:2:2100::",
    "2001:db8:122:300::/56": "2001:db8:122:3c0:0:221::",
    "2001:db8:122:344::/64": "2001:db8:122:344:c0:2:2100::",
    "2001:db8:122:344::/96": "2001:db8:122:344::192.0.2.33",
}


def of(text: str) -> Prefix:
    address, _, bits = text.partition("/")
    return Prefix(IPv6Address(address).packed[: int(bits) // 8])


@pytest.mark.parametrize("text", TABLE)
def test_an_address_is_spelled_as_the_rfc_has_it_and_the_prefix_found_again(text: str) -> None:
    assert of(text).spelling(IPv4Address("192.0.2.33")) == IPv6Address(TABLE[text])
    assert str(of(text)) == text
    told = [of(text).spelling(IPv4Address(f"192.0.0.{n}")) for n in (170, 171)]
    assert of(text) in prefixes(told)


def test_what_is_no_translation_of_the_name_tells_of_nothing() -> None:
    others = ("2001:db8::1", "192.0.0.170", "64:ff9b::192.0.0.170", "::ffff:192.0.0.170", "::192.0.0.170")
    assert prefixes(map(ip_address, others)) == ()
    marked = IPv6Address("2001:db8:122:344:ff:c000:aa00:0")  # byte 8 is not zero
    assert prefixes([marked]) == ()


def test_one_who_lies_makes_few_addresses() -> None:
    lies = [IPv6Address(f"2001:db8:{n:x}::192.0.0.170") for n in range(1, 100)]
    assert len(prefixes(lies)) == MAX_PREFIXES


def test_only_what_is_of_the_old_internet_is_spelled_out_and_once() -> None:
    four, six = IPv4Address("192.0.2.33"), IPv6Address("2001:db8::7")
    (known,) = prefixes([IPv6Address("2001:db8:64::192.0.0.170")])
    spelled = IPv6Address("2001:db8:64::192.0.2.33")
    assert spelled_out((four, six), (known,)) == (four, six, spelled)
    assert spelled_out((four, spelled), (known,)) == (four, spelled)
    assert spelled_out((four, six), ()) == (four, six)
