"""The worker's end of the archive: hands over requests and answers piece by piece, and never waits for the disk.

What does not fit the bound while the archive is slow is left out from there on, and the record says so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, cast

from agentsh_net.core.links.record_link import Kind, about, encode
from agentsh_net.core.web.http_redaction import handed, written

# Waiting for the archive to read: a long prompt or two. Beyond it records lose their rest.
MAX_WAITING = 16 << 20
PATIENCE = 2.0  # seconds at the end
BATCH = 16 << 10  # bytes of a stream that are handed over at once: some tens of events


class Recorder(asyncio.Protocol):
    """The link, one for a worker."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._number = 0
        self._closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the supervisor's end tells
        """Record nothing more."""
        self._transport = None
        self._closed.set()

    async def close(self) -> None:
        """Hand over what waits, within a moment, and let go."""
        if self._transport is not None:
            self._transport.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await self._closed.wait()

    def begin(self, words: Mapping[str, Any]) -> Recording | None:
        """Begin a record; None where there is no archive, or it does not keep up."""
        self._number += 1
        recording = Recording(self, self._number)
        return recording if self.put(Kind.BEGIN, self._number, about(words)) else None

    def put(self, kind: Kind, number: int, payload: bytes) -> bool:
        """Hand over a piece; False where it was left out. The end of a record is never left out."""
        transport = self._transport
        if transport is None:
            return False
        if kind is not Kind.END and transport.get_write_buffer_size() + len(payload) > MAX_WAITING:
            return False
        transport.writelines(encode(kind, number, payload))
        return True


class Recording:
    """One record."""

    __slots__ = ("_number", "_recorder", "_size", "_truncated", "_waiting")

    def __init__(self, recorder: Recorder, number: int) -> None:
        self._recorder = recorder
        self._number = number
        self._waiting: list[bytes] = []
        self._size = 0
        self._truncated = False

    def request(self, opening: bytes, body: bytes) -> None:
        """Record a request as it leaves, without its credentials."""
        self._put(Kind.REQUEST, written(opening) + b"\r\n\r\n" + handed(body))

    def answer_head(self, head: bytes) -> None:
        """Record an answer's head, without its credentials."""
        self._waiting.append(written(head) + b"\r\n\r\n")

    def answer(self, data: bytes) -> None:
        """Record bytes of an answer's body, soon."""
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= BATCH:
            self._flush()

    def end(self, words: Mapping[str, Any]) -> None:
        """Record how it ended."""
        self._flush()
        self._recorder.put(Kind.END, self._number, about({**words, "truncated": self._truncated}))

    def _flush(self) -> None:
        if self._waiting:
            self._put(Kind.ANSWER, b"".join(self._waiting))
            self._waiting.clear()
            self._size = 0

    def _put(self, kind: Kind, payload: bytes) -> None:
        if not self._truncated:
            self._truncated = not self._recorder.put(kind, self._number, payload)
