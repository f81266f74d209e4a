"""Requests of an MCP client to the gateway: HTTP/1.1 read strictly and whole, bytes in, one request after another out.

What a request means is the router's business, who is slow or gone the connection's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import MAX_LENGTH_DIGITS, RequestHead, find_head, parse_request
from agentsh_proxy.chunks import ChunkedReader
from agentsh_proxy.load import Load

# Bytes of a head that is remembered while its connection lasts: clients repeat themselves, but for a long credential.
MAX_REMEMBERED: Final = 4 << 10
_LENGTH: Final = re.compile(rb"\r\nContent-Length:[ \t]*([0-9]+)\r\n", re.IGNORECASE)  # read strictly before


class HttpRequest(NamedTuple):
    """A whole request. `fields` are by lower-case name; `repeated` are the names that stood twice."""

    head: RequestHead
    fields: Mapping[str, str]
    names: Mapping[str, str]  # as they were spelt
    repeated: frozenset[str]
    body: bytes

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.head.method


@dataclass(frozen=True, slots=True)
class _Heard:
    """A head as it came and as it was read. The next may have another Content-Length, which stands between `before` and `after`."""

    before: bytes
    after: bytes  # empty where it has none
    length: int
    head: RequestHead  # without its length
    fields: Mapping[str, str]
    names: Mapping[str, str]
    repeated: frozenset[str]

    def again(self, buffer: bytes) -> tuple[int, int]:
        """Return how long the head is that a buffer begins with, and its body, if it is this one but for that; else zeros."""
        start = len(self.before)
        if not buffer.startswith(self.before):
            return 0, 0
        if not self.after:
            return start, self.length
        end = buffer.find(b"\r", start, start + MAX_LENGTH_DIGITS + 1)
        length = buffer[start:end]
        if end < 0 or not length.isdigit() or not buffer.startswith(self.after, end):
            return 0, 0
        return end + len(self.after), int(length)


class Requests:
    """What came of one connection. `head` is that of the request under way, until `done`."""

    __slots__ = ("_body", "_buffer", "_chunked", "_heard", "_left", "_load", "_max", "_size", "head")

    def __init__(self, max_request: Callable[[], int], load: Load) -> None:
        self.head: RequestHead | None = None
        self._max = max_request
        self._buffer = b""
        self._heard: _Heard | None = None  # the last head
        self._body: list[bytes] = []
        self._chunked: ChunkedReader | None = None
        self._left = 0
        self._size = 0  # of the body so far
        self._load = load

    def add(self, data: bytes) -> None:
        """Take what came."""
        self._buffer = self._buffer + data if self._buffer else data

    @property
    def ahead(self) -> int:
        """How many bytes wait that belong to no request under way."""
        return len(self._buffer)

    @property
    def awaited(self) -> bool:
        """Say whether the client waits to be told that its body is wanted (RFC 9110, section 10.1.1)."""
        head = self.head
        bodied = self._chunked is not None or self._left > 0
        return head is not None and head.expects_continue and bodied and not self._begun()

    def next(self) -> HttpRequest | None:
        """Return the next whole request; None until it is here. Raises ProtocolError for one that is none, or is too long."""
        if self.head is None and not self._read_head():
            return None
        body = self._read_body()
        if body is None:
            return None
        heard = self._heard
        assert heard is not None  # noqa: S101 - a body has a head
        if len(heard.before) + len(heard.after) > MAX_REMEMBERED:
            self._heard = None
        return HttpRequest(heard.head, heard.fields, heard.names, heard.repeated, body)

    def done(self) -> None:
        """Take note that the request under way is answered."""
        self.head = None

    def drop(self) -> None:
        """Forget what came of a body."""
        self._body = []
        self._load.size -= self._size
        self._size = 0

    def _begun(self) -> bool:
        return bool(self._body) or bool(self._buffer)

    def _read_head(self) -> bool:
        if not self._buffer:
            return False
        heard = self._heard
        size, length = heard.again(self._buffer) if heard is not None else (0, 0)
        if heard is None or not size:
            size = find_head(self._buffer)
            if not size:
                return False
            heard = self._heard = _hear(self._buffer[:size])
            length = heard.length
        self._buffer = self._buffer[size:]
        self.head = head = heard.head
        self._chunked = ChunkedReader() if head.chunked else None
        self._left = length
        if self._left > self._max():
            raise self._too_long()
        return True

    def _read_body(self) -> bytes | None:
        """Take what there is of the body; return it once it is whole."""
        if self._chunked is None and not self._body and len(self._buffer) >= self._left:
            whole, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
            return whole  # as it came: nothing of it waits here
        if not self._read_piece():
            return None
        body = b"".join(self._body)
        self.drop()
        return body

    def _read_piece(self) -> bool:
        """Take what there is of the body; say whether it is whole."""
        if self._chunked is not None:
            data, self._buffer = self._buffer, b""
            if data:
                self._keep(self._chunked.feed(data))
            if self._chunked.overrun:
                raise ProtocolError("bytes after a chunked body: requests are not pipelined behind one")
            if self._size > self._max():
                raise self._too_long()
            return self._chunked.complete
        data, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
        if data:
            self._keep(data)
            self._left -= len(data)
        return not self._left

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        self._body.append(data)
        self._size += len(data)
        self._load.size += len(data)
        if self._load.too_much:
            raise ProtocolError("too many large requests are on their way; try again", status=503)

    def _too_long(self) -> ProtocolError:
        return ProtocolError(
            f"the request is longer than {self._max()} bytes (gateway.max_request)", status=413
        )


def _hear(raw: bytes) -> _Heard:
    """Read a head. Raises ProtocolError."""
    head = parse_request(raw)
    named = _LENGTH.search(raw)
    before, after = (raw[: named.start(1)], raw[named.end(1) :]) if named is not None else (raw, b"")
    return _Heard(before, after, head.length or 0, head._replace(length=None), *_fields(raw))


def _fields(raw: bytes) -> tuple[dict[str, str], dict[str, str], frozenset[str]]:
    """Return the fields of a head that was read: values by lower-case name, names as spelt, and what repeats otherwise."""
    fields: dict[str, str] = {}
    names: dict[str, str] = {}
    repeated: set[str] = set()
    for line in raw.decode("latin-1").split("\r\n")[1:-2]:
        name, _, value = line.partition(":")
        lower, value = name.lower(), value.strip(" \t")
        if lower in fields:
            repeated.add(lower)
            fields[lower] += ", " + value
        else:
            fields[lower], names[lower] = value, name
    return fields, names, frozenset(repeated)
