"""The chunked coding (RFC 9112 section 7.1), read by llhttp and written here. The only file that knows httptools.

llhttp reads chunks strictly (no bare LF, no white space, no overflow); heads are read by `core.web.http_head`, so the parser is
given a head of our own and then body bytes only. Trailers are dropped: nothing here has a use for them that is safe.
"""

from __future__ import annotations

from typing import Final

import httptools

from agentsh_net.core.errors import ProtocolError

_HEAD = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
_LINE_END: Final = b"\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return `data` as one chunk; nothing for nothing, since an empty chunk would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


# How so many bytes begin that are one chunk, written as above: most events of a stream come as one, and have some hundred bytes.
_HEADS: Final = {len(whole): whole[: -size - 2] for size in range(1, 1024) for whole in (chunk(bytes(size)),)}


def only_chunk(data: bytes) -> bytes:
    """Return the body of bytes that are one chunk as `chunk` writes it, and nothing else; empty where they are not."""
    head = _HEADS.get(len(data))
    if head is None or data[: len(head)] != head or data[-2:] != _LINE_END:
        return b""
    return data[len(head) : -2]


class _Heard:
    """What llhttp said; apart from the reader, since the parser holds on to whom it tells, and a cycle is left to the garbage collector."""

    __slots__ = ("__weakref__", "between", "complete", "on_body", "overrun", "own", "pieces")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.on_body = self.pieces.append  # looked up once by httptools: a chunk costs one list append
        self.between = True  # two chunks, or within the line that begins one
        self.complete = False
        self.own = 0  # pieces in the last read of a body that is complete: what follows is of another message
        self.overrun = False  # bytes of another message followed

    def on_chunk_header(self) -> None:
        """Note the end of a line that begins a chunk (called by httptools)."""
        self.between = False

    def on_chunk_complete(self) -> None:
        """Note the end of a chunk (called by httptools)."""
        self.between = True

    def on_message_begin(self) -> None:
        """Note a second message in the same bytes (called by httptools)."""
        self.overrun = self.complete

    def on_message_complete(self) -> None:
        """Note the end of the body (called by httptools)."""
        if not self.complete:
            self.complete, self.own = True, len(self.pieces)


class ChunkedReader:
    """Reads one chunked body. Then `complete` is set, and `overrun` where bytes of another message followed.

    While it is `between` two chunks it need not be told of a whole one (`only_chunk`).
    """

    __slots__ = ("_feed", "_heard", "between", "complete", "overrun")

    def __init__(self) -> None:
        self._heard = _Heard()
        self._feed = httptools.HttpRequestParser(self._heard).feed_data
        self._feed(_HEAD)
        self.between = True  # two chunks: the next byte begins one
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
            del heard.pieces[heard.own :]
        self.between = heard.between and data.endswith(_LINE_END)
        pieces = heard.pieces
        if len(pieces) == 1:
            return pieces.pop()
        body = b"".join(pieces)
        pieces.clear()
        return body
