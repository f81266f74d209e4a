"""The supervisor's end of one worker's link: messages out, acknowledgements awaited, and nothing that comes believed unchecked.

Processes and sockets to listen on are `pool`'s business; what an event means is the daemon's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from agentsh_net.core.audit.events import Event
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links import link

# Bytes read at once, into a place of our own: asyncio would ask the system for 256 KiB of memory for each message.
_SPACE: Final = 64 << 10


class WorkerLink(asyncio.BufferedProtocol):
    """One conversation. A worker that breaks its rules is broken or taken over: `on_violation` is told why."""

    def __init__(
        self, on_event: Callable[[Event], None], on_report: Callable[[Mapping[str, Any]], None] | None
    ) -> None:
        self._on_event = on_event
        self._on_report = on_report
        self._space = memoryview(bytearray(_SPACE))
        self._framer = link.Framer(link.MAX_FROM_WORKER)
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self.on_violation: Callable[[str], None] = lambda _: None
        self.counters: Mapping[str, int] = {}
        self._heard = False
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the process tells why
        """Answer everyone who waits: the worker will not."""
        self._transport = None
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(False)
        if not self.closed.done():
            self.closed.set_result(None)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """Say where to put what comes."""
        return self._space

    def buffer_updated(self, nbytes: int) -> None:
        """Take messages; a worker that breaks the rules is broken or taken over, and is ended."""
        self._heard = True
        try:
            for payload in self._framer.feed(bytes(self._space[:nbytes])):
                self._take(link.decode_from_worker(payload))
        except ProtocolError as error:
            self.on_violation(f"broke the rules of its link: {error}")

    def heard(self) -> bool:
        """Say whether anything came since this was asked last."""
        heard, self._heard = self._heard, False
        return heard

    def close(self) -> None:
        """End the conversation."""
        if self._transport is not None:
            self._transport.abort()

    def send(self, message: link.ToWorker) -> None:
        """Send a message and forget it."""
        if self._transport is not None:
            self._transport.write(link.encode(message))

    async def tell(self, messages: list[link.ToWorker], seconds: float) -> bool:
        """Send messages and say whether the last was acknowledged in time."""
        seq = messages[-1].seq
        acknowledged: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._transport is None:
            return False
        self._waiting[seq] = acknowledged
        for message in messages:
            self.send(message)
        try:
            async with asyncio.timeout(seconds):
                return await acknowledged
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(seq, None)

    def _take(self, message: link.FromWorker) -> None:
        match message:
            case link.Ack(seq, _):
                waiting = self._waiting.get(seq)
                if waiting is not None and not waiting.done():
                    waiting.set_result(True)
            case link.Events(found):
                for value in found:
                    self._on_event(link.event_from_worker(value))
            case link.Counters(counters):
                self.counters = counters
            case link.Report(report) if self._on_report is not None:
                self._on_report(report)
            case link.Report():
                raise ProtocolError("it reports on servers that it was not told to ask")
