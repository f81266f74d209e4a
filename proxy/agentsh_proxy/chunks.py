"""The chunked coding (RFC 9112 section 7.1), read by llhttp and written here. The only file that knows httptools.

llhttp reads chunks strictly (no bare LF, no white space, no overflow); heads are read by `core.web.http_head`, so the parser is
given a head of our own and then body bytes only. Trailers are dropped: nothing here has a use for them that is safe.
"""

from __future__ import annotations

import httptools

from agentsh_net.core.errors import ProtocolError

_HEAD = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class _Heard:
    """What llhttp said; apart from the reader, since the parser holds on to whom it tells, and a cycle is left to the garbage collector."""

    __slots__ = ("__weakref__", "complete", "on_body", "overrun", "pieces")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.on_body = self.pieces.append  # looked up once by httptools: a chunk costs one list append
        self.complete = False
        self.overrun = False  # bytes of another message followed

    def on_message_begin(self) -> None:
        """Note a second message in the same bytes (called by httptools)."""
        self.overrun = self.complete

    def on_message_complete(self) -> None:
        """Note the end of the body (called by httptools)."""
        self.complete = True


class ChunkedReader:
    """Reads one chunked body. Then `complete` is set, and `overrun` where bytes of another message followed."""

    __slots__ = ("_feed", "_heard", "complete", "overrun")

    def __init__(self) -> None:
        self._heard = _Heard()
        self._feed = httptools.HttpRequestParser(self._heard).feed_data
        self._feed(_HEAD)
        self.complete = False
        self.overrun = False

    def feed(self, data: bytes) -> bytes:
        """Return the body bytes in `data`. Raises ProtocolError for a malformed coding."""
        heard = self._heard
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            if not heard.complete:
                raise ProtocolError(f"malformed chunked coding: {error}") from error
            heard.overrun = True
        if heard.complete:
            self.complete, self.overrun = True, heard.overrun
        pieces = heard.pieces
        if len(pieces) == 1:
            return pieces.pop()
        body = b"".join(pieces)
        pieces.clear()
        return body


def chunk(data: bytes) -> bytes:
    """Return `data` as one chunk; nothing for nothing, since an empty chunk would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
