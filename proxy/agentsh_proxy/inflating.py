"""Content codings that can be read here (gzip, deflate), with caps: what is inspected is what the client would read.

Codings that the standard library cannot read (br, zstd) are the caller's to refuse.
"""

from __future__ import annotations

import zlib

from agentsh_net.core.errors import ProtocolError

# What one feed may grow to. A read is at most 256 KiB, honest text shrinks 20-fold at most; beyond is a bomb.
MAX_GROWTH = 16 << 20
_GZIP = 16 + zlib.MAX_WBITS


class Inflater:
    """Decodes one body, gzip (with any number of members) or deflate (zlib-wrapped as RFC 9110 says, or raw as some send it)."""

    __slots__ = ("_bits", "_decoder", "_fresh")

    def __init__(self, coding: str) -> None:
        self._bits = zlib.MAX_WBITS if coding == "deflate" else _GZIP
        self._decoder = zlib.decompressobj(self._bits)
        self._fresh = True  # nothing of the current member was read yet

    def feed(self, data: bytes, *, cap: int = MAX_GROWTH) -> bytes:
        """Return what `data` decodes to. Raises ProtocolError for a corrupt body and for one that grows past `cap` bytes."""
        out: list[bytes] = []
        room = cap
        while data:
            piece = self._decode(data, room + 1)
            room -= len(piece)
            if room < 0 or self._decoder.unconsumed_tail:
                raise ProtocolError(f"a compressed body grows past {cap} bytes", status=413)
            out.append(piece)
            data = self._decoder.unused_data
            if self._decoder.eof:
                self._decoder = zlib.decompressobj(self._bits)
                self._fresh = True
        return b"".join(out)

    def finish(self) -> None:
        """Take the end of the body. Raises ProtocolError inside a member."""
        if not self._fresh:
            raise ProtocolError("a compressed body ends early")

    def _decode(self, data: bytes, limit: int) -> bytes:
        try:
            piece = self._decoder.decompress(data, limit)
        except zlib.error as error:
            if not self._fresh or self._bits != zlib.MAX_WBITS:
                raise ProtocolError(f"a compressed body is corrupt: {error}") from error
            self._bits = -zlib.MAX_WBITS
            self._decoder = zlib.decompressobj(self._bits)
            return self._decode(data, limit)
        self._fresh = False
        return piece


def inflater(encoding: str) -> Inflater | None:
    """Return the decoder for a Content-Encoding, None for the identity. Raises ProtocolError 415 for one that cannot be read."""
    match encoding:
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return Inflater("gzip")
        case "deflate":
            return Inflater("deflate")
        case _:
            raise ProtocolError(f"the content coding {encoding[:40]!r} cannot be inspected", status=415)


def inflate_whole(data: bytes, encoding: str, *, cap: int) -> bytes:
    """Return a whole body decoded. Raises ProtocolError."""
    if not encoding:
        return data
    decoder = inflater(encoding)
    if decoder is None:
        return data
    plain = decoder.feed(data, cap=cap)
    decoder.finish()
    return plain
