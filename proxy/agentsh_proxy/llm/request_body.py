"""The body of a request as it comes in: where it ends, and its pieces where it is wanted whole.

What becomes of it is the connection's business.
"""

from __future__ import annotations

from agentsh_net.core.web.http_head import RequestHead
from agentsh_proxy.chunks import ChunkedReader
from agentsh_proxy.llm.admission import RefusalError
from agentsh_proxy.load import Load


class RequestBody:
    """One body, framed by its length or in chunks. `whole`: its end came. `overrun`: bytes of another message followed chunks."""

    __slots__ = ("_chunks", "_held", "_left", "_load", "overrun", "size", "whole")

    def __init__(self, head: RequestHead, length: int, load: Load) -> None:
        self._chunks = ChunkedReader() if head.chunked else None
        self._left = length
        self._held: list[bytes] = []
        self._load = load
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
        """Keep a piece until the body is whole. Raises RefusalError where too many keep too much."""
        self._held.append(data)
        self._load.size += len(data)
        if self._load.too_much:
            raise RefusalError(503, "too many large requests are on their way; try again")

    def joined(self, last: bytes) -> bytes:
        """Return all of the body, given its last piece."""
        if not self._held:
            return last
        whole = b"".join((*self._held, last))
        self.drop()
        return whole

    def drop(self) -> None:
        """Forget what is kept."""
        self._load.size -= sum(map(len, self._held))
        self._held.clear()


def too_large() -> RefusalError:
    """Return the refusal of a body that is."""
    return RefusalError(413, "the request body is larger than proxy.max_request")
