"""The pool of proxy workers, as the supervisor sees it: listening sockets, processes, and what is said over their links.

Workers parse what comes from the network, so nothing they say is taken on trust. What an event or a snapshot means is the
daemon's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any, BinaryIO

from agentsh_net.core import snapshot
from agentsh_net.core.audit.events import Event, WorkerExited
from agentsh_net.core.configuration.settings import Gateway, Proxy
from agentsh_net.core.errors import ConfigError, ProtocolError
from agentsh_net.core.links import link
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.workers import listening, unprivileged
from agentsh_net.workers.arbiter import Arbiter
from agentsh_net.workers.journal import Journal
from agentsh_net.workers.link import WorkerLink
from agentsh_net.workers.worker_process import SILENT, WorkerProcess

# A worker that did not take a policy up by then is replaced, and the new one starts with it. Some 6 were seen of a thousandfold
# policy on a machine seven times too busy; one that sleeps is ended sooner (`worker_process`). Below a client's patience with `reload`.
ACK_SECONDS = 20.0
# From exec to accepting: 50 were seen on an emulated and busy machine. Below the 90 after which systemd gives the daemon up.
START_SECONDS = 75.0
DRAIN_SECONDS = 10.0  # what a stream under way gets when the daemon stops
BACKOFF = (0.1, 30.0)  # seconds before a worker is replaced: the first, and the most after repeated deaths
STEADY_SECONDS = 60.0  # a worker that lived this long starts the backoff anew


class Pool:
    """Keeps `proxy.workers` processes running on the newest snapshot. All methods belong to one event loop."""

    def __init__(
        self,
        proxy: Proxy,
        *,
        on_event: Callable[[Event], None],
        on_report: Callable[[Mapping[str, Any]], None],
        arbiter: Arbiter,
        gateway: Gateway | None = None,
        stdio: Callable[[], socket.socket] | None = None,
        archive: Callable[[], socket.socket] | None = None,
    ) -> None:
        self.employ: Callable[[int], None] = lambda _: None  # told of every process before it serves
        self.report = on_event
        self.discovered = on_report
        self.arbiter = arbiter
        self.stdio = stdio
        self.archive = archive
        self.stopping = False  # dead workers stay dead
        self._listeners = listening.bind(proxy) if proxy.mode != "disabled" else []
        try:
            self._gateway = (
                listening.bind(gateway, section="gateway")[0] if gateway and gateway.enabled else None
            )
        except ConfigError:
            for listener in self._listeners:
                listener.close()
            raise
        self._workers: list[_Worker] = []
        self._seq = 0
        self._snapshot: Mapping[str, Any] | None = None
        self._sessions: Mapping[str, str] = {}
        self._placed = False
        self._gone: Counter[str] = Counter()  # totals of workers that ended, so that no sum ever falls
        self._token_key = token_hex(32)  # of DLP tokens: one for all workers, so that prompts stay alike

    @property
    def url(self) -> str:
        """The LLM proxy's base, empty while it is off."""
        return listening.url(self._listeners[0]) if self._listeners else ""

    @property
    def gateway_url(self) -> str:
        """The MCP gateway's base, empty while it is off."""
        return listening.url(self._gateway) if self._gateway is not None else ""

    @property
    def size(self) -> int:
        """How many processes there should be."""
        return max(1, len(self._listeners))

    @property
    def pids(self) -> list[int]:
        """The processes that are running."""
        return [worker.pid for worker in self._workers if worker.pid]

    @property
    def trouble(self) -> str:
        """What is wrong with the workers; empty where all of them run and are heard."""
        found = {
            "are not running": self.size - len(self.pids),
            f"have not been heard for {SILENT * link.COUNTERS_EVERY:g} s": sum(
                w.silent for w in self._workers
            ),
        }
        return "; ".join(
            f"{count} of {self.size} workers {what}" for what, count in found.items() if count > 0
        )

    @property
    def processes(self) -> set[int]:
        """The newest process of each place, also before it accepts and after it has ended: what it did may be told late."""
        return {worker.newest for worker in self._workers}

    def counters(self) -> dict[str, int]:
        """Return the workers' totals, summed."""
        total = self._gone.copy()
        for worker in self._workers:
            total.update(worker.counters)
        return dict(total)

    async def start(self, first: Snapshot) -> None:
        """Start the workers and return when all of them accept. Raises ProtocolError where one does not."""
        self._snapshot = self._encoded(first)
        # One of them is enough to ask the servers for their tools, and MCP sessions live in one process.
        first_listener = self._listeners[0] if self._listeners else None
        self._workers = [
            _Worker(self, first_listener, gateway=self._gateway, discovers=True),
            *(_Worker(self, listener) for listener in self._listeners[1:]),
        ]
        await asyncio.gather(*(worker.start() for worker in self._workers))

    async def publish(self, current: Snapshot) -> None:
        """Make every worker judge by `current`; return when all that live do. One that does not in time is replaced."""
        self._snapshot = self._encoded(current)
        await self._tell(link.Apply(self._next(), self._snapshot))

    def _encoded(self, current: Snapshot) -> dict[str, Any]:
        return {**snapshot.encode(current), "token_key": self._token_key}

    async def publish_sessions(self, sessions: Mapping[str, str], *, placed: bool) -> None:
        """Make every worker know exactly these sessions: sha256 of the token (hex) to session id; `placed`: some have a cgroup."""
        self._sessions, self._placed = dict(sessions), placed
        await self._tell(link.Sessions(self._next(), self._sessions, placed))

    async def relist(self) -> None:
        """Have every server asked again what it offers; what it says is reported as ever."""
        await self._tell(link.Relist(self._next()))

    async def stop(self, seconds: float = DRAIN_SECONDS) -> None:
        """Let what is under way end within `seconds`, then end the workers and let the port go."""
        self.stopping = True
        for listener in (*self._listeners, *((self._gateway,) if self._gateway is not None else ())):
            listener.close()
        await asyncio.gather(*(worker.stop(seconds) for worker in self._workers))

    # What a worker needs of its pool.

    def greeting(self) -> list[link.ToWorker]:
        """Return what a new worker is told first."""
        assert self._snapshot is not None  # noqa: S101 - start() sets it
        return [
            link.Sessions(self._next(), self._sessions, self._placed),
            link.Apply(self._next(), self._snapshot),
        ]

    def remember(self, counters: Mapping[str, int]) -> None:
        """Keep the totals of a worker that ended; what was open in it is not."""
        self._gone.update({k: n for k, n in counters.items() if not k.startswith(("open_", "landlock"))})

    async def _tell(self, message: link.ToWorker) -> None:
        await asyncio.gather(*(worker.tell(message, ACK_SECONDS) for worker in self._workers))

    def _next(self) -> int:
        self._seq += 1
        return self._seq


