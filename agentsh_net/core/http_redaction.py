"""A message's head as it may be written down: every field and every query parameter that carries a credential without its value."""

from __future__ import annotations

import re
from typing import Final

REDACTED: Final = b"[redacted]"
# By the words in a field's name, so that a provider's next one is among them: Authorization, x-api-key, x-goog-api-key, Cookie ...
_SECRET: Final = re.compile(
    rb"auth|key|token|secret|cookie|passw|credential|signature|session|jwt|bearer", re.IGNORECASE
)
_PLAIN: Final = re.compile(rb"(?:x-)?(?:ratelimit|anthropic-ratelimit)-.*", re.IGNORECASE)
_PARAMETER: Final = re.compile(rb"([?&;])([^=&;]*)=([^&; ]*)")
_IN_AUTHORITY: Final = re.compile(rb"//[^/@ ]*@")


def written(head: bytes) -> bytes:
    """Return a head (lines with CRLF, the first of them the request's or the status line) without credentials."""
    line, *fields = head.split(b"\r\n")
    return b"\r\n".join([target(line), *map(_field, fields)])


def target(text: bytes) -> bytes:
    """Return a target, or a line with one, without the values of parameters that carry credentials."""
    return _PARAMETER.sub(_parameter, _IN_AUTHORITY.sub(b"//" + REDACTED + b"@", text))


def _parameter(match: re.Match[bytes]) -> bytes:
    mark, name, value = match.groups()
    return (
        mark
        + name
        + b"="
        + (REDACTED if _SECRET.search(name) or name.lower() in {b"sig", b"code"} else value)
    )


def _field(line: bytes) -> bytes:
    name, colon, _ = line.partition(b":")
    if _SECRET.search(name) and not _PLAIN.fullmatch(name):
        return name + colon + b" " + REDACTED
    return target(line) if name.lower() in {b"referer", b"location", b"content-location", b"link"} else line
