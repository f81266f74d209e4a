"""Who may ask this proxy: names and origins that a web page on another host cannot make a browser send (DNS rebinding).

Tokens and credentials are not its business.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

_AUTHORITY = re.compile(rb"(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+)(?::[0-9]{1,5})?")
_ORIGIN = re.compile(rb"https?://(.+)")


def host_allowed(authority: bytes, listen: str) -> bool:
    """Say whether a Host names this proxy: loopback, or where it was told to listen (a wildcard stands for any address)."""
    name = _name(authority)
    if name is None:
        return False
    if _loopback(name) or name == listen.strip("[]").lower():
        return True
    return _wildcard(listen) and _is_address(name)


def origin_allowed(origin: bytes) -> bool:
    """Say whether a page of this origin may ask: only pages served from this machine."""
    match = _ORIGIN.fullmatch(origin)
    name = _name(match[1]) if match else None
    return name is not None and _loopback(name)


def _name(authority: bytes) -> str | None:
    match = _AUTHORITY.fullmatch(authority)
    return match[1].decode("ascii").strip("[]").lower().rstrip(".") if match else None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _loopback(name: str) -> bool:
    return (
        name == "localhost"
        or name.endswith(".localhost")
        or (_is_address(name) and ip_address(name).is_loopback)
    )


def _wildcard(listen: str) -> bool:
    return listen.strip("[]") in ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
