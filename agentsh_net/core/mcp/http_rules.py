"""The HTTP rules of MCP: which URL, which headers, which redirect, which origin.

One rule above all: what the operator declared for an origin (credentials) never goes to another one.
Sending is not its business, and neither is what the messages mean (`client`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.exchange import MODERN
from agentsh_net.core.web import urls

Headers = tuple[tuple[str, str], ...]

MAX_REDIRECTS = 3  # one for a trailing slash, one for a path prefix, one to spare
MAX_URL = 8192  # RFC 9110, section 4.1 recommends at least 8000

# Framing belongs to the client; a declared one would let a config value write the request's structure.
FRAMING = frozenset(
    ("connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade")
)
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, section 5.6.2
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")  # RFC 9110, section 5.5: no CR, LF, NUL
SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}")  # visible ASCII (Streamable HTTP); the bound is ours
EVENT_ID = re.compile(r"[\x20-\x7e\x80-\xff]{1,1024}")  # it goes back in a header


@dataclass(frozen=True, slots=True)
class Address:
    """Where a URL points: the origin (scheme, host, port) and the request target (path and query)."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """Return what has to be equal for credentials to be sent (RFC 6454)."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Return the value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == urls.DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        """Return the URL without its query, which may hold a key."""
        return f"{self.scheme}://{self.authority}{self.target.partition('?')[0]}"


def address(url: str) -> Address:
    """Return where an absolute http(s) URL points. Raises ProtocolError, without repeating a URL that may hold a secret."""
    if len(url) > MAX_URL:
        raise ProtocolError(f"URL of more than {MAX_URL} characters")
    try:
        parts = urls.parse(url)
    except urls.UrlError as fault:
        raise ProtocolError(f"URL: {fault}") from fault
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=-._~")
    query = "?" + quote(parts.query, safe="/%:@!$&'()*+,;=-._~?") if parts.query else ""
    return Address(parts.scheme, parts.host, parts.port, path + query)


def resolve(base: str, reference: str, what: str) -> str:
    """Return `reference` as a URL of base's origin. Raises ProtocolError where it leads to another origin."""
    # urljoin drops tabs and line feeds silently, so they are refused before it sees them
    if not reference or any(ord(c) < 0x21 for c in reference):
        raise ProtocolError(f"the {what} is empty or has control characters", status=502)
    try:
        url = urljoin(base, reference)
    except ValueError as fault:
        raise ProtocolError(f"the {what} is no URL", status=502) from fault
    here = address(base)
    try:
        there = address(url)
    except ProtocolError as fault:
        raise ProtocolError(f"the {what} is not usable: {fault}", status=502) from fault
    if here.origin != there.origin:
        raise ProtocolError(
            f"the {what} leads from {here.scheme}://{here.authority} to another origin, "
            f"{there.scheme}://{there.authority}: refused",
            status=502,
        )
    return url


def redirection(method: str, url: str, status: int, location: str) -> str | None:
    """Return the URL to repeat the request at, None if the answer is no redirect. Raises ProtocolError if it must not be followed."""
    if status not in (301, 302, 303, 307, 308):
        return None
    target = resolve(url, location, "redirect")
    if method != "GET" and status not in (307, 308):
        raise ProtocolError(
            f"the server redirects a POST with {status} to {address(target)}: declare that URL", status=502
        )
    return target


def declared(headers: Mapping[str, str]) -> Headers:
    """Return the operator's headers, checked. Raises ProtocolError with the name, never the value, of a bad one."""
    for name, value in headers.items():
        if not TOKEN.fullmatch(name) or name.lower() in FRAMING:
            raise ProtocolError(f"header {name!r} cannot be declared")
        if not VALUE.fullmatch(value):
            raise ProtocolError(f"the value of header {name!r} has characters that no header may have")
    return tuple(headers.items())


def merged(ours: Iterable[tuple[str, str]], theirs: Headers) -> Headers:
    """Return both, where ours win: a declared header cannot contradict the protocol."""
    mine = tuple(ours)
    taken = {name.lower() for name, _ in mine}
    return mine + tuple(h for h in theirs if h[0].lower() not in taken)


def post_headers(version: str, method: str, session_id: str) -> Headers:
    """Return the headers of a POST that carries `method` (empty: an answer of ours) at this revision (empty: none agreed yet)."""
    headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
    if version >= "2025-06-18":  # revisions are dates; the header came with this one
        headers.append(("MCP-Protocol-Version", version))
    if version == MODERN:
        return (*headers, ("Mcp-Method", method))
    if session_id:
        headers.append(("Mcp-Session-Id", session_id))
    return tuple(headers)


def stream_headers(version: str, session_id: str, last_event_id: str) -> Headers:
    """Return the headers of a GET that opens a legacy event stream; with a last event id it resumes one."""
    headers = [("Accept", "text/event-stream"), ("Cache-Control", "no-store")]
    if version >= "2025-06-18":
        headers.append(("MCP-Protocol-Version", version))
    if session_id:
        headers.append(("Mcp-Session-Id", session_id))
    if last_event_id:
        headers.append(("Last-Event-ID", last_event_id))
    return tuple(headers)


def media_type(content_type: str) -> str:
    """Return the type and subtype of a Content-Type, in lower case."""
    return content_type.partition(";")[0].strip().lower()
