"""The DNS stub as the supervisor sees it: its sockets, its process, and the decision when an answer may reach who asked.

An answer that names a watched name goes out once both planes confirmed its addresses: a client that asks the stub cannot be
quicker than the planes. The process that talks to clients and name servers is agentsh_proxy.dns_stub.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from agentsh_net.core.audit.events import Event, LayerStateChanged
from agentsh_net.core.configuration.settings import Resolve
from agentsh_net.core.errors import ConfigError, Problem, ProtocolError
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
from agentsh_net.core.network.dns_message import ascribe, mentioned, parse
from agentsh_net.core.network.gap import Gaps
from agentsh_net.kernel.names.name_servers import NameServers
from agentsh_net.kernel.names.resolver import Resolver
from agentsh_net.workers import unprivileged

LAYER = "dns-stub"
START_SECONDS = 30.0  # as long as a proxy worker gets
BACKOFF = (0.1, 10.0)  # seconds before the process is replaced: the first, and the most after repeated deaths
_STEADY_SECONDS = 60.0
_UPSTREAM_EVERY = 5.0  # how soon a change of resolv.conf is followed
_END_SECONDS = 2.0
_BATCH = 64
# Without a name server, or once the process is gone for good reasons of its own.
_REMEDY = "see the log; network.resolve.upstream says whom the stub asks"


def bind(resolve: Resolve) -> tuple[socket.socket, socket.socket]:
    """Return the UDP and the TCP socket of the stub. Raises ConfigError."""
    family = socket.AF_INET6 if ":" in resolve.stub_listen else socket.AF_INET
    opened: list[socket.socket] = []
    address: tuple[str, int] = (resolve.stub_listen, resolve.stub_port)
    try:
        # TCP first: of a port that the system chooses, the UDP side is hardly ever taken.
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            opened.append(socket.socket(family, kind | socket.SOCK_CLOEXEC))
            if kind == socket.SOCK_STREAM:
                opened[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened[-1].bind(address)
            address = (address[0], opened[0].getsockname()[1])
    except OSError as error:
        for each in opened:
            each.close()
        found = f"{address[0]} port {address[1]} ({error.strerror})"
        raise ConfigError(
            [Problem("network.resolve.stub_listen", found, "an address of this host whose port is free")]
        ) from error
    return opened[1], opened[0]


class DnsStub:
    """Keeps one process running, and decides on each answer that it holds."""

    def __init__(
        self,
        resolve: Resolve,
        servers: NameServers,
        resolver: Resolver,
        readdress: Callable[[], asyncio.Future[bool]],
        emit: Callable[[Event], None],
        log: logging.Logger,
    ) -> None:
        self._sockets = bind(resolve)
        self._servers, self._resolver, self._readdress = servers, resolver, readdress
        self._emit, self._log = emit, log
        self._link: socket.socket | None = None
        self._serving = asyncio.Event()
        self._why = "starting"
        self._asked: tuple[str, ...] = ()
        self._held = Gaps()
        self._refused = 0

    @property
    def address(self) -> tuple[str, int]:
        """Where it answers."""
        host, port = self._sockets[0].getsockname()[:2]
        return host, port

    async def serving(self) -> None:
        """Wait until it answers, for as long as a start may take; `status` tells if it does not."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                await self._serving.wait()

    async def run(self) -> None:
        """Keep a process running until cancelled; it ends with its link."""
        pause = BACKOFF[0]
        try:
            while True:
                began = time.monotonic()
                why = await self._once()
                if time.monotonic() - began > _STEADY_SECONDS:
                    pause = BACKOFF[0]
                self._fail(why)
                await asyncio.sleep(pause)
                pause = min(pause * 2, BACKOFF[1])
        finally:
            for each in self._sockets:
                each.close()

    async def _once(self) -> str:
        """Run one process, and return why it does not run any more."""
        try:
            process = await self._spawn()
        except (OSError, RuntimeError) as error:  # the host has no process, thread or descriptor left
            return f"its process cannot be started: {error}"
        try:
            status = await self._attend(process)
        finally:
            self._hang_up()  # which ends the process
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await process.wait()
        return f"its process ended with status {status}"

    def status(self) -> dict[str, Any]:
        """Return what it does, and for how long it held the answers with watched names."""
        host, port = self.address
        why = self._why or ("" if self._asked else "no name server is known besides the stub itself")
        return {
            "wanted": True,
            "in_force": not why,
            "reason": why,
            "remedy": _REMEDY if why else "",
            "listen": host,
            "port": port,
            "upstream": list(self._asked),
            "refused": self._refused,
            "held": asdict(self._held.summary()),
        }

    def decide(self, message: bytes) -> asyncio.Future[bool] | bool:
        """Say whether an answer may go out, or when that will be known. What cannot be read whole does not go."""
        try:
            answer = parse(message)
        except ProtocolError:
            return False
        named = mentioned(answer, self._resolver.wire_names())
        if not named:
            return answer.readable
        if not answer.readable or not self._resolver.released(ascribe(answer, named)):
            return False
        return self._readdress()

    async def _spawn(self) -> asyncio.subprocess.Process:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        udp, tcp = self._sockets
        with theirs:
            process = await unprivileged.start(
                "dns-stub", passing={"--link-fd": theirs, "--udp-fd": udp, "--tcp-fd": tcp}
            )
        ours.setblocking(False)
        self._link, self._asked = ours, ()
        asyncio.get_running_loop().add_reader(ours.fileno(), self._read)
        return process

    async def _attend(self, process: asyncio.subprocess.Process) -> int:
        """Tell the process whom to ask, and whenever that changes, until it ends."""
        ended = asyncio.ensure_future(process.wait())
        try:
            while not ended.done():
                servers = self._servers.asked()
                if servers != self._asked and self._send(Upstream(servers)):
                    self._asked = servers
                await asyncio.wait([ended], timeout=_UPSTREAM_EVERY)
            return ended.result()
        finally:
            ended.cancel()

    def _read(self) -> None:
        link = self._link
        if link is None:
            return
        try:
            for _ in range(_BATCH):
                data = link.recv(MAX_DATAGRAM)
                if not data:
                    self._hang_up()  # the process is about to end
                    return
                self._take(decode(data))
        except BlockingIOError:
            return
        except (OSError, ProtocolError) as error:
            self._log.error("the DNS stub's link: %s", error)
            self._hang_up()  # which ends the process, if it is not gone already

    def _take(self, message: Message) -> None:
        match message:
            case Serving():
                self._why = ""
                self._serving.set()
                self._emit(
                    LayerStateChanged(
                        layer=LAYER, state="in force", reason="answers are held until they are in force"
                    )
                )
            case Held(number, answer):
                decided = self.decide(answer)
                if isinstance(decided, bool):
                    self._tell(number, release=decided)
                else:
                    began = time.monotonic()
                    decided.add_done_callback(lambda done: self._confirmed(number, done, began))

    def _confirmed(self, number: int, done: asyncio.Future[bool], began: float) -> None:
        if not done.cancelled():
            self._held.add(time.monotonic() - began)
            self._tell(number, release=done.result())

    def _tell(self, number: int, *, release: bool) -> None:
        self._refused += not release
        self._send(Decided(number, release))

    def _send(self, message: Message) -> bool:
        """Send to the process; what it does not take up in time counts as refused there."""
        try:
            return self._link is not None and self._link.send(encode(message)) > 0
        except OSError:
            return False

    def _hang_up(self) -> None:
        if self._link is not None:
            asyncio.get_running_loop().remove_reader(self._link.fileno())
            self._link.close()
            self._link = None

    def _fail(self, why: str) -> None:
        self._serving.clear()
        self._why = why
        self._log.error("the DNS stub does not answer: %s", why)
        self._emit(LayerStateChanged(layer=LAYER, state="not in force", reason=why, remedy=_REMEDY))
