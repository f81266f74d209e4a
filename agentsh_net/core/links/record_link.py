"""What workers hand to the archive of requests and bodies: pieces of a record, framed, each of a kind and a record's number.

Pure framing and shapes; a worker is not trusted, so that everything is checked and bounded on arrival.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import orjson

from agentsh_net.core.errors import ProtocolError

_HEAD: Final = struct.Struct("!BQI")
MAX_PIECE: Final = 64 << 10  # bytes: a few reads of a socket
_MAX_WORD: Final = 512  # characters of any text about a record; a path with its query is the longest
_NUMBERS: Final = ("status", "input_tokens", "output_tokens")
_WORDS: Final = ("session_id", "provider", "dialect", "model", "method", "path", "request_id", "outcome")


class Kind(IntEnum):
    """What a piece is."""

    BEGIN = 1  # JSON about the request
    REQUEST = 2  # bytes of the request: its head, then its body
    ANSWER = 3  # bytes of the answer, likewise
    END = 4  # JSON about the answer


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the record `number` of one worker."""

    kind: Kind
    number: int
    payload: bytes


def encode(kind: Kind, number: int, payload: bytes) -> Iterator[bytes]:
    """Yield a payload as it goes over the link, in as many pieces as it takes."""
    for at in range(0, max(1, len(payload)), MAX_PIECE):
        piece = payload[at : at + MAX_PIECE]
        yield _HEAD.pack(kind, number, len(piece)) + piece


def about(words: Mapping[str, Any]) -> bytes:
    """Return what is said about a record, bounded, as a payload."""
    cut = {k: _word(v) if isinstance(v, str) else v for k, v in words.items()}
    return orjson.dumps(cut)


def read_about(payload: bytes) -> dict[str, Any]:
    """Return what is said about a record. Raises ProtocolError for what a sound worker cannot say."""
    try:
        value = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise ProtocolError(f"a record's words are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ProtocolError("a record's words are not an object")
    for name, word in value.items():
        sound = (
            (name in _WORDS and isinstance(word, str) and len(word) <= _MAX_WORD)
            or (name in _NUMBERS and type(word) is int and 0 <= word < 1 << 53)
            or (name == "truncated" and isinstance(word, bool))
        )
        if not sound:
            raise ProtocolError(f"a record has an unsound {name[:40]!r}")
    return value


class Reader:
    """Bytes to pieces. Raises ProtocolError for what is no piece."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Piece]:
        """Take the next bytes and return the pieces that are complete."""
        self._buffer += data
        pieces: list[Piece] = []
        start = 0
        while len(self._buffer) - start >= _HEAD.size:
            kind, number, length = _HEAD.unpack_from(self._buffer, start)
            if kind not in Kind.__members__.values() or length > MAX_PIECE:
                raise ProtocolError("no piece of a record")
            end = start + _HEAD.size + length
            if len(self._buffer) < end:
                break
            pieces.append(Piece(Kind(kind), number, bytes(self._buffer[start + _HEAD.size : end])))
            start = end
        del self._buffer[:start]
        return pieces


def _word(text: str) -> str:
    return text[:_MAX_WORD].encode("utf-8", "replace").decode()[:_MAX_WORD]
