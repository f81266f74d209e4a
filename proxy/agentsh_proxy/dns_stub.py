"""The DNS stub, a process without privileges: forwards questions, and holds each answer until the supervisor lets it go.

Started by the supervisor and by nobody else, with sockets that are bound already. It knows neither names nor policy; without its
supervisor it ends, so that no answer goes unheld.
"""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links.stub_link import (
    MAX_DATAGRAM,
    Decided,
    Held,
    Message,
    Serving,
    Upstream,
    decode,
    encode,
)
from agentsh_net.core.network.dns_message import question_of
from agentsh_proxy import launching
from agentsh_proxy.dns_questions import NOTIMP, ask, failure

# Questions by UDP under way; one more takes the place of the eldest, whose name server is the slowest: nobody keeps the others from
# asking. A machine asks some tens a second; at 2 s of patience this is 250 a second with a dead name server.
MAX_QUESTIONS = 512
# TCP clients at once; one more takes the place of the one that has said nothing for the longest time.
MAX_STREAMS = 64
MAX_QUERY = 4096  # of a client; with EDNS and cookies a question has some 100 bytes
_IDLE = 10.0  # seconds that a TCP client may say nothing (RFC 7766, 6.2.3)
# Seconds that an answer is held at most: longer than the planes ever take, shorter than the C library waits.
HOLD = 4.0
_BATCH = 64


def main(arguments: list[str]) -> int:
    """Run the stub until its supervisor is gone. Returns the exit status."""
    parser = launching.arguments("agentsh_proxy dns-stub")
    parser.add_argument("--udp-fd", type=int, required=True, help="a bound UDP socket")
    parser.add_argument("--tcp-fd", type=int, required=True, help="a bound TCP socket")
    options = parser.parse_args(arguments)
    if launching.confined(options, "DNS stub") is None:
        return launching.EXIT_UNCONFINED
    asyncio.run(
        serve(*(socket.socket(fileno=fd) for fd in (options.link_fd, options.udp_fd, options.tcp_fd)))
    )
    return 0


async def serve(link: socket.socket, udp: socket.socket, tcp: socket.socket) -> None:
    """Answer until the link ends."""
    stub = Stub(link)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(stub), sock=udp)
    server = await asyncio.start_server(stub.stream, sock=tcp)
    stub.send(Serving())
    await stub.ended
    transport.close()
    server.close()


class Stub:
    """The questions under way, and the answers that wait."""

    def __init__(self, link: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._link = link
        self._servers: tuple[str, ...] = ()
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._number = 0
        self._streams: set[asyncio.StreamWriter] = set()
        # Those of whom a query is awaited, and questions by UDP, the eldest first.
        self._silent: dict[asyncio.StreamWriter, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.ended: asyncio.Future[None] = loop.create_future()
        link.setblocking(False)
        loop.add_reader(link.fileno(), self._read)

    async def answer(self, query: bytes, *, stream: bool) -> bytes | None:
        """Return what a client may have as the answer to its query; nothing to what is no query."""
        try:
            question_of(query)
        except ProtocolError:
            return None
        if query[2] & 0x80 or len(query) > MAX_QUERY:
            return None
        # A change (RFC 2136) or a notice would come from this host, which name servers may trust.
        if query[2] & 0x78:
            return failure(query, NOTIMP)
        answer = await ask(query, self._servers, stream=stream)
        return answer if answer is not None and await self._released(answer) else failure(query)

    def datagram(self, query: bytes, reply: _Reply) -> None:
        """Answer a query that came by UDP."""

        async def work() -> None:
            answer = await self.answer(query, stream=False)
            if answer is not None:
                reply(answer)

        if len(self._tasks) >= MAX_QUESTIONS:
            eldest = next(iter(self._tasks))
            del self._tasks[eldest]
            eldest.cancel()
        task = asyncio.get_running_loop().create_task(work())
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one TCP client, a query at a time."""
        if len(self._streams) >= MAX_STREAMS:
            self._hang_up_on_the_silent()
        self._streams.add(writer)
        try:
            while len(self._streams) <= MAX_STREAMS:
                self._silent[writer] = None
                async with asyncio.timeout(_IDLE):
                    query = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
                self._silent.pop(writer, None)
                answer = await self.answer(query, stream=True)
                if answer is None:
                    return
                writer.write(len(answer).to_bytes(2, "big") + answer)
                async with asyncio.timeout(_IDLE):
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return  # the client is gone, or has nothing more to say
        finally:
            self._streams.discard(writer)
            self._silent.pop(writer, None)
            writer.close()

    def _hang_up_on_the_silent(self) -> None:
        if eldest := next(iter(self._silent), None):
            del self._silent[eldest]
            self._streams.discard(eldest)
            eldest.transport.abort()

    def send(self, message: Message) -> bool:
        """Tell the supervisor; say whether that was possible."""
        try:
            self._link.send(encode(message))
        except BlockingIOError:
            return False
        except OSError:
            self._end()
            return False
        return True

    async def _released(self, answer: bytes) -> bool:
        if answer[6:8] == b"\0\0":
            return True  # no record that an address could be in
        self._number = number = (self._number + 1) & 0xFFFFFFFF
        decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[number] = decided
        try:
            if not self.send(Held(number, answer)):
                return False
            async with asyncio.timeout(HOLD):
                return await decided
        except TimeoutError:
            return False
        finally:
            del self._waiting[number]

    def _read(self) -> None:
        for _ in range(_BATCH):
            try:
                data = self._link.recv(MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._end()
                return
            self._obey(decode(data))

    def _obey(self, message: Message) -> None:
        match message:
            case Upstream(servers):
                self._servers = servers
            case Decided(number, release):
                waiting = self._waiting.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(release)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._link.fileno())
        if not self.ended.done():
            self.ended.set_result(None)


class _Reply:
    """Where an answer goes."""

    def __init__(self, transport: asyncio.DatagramTransport, client: tuple[str, int]) -> None:
        self._transport, self._client = transport, client

    def __call__(self, answer: bytes) -> None:
        self._transport.sendto(answer, self._client)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, stub: Stub) -> None:
        self._stub = stub

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._stub.datagram(data, _Reply(self._transport, addr))
