"""A worker process: confined first, then fed by the supervisor's link, then serving.

It owns no policy and no state worth keeping: killed, it is replaced, and only its open streams end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from mmap import MAP_SHARED, PROT_READ, mmap
from typing import Any, cast

import uvloop

from agentsh_net.core import snapshot
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links import link
from agentsh_proxy import launching
from agentsh_proxy.charging import REFUSING, Charges
from agentsh_proxy.counting import Counts
from agentsh_proxy.gateway.connection import GatewayConnection
from agentsh_proxy.gateway.router import Gateway
from agentsh_proxy.gateway.router import Means as GatewayMeans
from agentsh_proxy.gateway.view import upstream_schemes
from agentsh_proxy.llm.reporting import Reporter
from agentsh_proxy.llm.server import ClientConnection
from agentsh_proxy.llm.service import Service
from agentsh_proxy.llm.upstream_pool import Pool
from agentsh_proxy.llm.view import unfold
from agentsh_proxy.mcp_client.discovery import Watcher
from agentsh_proxy.recorder import Recorder
from agentsh_proxy.scheduling import ask_for_short_slices

BACKLOG = 1024  # connections waiting to be accepted; agents open them in bursts
PATIENCE = 2.0  # seconds at the end for what the supervisor still has to read
DRAIN_SECONDS = 10.0  # after SIGTERM without a word from the supervisor

log = logging.getLogger("agentsh_proxy")


def main(arguments: list[str]) -> int:
    """Run a worker until its supervisor is gone or says so. Returns the exit status."""
    parser = launching.arguments("agentsh_proxy")
    parser.add_argument(
        "--charge-fd", type=int, required=True, help="rate questions to the supervisor (SOCK_SEQPACKET)"
    )
    parser.add_argument(
        "--refusing-fd",
        type=int,
        required=True,
        help="a byte of memory: whether refused calls are remembered",
    )
    parser.add_argument(
        "--listen-fd",
        type=int,
        action="append",
        default=[],
        help="a bound socket for clients of the LLM proxy",
    )
    parser.add_argument(
        "--journal-fd", type=int, required=True, help="records of the gateway's calls (SOCK_STREAM)"
    )
    parser.add_argument("--gateway-fd", type=int, help="a bound socket for clients of the MCP gateway")
    parser.add_argument(
        "--stdio-fd", type=int, help="who starts stdio servers for the gateway (SOCK_SEQPACKET)"
    )
    parser.add_argument("--record-fd", type=int, help="requests and bodies for the archive (SOCK_STREAM)")
    parser.add_argument("--discover", action="store_true", help="ask the declared servers for their tools")
    options = parser.parse_args(arguments)
    landlock = launching.confined(options, "worker")
    if landlock is None:
        return launching.EXIT_UNCONFINED
    ask_for_short_slices()  # where it may not, it waits for its turn like others
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(options, landlock))
    return 0


async def _work(options: argparse.Namespace, landlock: int) -> None:
    loop = asyncio.get_running_loop()
    _, journal = await asyncio.open_unix_connection(sock=socket.socket(fileno=options.journal_fd))
    worker = Worker(
        loop,
        socket.socket(fileno=options.charge_fd),
        [socket.socket(fileno=fd) for fd in options.listen_fd],
        discovers=options.discover,
        gateway=_gateway(options, journal.transport),
        refusing=memoryview(mmap(options.refusing_fd, 1, MAP_SHARED, PROT_READ)),
    )
    if options.record_fd is not None:
        recorder = worker.recorder = Recorder()
        await loop.create_unix_connection(lambda: recorder, sock=socket.socket(fileno=options.record_fd))
    worker.counts.landlock = landlock
    loop.set_exception_handler(_report_bug)
    loop.add_signal_handler(signal.SIGTERM, worker.drain, DRAIN_SECONDS)
    # Ctrl-C reaches the whole group; the supervisor decides.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    await loop.create_unix_connection(lambda: worker, sock=socket.socket(fileno=options.link_fd))
    await worker.ended
    await worker.close()
    journal.close()
    with contextlib.suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(PATIENCE):
            await journal.wait_closed()


@dataclass(frozen=True, slots=True)
class GatewayEnds:
    """What a worker has to run the gateway with."""

    listener: socket.socket
    stdio: socket.socket | None  # who starts stdio servers
    journal: Reporter  # takes what nobody waits for: the records of calls


class Worker(asyncio.Protocol):
    """The worker's end of the link: takes snapshots and sessions, answers what is in force."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        charge: socket.socket,
        listeners: list[socket.socket],
        *,
        discovers: bool = False,
        gateway: GatewayEnds | None = None,
        refusing: Sequence[int] = REFUSING,
    ) -> None:
        self._loop = loop
        self._listeners = listeners
        self._servers: list[asyncio.Server] = []
        self._framer = link.Framer(link.MAX_TO_WORKER)
        self._transport: asyncio.Transport | None = None
        self._ending: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._sessions: dict[str, str] = {}
        self._placed = False
        self._charge = charge
        self._refusing = refusing
        self._discovers = discovers
        self._watcher: Watcher | None = None
        self._ends = gateway
        self.gateway: Gateway | None = None
        self.counts = Counts()
        self.service: Service | None = None
        self.recorder: Recorder | None = None
        self.ended: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport and begin to send counters."""
        self._transport = cast("asyncio.Transport", transport)
        self._loop.call_later(link.COUNTERS_EVERY, self._send_counters)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - gone is gone
        """End: nothing may run without its supervisor."""
        self._transport = None
        self._end()

    def data_received(self, data: bytes) -> None:
        """Do as the supervisor says."""
        try:
            for payload in self._framer.feed(data):
                self._obey(link.decode_to_worker(payload))
        except ProtocolError as error:
            log.error("%s; ending", error)  # noqa: TRY400 - the reason is the whole story
            self._end()

    def drain(self, seconds: float) -> None:
        """Accept no more and end within `seconds`."""
        if self._ending is None:
            self._ending = self._loop.create_task(self._drain(seconds))

    async def close(self) -> None:
        """Send what is left and close the link."""
        if self.service is not None:
            self.service.reporter.flush()
        if self._ends is not None:
            self._ends.journal.flush()
        if self._watcher is not None:
            await self._watcher.stop()
        if self.recorder is not None:
            await self.recorder.close()
        if self._transport is not None:
            self._transport.close()
        await asyncio.sleep(0)

    def _obey(self, message: link.ToWorker) -> None:
        match message:
            case link.Apply(seq, encoded):
                self._apply(encoded, seq)
            case link.Sessions(seq, sessions, placed):
                self._sessions, self._placed = dict(sessions), placed
                if self.service is not None:
                    self.service.sessions = self._sessions
                    self.service.charges.placed = placed
                if self.gateway is not None:
                    self.gateway.sessions = self._sessions
                self._acknowledge(seq)
            case link.Relist(seq):
                if self._watcher is not None:
                    self._watcher.again()
                self._acknowledge(seq)
            case link.Drain(_, seconds):
                self.drain(seconds)

    def _apply(self, encoded: Any, seq: int) -> None:
        gc.collect()  # so that no garbage is frozen; what the policy before is made of is not walked
        current = snapshot.decode(encoded)
        view = unfold(current)
        current.prepare()
        gc.freeze()  # or every full collection walks all of it: 13 ms with 1,000 rules, in which every stream waits
        self._discover(current)
        if self.service is not None:
            self.service.view = view
            if self.gateway is not None:
                self.gateway.follow(current)
            self._acknowledge(seq)
            return
        service = self.service = Service(
            self._loop,
            view,
            reporter=Reporter(self._write, self._waiting, self._loop.call_soon),
            charges=Charges(self._charge, lambda: service.view.fail_closed, self._refusing),
            counts=self.counts,
            pool=Pool(self._loop, self.counts),
            recorder=self.recorder,
            token_key=bytes.fromhex(encoded.get("token_key", "")),
        )
        service.sessions = self._sessions
        service.charges.placed = self._placed
        if self._ends is not None:
            self.gateway = Gateway(self._loop, current, self._means(service, self._ends))
            self.gateway.sessions = self._sessions
        self._starting = self._loop.create_task(self._listen(service, seq))

    def _means(self, service: Service, ends: GatewayEnds) -> GatewayMeans:
        return GatewayMeans(
            charges=service.charges,
            counts=self.counts,
            emit=ends.journal.emit,
            report=lambda report: self._write(link.encode(link.Report(report))),
            stdio=ends.stdio,
        )

    def _discover(self, current: snapshot.Snapshot) -> None:
        """Follow the servers that policy does not deny: who must not be called is not talked to either."""
        if not self._discovers:
            return
        servers = [s for s in current.registry.servers if not current.judge_server(s.id).denied]
        schemes = upstream_schemes(current)
        if self._watcher is None:
            self._watcher = Watcher(
                servers, lambda report: self._write(link.encode(link.Report(report))), schemes=schemes
            )
            self._watcher.start()
        else:
            self._watcher.update(servers, schemes)

    async def _listen(self, service: Service, seq: int) -> None:
        for listener in self._listeners:
            server = await self._loop.create_server(
                lambda: ClientConnection(service), sock=listener, backlog=BACKLOG
            )
            self._servers.append(server)
        if self.gateway is not None and self._ends is not None:
            front = self.gateway.front
            server = await self._loop.create_server(
                lambda: GatewayConnection(front), sock=self._ends.listener, backlog=BACKLOG
            )
            self._servers.append(server)
        self._acknowledge(seq)

    async def _drain(self, seconds: float) -> None:
        for server in self._servers:
            server.close()
        if self.service is not None:
            gateway = (self.gateway.drain(seconds),) if self.gateway is not None else ()
            await asyncio.gather(self.service.drain(seconds), *gateway)
        self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def _acknowledge(self, seq: int) -> None:
        generation = self.service.view.snapshot.generation if self.service is not None else 0
        self._write(link.encode(link.Ack(seq, generation)))

    def _send_counters(self) -> None:
        if self._transport is not None:
            self._write(link.encode(link.Counters(self.counts.totals())))
            self._loop.call_later(link.COUNTERS_EVERY, self._send_counters)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _waiting(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0


def _gateway(options: argparse.Namespace, journal: asyncio.WriteTransport) -> GatewayEnds | None:
    if options.gateway_fd is None:
        return None
    # At once: a client may have its answer, and the worker its end, before the next turn of the loop.
    reporter = Reporter(journal.write, journal.get_write_buffer_size, lambda flush: flush())
    stdio = socket.socket(fileno=options.stdio_fd) if options.stdio_fd is not None else None
    return GatewayEnds(socket.socket(fileno=options.gateway_fd), stdio, reporter)


def _report_bug(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG001 - asyncio's signature
    """Say what broke, without its data: the connection it broke on is closed by the loop."""
    error = context.get("exception")
    if isinstance(error, ConnectionError | TimeoutError):
        return  # a peer that is gone
    log.error("%s: %s", context.get("message", "error"), type(error).__name__, exc_info=error)
