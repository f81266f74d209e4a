"""An entry of `network.egress.allow` is read as what it says, and what means something else than it looks is refused."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from agentsh_net.core.configuration.config import parse
from agentsh_net.core.configuration.egress import MAX_PREFIXES
from agentsh_net.core.configuration.settings import Destination
from agentsh_net.core.errors import ConfigError


def read(*allow: object) -> tuple[Destination, ...]:
    return parse(
        {"version": 1, "network": {"egress": {"sessions": "refuse", "allow": list(allow)}}}
    ).network.egress.allow


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("PyPI.org.", Destination("pypi.org")),
        ("pypi.org:443", Destination("pypi.org", 443)),
        ("192.0.2.7", Destination("192.0.2.7")),
        ("192.0.2.7:65535", Destination("192.0.2.7", 65535)),
        ("2001:DB8::1", Destination("2001:db8::1")),
        ("[2001:db8::1]", Destination("2001:db8::1")),
        ("[2001:db8::1]:443", Destination("2001:db8::1", 443)),
        ("10.0.0.0/8", Destination("10.0.0.0/8", 0, ip_network("10.0.0.0/8"))),
        ("10.0.0.0/8:22", Destination("10.0.0.0/8", 22, ip_network("10.0.0.0/8"))),
        ("2001:db8::/32", Destination("2001:db8::/32", 0, ip_network("2001:db8::/32"))),
        ("[2001:db8::/32]:22", Destination("2001:db8::/32", 22, ip_network("2001:db8::/32"))),
    ],
)
def test_an_entry_is_read(entry: str, expected: Destination) -> None:
    assert read(entry) == (expected,)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("*.pythonhosted.org", "each name by itself"),
        ("10.0.0.1/8", "host bits"),
        ("::/0", "carry IPv4"),
        ("::ffff:10.0.0.0/104", "carry IPv4"),
        ("64:ff9b::/96", "carry IPv4"),
        ("2002::/16", "carry IPv4"),
        ("pypi.org:0", "a port from 1"),
        ("pypi.org:65536", "a port from 1"),
        ("pypi.org:https", "with `:port` or without"),
        ("https://pypi.org", "with `:port` or without"),
        ("[pypi.org]:443", "with `:port` or without"),
        ("fe80::1%eth0", "zone"),
        ("0x7f.1", "IPv4 address"),
        ("exa mple.org", "DNS name"),
        ("", "not empty"),
        (443, "text"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(entry: object, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read("a.test", entry)
    [problem] = caught.value.problems
    assert problem.path == "network.egress.allow[1]"
    assert told in f"{problem.found} {problem.expected}"


def test_the_same_twice_is_told() -> None:
    with pytest.raises(ConfigError, match="a second one"):
        read("::ffff:192.0.2.7", "192.0.2.7")


def test_more_prefixes_than_there_is_room_for_are_refused() -> None:
    entries = [f"10.{n // 256}.{n % 256}.0/24" for n in range(MAX_PREFIXES + 1)]
    assert len(read(*entries[:-1])) == MAX_PREFIXES
    with pytest.raises(ConfigError, match="1025 prefixes"):
        read(*entries)
