"""A message as it may be written down: fields, query parameters and what a request hands a provider for MCP servers, without credentials.

What stands in prompts and results is not its business (`core.dlp`).
"""

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

# Credentials of MCP servers that the provider is to call: Anthropic's mcp_servers, OpenAI's tools of type mcp, Gemini's mcpServers.
_INNER: Final = rb'[^"\\]*(?:\\.[^"\\]*)*'  # of a string; each byte can be taken in one way only, so that it costs what it is long
_TEXT: Final = rb'"(' + _INNER + rb')"'
_TOKEN: Final = re.compile(rb'("authorization(?:_token)?"[ \t\r\n]*:[ \t\r\n]*)' + _TEXT)
_HEADERS: Final = re.compile(rb'"headers"[ \t\r\n]*:[ \t\r\n]*\{[^"{}]*(?:"' + _INNER + rb'"[^"{}]*)*\}')
_HEADER: Final = re.compile(rb"(:[ \t\r\n]*)" + _TEXT)
_URL: Final = re.compile(rb'("(?:server_)?url"[ \t\r\n]*:[ \t\r\n]*)' + _TEXT)


def written(head: bytes) -> bytes:
    """Return a head (lines with CRLF, the first of them the request's or the status line) without credentials."""
    line, *fields = head.split(b"\r\n")
    return b"\r\n".join([target(line), *map(_field, fields)])


def target(text: bytes) -> bytes:
    """Return a target, or a line with one, without the values of parameters that carry credentials."""
    return _PARAMETER.sub(_parameter, _IN_AUTHORITY.sub(b"//" + REDACTED + b"@", text))


def handed(body: bytes) -> bytes:
    """Return a request's body without what it hands the provider to get into MCP servers, and the values in URLs.

    JSON within strings is left alone.
    """
    if b'"authorization' in body:
        body = _TOKEN.sub(rb'\1"' + REDACTED + b'"', body)
    if b'"headers"' in body:
        body = _HEADERS.sub(lambda found: _HEADER.sub(rb'\1"' + REDACTED + b'"', found[0]), body)
    if b'url"' in body:
        body = _URL.sub(_url, body)
    return body


def _url(match: re.Match[bytes]) -> bytes:
    key, url = match.groups()
    if url.startswith(b"data:"):  # an image, and perhaps megabytes of it
        return match[0]
    # Nobody knows which parameter of a stranger's URL gets one in; here, unlike in a target, none is needed to read the record.
    plain = _IN_AUTHORITY.sub(b"//" + REDACTED + b"@", url.replace(rb"\/", b"/"))
    return key + b'"' + _PARAMETER.sub(rb"\1\2=" + REDACTED, plain) + b'"'


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
