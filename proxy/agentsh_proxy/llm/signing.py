"""Credentials of the proxy in a request to Bedrock: the client's are taken out, and a signature or a bearer token is put in.

A signature covers the host and the path, so that a client's own cannot be right behind a proxy. How one is made is
`core.web.aws_signature`'s business.
"""

from __future__ import annotations

import re
import time

from agentsh_net.core.web.aws_signature import Credentials, Request, signed
from agentsh_net.core.web.http_head import RequestHead

SERVICE = "bedrock"
REMEDY = (
    "a client's AWS signature is not valid behind a proxy; give the proxy credentials (proxy.providers.<name>.aws in its configuration), "
    "or let the client send a Bedrock API key (AWS_BEARER_TOKEN_BEDROCK)"
)

_CREDENTIALS = re.compile(
    rb"\r\n(?:authorization|x-amz-date|x-amz-security-token|x-amz-content-sha256):[^\r]*", re.IGNORECASE
)
_BEARER = re.compile(rb"\r\nauthorization:[ \t]*bearer[ \t]+[^ \t\r]", re.IGNORECASE)
# Besides the host: what says how the body is read, and all that the service takes for its own.
_SIGNED = re.compile(rb"\r\n(content-type|x-amz[^:]*):([^\r]*)", re.IGNORECASE)
_LINE = re.compile(rb"([A-Z]+) ([^ ?]*)\??([^ ]*) HTTP/1\.1\r\nHost: ([^\r]*)")


def brings_key(head: RequestHead) -> bool:
    """Say whether a request brings an API key of its own, which needs no signature."""
    return _BEARER.search(head.fields) is not None


def without_credentials(fields: bytes) -> bytes:
    """Return a request's fields without those that say who the client is to AWS."""
    return _CREDENTIALS.sub(b"", fields)


def credentialed(opening: bytes, body: bytes, credentials: Credentials) -> bytes:
    """Return a request's line and fields with the proxy's credentials, as of now."""
    if credentials.bearer_token:
        return opening + b"\r\nAuthorization: Bearer " + credentials.bearer_token.encode("utf-8")
    match = _LINE.match(opening)
    assert match is not None  # noqa: S101 - written by `asked`
    method, path, query, host = (part.decode("ascii") for part in match.groups())
    headers: dict[str, str] = {"host": host}
    for name, value in _SIGNED.findall(opening):
        key = name.decode("ascii").lower()
        said = value.decode("utf-8", "surrogateescape").strip()
        headers[key] = f"{headers[key]},{said}" if key in headers else said
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    fields = signed(Request(method, path, query, headers, body), credentials, service=SERVICE, date=date)
    return opening + b"".join(b"\r\n%b: %b" % (k.encode(), v.encode()) for k, v in fields.items())
