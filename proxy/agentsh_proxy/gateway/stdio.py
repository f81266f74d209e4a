"""A stdio server behind the gateway: its process is the supervisor's to start, its pipes are ours to read and write.

Lines in, lines out. What they say is the bridge's business.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Server
from agentsh_net.core.naming.folding import visible
from agentsh_proxy.gateway.pipe import Failed, Hear

MAX_ANSWER: Final = 8192  # bytes of what the supervisor says about a process
START_SECONDS: Final = 10.0  # to be told that a process runs: it is a fork, not yet a word of the server
HIGH_WATER: Final = 1 << 20  # bytes of lines that wait before the pipe is read no further
STDERR_TAIL: Final = 500  # characters of what a server said last, for the error that tells of its end


class Starter:
    """Asks the supervisor for processes of declared servers."""

    def __init__(self, link: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._link = link
        self._loop = loop
        self._number = 0
        self._waiting: dict[int, asyncio.Future[tuple[int, ...]]] = {}
        self._ended: dict[int, Callable[[str], None]] = {}
        link.setblocking(False)
        loop.add_reader(link, self._hear)

    async def start(self, server_id: str, ended: Callable[[str], None]) -> tuple[int, tuple[int, ...]]:
        """Return a new process's number and its pipes (input, output, errors). Raises ProtocolError."""
        self._number += 1
        number = self._number
        waiting: asyncio.Future[tuple[int, ...]] = self._loop.create_future()
        self._waiting[number] = waiting
        self._ended[number] = ended
        try:
            self._say({"start": number, "server": server_id})
            async with asyncio.timeout(START_SECONDS):
                return number, await waiting
        except TimeoutError as error:
            self.end(number)
            raise ProtocolError("the supervisor does not start the server", status=503) from error
        except asyncio.CancelledError:
            self.end(number)
            raise
        finally:
            del self._waiting[number]

    def end(self, number: int) -> None:
        """End a process."""
        self._ended.pop(number, None)
        try:
            self._say({"end": number})
        except ProtocolError:
            return  # the supervisor is gone, and so are its children

    def close(self) -> None:
        """Ask no more."""
        self._loop.remove_reader(self._link)
        self._link.close()

    def _say(self, question: dict[str, Any]) -> None:
        try:
            self._link.send(json.dumps(question).encode())
        except OSError as error:
            raise ProtocolError(f"the supervisor does not listen: {error.strerror}", status=503) from error

    def _hear(self) -> None:
        try:
            data, pipes, _, _ = socket.recv_fds(self._link, MAX_ANSWER, 3)
        except BlockingIOError:
            return
        except OSError:
            data, pipes = b"", []
        if not data:
            self._loop.remove_reader(self._link)
            return
        self._take(json.loads(data), tuple(pipes))

    def _take(self, answer: dict[str, Any], pipes: tuple[int, ...]) -> None:
        match answer:
            case {"started": int(number)} if number in self._waiting and not self._waiting[number].done():
                self._waiting[number].set_result(pipes)
                return
            case {"failed": int(number), "error": str(why)} if number in self._waiting:
                self._ended.pop(number, None)
                if not self._waiting[number].done():
                    self._waiting[number].set_exception(ProtocolError(why, status=502))
            case {"ended": int(number), "status": str(status)} if number in self._ended:
                self._ended.pop(number)(status)
        for pipe in pipes:  # nobody waits for them any more
            os.close(pipe)


