"""Tokens in an answer become the session's values again: in a whole body, and in a stream, where a token may be split anywhere.

Only what may be the beginning of a token waits for what follows it. What holds no token of the session leaves as it came.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import Any, Final

from agentsh_net.core.dialects.base import Framing
from agentsh_net.core.dlp import zones
from agentsh_net.core.dlp.fragments import Channel, Fragment, fragments
from agentsh_net.core.dlp.strings import Cut, edited, texts, unescaped
from agentsh_net.core.dlp.tokens import TOKEN, Vault, begun
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.sse import Decoder, Frame
from agentsh_net.core.values import json_splice, strict_json
from agentsh_net.core.values.strict_json import Path

# A whole token, or a string that ends in what may be the beginning of one: all else passes unread.
_SIGN: Final = re.compile(rb'D(?:LP_|(?:LP?)?")|\\u00[0-7]')
# Events that wait for the rest of a token: one comes in a dozen pieces at most, others may come in between.
MAX_WAITING: Final = 64
MAX_BYTES: Final = 256 << 10


def restored(data: bytes, vault: Vault) -> bytes:
    """Return a JSON text with the session's values in the place of their tokens; what is no JSON stays as it is."""
    if not _SIGN.search(data):
        return data
    document = data.decode("utf-8", "surrogateescape")
    out, at = [], 0
    try:
        for text in texts(document, zones.zone):
            if "DLP_" not in text.value or not zones.is_searched(text) or not vault.knows(text.value):
                continue
            literal = document[text.start : text.end]
            nested = text.key in zones.NESTED and not text.is_key
            out += [document[at : text.start], _literal(literal, vault, nested=nested)]
            at = text.end
    except ProtocolError:
        return data
    return "".join([*out, document[at:]]).encode("utf-8", "surrogateescape") if out else data


def _literal(literal: str, vault: Vault, *, nested: bool) -> str:
    value, _ = unescaped(literal)
    spelt = _in_json if nested else str
    cuts = [Cut(*match.span(), vault.restored(match[0], spelt)) for match in TOKEN.finditer(value)]
    return edited(literal, cuts)


def _in_json(value: str) -> str:
    return encode_basestring_ascii(value)[1:-1]


@dataclass(slots=True)
class _Event:
    frame: Frame
    pieces: list[Fragment] = field(default_factory=list)


class Restorer:
    """One stream: bytes in, the same bytes out, but for tokens of the session. Without a `framing` it is server-sent events."""

    __slots__ = ("_events", "_frames", "_open", "_size", "_vault", "_waiting", "_write")

    def __init__(self, vault: Vault, max_frame: int, framing: Framing | None = None) -> None:
        self._vault = vault
        self._events: Decoder | None = None
        if framing is None:
            self._events = Decoder(max_frame)
            framing = Framing(self._events, _with_data)
        self._frames, self._write = framing
        self._waiting: list[_Event] = []
        self._size = 0
        # What may be the beginning of a token, by the channel it stands in.
        self._open: dict[Channel, str] = {}

    @property
    def holding(self) -> bool:
        """Say whether something waits for the rest of a token."""
        return bool(self._waiting)

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes."""
        events = self._events
        if (
            events is not None
            and not self._waiting
            and not events.pending
            and data.endswith(b"\n\n")
            and not _SIGN.search(data)
        ):
            events.skip()
            return data
        return b"".join(map(self._take, self._frames.feed(data)))

    def finish(self) -> bytes:
        """Take the end of the stream."""
        rest = self._frames.finish()
        return (self._take(rest) if rest is not None else b"") + self._release()

    def _take(self, frame: Frame) -> bytes:
        seen = frame.raw if self._events is not None else frame.data or b""  # a frame may wrap what it says
        if not self._waiting and not _SIGN.search(seen):
            return frame.raw
        event = _Event(frame, list(fragments(_read(frame))))
        self._waiting.append(event)
        self._size += len(frame.raw)
        for piece in event.pieces:
            text = self._open.pop(piece.channel, "") + piece.text
            if length := begun(text):
                self._open[piece.channel] = text[-length:]
        silent = frame.data is None or b'"ping"' in seen
        if not event.pieces and not silent:
            self._open.clear()  # the block ends, and with it the text
        if self._open and len(self._waiting) < MAX_WAITING and self._size < MAX_BYTES:
            return b""
        return self._release()

    def _release(self) -> bytes:
        waiting, self._waiting = self._waiting, []
        self._open.clear()
        self._size = 0
        edits: list[dict[Path, Any]] = [{} for _ in waiting]
        channels: dict[Channel, list[tuple[int, Fragment]]] = {}
        for n, event in enumerate(waiting):
            for piece in event.pieces:
                channels.setdefault(piece.channel, []).append((n, piece))
        for pieces in channels.values():
            for (n, piece), text in zip(pieces, self._joined([p for _, p in pieces]), strict=True):
                if text != piece.text:
                    edits[n][piece.path] = text
        return b"".join(
            self._written(event.frame, changed) for event, changed in zip(waiting, edits, strict=True)
        )

    def _joined(self, pieces: list[Fragment]) -> list[str]:
        """Return the pieces of a channel with their tokens restored, each in the piece in which it begins."""
        text = "".join(piece.text for piece in pieces)
        spelt = _in_json if pieces[0].nested else str
        found = [
            (m.span(), self._vault.restored(m[0], spelt))
            for m in TOKEN.finditer(text)
            if self._vault.knows(m[0])
        ]
        out, begin = [], 0
        for piece in pieces:
            end, at, parts = begin + len(piece.text), begin, []
            for (first, last), value in found:
                if first >= end or last <= begin:
                    continue
                parts.append(text[at : max(first, at)])
                if first >= begin:
                    parts.append(value)
                at = min(last, end)
            out.append("".join([*parts, text[at:end]]))
            begin = end
        return out

    def _written(self, frame: Frame, edits: dict[Path, Any]) -> bytes:
        data = frame.data
        if data is None:
            return frame.raw
        text = data
        if edits:
            try:
                text = json_splice.splice(text, edits)
            except (ProtocolError, ValueError):
                return frame.raw
        text = restored(text, self._vault)
        if text == data:
            return frame.raw
        return self._write(frame, text)


def _with_data(frame: Frame, text: bytes) -> bytes:
    data = frame.data or b""
    if frame.raw.count(data) == 1:
        return frame.raw.replace(data, text)
    name = b"event: " + frame.event.encode() + b"\n" if frame.event else b""
    return name + b"".join(b"data: " + line + b"\n" for line in text.split(b"\n")) + b"\n"


def _read(frame: Frame) -> Any:
    if frame.data is None or frame.oversize:
        return None
    try:
        return strict_json.read(frame.data).value
    except ProtocolError:
        return None
