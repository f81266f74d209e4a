"""The chunked coding (RFC 9112 section 7.1), read by llhttp and written here. The only file that knows httptools.

llhttp reads chunks strictly (no bare LF, no white space, no overflow); heads are read by `core.http_head`, so the parser is
given a head of our own and then body bytes only. Trailers are dropped: nothing here has a use for them that is safe.
"""

from __future__ import annotations

import httptools

from agentsh_net.core.errors import ProtocolError

_HEAD = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class ChunkedReader:
    """Reads one chunked body."""

    __slots__ = ("_parser", "_pieces", "complete", "on_body", "overrun")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.on_body = self._pieces.append  # looked up once by httptools: a chunk costs one list append
        self.complete = False
        self.overrun = False  # bytes of another message followed
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(_HEAD)

    def on_message_begin(self) -> None:
        """Note a second message in the same bytes (called by httptools)."""
        self.overrun = self.complete

    def on_message_complete(self) -> None:
        """Note the end of the body (called by httptools)."""
        self.complete = True

    def feed(self, data: bytes) -> bytes:
        """Return the body bytes in `data`. Raises ProtocolError for a malformed coding."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self.complete:
                raise ProtocolError(f"malformed chunked coding: {error}") from error
            self.overrun = True
        pieces = self._pieces
        if len(pieces) == 1:
            return pieces.pop()
        body = b"".join(pieces)
        pieces.clear()
        return body


def chunk(data: bytes) -> bytes:
    """Return `data` as one chunk; nothing for nothing, since an empty chunk would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