class StdioPipe:
    """One process of a server. `take` gets each line; `lost` why there will be no more."""

    def __init__(self, server: Server, starter: Starter, max_line: Callable[[], int]) -> None:
        self._server = server
        self._starter = starter
        self._max_line = max_line
        self._number = 0
        self._in: asyncio.WriteTransport | None = None
        self._lines = _Lines(max_line)
        self._errors = _Tail()
        self._writing = _Writing()
        self._status = ""
        self._closed = False

    async def open(self) -> None:
        """Start the process. Raises ProtocolError."""
        loop = asyncio.get_running_loop()
        self._number, pipes = await self._starter.start(self._server.id, self._on_ended)
        if self._closed:  # meanwhile
            self._starter.end(self._number)
            for pipe in pipes:
                os.close(pipe)
            raise ProtocolError(f"server {self._server.id} was let go while it started", status=503)
        files = [os.fdopen(fd, mode, 0) for fd, mode in zip(pipes, ("wb", "rb", "rb"), strict=True)]
        transport, _ = await loop.connect_write_pipe(lambda: self._writing, files[0])
        self._in = transport
        await loop.connect_read_pipe(lambda: self._lines, files[1])
        await loop.connect_read_pipe(lambda: self._errors, files[2])

    def attach(self, hear: Hear) -> None:
        """Have lines heard as they come; what is not heard waits for `receive`."""
        self._lines.hear = hear

    def start(self, message: bytes, failed: Failed) -> bool:  # noqa: ARG002 - a pipe that takes a line has taken it
        """Write a line if the pipe is not full, and say so."""
        if self._in is None or self._in.is_closing() or self._closed or self._writing.full:
            return False
        self._in.write(message + b"\n")
        return True

    async def send(self, message: bytes) -> None:
        """Write a line. Raises ProtocolError where the server is gone."""
        if self._in is None or self._in.is_closing() or self._closed:
            raise ProtocolError(self.why(), status=502)
        self._in.write(message + b"\n")
        await self._writing.drained()

    async def receive(self) -> bytes:
        """Return the next line. Raises ProtocolError where there is none and will be none."""
        line = await self._lines.next()
        if line is None:
            raise ProtocolError(self._lines.fault or self.why(), status=502)
        return line

    def why(self) -> str:
        """Say how the server ended."""
        said = f": {visible(self._errors.text)}" if self._errors.text else ""
        return f"server {self._server.id} ended ({self._status or 'its output is closed'}){said}"

    def close(self) -> None:
        """End the server: its input ends first, so that it can end by itself."""
        if self._closed:
            return
        self._closed = True
        if self._in is not None:
            self._in.close()
        self._lines.close()
        self._errors.close()
        if self._number:
            self._starter.end(self._number)

    def _on_ended(self, status: str) -> None:
        self._status = status


class _Writing(asyncio.BaseProtocol):
    """The input of a process: who writes waits while the pipe is full."""

    def __init__(self) -> None:
        self._full: asyncio.Future[None] | None = None

    def pause_writing(self) -> None:
        self._full = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        full, self._full = self._full, None
        if full is not None and not full.done():
            full.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        self.resume_writing()

    @property
    def full(self) -> bool:
        """Say whether who writes has to wait."""
        return self._full is not None

    async def drained(self) -> None:
        """Wait until the pipe takes more."""
        if self._full is not None:
            await asyncio.shield(self._full)


class _Lines(asyncio.Protocol):
    """The output of a process, line by line, bounded."""

    def __init__(self, max_line: Callable[[], int]) -> None:
        self._max_line = max_line
        self._parts: list[bytes] = []
        self._size = 0
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._news = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None
        self._paused = False
        self._over = False
        self.fault = ""
        self.hear: Hear = lambda _: False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._parts.append(line)
            self._take(b"".join(self._parts))
            self._parts, self._size = [], 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > self._max_line():
            self.fault = (
                f"the server wrote a line of more than {self._max_line()} bytes (gateway.max_response)"
            )
            self._parts = []
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        self._over = True
        self._news.set()

    def close(self) -> None:
        self._over = True
        self._news.set()
        if self._transport is not None:
            self._transport.close()

    async def next(self) -> bytes | None:
        """Return the next line, None at the end."""
        while not self._queue:
            if self._over:
                return None
            self._news.clear()
            await self._news.wait()
        line = self._queue.popleft()
        self._queued -= len(line)
        if self._paused and self._queued <= HIGH_WATER // 2 and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return line

    def _take(self, line: bytes) -> None:
        """Have a line heard; what is not heard at once waits, and so does all that comes behind it."""
        if not line.strip() or (not self._queue and self.hear(line)):
            return
        self._queue.append(line)
        self._queued += len(line)
        self._news.set()
        if self._queued > HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()


class _Tail(asyncio.Protocol):
    """What a server wrote to its standard error last."""

    def __init__(self) -> None:
        self.text = ""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.text = (self.text + data[-4 * STDERR_TAIL :].decode("utf-8", "replace"))[-STDERR_TAIL:].strip(
            "\n"
        )

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
