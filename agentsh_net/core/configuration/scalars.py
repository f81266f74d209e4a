"""The leaves of the configuration: readers of one value each (text, numbers, durations, sizes, globs, addresses).

They say what they expect in words an operator can act on. The keys they stand under are `core.configuration.config`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from agentsh_net.core.configuration.schema import At, Reader, nearest, quoted
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.values.canonical import SURROGATE
from agentsh_net.core.web import urls

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?(ms|s|m|h|d)")
# A hundred years: more is a slip, and stays far from what a clock or a timer overflows at.
MAX_DURATION = 100 * 365 * 86400.0

BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
SIZE = re.compile(r"([0-9]{1,15}) ?([KMG]?i?B)", re.IGNORECASE)

# MCP names are at most 128 characters (2025-11-25, tools); so are ids.
MAX_ID = 128
# Buffers are held per stream: at a gigabyte each the bound stops being one.
MAX_BUFFER = 1 << 30
# ARG_MAX's single-string limit on Linux (MAX_ARG_STRLEN, 32 pages): longer cannot be exec'ed.
MAX_TEXT = 128 << 10
# sun_path of unix(7), less the closing NUL.
MAX_SOCKET_PATH = 107

# The first path segments that the proxy and the gateway use themselves.
RESERVED_PROVIDERS = frozenset(("s", "v1", "mcp"))

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")  # RFC 9110, section 5.6.2: token
# RFC 9110, section 5.5: no controls but the tab, and nothing outside Latin-1, which HTTP/1.1 cannot carry.
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# What patterns give a meaning to, which ids may not have.
PATTERN_CHARACTER = re.compile(r"[*?\[]")
FINGERPRINT = re.compile(r"(?:sha256:)?((?:[0-9a-f]{2}:?){31}[0-9a-f]{2})", re.IGNORECASE)


def flag(at: At, value: Any) -> bool:
    """Read true or false, and nothing that merely looks like it."""
    if not isinstance(value, bool):
        at.refuse(value, "true or false")
    return value


def integer(low: int, high: int) -> Reader[int]:
    """Read a whole number within bounds, both included."""

    def read(at: At, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            at.refuse(value, f"a whole number from {low} to {high}" if low < high else f"the number {low}")
        return value

    return read


def positive(high: float) -> Reader[float]:
    """Read a number above zero."""

    def read(at: At, value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= high:
            at.refuse(value, f"a number above 0, at most {high:.0f}")
        return value

    return read


def text(at: At, value: Any) -> str:
    """Read text that a process, a file or a terminal can take: no NUL, no lone surrogate, bounded."""
    if not isinstance(value, str):
        quote = " (quote it)" if isinstance(value, int | float) else ""
        at.refuse(value, "text" + quote)
    if len(value) > MAX_TEXT or "\0" in value or (not value.isascii() and SURROGATE.search(value)):
        at.refuse(value, f"text of at most {MAX_TEXT} characters, without NUL and lone surrogates")
    return value


def word(at: At, value: Any) -> str:
    """Read text that is not empty."""
    if not text(at, value).strip():
        at.refuse(value, "text that is not empty")
    return str(value)


def one_of(*choices: str) -> Reader[str]:
    """Read one of a few words, case and all."""

    def read(at: At, value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            hint = (
                f" (did you mean {near}?)"
                if isinstance(value, str) and (near := _near(value, choices))
                else ""
            )
            at.refuse(value, " | ".join(choices) + hint)
        return value

    return read


def _near(value: str, choices: tuple[str, ...]) -> str:
    near = nearest(value.casefold(), choices)
    return near if near.startswith("`") else ""


def identifier(at: At, value: Any) -> str:
    """Read an id: printable, without surrounding space, and without what patterns give a meaning to."""
    word(at, value)
    if (
        len(value) > MAX_ID
        or value != value.strip()
        or not value.isprintable()
        or PATTERN_CHARACTER.search(value)
    ):
        at.refuse(
            value, f"an id of 1 to {MAX_ID} printable characters, without `*`, `?`, `[` and outer space"
        )
    return str(value)


def reference(kind: str) -> Reader[str]:
    """Read the id of something declared elsewhere in the file; returns it as it is spelt there."""

    def read(at: At, value: Any) -> str:
        declared: Mapping[str, str] = at.names.get(kind, {})
        found = declared.get(fold(text(at, value)))
        if found is None:
            near = nearest(value, declared.values()) if declared else "none is declared"
            at.reject(f"{quoted(value)}, which is no declared {kind}", f"the id of a declared {kind}: {near}")
        return found

    return read


def duration(*, zero: bool = False) -> Reader[float]:
    """Read a span of time in seconds; zero only where it has a meaning."""
    bound = "zero or more" if zero else "more than zero"
    expected = (
        f"a duration such as 250ms, 30s, 5m, 1h, 1d, or a number of seconds: {bound}, at most 100 years"
    )

    def read(at: At, value: Any) -> float:
        seconds: float = -1.0
        if isinstance(value, str) and (match := DURATION.fullmatch(value.strip())):
            seconds = float(match[1]) * SECONDS[match[2]]
        elif isinstance(value, int | float) and not isinstance(value, bool) and value <= MAX_DURATION:
            seconds = float(value)
        if not (0 < seconds <= MAX_DURATION or (zero and seconds == 0)):
            at.refuse(value, expected)
        return seconds

    return read


def size(low: int, high: int) -> Reader[int]:
    """Read a number of bytes within bounds, both included."""

    def read(at: At, value: Any) -> int:
        count = value if isinstance(value, int) and not isinstance(value, bool) else -1
        if isinstance(value, str) and (match := SIZE.fullmatch(value.strip())):
            count = int(match[1]) * BYTES[match[2].upper()]
        if not low <= count <= high:
            at.refuse(value, f"a size such as 512KiB, 4MiB, 10MB, or a number of bytes: {low} to {high}")
        return count

    return read


def listen(at: At, value: Any) -> str:
    """Read an address to listen on: a literal, so that no name service decides who can reach us."""
    expected = "an IP address such as 127.0.0.1 or ::1, or localhost"
    if text(at, value) == "localhost":
        return "localhost"
    try:
        address = ip_address(value)
    except ValueError:
        at.refuse(value, expected)
    if "%" in value:
        at.refuse(value, expected + ", without a zone")
    return str(address)


port = integer(0, 65535)


def http_url(at: At, value: Any) -> urls.HttpUrl:
    """Read an http or https URL, whatever its query; problems never show it, it may carry a credential."""
    try:
        return urls.parse(word(at, value))
    except urls.UrlError as error:
        at.reject(error.found, error.expected)


def base_url(at: At, value: Any) -> str:
    """Read a URL that paths are appended to."""
    parts = http_url(at, value)
    if parts.query or parts.fragment or value.endswith(("?", "#")):
        at.reject("a URL with a query or a fragment", "scheme, host, port and path alone")
    return str(value)


def origin(at: At, value: Any) -> str:
    """Read an origin (RFC 6454) as browsers send it: any scheme, a host, no path."""
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[a-z0-9._\[\]:-]+", text(at, value)):
        at.refuse(
            value, "an origin as browsers send it, such as https://app.example.com, lower-case, no path"
        )
    return str(value)


def absolute_path(at: At, value: Any) -> str:
    """Read a path that means the same from every working directory."""
    if not word(at, value).startswith("/") or not value.isprintable() or value.endswith("/"):
        at.refuse(value, "the absolute path of a file")
    return str(value)


# Fields that HTTP itself needs to be right (RFC 9110, 9112): where a message goes, how it is cut, and what is for one hop.
FRAMING = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "expect"}
)  # fmt: skip
NOT_FRAMING = (
    "a field of the server's own: how a request is framed and where it goes is not for a policy to say"
)


def socket_path(at: At, value: Any) -> str:
    """Read the path of a Unix socket."""
    if len(absolute_path(at, value).encode()) > MAX_SOCKET_PATH:
        at.refuse(value, f"a path of at most {MAX_SOCKET_PATH} bytes (unix(7))")
    return str(value)


def header_name(at: At, value: Any) -> str:
    """Read the name of an HTTP field or query parameter."""
    if not HEADER_NAME.fullmatch(text(at, value)):
        at.refuse(value, "an HTTP field name (RFC 9110: letters, digits, and !#$%&'*+.^_`|~-)")
    return str(value)


def sent_name(at: At, value: Any) -> str:
    """Read the name of a field that is sent with every request; what says where a request goes and ends is not for configuring."""
    if header_name(at, value).lower() in FRAMING:
        at.reject(f"the field {value}", NOT_FRAMING)
    return str(value)


def header_value(at: At, value: Any) -> str:
    """Read the value of an HTTP field."""
    if not HEADER_VALUE.fullmatch(text(at, value)):
        at.refuse(value, "text without line breaks and control characters (RFC 9110)")
    return str(value)


def environment_name(at: At, value: Any) -> str:
    """Read the name of an environment variable."""
    if "=" in word(at, value):
        at.refuse(value, "the name of an environment variable, without `=`")
    return str(value)


def fingerprint(at: At, value: Any) -> str:
    """Read a SHA-256 fingerprint, with or without colons; returns `sha256:` and 64 lower-case hex digits."""
    match = FINGERPRINT.fullmatch(text(at, value))
    if not match:
        at.refuse(value, "sha256: and 64 hex digits")
    return "sha256:" + match[1].replace(":", "").lower()


def provider_name(at: At, value: Any) -> str:
    """Read the name of an LLM provider: a path segment of the proxy that is no path of its own."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", text(at, value)) or value in RESERVED_PROVIDERS:
        at.refuse(value, "lower-case letters, digits, `-` and `_`, and none of the proxy's own: s, v1, mcp")
    return str(value)
