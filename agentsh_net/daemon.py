"""The only place where things meet: start, emit, stop.

Each part does its own work and this file decides the order. What is in force, and how it changes, is `current`'s and
`reloading`'s; what the control socket may ask is `handlers`'.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from agentsh_net import __version__, briefing, metrics, notify
from agentsh_net.agent_sessions import AgentSessions
from agentsh_net.audit.recording import Outlets, Recording
from agentsh_net.config.options import Options
from agentsh_net.config.policy_file import Loaded
from agentsh_net.control.server import Server as ControlServer
from agentsh_net.control.shim_server import ShimServer
from agentsh_net.core.audit import events
from agentsh_net.core.audit.events import Event
from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.errors import ConfigError, KernelError, Problem, StoreError
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.core.links.shim_link import beside
from agentsh_net.core.network.plane import Kernel
from agentsh_net.current import Current, Means
from agentsh_net.daemon_state import DaemonState
from agentsh_net.handlers import handlers
from agentsh_net.kernel.host import open_kernel
from agentsh_net.layer_watch import LayerWatch
from agentsh_net.log import Unhandled
from agentsh_net.metrics_page import MetricsPage
from agentsh_net.record_reader import RecordReader
from agentsh_net.reloading import Reloading
from agentsh_net.resolution.watch import NameWatch
from agentsh_net.servers import inventory
from agentsh_net.servers.reports import Reports
from agentsh_net.shims.dependencies import Dependencies
from agentsh_net.shims.service import ShimService
from agentsh_net.store import queries
from agentsh_net.store.writer import Writer
from agentsh_net.tasks import Tasks
from agentsh_net.workers import archivist as archivists
from agentsh_net.workers.arbiter import Arbiter
from agentsh_net.workers.archivist import Archivist
from agentsh_net.workers.pool import Pool
from agentsh_net.workers.stdio_servers import StdioServers

EXIT_OK = 0
CLEAR_EVERY = 1.0  # seconds: how soon a session is ended in which nothing runs any more
CHANGE_SECONDS = 5.0  # what a change of policy under way gets at the end: most wait for nothing but the kernel and the workers
LAST_RECORDS = 1.0  # seconds for what is still to be read at the end, which in a flood never ends


class Daemon:
    """The supervisor: one event loop, but for the kernel's slow calls, the store's thread and the arbiter's."""

    def __init__(
        self,
        wanted: Options,
        loaded: Loaded,
        logger: logging.Logger,
        open_kernel: Callable[[Network], Kernel] = open_kernel,
        *,
        signals: bool = True,  # off where it does not run in the main thread
    ) -> None:
        self._wanted = wanted
        self._log = logger
        self._open_kernel = open_kernel
        self._initial = loaded
        self._signals = signals
        self._tasks = Tasks(self.emit, logger)
        self.state = DaemonState()
        # Set while starting.
        self.arbiter: Arbiter
        self._control: ControlServer
        self._recording: Recording
        self.stdio = StdioServers(
            lambda: self.state.current.snapshot, logger.warning, Tasks(self.emit, logger)
        )

    async def run(self) -> int:
        """Start, serve until told to stop, stop. Raises our errors where it cannot start."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(Unhandled(self._log))
        if self._signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.state.stop)
            loop.add_signal_handler(signal.SIGHUP, self.reload_soon)
        # What is started is stopped in reverse order, whether the rest came up or not.
        async with AsyncExitStack() as stack:
            await self._start(stack, loop)
            self._announce()
            await self.state.hear_servers()
            self._tell_ready()
            await self.state.stopping.wait()
            notify.sd_notify("STOPPING=1")
            if self._wanted.ready_file is not None:
                notify.remove_ready_file(self._wanted.ready_file)
        self._log.info("stopped")
        return EXIT_OK

    def emit(self, event: Event) -> None:
        """Stamp an event, record it, and show it to whoever follows. Never waits; a connection may, for what explains it."""
        self._recording.emit(event)

    def reload_soon(self) -> None:
        """Read the policy file again and ask the servers, unless it is being read for the first time."""
        if self.state.ready:
            self.state.reloading.soon(asked=True)
            self._tasks.spawn(self.state.hear_servers(anew=True))

    # Starting, and stopping in reverse.

    async def _start(self, stack: AsyncExitStack, loop: asyncio.AbstractEventLoop) -> None:
        config = self._initial.config
        # First: a second daemon must not touch what the first one enforces.
        await self._take_the_socket(stack)
        buckets = Buckets(config.sandbox.mcp.rate_limits)
        self.arbiter = Arbiter(buckets, time.monotonic)
        archivist = await self._begin_recording(stack, loop)
        self._prepare_processes(stack, archivist)
        self.arbiter.start()
        stack.callback(self.arbiter.stop)
        kernel = await asyncio.to_thread(self._open_kernel, config.network)
        self.state.layers = LayerWatch(kernel, self.emit, self._log)
        stack.push_async_callback(self._close_kernel, kernel)
        memory = Path(config.store.path).with_suffix(".addresses.json")
        self.state.names = NameWatch(config.network, memory, tasks=self._tasks, emit=self.emit, log=self._log)
        await self._remember(
            Means(
                self.state.writer,
                self.arbiter,
                buckets,
                self.state.pool,
                kernel,
                self.state.names.resolver,
                archivist,
            )
        )
        await self._enforce(stack)
        reader = RecordReader(kernel, self.state.current.tell, self._log)
        stack.callback(reader.stop)
        reader.start(loop)
        await self.state.layers.look()
        await self._follow(stack)
        self.state.ready = True
        if self.state.page is not None:
            self.state.page.start()

    async def _take_the_socket(self, stack: AsyncExitStack) -> None:
        self._control = ControlServer(Path(self._initial.config.control.socket), handlers(self.state))
        await self._control.start()
        stack.push_async_callback(self._control.close)
        if self._wanted.ready_file is not None:
            notify.claim_ready_file(self._wanted.ready_file, self._initial.config.control.socket)

    async def _begin_recording(self, stack: AsyncExitStack, loop: asyncio.AbstractEventLoop) -> Archivist:
        config = self._initial.config
        store = Path(config.store.path)
        self.state.writer = await asyncio.to_thread(self._open_store, loop, store)
        stack.push_async_callback(self._close_store)
        outlets = Outlets(
            self.arbiter.note,
            self.state.writer.put,
            self.state.writer.put_rows,
            self._control.publish,
            self._control.followed,
        )
        self._recording = Recording(
            lambda: self.state.current.snapshot, outlets, self.state.tally, self._tasks.spawn
        )
        writer = self.state.writer
        archivist = archivists.start(store, config.llm_storage, writer.change, self._log, writer.now)
        stack.push_async_callback(asyncio.to_thread, archivist.stop)
        return archivist

    def _prepare_processes(self, stack: AsyncExitStack, archivist: Archivist) -> None:
        """Bind what the workers and the metrics page will listen on, while the configuration can still be refused."""
        config = self._initial.config
        if config.proxy.mode != "disabled" or config.gateway.enabled:
            self.state.pool = Pool(
                config.proxy,
                on_event=self._on_worker_event,
                on_report=self._on_report,
                arbiter=self.arbiter,
                gateway=config.gateway,
                stdio=self.stdio.attach,
                archive=archivist.attach,
            )
        if config.metrics.listen:
            self.state.page = MetricsPage(config.metrics, lambda: metrics.told(self.state), self._log.warning)
            stack.push_async_callback(self.state.page.stop)

    async def _remember(self, means: Means) -> None:
        """Take up what an earlier daemon left in the store: sessions, tools and pins."""
        config = self._initial.config
        store = Path(config.store.path)
        self.state.sessions.load(await asyncio.to_thread(queries.load_sessions, store))
        registry, pins = await asyncio.to_thread(inventory.remembered, config.sandbox.mcp.servers, store)
        self.state.current = Current(self._initial, registry, pins, means, emit=self.emit, log=self._log)
        self.state.reports = Reports(self.state.current, self.state.writer, emit=self.emit, log=self._log)
        self.state.reloading = Reloading(
            self._wanted, self.state.current, self._tasks, emit=self.emit, log=self._log
        )
        self.state.agents = AgentSessions(self.state.sessions, self.state.current, means, self._log)

    async def _enforce(self, stack: AsyncExitStack) -> None:
        if self.state.pool is not None:
            stack.push_async_callback(self.stdio.close)
            stack.push_async_callback(self.state.pool.stop)  # drains while the kernel still enforces
            await self.state.agents.publish()
        await self.state.current.establish()

    async def _follow(self, stack: AsyncExitStack) -> None:
        """Follow what changes from now on: names, layers, shims, the policy file."""
        stack.push_async_callback(self._tasks.end)
        stack.callback(self.state.names.stop)
        await self.state.names.start(self.state.current)
        self._tasks.keep("watch", self._look_around)
        self._tasks.keep("sessions", self._clear_away)
        self._tasks.keep("watchdog", notify.say_alive)
        await self._serve_shims(stack)
        self.state.reloading.watch(self._initial)
        stack.push_async_callback(self._let_a_change_end)
        stack.callback(self.state.reloading.close)

    async def _serve_shims(self, stack: AsyncExitStack) -> None:
        needs = Dependencies(
            snapshot=lambda: self.state.current.snapshot,
            take=self.state.reports.take,
            recognise=self.state.reports.recognise,
            within=self.arbiter.charge,
            awaits=self.arbiter.awaits,
            claim=self.arbiter.claim,
            emit=self.emit,
            record=self._recording.calls,
            record_sheet=self._recording.sheet,
            takes_news=self.state.writer.takes_more,
            warn=self._log.warning,
            session=self.state.agents.of,
        )
        self.state.shims = ShimService(needs)
        socket = Path(beside(self._initial.config.control.socket))
        shims = ShimServer(socket, self.state.shims, self._tasks.failed)
        await shims.start()
        stack.push_async_callback(shims.close)

        def changed() -> None:
            shims.revoke()
            self.stdio.follow()

        self.state.current.on_change = changed

    def _open_store(self, loop: asyncio.AbstractEventLoop, path: Path) -> Writer:
        def trouble(error: StoreError | None) -> None:
            loop.call_soon_threadsafe(self._on_store_trouble, error)

        try:
            return Writer(path, self._initial.config.store.retention, trouble)
        except StoreError as error:
            if isinstance(error.__cause__, OSError):  # the place is wrong, not the database in it
                raise ConfigError(
                    [Problem("store.path", str(error), "a file in a writable directory")]
                ) from error
            raise

    async def _close_store(self) -> None:
        lost = await asyncio.to_thread(self.state.writer.close)
        if lost:
            self._log.error("%d events could not be stored", lost)

    async def _close_kernel(self, kernel: Kernel) -> None:
        """Let go of the kernel. Where the start failed, what an earlier daemon enforced stays in force."""
        if self.state.ready:
            keep = self.state.current.loaded.config.network.on_exit == "keep" and not self.state.removes
        elif keep := kernel.inherited:
            self._log.warning("what was in force before stays so; remove it: agentsh-net down --force")
        try:
            if self.state.ready:
                until = time.monotonic() + LAST_RECORDS
                while time.monotonic() < until and (found := kernel.records()):
                    self.state.current.tell(found)  # what was seen while the proxy drained
                self._recording.flush()
            await asyncio.to_thread(lambda: kernel.close(remove=not keep))
        except KernelError as error:
            self._log.error("something stays in the kernel: %s; remove it: agentsh-net down --force", error)
        if self.state.ready:
            left = "kept" if keep else "removed"
            states = {s.layer: left for s in self.state.layers.layers if s.in_force}
            self.emit(events.DaemonStopped(layers=states, reason=f"told to stop; enforcement {left}"))

    def _announce(self) -> None:
        """Say what is in force: to people and to the audit trail."""
        snapshot = self.state.current.snapshot
        self.emit(
            events.DaemonStarted(
                version=__version__,
                generation=snapshot.generation,
                digest=snapshot.digest,
                layers=self.state.layers.states(),
                reason=f"policy from {self._wanted.source}",
            )
        )
        lines = briefing.brief(
            snapshot, self._wanted.source, self.state.layers.layers, self.state.proxy_url, self._initial.notes, self.state.current.limits(), gateway=self.state.gateway_url
        )  # fmt: skip
        for line in lines:
            self._log.info("%s", line)
        for line in self.state.current.unknown():
            self._log.warning("%s", line)

    def _tell_ready(self) -> None:
        """Say to whoever started us that what is in force is in force."""
        if self._wanted.ready_file is not None:
            socket = self.state.current.snapshot.config.control.socket
            facts = {
                "pid": os.getpid(),
                "proxy": self.state.proxy_url,
                "control": socket,
                "layers": self.state.layers.states(),
            }
            if self.state.gateway_url:
                facts["gateway"] = self.state.gateway_url
            if self.state.page is not None:
                facts["metrics"] = self.state.page.url
            notify.write_ready_file(self._wanted.ready_file, facts)
        notify.sd_notify("READY=1")

    # What comes in.

    def _on_worker_event(self, event: events.Event) -> None:
        self.emit(event)
        if isinstance(event, events.WorkerExited):
            then = "its open streams ended, and another takes its place" if event.pid else "it is tried again"
            self._log.warning("%s; %s", event.reason, then)

    def _on_report(self, report: Mapping[str, Any]) -> None:
        self._tasks.spawn(self.state.reports.take(report))

    async def _look_around(self) -> None:
        while True:
            await self.state.layers.wait()
            await self.state.layers.look()
            await self.state.current.sweep_again()

    async def _clear_away(self) -> None:
        while True:
            await asyncio.sleep(CLEAR_EVERY)
            async with self.state.current.lock:
                await self.state.agents.clear()

    async def _let_a_change_end(self) -> None:
        """Wait for a policy that is being put in force, and let no other follow: what the planes keep has to be on record."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CHANGE_SECONDS):
                await self.state.current.lock.acquire()

    def _on_store_trouble(self, error: StoreError | None) -> None:
        state, reason = ("degraded", str(error)) if error else ("in force", "events are stored again")
        self._log.log(logging.ERROR if error else logging.INFO, "store: %s", reason)
        if not self.state.ready:  # nothing is there yet that an event would go through
            return
        remedy = error.remedy if error else ""
        self.emit(events.LayerStateChanged(layer="store", state=state, reason=reason, remedy=remedy))
        if error is None:
            self._tasks.spawn(self._store_again())

    async def _store_again(self) -> None:
        """Write what is not history to the store: its file may be a new one, or has missed changes."""
        async with self.state.current.lock:
            with suppress(StoreError):  # which is trouble again, and told; then comes another end of it
                await self.state.current.store_again()
                await self.state.agents.store_again()
