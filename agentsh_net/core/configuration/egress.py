"""How an entry of `network.egress.allow` is read: a name, an address or a prefix, each with a port if it has one."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from agentsh_net.core.configuration.scalars import word
from agentsh_net.core.configuration.schema import At
from agentsh_net.core.configuration.settings import Destination, Egress
from agentsh_net.core.network.addresses import canonical, literal
from agentsh_net.core.web.urls import MAX_PORT, UrlError, ascii_host

EXPECTED = "a name, an address or a prefix, each with `:port` or without (pypi.org:443, 10.0.0.0/8, [2001:db8::1]:443)"
# The planes' room for prefixes (bpf/agentsh.h); each is compared with, one by one, by nftables.
MAX_PREFIXES = 1024
_BRACKETS = re.compile(r"\[([^\[\]]*)\](?::([0-9]{1,5}))?")
_PLAIN = re.compile(r"([^:]*)(?::([0-9]{1,5}))?")
# What carries IPv4 addresses is looked up as IPv4: ::/96 and ::ffff:0:0/96, 64:ff9b::/96 and 2002::/16.
_CARRIERS = tuple(map(IPv6Network, ("::/64", "64:ff9b::/96", "2002::/16")))


def destination(at: At, value: Any) -> Destination:
    """Read where sessions may connect."""
    text = word(at, value)
    if "*" in text:
        at.refuse(value, "each name by itself: which names a pattern means, no plane can know")
    host, port = _parts(at, value)
    if "/" in host:
        return Destination(host, port, _network(at, value, host))
    if (address := literal(host)) is not None:
        if getattr(address, "scope_id", None):
            at.refuse(value, "an address without a zone")
        return Destination(str(address), port)
    try:
        return Destination(ascii_host(host), port)
    except UrlError as error:
        at.reject(error.found, error.expected)


def _parts(at: At, value: str) -> tuple[str, int]:
    """Return host and port of an entry, 0 for none."""
    if value.count(":") > 1 and not value.startswith("["):
        return value, 0  # IPv6: a port needs brackets
    found = (_BRACKETS if value.startswith("[") else _PLAIN).fullmatch(value)
    if found is None or (value.startswith("[") and ":" not in found[1]) or not found[1]:
        at.refuse(value, EXPECTED)
    if found[2] is not None and not 0 < int(found[2]) <= MAX_PORT:
        at.refuse(value, "a port from 1 to 65535")
    return found[1], int(found[2] or 0)


def _network(at: At, value: Any, host: str) -> IPv4Network | IPv6Network:
    try:
        network = ip_network(host)
    except ValueError as error:
        at.refuse(value, f"a prefix whose host bits are zero, such as 10.0.0.0/8 ({error})")
    if isinstance(network, IPv6Network) and any(map(network.overlaps, _CARRIERS)):
        at.refuse(
            value,
            "a prefix without addresses that carry IPv4 ones: 2000::/3 is the Internet's, IPv4 is written as such",
        )
    return network


def same(entry: Destination) -> tuple[object, int]:
    """Return what two entries have in common that say the same."""
    address = literal(entry.host)
    return (entry.network or (canonical(address) if address is not None else entry.host)), entry.port


def within_room(at: At, egress: Egress) -> Egress:
    """Note more prefixes than the planes have room for."""
    count = sum(entry.network is not None for entry in egress.allow)
    if count > MAX_PREFIXES:
        at.key("allow").note(f"{count} prefixes", f"at most {MAX_PREFIXES}")
    return egress
