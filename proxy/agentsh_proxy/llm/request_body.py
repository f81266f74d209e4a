"""The body of a request as it comes in: where it ends, and its pieces where it is wanted whole.

What becomes of it is the connection's business.
"""

from __future__ import annotations

from agentsh_net.core.dialects.base import Dialect
from agentsh_net.core.web.http_head import RequestHead
from agentsh_proxy.chunks import ChunkedReader
from agentsh_proxy.llm.admission import RefusalError


class RequestBody:
    """One body, framed by its length or in chunks. `whole`: its end came. `overrun`: bytes of another message followed chunks."""

    __slots__ = ("_chunks", "_held", "_left", "overrun", "size", "whole")

    def __init__(self, head: RequestHead, length: int) -> None:
        self._chunks = ChunkedReader() if head.chunked else None
        self._left = length
        self._held: list[bytes] = []
        self.size = 0  # of what came
        self.whole = False
        self.overrun = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what of `data` is the body's, and what follows it. Raises ProtocolError for malformed chunks."""
        rest = b""
        if self._chunks is not None:
            data = self._chunks.feed(data)
            self.whole = self._chunks.complete
            # llhttp does not say where the next request began, so that one is not answered (RFC 9112 section 9.3.2).
            self.overrun = self._chunks.overrun
        else:
            left = self._left
            data, rest = data[:left], data[left:]
            self._left = left = left - len(data)
            self.whole = not left
        self.size += len(data)
        return data, rest

    def hold(self, data: bytes) -> None:
        """Keep a piece until the body is whole."""
        self._held.append(data)

    def joined(self, last: bytes) -> bytes:
        """Return all of the body, given its last piece."""
        return b"".join((*self._held, last)) if self._held else last


def too_large(dialect: Dialect) -> RefusalError:
    """Return the refusal of a body that is."""
    return RefusalError(413, "the request body is larger than proxy.max_request", dialect=dialect)
