"""http and https URLs, read strictly: what a client, a resolver and a rule would take for different hosts is refused.

Nothing here resolves or connects. Problems name the defect and never quote the URL, which may carry a credential.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import SplitResult, urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}

# RFC 1123 names, with the underscore that container networks use.
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# WHATWG URL, "ends in a number": 0x7f.1, 017700000001 and 2130706433 are addresses to browsers and to inet_aton.
NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
# The one spelling of an IPv4 address; `IPv4Address` says the same in eight times the time.
DOTTED = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.(?=[0-9])|\Z)){4}")
FORBIDDEN = re.compile(r'[ \\"<>^`{|}]')
# What nearly every URL is; `urlsplit` says the same of it in three times the time, and reads everything else.
USUAL = re.compile(r"(https?)://([a-z0-9._-]+)(?::([1-9][0-9]{0,4}))?(/[^?#]*)?(?:\?([^#]*))?(?:#(.*))?")
# Characters that IDNA 2003 maps away and IDNA 2008 keeps: clients disagree about the host (UTS 46, section 7).
DEVIATIONS = frozenset("ßẞς\u200c\u200d")
# RFC 1035, section 2.3.4, as text without the root's dot.
MAX_HOST = 253
MAX_PORT = 65535


class UrlError(ValueError):
    """The URL cannot be used: what was found, and what was expected."""

    def __init__(self, found: str, expected: str) -> None:
        self.found = found
        self.expected = expected
        super().__init__(f"found {found}; expected {expected}")


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """An http(s) URL. `host` is lower-case ASCII (IDNA) or an address without brackets; `port` is always set."""

    scheme: str
    host: str
    port: int
    path: str = ""
    query: str = ""
    fragment: str = ""

    @property
    def origin(self) -> tuple[str, str, int]:
        """Return scheme, host and port: what RFC 6454 calls the origin."""
        return self.scheme, self.host, self.port


def parse(text: str) -> HttpUrl:
    """Read an absolute http or https URL with a host and without user information, or raise UrlError."""
    if not text.isprintable() or FORBIDDEN.search(text):
        raise UrlError(
            "a URL with spaces, control or forbidden characters", "them percent-encoded (RFC 3986)"
        )
    usual = USUAL.fullmatch(text)
    if usual is not None and int(usual[3] or 0) <= MAX_PORT:
        scheme, host, digits, path, query, fragment = usual.groups("")
        port = int(digits) if digits else DEFAULT_PORTS[scheme]
        return HttpUrl(scheme, ascii_host(host), port, path, query, fragment)
    return _parse_unusual(text)


def _parse_unusual(text: str) -> HttpUrl:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UrlError(
            "a URL whose host or port cannot be read", "http(s)://host[:port]/path, port 1 to 65535"
        ) from error
    if parts.scheme not in DEFAULT_PORTS:
        shown = f"the scheme {parts.scheme[:16]!r}" if parts.scheme and parts.netloc else "no scheme"
        raise UrlError(shown, "http:// or https:// and a host")
    if "@" in parts.netloc:
        raise UrlError("a URL with user information", "none: put the credential into a header")
    if port == 0:
        raise UrlError("port 0", "a port from 1 to 65535")
    host = _host(parts)
    return HttpUrl(
        parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], parts.path, parts.query, parts.fragment
    )


def _host(parts: SplitResult) -> str:
    host = parts.hostname
    if not host:
        raise UrlError("a URL without a host", "http(s)://host[:port]/path")
    if parts.netloc.startswith("["):
        try:
            address = IPv6Address(host)
        except AddressValueError as error:
            raise UrlError("brackets without an IPv6 address", "an address such as [2001:db8::1]") from error
        if address.scope_id:
            raise UrlError("an IPv6 address with a zone", "an address that means the same everywhere")
        return str(address)
    return ascii_host(host)


def ascii_host(host: str) -> str:
    """Return a name in lower-case ASCII (IDNA, without the root's dot) or an IPv4 address, or raise UrlError."""
    if not host.isascii():
        if set(host) & DEVIATIONS or any(_symbol(c) for c in unicodedata.normalize("NFKC", host)):
            raise UrlError("a host that IDNA 2003 and 2008 read differently", "its xn-- form")
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError as error:
            raise UrlError("a host that IDNA cannot encode", "its xn-- form") from error
    host = host.lower().removesuffix(".")
    if DOTTED.fullmatch(host):
        return host
    labels = host.split(".")
    if NUMERIC_LABEL.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(host))
        except AddressValueError as error:
            raise UrlError(
                "a host that some clients read as a number", "an IPv4 address of four decimal parts"
            ) from error
    if len(host) > MAX_HOST or not all(LABEL.fullmatch(label) for label in labels):
        raise UrlError("a host that is no DNS name", "labels of letters, digits, `-` and `_`, parted by dots")
    return host


def _symbol(char: str) -> bool:
    """Say whether IDNA 2008 has no place for a character (RFC 5892: letters, marks and digits are left)."""
    category = unicodedata.category(char)
    return not char.isascii() and category[0] not in "LM" and category != "Nd"
