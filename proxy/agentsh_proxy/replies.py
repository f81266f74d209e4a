"""Answers the proxy gives itself: whole HTTP/1.1 messages with a JSON body.

In the provider's own error shape where the provider is known, so that SDKs raise what their users expect.
"""

from __future__ import annotations

from http import HTTPStatus

import orjson

from agentsh_net.core.dialects.base import Dialect

_JSON = b"Content-Type: application/json\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def reply(status: int, body: bytes, *, close: bool, fields: bytes = b"", bodiless: bool = False) -> bytes:
    """Return a whole response. `bodiless` leaves the body out but keeps its length (HEAD)."""
    head = b"HTTP/1.1 %d %s\r\n" % (status, HTTPStatus(status).phrase.encode("ascii"))
    length = b"Content-Length: %d\r\n" % len(body)
    return b"".join(
        (
            head,
            _JSON,
            length,
            fields,
            b"Connection: close\r\n" if close else b"",
            b"\r\n",
            b"" if bodiless else body,
        )
    )


def error_body(status: int, message: str, dialect: Dialect | None) -> bytes:
    """Return the JSON that tells of an error."""
    text = f"agentsh-net: {message}"
    if dialect is not None:
        return dialect.error(status, text)
    kind = HTTPStatus(status).name.lower()
    return orjson.dumps({"type": "error", "error": {"type": kind, "message": text}})