class _Worker:
    """One place in the pool: a listening socket and the process that accepts on it, replaced when it dies."""

    def __init__(
        self,
        pool: Pool,
        listener: socket.socket | None,
        *,
        gateway: socket.socket | None = None,
        discovers: bool = False,
    ) -> None:
        self._pool = pool
        self._listener = listener
        self._gateway = gateway
        self._discovers = discovers
        self._running: WorkerProcess | None = None
        self._keeper: asyncio.Task[None] | None = None
        self.newest = 0  # the process that was started last

    @property
    def pid(self) -> int:
        """The process, 0 while there is none."""
        return self._running.process.pid if self._running is not None else 0

    @property
    def silent(self) -> bool:
        """Say whether the process runs and is not heard: stopped, or busy without an end."""
        return self._running is not None and self._running.silent

    @property
    def counters(self) -> Mapping[str, int]:
        """The totals the process told last."""
        return self._running.link.counters if self._running is not None else {}

    async def start(self) -> None:
        """Start the process, wait until it accepts, and keep one running from then on. Raises ProtocolError."""
        self._running = await self._spawn()
        self._keeper = asyncio.create_task(self._keep())

    async def tell(self, message: link.ToWorker, seconds: float) -> None:
        """Send a message and wait for its acknowledgement; a worker that gives none in time is killed."""
        running = self._running
        if running is None:
            return  # the next one begins with what is newest
        if not await running.link.tell([message], seconds):
            running.kill(f"did not acknowledge a message within {seconds:g} s")

    async def stop(self, seconds: float) -> None:
        """End the process."""
        running = self._running
        if running is not None:
            running.link.send(link.Drain(0, seconds))
            try:
                async with asyncio.timeout(seconds + 2):
                    await running.gone()
            except TimeoutError:
                running.kill("did not end in time")
                await running.gone()
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper

    async def _keep(self) -> None:
        """Replace the process whenever it ends, soon at first, later with patience."""
        loop = asyncio.get_running_loop()
        shortest, longest = BACKOFF
        pause, refused = shortest, ""
        while True:
            running = self._running
            if running is not None:
                began = loop.time()
                listening_to = asyncio.create_task(running.listen())
                status = await running.gone()
                listening_to.cancel()
                self._pool.remember(running.link.counters)
                self._running = None
                if self._pool.stopping:
                    return
                why = running.why_ended(status)
                self._pool.report(
                    WorkerExited(pid=running.process.pid, status=why, reason=f"a proxy worker ended: {why}")
                )
                if loop.time() - began > STEADY_SECONDS:
                    pause = shortest
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)
            try:
                self._running, refused = await self._spawn(), ""
            # The latter two: the host has no processes, threads or descriptors left.
            except (ProtocolError, OSError, RuntimeError) as error:
                if str(error) != refused:
                    refused = str(error)
                    self._pool.report(
                        WorkerExited(status=refused, reason=f"no proxy worker starts: {refused}")
                    )

    async def _spawn(self) -> WorkerProcess:
        """Start a process and return when it accepts. Raises ProtocolError where it does not."""
        ours, theirs = socket.socketpair()
        journal = Journal(self._pool.report)
        shared = {"--listen-fd": self._listener, "--gateway-fd": self._gateway}
        given: dict[str, socket.socket | BinaryIO | None] = {
            "--link-fd": theirs,
            "--journal-fd": journal.attach(),
            "--charge-fd": self._pool.arbiter.attach(),
            "--refusing-fd": self._pool.arbiter.refusing(),
            "--stdio-fd": self._pool.stdio() if self._pool.stdio and self._gateway else None,
            "--record-fd": self._pool.archive() if self._pool.archive else None,
        }
        try:
            process = await unprivileged.start(
                *(["--discover"] if self._discovers else []),
                passing={option: each for option, each in (shared | given).items() if each is not None},
            )
        finally:
            for each in given.values():
                if each is not None:
                    each.close()
        self.newest = process.pid
        self._pool.employ(process.pid)  # before it knows a server or a provider to connect to
        try:
            return await self._greeted(process, ours, journal)
        except asyncio.CancelledError:  # as the pool stops
            with contextlib.suppress(ProcessLookupError, PermissionError):
                process.kill()
            raise

    async def _greeted(
        self, process: asyncio.subprocess.Process, ours: socket.socket, journal: Journal
    ) -> WorkerProcess:
        """Return a process when it accepts; its link is closed where that is not awaited. Raises ProtocolError where it does not."""
        _, conversation = await asyncio.get_running_loop().create_unix_connection(
            lambda: WorkerLink(self._pool.report, self._pool.discovered if self._discovers else None),
            sock=ours,
        )
        running = WorkerProcess(process, conversation, journal)
        conversation.on_violation = journal.on_violation = running.kill
        try:
            accepts = await conversation.tell(self._pool.greeting(), START_SECONDS)
        except asyncio.CancelledError:
            conversation.close()
            raise
        if not accepts:
            running.kill("did not start to accept connections")
            await process.wait()
            raise ProtocolError(f"a proxy worker did not start: {running.why}")
        return running
