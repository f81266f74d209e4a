"""Who may ask this proxy: names and origins that a web page on another host cannot make a browser send (DNS rebinding).

Tokens and credentials are not its business.
"""

from __future__ import annotations

import re

from agentsh_net.core.network.addresses import literal, unmapped

_AUTHORITY = re.compile(rb"(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+)(?::[0-9]{1,5})?")
_ORIGIN = re.compile(rb"https?://(.+)")


def host_allowed(authority: bytes, listen: str) -> bool:
    """Say whether a Host names this proxy: loopback, or where it was told to listen (a wildcard stands for any address)."""
    name = _name(authority)
    if name is None:
        return False
    if _loopback(name) or name == _spelled(listen.lower()):
        return True
    return _wildcard(listen) and literal(name) is not None


def origin_allowed(origin: bytes) -> bool:
    """Say whether a page of this origin may ask: only pages served from this machine."""
    match = _ORIGIN.fullmatch(origin)
    name = _name(match[1]) if match else None
    return name is not None and _loopback(name)


def _name(authority: bytes) -> str | None:
    match = _AUTHORITY.fullmatch(authority)
    return _spelled(match[1].decode("ascii").lower().rstrip(".")) if match else None


def _spelled(host: str) -> str:
    """Return a host without its brackets, an address in its one spelling: clients do not agree on an IPv4-mapped one's."""
    address = literal(host)
    return host.strip("[]") if address is None else str(unmapped(address))


def _loopback(name: str) -> bool:
    address = literal(name)
    return name == "localhost" or name.endswith(".localhost") or (address is not None and address.is_loopback)


def _wildcard(listen: str) -> bool:
    return listen.strip("[]") in ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
