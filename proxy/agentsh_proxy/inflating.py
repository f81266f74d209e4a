"""Content codings (gzip, deflate, br, zstd, and several of them stacked), with caps: what is inspected is what the reader would read.

A coding that is not known here is the caller's to refuse.
"""

from __future__ import annotations

import zlib
from typing import Final, Protocol

import brotli
import zstandard

from agentsh_net.core.errors import ProtocolError

# What one feed may grow to. A read is at most 256 KiB, honest text shrinks 20-fold at most; beyond is a bomb.
MAX_GROWTH = 16 << 20
MAX_STACKED = 3  # codings one over the other; nobody honest sends more than one
_GZIP = 16 + zlib.MAX_WBITS
_BROTLI_PIECE: Final = 1 << 20  # bytes brotli gives out at a time; it may give twice as many
# A zstd block of four bytes may become 128 KiB: what this many bytes of input become fits into memory before it is counted.
_ZSTD_PIECE: Final = 128
# RFC 8878, section 3.1.1.1.2: what every decoder should support, and browsers do.
_ZSTD_WINDOW: Final = 8 << 20


class Decoder(Protocol):
    """Decodes one body."""

    def feed(self, data: bytes, *, cap: int = MAX_GROWTH) -> bytes:
        """Return what `data` decodes to. Raises ProtocolError for a corrupt body and for one that grows past `cap` bytes."""
        ...

    def finish(self) -> None:
        """Take the end of the body. Raises ProtocolError inside it."""
        ...


class Inflater:
    """Gzip (with any number of members) or deflate (zlib-wrapped as RFC 9110 says, or raw as some send it)."""

    __slots__ = ("_bits", "_decoder", "_fresh")

    def __init__(self, coding: str) -> None:
        self._bits = zlib.MAX_WBITS if coding == "deflate" else _GZIP
        self._decoder = zlib.decompressobj(self._bits)
        self._fresh = True  # nothing of the current member was read yet

    def feed(self, data: bytes, *, cap: int = MAX_GROWTH) -> bytes:
        """See Decoder."""
        out: list[bytes] = []
        room = cap
        while data:
            piece = self._decode(data, room + 1)
            room -= len(piece)
            if room < 0 or self._decoder.unconsumed_tail:
                raise _grown(cap)
            out.append(piece)
            data = self._decoder.unused_data
            if self._decoder.eof:
                self._decoder = zlib.decompressobj(self._bits)
                self._fresh = True
        return b"".join(out)

    def finish(self) -> None:
        """See Decoder."""
        if not self._fresh:
            raise _cut_short()

    def _decode(self, data: bytes, limit: int) -> bytes:
        try:
            piece = self._decoder.decompress(data, limit)
        except zlib.error as error:
            if not self._fresh or self._bits != zlib.MAX_WBITS:
                raise _corrupt(error) from error
            self._bits = -zlib.MAX_WBITS
            self._decoder = zlib.decompressobj(self._bits)
            return self._decode(data, limit)
        self._fresh = False
        return piece


class Brotli:
    """br (RFC 7932): one stream, nothing behind it."""

    __slots__ = ("_decoder", "_fresh")

    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()
        self._fresh = True

    def feed(self, data: bytes, *, cap: int = MAX_GROWTH) -> bytes:
        """See Decoder."""
        if not data:
            return b""
        if self._ended():
            raise _corrupt("bytes behind its end")
        self._fresh = False
        out: list[bytes] = []
        room = cap
        try:
            while True:
                piece = self._decoder.process(data, output_buffer_limit=min(room + 1, _BROTLI_PIECE))
                room -= len(piece)
                if room < 0:
                    raise _grown(cap)
                out.append(piece)
                data = b""
                if self._decoder.is_finished() or self._decoder.can_accept_more_data():
                    return b"".join(out)
        except brotli.error as error:
            raise _corrupt(error) from error

    def finish(self) -> None:
        """See Decoder."""
        if not (self._fresh or self._ended()):
            raise _cut_short()

    def _ended(self) -> bool:
        try:
            return bool(self._decoder.is_finished())
        except brotli.error as error:  # what it was fed before was corrupt
            raise _corrupt(error) from error


class Zstd:
    """zstd (RFC 8878), with any number of frames."""

    __slots__ = ("_decoder", "_factory", "_fresh")

    def __init__(self) -> None:
        self._factory = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._decoder = self._factory.decompressobj()
        self._fresh = True

    def feed(self, data: bytes, *, cap: int = MAX_GROWTH) -> bytes:
        """See Decoder."""
        out: list[bytes] = []
        room = cap
        for at in range(0, len(data), _ZSTD_PIECE):
            piece = data[at : at + _ZSTD_PIECE]
            while piece:
                plain, piece = self._decode(piece)
                room -= len(plain)
                if room < 0:
                    raise _grown(cap)
                out.append(plain)
        return b"".join(out)

    def finish(self) -> None:
        """See Decoder."""
        if not self._fresh:
            raise _cut_short()

    def _decode(self, piece: bytes) -> tuple[bytes, bytes]:
        """Return what a piece decodes to, and what of it belongs to the next frame."""
        self._fresh = False
        try:
            plain = self._decoder.decompress(piece)
        except zstandard.ZstdError as error:
            raise _corrupt(error) from error
        if not self._decoder.eof:
            return plain, b""
        rest = self._decoder.unused_data
        self._decoder = self._factory.decompressobj()
        self._fresh = True
        return plain, rest


class Stacked:
    """Codings one over the other; the last one named is undone first."""

    __slots__ = ("_decoders",)

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def feed(self, data: bytes, *, cap: int = MAX_GROWTH) -> bytes:
        """See Decoder."""
        for decoder in self._decoders:
            data = decoder.feed(data, cap=cap)
        return data

    def finish(self) -> None:
        """See Decoder."""
        for decoder in self._decoders:
            decoder.finish()


def inflater(encoding: str) -> Decoder | None:
    """Return the decoder for a Content-Encoding, None for the identity. Raises ProtocolError 415 for one that cannot be read."""
    match encoding:
        case "" | "identity":
            return None
        case "gzip" | "x-gzip":
            return Inflater("gzip")
        case "deflate":
            return Inflater("deflate")
        case "br":
            return Brotli()
        case "zstd":
            return Zstd()
    names = [name.strip() for name in encoding.split(",")]
    if not 1 < len(names) <= MAX_STACKED:
        raise ProtocolError(f"the content coding {encoding[:40]!r} cannot be inspected", status=415)
    decoders = [decoder for name in reversed(names) if (decoder := inflater(name)) is not None]
    return Stacked(decoders) if decoders else None


def partly_known(encoding: str) -> bool:
    """Say whether some of the codings named can be undone: clients skip those they do not know, and undo the others."""
    for name in encoding.split(","):
        try:
            if inflater(name.strip()) is not None:
                return True
        except ProtocolError:
            continue
    return False


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


def _grown(cap: int) -> ProtocolError:
    return ProtocolError(f"a compressed body grows past {cap} bytes", status=413)


def _corrupt(why: object) -> ProtocolError:
    return ProtocolError(f"a compressed body is corrupt: {why}")


def _cut_short() -> ProtocolError:
    return ProtocolError("a compressed body ends early")
